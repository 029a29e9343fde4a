"""What a run of `ideal` costs: no message at all; the cells it holds are counted. On a presumed table,
nothing charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle, Watch, unwatched
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.in_memory.presumed import AllowAll, DryRun
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 20_002


class IdealDryRun(RelayedOracle, DryRun):
    """The ideal oracle on a presumed table. A cost model of a secure backend may extend it by the messages of
    each step."""

    def __init__(
        self, facts: StudyFacts, counts: LocalCounts, parties: int, dealers: int = 3, watch: Watch = unwatched
    ) -> None:
        """counts: marginals of the presumed table. dealers, watch: as for `IdealOracle`."""
        self._parties = parties
        self._shared_cells = 0

        def counted(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
            tables = counts(cliques)
            self._shared_cells += sum(len(cells) for cells in tables)
            return tables

        chance = np.random.default_rng(SEED).bytes  # of nobody's data: the same study is always told the same
        self._ideal = IdealOracle(facts, counted, AllowAll(), chance, dealers, watch)
        super().__init__(self._ideal)

    @property
    def rounds(self) -> int:
        return 0

    @property
    def sent(self) -> Sequence[int]:
        return [0] * self._parties

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return []

    @property
    def shared_cells(self) -> int:
        return self._shared_cells

    @property
    def seconds(self) -> float:
        return 0.0

    def close(self) -> None:
        """Nothing is sent at the end either."""
