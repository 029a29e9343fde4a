"""What a computing party brings to a run over bundles, and how it enters the sharing
(`docs/design/federated.md` 3).

Each party adds up the parts that it has opened, of all bundles of the agreed list: three vectors whose sum
modulo 2^32 is the sum of all contributors' counts, each of them uniform to whoever holds the others' parts.
To these it adds its own table's counts, if it has one; the backend shares the sums as it shares counts. What
a party gains that adds up another list than the agreed one: nothing, or the same sum
(`docs/design/federated.md` 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.bundles.layout import Layout
from mpc_protocols.engine.inputs.contribution import local_cells
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.cliques import counts_at_levels

if TYPE_CHECKING:
    from mpc_protocols.engine.bitwise.bitslice import Elements


@dataclass(frozen=True)
class CollectedCounts:
    """cells: the sum of the parts that this party has opened, uint32 of (layout.cells,). agreed: hash of the
    agreed list, which all compare. own: the party's own table, None if it has none."""

    layout: Layout
    cells: NDArray[np.uint32] = field(repr=False)
    agreed: bytes
    own: LocalCounts | None = field(repr=False, default=None)

    def ring_cells(
        self, facts: StudyFacts, cliques: Sequence[Clique], levels: Sequence[Level]
    ) -> list[Elements]:
        """This party's addend of each marginal, modulo 2^32. levels: those that the cliques name.

        Raises `DataRefused` (own counts; `local_cells`), `StudyInvalid` (a marginal that bundles do not
        hold).
        """
        parts = counts_at_levels(cast(LocalCounts, self.layout.marginals(self.cells)), facts, levels)(cliques)
        own = local_cells(facts, self.own, cliques, levels)
        return [part.view(np.uint32) + cells for part, cells in zip(parts, own, strict=True)]
