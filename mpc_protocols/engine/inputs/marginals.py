"""The marginals that one computing party holds shares of, and those that are sums of them, over any backend.

Only maximal cliques are shared (`PublicState.to_share`), as counts modulo 2^32; every other marginal is a
local sum over axes of a shared one, made when it is first needed and kept. Where shares come from is the
backend's and the partition's business (`contribution` for everybody's counts). Sharing releases nothing: each
party sees uniform bytes.

`sharing` names the input sharing: noise is bound to it, so that data read again never meets the same noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Handle, Level
from mpc_protocols.public.cliques import Derivation
from mpc_protocols.public.state import PublicState

S = TypeVar("S", bound=Sized)
"""A party's share of a vector of numbers."""


class Marginals(ABC, Generic[S]):
    """One computing party's shares of marginals, however they come to be shared."""

    def __init__(self, session_id: bytes, public: bytes = b"", apart: Sequence[int] = ()) -> None:
        """public: what all must agree on besides the transcript. apart: contributors whose shares are kept
        for themselves too, so that they can be checked and taken out again."""
        self._shared: dict[Clique, S] = {}
        self._contributors = tuple(apart)
        self.apart: dict[int, dict[Clique, S]] = {contributor: {} for contributor in apart}
        """Of each contributor that is checked and not left out: its own shares of all marginals shared so
        far."""
        self._derived: dict[Handle, S] = {}
        self.public = public
        self.sharing = binding(b"input sharing", session_id)

    @abstractmethod
    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> dict[Clique, S]:
        """Shares of these marginals, modulo 2^32, cells in row-major order: (cells,).

        With contributors that are kept apart, (1 + contributors, cells): of all others together, then of each
        of these.
        """

    @abstractmethod
    def linear(self, function: Callable[..., Elements], *shares: S) -> S:
        """The share of a linear function of shared vectors, which takes and gives arrays modulo 2^32. Local."""

    @abstractmethod
    def pack(self, share: S) -> bytes:
        """A share, for this party's own disk. Local."""

    @abstractmethod
    def unpack(self, packed: bytes) -> S:
        """The inverse of `pack`, in another session of the same parties. Raises `UsageError`."""

    @abstractmethod
    def _derive(self, derivation: Derivation, source: S) -> S:
        """The share of a sum over axes. Local."""

    @abstractmethod
    def _sum(self, share: S) -> S:
        """The share of the sum of all cells, (1,). Local."""

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. `inputs` is the transcript
        that asked for it.

        levels: those that the cliques name. Raises `DataRefused` before anything is sent if the own data does
        not fit.
        """
        shared = self._input(cliques, levels, inputs)
        if self._contributors:
            shared = {clique: self._all_of(clique, rows) for clique, rows in shared.items()}
        self._shared |= shared
        self.sharing = binding(b"input sharing", self.sharing, inputs)
        return sum(map(len, shared.values()))

    def leave_out(self, contributor: int) -> None:
        """Take a contributor's counts, those that are shared and those to come, out of all marginals. Local."""
        for clique, share in self.apart.pop(contributor).items():
            self._shared[clique] = self.linear(np.subtract, self._shared[clique], share)
        self._derived.clear()

    def _all_of(self, clique: Clique, rows: Any) -> S:
        """The marginal that is shared row by row, of all that are not left out; keeps the rows of those."""
        whole: S = rows[0]
        for row, contributor in enumerate(self._contributors, start=1):
            if contributor in self.apart:
                self.apart[contributor][clique] = rows[row]
                whole = self.linear(np.add, whole, rows[row])
        return whole

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

    def rows_of(self, contributor: int) -> S:
        """The number of rows of one that is kept apart, shape (1,), once something is shared. Local."""
        return self._sum(next(iter(self.apart[contributor].values())))


class AdditiveMarginals(Marginals[Elements]):
    """Marginals whose shares are integers that add up to them."""

    def linear(self, function: Callable[..., Elements], *shares: Elements) -> Elements:
        return function(*shares)

    def pack(self, share: Elements) -> bytes:
        return pack([share])

    def unpack(self, packed: bytes) -> Elements:
        (share,) = unpack(packed)
        return share

    def _nothing(self, cells: int) -> Elements:
        """What a party inputs that holds no part."""
        return np.zeros((1 + len(self._contributors), cells) if self._contributors else cells, np.uint32)

    def _derive(self, derivation: Derivation, source: Elements) -> Elements:
        return derivation.apply(source)

    def _sum(self, share: Elements) -> Elements:
        total: Elements = share.sum(dtype=share.dtype, keepdims=True)
        return total
