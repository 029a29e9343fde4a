"""The marginals that are held as shares, and those that are sums of them.

Only maximal cliques are shared (`PublicState.to_share`), as counts modulo 2^32; every other marginal is a local sum over axes of
a shared one, made when it is first needed and kept. Where the shares come from is the partition's business: `SharedMarginals`
adds custodians' counts, `vertical.source` multiplies owners' columns. Sharing releases nothing: each party sees uniform bytes
(`ring.share_own`, `contribution`; `vertical.source`).

`sharing` names the input sharing: noise nonces are bound to it, so that data read again never meets the same noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mpc_protocols.engine.contribution import Received, blocks, local_cells
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.public.state import PublicState
from mpc_protocols.replicated.sharing.ring import RingShare, segment_sums, share_own
from mpc_protocols.replicated.sharing.trio import Trio


class MarginalSource(ABC):
    """One computing party's shares of marginals, however they come to be shared."""

    def __init__(self, trio: Trio, public: bytes = b"") -> None:
        """public: what all three must agree on besides the transcript."""
        self._trio = trio
        self._shared: dict[Clique, RingShare] = {}
        self._derived: dict[Handle, RingShare] = {}
        self.public = public
        self.sharing = binding(b"input sharing", trio.wire.session_id)

    @abstractmethod
    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        """Shares of these marginals, modulo 2^32, cells in row-major order."""

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. `inputs` is the transcript that asked for it.

        levels: those that the cliques name. Raises `DataRefused` before anything is sent if the own data does not fit.
        """
        shared = self._input(cliques, levels, inputs)
        self._shared |= shared
        self.sharing = binding(b"input sharing", self.sharing, inputs)
        return sum(map(len, shared.values()))

    def shared(self, clique: Clique) -> RingShare:
        """The marginal of a clique that was shared itself."""
        return self._shared[clique]

    def marginal(self, state: PublicState, handle: Handle) -> RingShare:
        """The marginal of a handle: shape (cells,), modulo 2^32. Local."""
        if handle not in self._derived:
            derivation = state.derivation(handle)
            source = self._shared[derivation.source]
            self._derived[handle] = RingShare(derivation.apply(source.own), derivation.apply(source.next))
        return self._derived[handle]

    def rows(self) -> RingShare | None:
        """The number of rows, shape (1,): the sum of any shared marginal; None if nothing is shared yet."""
        share = next(iter(self._shared.values()), None)
        return None if share is None else segment_sums(share, np.array([len(share)]))


class SharedMarginals(MarginalSource):
    """Of all custodians' rows together: the sums of their own counts (horizontal)."""

    def __init__(self, trio: Trio, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(trio)
        self._facts = facts
        self._counts = counts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        """1 round after the contributors' messages, 4 bytes a cell sent by each computing party."""
        facts = self._facts.with_levels(levels)
        cells = local_cells(self._facts, self._counts, cliques, levels)
        received = Received(self._trio.wire)
        of: dict[Clique, RingShare] = {}
        for block in blocks(facts, cliques):
            vector = np.concatenate(cells[block])
            received.add_block(vector)
            shared = share_own(self._trio, vector)
            start = 0
            for clique in cliques[block]:
                stop = start + facts.cells(clique)
                of[clique] = shared[start:stop]
                start = stop
        return of
