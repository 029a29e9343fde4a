"""Marginals of bundles: sums of parts that the three parties have opened, entered as shares (`bundles.collected`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.bundles.collected import CollectedCounts
from mpc_protocols.engine.inputs.contribution import blocks, ranges
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.replicated.marginals import MarginalSource
from mpc_protocols.replicated.sharing.ring import RingShare, share_own
from mpc_protocols.replicated.sharing.trio import Trio


class CollectedMarginals(MarginalSource):
    """Marginals of all contributors' and custodians' rows together."""

    def __init__(self, trio: Trio, facts: StudyFacts, collected: CollectedCounts) -> None:
        """All three must have added up the same list."""
        super().__init__(trio, collected.agreed)
        self._facts = facts
        self._collected = collected

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        """1 round, 4 bytes a cell sent by each party."""
        facts = self._facts.with_levels(levels)
        of: dict[Clique, RingShare] = {}
        cells = self._collected.ring_cells(self._facts, cliques, levels)
        for block in blocks(facts, cliques):
            shared = share_own(self._trio, np.concatenate(cells[block]))
            of |= {clique: shared[place] for clique, place in ranges(facts, cliques[block])}
        return of
