"""What a backend must be able to do with shares: everything else of a step of the oracle is shared code.

`Gates` is arithmetic: on it rest the draws of noise (`alias`, `sampling`), the adders and the arg max.
`Engine` adds what a step of the oracle needs of a backend: everybody's data as shares, the L1 distances of
candidates, and openings (`step`).

Numbers (N) are opaque to the shared code: replicated or additive ring shares, or whatever a backend adds up
counts in. They are indexed, reshaped and added like NumPy arrays, the sum of two is local.

All computing parties call the same operations in the same order. Threat model and assumption are the
backend's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import B
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.marginals import Marginals
from mpc_protocols.functionality import Clique, Handle, Level
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.wire import Wire

BitSource = Callable[[tuple[int, ...]], Any]
"""Fresh shared uniform words of a shape, in the order of the calls."""


class Keys(Protocol):
    """Shared integers that are compared."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, index: Any) -> Self: ...

    def reshape(self, *shape: int) -> Self:
        """The same numbers in another shape."""


class Numbers(Keys, Protocol):
    """Shared integers."""

    def __len__(self) -> int: ...

    def __add__(self, other: Self) -> Self: ...


K = TypeVar("K", bound=Keys)
K_contra = TypeVar("K_contra", bound=Keys, contravariant=True)
N = TypeVar("N", bound=Numbers)
N_co = TypeVar("N_co", bound=Numbers, covariant=True)


class Turns(Protocol):
    """What can run beside another protocol (`interleave`)."""

    turn: Callable[[], None]
    """Called by all parties between the sends and the receives of every step: what runs beside goes on."""


class BitGates(Turns, Protocol[B]):
    """Shared bits, in words; arrays have any leading axes, and many gates in one call are one round."""

    @property
    def latency_bytes(self) -> int:
        """What a round is worth here: choices between rounds and bytes count it as so many bytes sent by each
        party."""

    def complement(self, x: B) -> B:
        """NOT x; padding bits flip too. Local."""

    def xor_public(self, x: B, words: NDArray[Any]) -> B:
        """x XOR public words, broadcast. Local."""

    def and_bits(self, x: B, y: B) -> B:
        """x AND y, broadcast over leading axes. 1 round."""

    def and_pairs(self, pairs: Sequence[tuple[B, B]]) -> list[B]:
        """x AND y of several pairs alike but for their first axis, in one round and message."""

    def factor(self, y: B) -> B:
        """The form in which `and_sums` takes its second operands; linear functions of it are taken part by
        part.

        Local, or 1 round in which it is opened under a mask.
        """

    def and_sums(self, shape: tuple[int, ...], terms: Iterable[tuple[Any, B, Iterable[NDArray[Any]]]]) -> B:
        """XOR along the last axis but one of x & y, summed before it travels: what is sent has the size of
        the result.

        shape: of the result. terms: (index, x, the parts of factor(y)); each sum is added at its index of the
        result. The parts are asked for one after the other, so that one at a time need be in memory, and may
        be overwritten. Terms at the same words, the end of their index, follow each other and have the same
        x. 1 round, or one for each such run of terms.
        """

    def release_bits(self, release: bytes) -> BitSource:
        """Uniform bits that nobody knows, bound to a release: the same release gives the same bits
        (`docs/design/mechanisms.md` 4)."""

    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, B]]) -> NDArray[np.bool_]:
        """Reveal which vectors of shared bits are all zero, and nothing else: bool of `shape`.

        rows: for slices of the second axis, bits as uint8 of shape (shape[0], length of the slice, n). 1
        round. A vector that is not zero is called so with probability 2^-128.
        """


class ComparingGates(BitGates[B], Protocol[B, K_contra]):
    """Shared bits, and comparisons of shared integers."""

    def less(self, left: K_contra, right: K_contra) -> B:
        """[left < right] of numbers whose differences fit the ring with their sign: words of shape (words,)."""


class Gates(ComparingGates[B, N], Protocol[B, N]):
    """Shared bits and shared integers."""

    def weighted_sum(self, bits: B, weights: Sequence[int], cells: int, ring: UInt) -> N:
        """sum_j weights[j] * bits[j] of every cell, modulo the ring: planes (len(weights), words) to numbers
        (cells,)."""

    def add_public(self, x: N, public: NDArray[Any]) -> N:
        """x plus public integers. Local."""

    def scaled(self, x: N, factor: int) -> N:
        """x times a public integer. Local."""

    def concatenate(self, numbers: Sequence[N]) -> N:
        """Vectors one after the other. Local."""

    def negative(self, x: N) -> B:
        """[x < 0] of numbers modulo 2^32 that no bits were added to, such as shared counts: words of shape
        (words,)."""


class L1Sums(Protocol[N_co]):
    """The L1 distances of the candidates of one step to its answers."""

    @property
    def signs(self) -> int:
        """How many cells needed a sign, so far."""

    @property
    def form(self) -> str:
        """The form of the sums, for observers."""

    def exchange(self) -> None:
        """Bring the answers of the first group to whoever needs them; the record of the step is written
        meanwhile."""

    def compute(self) -> N_co:
        """Sums of |M_q - c_q| of each candidate, the answers of further groups included."""


class Engine(Protocol[B, N]):
    """One computing party of a backend."""

    @property
    def wire(self) -> Wire: ...

    @property
    def gates(self) -> Gates[B, N]:
        """Its arithmetic."""

    @property
    def beside(self) -> Gates[B, N]:
        """The same on streams of its own, for noise that is made while `gates` computes."""

    @property
    def proves(self) -> bool:
        """Whether products are proved: noise of later steps is then made while the leader computes by itself,
        and `settle`d."""

    @property
    def picks_in_groups(self) -> bool:
        """Whether several picks of many candidates compare few of them with each other, and not all pairs."""

    def settle(self) -> None:
        """Prove what `beside` has computed so far, if anything is proved."""

    def for_counts(self, gates: Gates[B, N], noise: N) -> N:
        """Noise that was made ahead by these gates, shape (n,), in the form in which counts take it: where products
        are proved, proved by now, so that whoever opens the sum has nothing to prove."""

    @property
    def noise_bytes(self) -> tuple[int, int]:
        """Of a row of Gumbel noise and of Gaussian noise, that a party sends when it is made, about."""

    @property
    def dealers(self) -> int:
        """As in `PublicState`."""

    @property
    def public(self) -> bytes:
        """What all must agree on besides the transcript."""

    @property
    def source(self) -> Marginals[Any]:
        """Everybody's data as shares."""

    def leave_out(self, contributor: int) -> None:
        """Take a contributor's counts out of `source`, and forget whatever was computed from them. Local."""

    def numbers(self, shares: Any) -> N:
        """Shared cells of `source`, shape (cells,), as numbers. Local."""

    @property
    def sharing(self) -> bytes:
        """Names the input sharing; noise is bound to it, so that data read again never meets the same noise."""

    def set_latency(self, latency_bytes: int) -> None:
        """What a round is worth from now on, the same at all parties."""

    def announce(self, value: bytes) -> Callable[[], int | None]:
        """Send public bytes to all others, on a stream of their own; what is returned receives theirs
        (`agreement`)."""

    def seed(self, held: bytes) -> bytes:
        """32 public bytes, unknown to all until every computing party has received all that was sent to it
        before. 2 rounds.

        held: what all must have kept alike of an earlier attempt. Raises `ProtocolAborted` if they have not.
        """

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. inputs: the transcript that
        asked for it.

        Raises `DataRefused` before anything is sent if the own data does not fit.
        """

    def rows(self) -> N | None:
        """The number of rows, shape (1,); None if nothing is shared yet."""

    def marginals(self, state: PublicState, handles: Sequence[Handle]) -> N:
        """The marginals of these handles, one after the other. Local."""

    def l1_sums(
        self,
        state: PublicState,
        announced: AnnouncedAnswers,
        planes: int,
        ring: UInt,
        rounded: RoundedAnswers | None,
    ) -> L1Sums[N]:
        """The distances of one step's candidates. planes: bits of a cell's difference. rounded: at the leader
        only."""

    def expect_picks(self, plan: SelectionPlan) -> None:
        """The picks of a selection will be opened once its scores are there: what that takes of masks may be made ready
        beside what is computed before. No round."""

    def keys(self, sums: N, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> N:
        """weight * sum - bias of each candidate. Local."""

    def pack(self, numbers: N) -> bytes:
        """This party's shares, for its own disk. Local."""

    def unpack(self, packed: bytes) -> N:
        """The inverse of `pack`, in another session of the same parties. Raises `UsageError`."""

    def largest(self, keys: N) -> int:
        """Reveal the position of the largest key, the lowest among equal ones, and nothing else."""

    def picks(self, keys: N, plan: SelectionPlan) -> list[int]:
        """As `bitwise.argmax.peel`: reveal one pick of every row of keys of the plan's contenders on the list
        that the earlier picks leave."""

    def reveal(self, numbers: N) -> NDArray[np.int64]:
        """The numbers, to all computing parties, as signed integers. 1 round."""
