"""The marginals that one computing party holds shares of, and those that are sums of them, over any backend.

Only maximal cliques are shared (`PublicState.to_share`), as counts modulo 2^32; every other marginal is a local sum over axes of
a shared one, made when it is first needed and kept. Where shares come from is the backend's and the partition's business
(`contribution` for everybody's counts). Sharing releases nothing: each party sees uniform bytes.

`sharing` names the input sharing: noise is bound to it, so that data read again never meets the same noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from typing import Generic, TypeVar

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Handle, Level
from mpc_protocols.public.cliques import Derivation
from mpc_protocols.public.state import PublicState

S = TypeVar("S", bound=Sized)
"""A party's share of a vector of numbers."""


class Marginals(ABC, Generic[S]):
    """One computing party's shares of marginals, however they come to be shared."""

    def __init__(self, session_id: bytes, public: bytes = b"") -> None:
        """public: what all must agree on besides the transcript."""
        self._shared: dict[Clique, S] = {}
        self._derived: dict[Handle, S] = {}
        self.public = public
        self.sharing = binding(b"input sharing", session_id)

    @abstractmethod
    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> dict[Clique, S]:
        """Shares of these marginals, modulo 2^32, cells in row-major order."""

    @abstractmethod
    def _derive(self, derivation: Derivation, source: S) -> S:
        """The share of a sum over axes. Local."""

    @abstractmethod
    def _sum(self, share: S) -> S:
        """The share of the sum of all cells, (1,). Local."""

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. `inputs` is the transcript that asked for it.

        levels: those that the cliques name. Raises `DataRefused` before anything is sent if the own data does not fit.
        """
        shared = self._input(cliques, levels, inputs)
        self._shared |= shared
        self.sharing = binding(b"input sharing", self.sharing, inputs)
        return sum(map(len, shared.values()))

    def shared(self, clique: Clique) -> S:
        """The marginal of a clique that was shared itself."""
        return self._shared[clique]

    def marginal(self, state: PublicState, handle: Handle) -> S:
        """The marginal of a handle: shape (cells,), modulo 2^32. Local."""
        if handle not in self._derived:
            derivation = state.derivation(handle)
            self._derived[handle] = self._derive(derivation, self._shared[derivation.source])
        return self._derived[handle]

    def rows(self) -> S | None:
        """The number of rows, shape (1,): the sum of any shared marginal; None if nothing is shared yet."""
        share = next(iter(self._shared.values()), None)
        return None if share is None else self._sum(share)


class AdditiveMarginals(Marginals[Elements]):
    """Marginals whose shares are integers that add up to them."""

    def _derive(self, derivation: Derivation, source: Elements) -> Elements:
        return derivation.apply(source)

    def _sum(self, share: Elements) -> Elements:
        total: Elements = share.sum(dtype=share.dtype, keepdims=True)
        return total
