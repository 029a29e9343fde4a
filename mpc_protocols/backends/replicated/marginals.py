"""The marginals that are held as replicated shares, and those that are sums of them (`engine.marginals`).

`SharedMarginals` adds custodians' counts (`engine.contribution`), `CollectedMarginals` those of bundles;
`vertical.source` multiplies owners' columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.backends.replicated.sharing.ring import RingShare, segment_sums, share_own
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.inputs.contribution import checked, contributions, ranges
from mpc_protocols.engine.inputs.marginals import Marginals
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.cliques import Derivation, blocks


class MarginalSource(Marginals[RingShare]):
    """One computing party's replicated shares of marginals."""

    def __init__(self, trio: Trio, public: bytes = b"", apart: Sequence[int] = ()) -> None:
        """public: what all three must agree on besides the transcript. apart: see `Marginals`."""
        super().__init__(trio.wire.session_id, public, apart)
        self._trio = trio

    def linear(self, function: Callable[..., Elements], *shares: RingShare) -> RingShare:
        return RingShare(
            function(*(share.own for share in shares)), function(*(share.next for share in shares))
        )

    def pack(self, share: RingShare) -> bytes:
        return pack([share.own, share.next])

    def unpack(self, packed: bytes) -> RingShare:
        return RingShare(*unpack(packed))

    def _derive(self, derivation: Derivation, source: RingShare) -> RingShare:
        return RingShare(derivation.apply(source.own), derivation.apply(source.next))

    def _sum(self, share: RingShare) -> RingShare:
        return segment_sums(share, np.array([len(share)]))


class SharedMarginals(MarginalSource):
    """Marginals of all custodians' rows together: the sums of their own counts (horizontal)."""

    def __init__(self, trio: Trio, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(trio, apart=checked(trio.wire, facts))
        self._facts = facts
        self._counts = counts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        """1 round after the contributors' messages, 4 bytes a cell sent by each computing party; with
        contributors that are checked, as many again for each of them."""
        wire, facts = self._trio.wire, self._facts.with_levels(levels)
        of: dict[Clique, RingShare] = {}
        for block, cells in contributions(
            wire, self._facts, self._counts, cliques, levels, self._contributors
        ):
            shared = share_own(self._trio, cells)
            of |= {clique: shared[..., place] for clique, place in ranges(facts, block)}
        return of


class CollectedMarginals(MarginalSource):
    """Marginals of bundles, contributors' and custodians' rows together: sums of parts that all three have
    opened, entered as shares (`bundles.collected`)."""

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
