"""The marginals that two parties hold in additive shares modulo 2^32, and those that are sums of them
(`engine.marginals`).

Where shares come from:

    counted             everybody's own counts: a computing party's share IS its own counts, plus what contributors send, of
                        whom each splits its counts between the two (`held_marginals`); no message between them
    JoinedMarginals     two owners' columns (`two_owners`)

Threat model: the two parties do not collude; contributors may with either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.vertical.two_owners import check_owners, share_cliques
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.held_marginals import HeldMarginals, Split
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import OwnRows, VerticalData

Counted = Callable[[Transfers, StudyFacts, LocalCounts | None], AdditiveMarginals]
"""How a computing party comes to shares of all custodians' counts: of its transfers, the study's facts, its
own data."""
SPLIT: Final = Split(2, first=1)
"""How contributors split theirs."""


def counted(transfers: Transfers, facts: StudyFacts, counts: LocalCounts | None) -> AdditiveMarginals:
    """The sums of all custodians' counts (horizontal). counts: this party's own data, None if it only
    computes."""
    return HeldMarginals(transfers.link.wire, facts, counts, SPLIT)


class JoinedMarginals(AdditiveMarginals):
    """Marginals of the common table's rows, whose columns the two computing parties own (vertical)."""

    def __init__(self, transfers: Transfers, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows. Raises `DataRefused`, `StudyInvalid` (other owners than the two)."""
        partition = data.partition
        check_owners(partition)
        super().__init__(transfers.link.wire.session_id, binding(b"vertical", partition.to_bytes()))
        if data.own is None:
            raise DataRefused("This party owns columns of the study, but brings no rows.")
        data.own.check(partition, transfers.link.me, facts.sizes)
        self._transfers, self._facts = transfers, facts
        self._partition, self._own = partition, data.own

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        codes = dict(self._own.codes)
        for level in levels:
            if level.column in codes:
                codes[level.name] = np.array(level.bins, np.uint32)[codes[level.column]]
        return share_cliques(
            self._transfers,
            self._partition.with_levels(levels),
            OwnRows(self._own.rows, codes),
            self._facts.with_levels(levels).sizes,
            cliques,
        )
