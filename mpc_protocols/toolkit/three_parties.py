"""One of three parties in a program of the user's own: share, compute, and open with noise (`docs/howto/protocols.md`).

The same protocols as in runs: replicated sharing (`backends/replicated/sharing`), discrete Gaussian and Gumbel noise that
nobody knows (`mpc_protocols/engine/noise`), secure arg max (`replicated.gates`), the product of split columns
(`mpc_protocols/backends/replicated/vertical/matrices.py`), private set union (`mpc_protocols/psu`).

All three parties call the same methods in the same order with the same public arguments; private arguments are those marked
so. Threat model: semi-honest, at most one of the three corrupted. Public arguments are compared before anything is opened, so
that parties whose programs differ stop. Each private release asks the party's guard first, and says what it has charged.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.gates import TrioGates, argmax
from mpc_protocols.backends.replicated.sharing.conversion import lift
from mpc_protocols.backends.replicated.sharing.ring import (
    add_public,
    centred,
    multiply,
    open_ring,
    reshare,
    share_from,
    share_own,
)
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.matrices import Matrix, input_rows, product
from mpc_protocols.engine.noise.sampling import gaussian_noise, gumbel_noise
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, ProtocolAborted, UsageError
from mpc_protocols.functionality import Event, Guard, Question
from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2, MIN_SIGMA2, sampler
from mpc_protocols.mechanisms.measurement import plan_sum
from mpc_protocols.mechanisms.selection import SelectionPlan, most_candidates, plan_selection
from mpc_protocols.psu.align import align
from mpc_protocols.psu.functionality import AlignmentSpec, Context, Member
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from mpc_protocols.toolkit.own_session import OwnSession
from mpc_protocols.toolkit.shared_array import (
    MAX_ENTRY,
    SharedArray,
    check_bounds,
    check_shared,
    integers,
    is_integer,
)
from mpc_protocols.wire import Traffic, Wire

PARTIES: Final = 3
MAX_ENTRIES: Final = 1 << 26
"""Entries of one array: 0.5 GB of shares at each party."""


class NoBudget(Guard):
    """The guard of a program that was started without a budget."""

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Refuse."""
        raise BudgetRefused(
            f"The release '{event.what}' is to be charged and this program was started without a budget; give epsilon and delta."
        )


@dataclass(frozen=True)
class NoisyArray:
    """What `ThreeParties.noisy` has opened. values: int64, the array's shape; sigma2: of the noise; rho: charged."""

    values: NDArray[np.int64]
    sigma2: Fraction
    rho: Fraction


@dataclass(frozen=True)
class Selection:
    """What `ThreeParties.arg_max` has opened. position: of the candidate; epsilon: of the exponential mechanism that was
    run, at most the one asked for; rho: charged, epsilon^2 / 8."""

    position: int
    epsilon: Fraction
    rho: Fraction


@dataclass(frozen=True)
class UnionRows:
    """What `ThreeParties.union` has found. size: identifiers that the owners hold together; rows: int64, at an owner the row of
    each of its identifiers in their order, pairwise different and below `size`; empty at the party without a list."""

    size: int
    rows: NDArray[np.int64] = field(repr=False)


class ThreeParties:
    """Party 0, 1 or 2. ONE for a wire: masks are bound to the wire's session, and a second would use the first one's again."""

    def __init__(self, wire: Wire, guard: Guard | None = None) -> None:
        """guard: authorises every private release before it is opened (as `synth.budget.accounting.Accountant`); None
        refuses all.

        Raises `UsageError` unless exactly three parties are on the wire, of which all compute, and this is the first on it.
        """
        if wire.computing != PARTIES or len(wire.contributors):
            raise UsageError(
                f"The protocols run between exactly three parties, got {wire.computing + len(wire.contributors)}."
            )
        try:
            self._wire = wire.fork("protocols")
        except ValueError:
            raise UsageError(
                "This session has a party already, whose masks a second one would use again; use the first, or start a session "
                "of its own."
            ) from None
        self._home = _here()
        self._masks = Trio(self._wire, "protocols")
        self._gates = TrioGates(self._masks)
        self._guard: Guard = NoBudget() if guard is None else guard
        self._releases = self._unions = 0

    @property
    def _trio(self) -> Trio:
        """The trio, for one caller at a time: two threads, or a process and its fork, would draw the same masks.

        Raises `UsageError` anywhere but where this object was made.
        """
        if _here() != self._home:
            raise UsageError(
                "A party is used in the thread and process in which its program was started; call it there, one call after the "
                "other."
            )
        return self._masks

    @property
    def number(self) -> int:
        """0, 1 or 2: this party."""
        return self._wire.me

    def traffic(self) -> Traffic:
        """Bytes, messages and rounds of this party so far."""
        return self._wire.traffic()

    def share(
        self, values: object = None, *, owner: int, shape: int | tuple[int, ...], high: int, low: int = 0
    ) -> SharedArray:
        """Share one party's array among the three.

        values: private, at the owner only (None elsewhere): integers of this shape, each in [low, high]. Public: owner,
        shape, low, high, which hold whatever the data. Who learns what: nothing. 1 round, 4 bytes an entry from the owner to
        one party. Raises `DataRefused` (a value outside its bounds), `UsageError` (shape, dtype, bounds), before anything is
        sent.
        """
        owner, dimensions = self._owner(owner), _shape(shape)
        low, high = check_bounds(low, high)
        own = self._own_elements(values, self.number == owner, dimensions, low, high)
        return SharedArray(share_from(self._trio, owner, own, dimensions, np.uint32), low, high)

    def shared_sum(self, values: object, *, high: int, low: int = 0) -> SharedArray:
        """The sum of the three parties' arrays, entry by entry, as shares.

        values: private, at every party: integers of one shape, each in [low, high]. Public: the shape, low, high. Who learns
        what: nothing, until it is opened. 2 rounds, 4 bytes an entry from each party to the next.
        Raises as `share`.
        """
        low, high = check_bounds(low, high)
        check_bounds(PARTIES * low, PARTIES * high)
        if values is None:
            raise UsageError(
                "Every party brings values of its own to a sum; bring zeros where there are none."
            )
        dimensions = _shape(integers(values, f"The values of party {self.number}").shape)
        own = self._own_elements(values, True, dimensions, low, high)
        self._agree("sum", repr((dimensions, low, high)))
        assert own is not None
        return SharedArray(share_own(self._trio, own), PARTIES * low, PARTIES * high)

    def multiply(self, x: SharedArray, y: SharedArray) -> SharedArray:
        """x * y, entry by entry: arrays of one shape. Who learns what: nothing. 1 round, 4 bytes an entry from each party.

        Raises `UsageError`: shapes differ, or a product might not fit 32 bits.
        """
        check_shared(x)
        check_shared(y)
        if x.shape != y.shape:
            raise UsageError(
                f"Arrays of shapes {x.shape} and {y.shape} cannot be multiplied entry by entry; give them one shape."
            )
        low, high = _product_bounds((x.low, x.high), (y.low, y.high))
        check_bounds(low, high)
        return SharedArray(multiply(self._trio, x.share, y.share), low, high)

    def transposed_product(
        self,
        values: object = None,
        *,
        owners: tuple[int, int],
        rows: int,
        columns: tuple[int, int],
        high: int = 1,
        low: int = 0,
    ) -> SharedArray:
        """A^T B of columns that two parties hold about the same rows: shape (columns of A, columns of B), as shares.

        values: private: A at owners[0], B at owners[1], None at the third: integers in [low, high] of shape (rows, columns[i]).
        Public: everything else. Who learns what: nothing. 3 rounds; 4 bytes an entry of A and B from their owners, 4 bytes a
        result from each party. Raises as `share`; `UsageError` if rows * high^2 does not fit 32 bits.
        """
        first, second = _two(owners)
        if not isinstance(columns, tuple | list) or len(columns) != 2:
            raise UsageError(f"The columns are two numbers, of A and of B, got {columns!r:.100}.")
        rows = _positive(rows, "Rows and columns")
        shapes = [_shape((rows, _positive(width, "Rows and columns"))) for width in columns]
        _shape((shapes[0][1], shapes[1][1]))
        low, high = check_bounds(low, high)
        entry_low, entry_high = _product_bounds((low, high), (low, high))
        check_bounds(rows * entry_low, rows * entry_high)
        blocks = []
        for owner, shape in zip((first, second), shapes, strict=True):
            own = self._own_elements(
                values if self.number == owner else None, self.number == owner, shape, low, high
            )
            blocks.append((owner, shape, own))
        if self.number not in (first, second) and values is not None:
            raise UsageError(f"Party {self.number} owns neither matrix and brings none.")
        self._agree("product", repr((first, second, shapes, low, high)))
        a, b = input_rows(self._trio, [(o, (s[0], s[1]), own) for o, s, own in blocks], np.uint32)
        if (low, high) != (0, 1):  # the cheaper form of a product is for columns of zeros and ones
            a, b = (Matrix(matrix.shape, matrix.own, matrix.next) for matrix in (a, b))
        shared = reshare(self._trio, product(a, b, np.uint32))
        return SharedArray(shared, rows * entry_low, rows * entry_high)

    def noise(self, count: int, *, sigma2: Fraction | int | float) -> SharedArray:
        """Independent draws of the discrete Gaussian of parameter sigma2 that no party knows: shape (count,), as shares.

        Who learns what: nothing; nothing is charged, as nothing is opened. Public: both arguments; 1/64 <= sigma2 <= 2^40.
        About 15 rounds, 30 above sigma2 = 10,000. Raises `UsageError`.
        """
        of = sampler(_sigma2(sigma2))
        [count] = _shape(_positive(count, "A number of draws"))
        check_bounds(-of.bound, of.bound)
        release = self._agree("noise", repr((count, of.digest)))
        drawn = gaussian_noise(self._gates, self._gates.release_bits(release), of, count, np.uint32)
        return SharedArray(drawn, -of.bound, of.bound)

    def noisy(self, x: SharedArray, *, sigma2: Fraction | int | float, sensitivity2: int) -> NoisyArray:
        """Open x plus discrete Gaussian noise of parameter sigma2 in every entry: the Gaussian mechanism.

        Charges rho = sensitivity2 / (2 sigma2) of zCDP to the guard before it is opened. sensitivity2: public, the squared
        L2 norm by which one protected unit can change x, whatever the data; the caller answers for it. Who learns what: all
        three, the noisy values; nobody the values or the noise. Rounds: as `noise`. Raises `BudgetRefused` (nothing is
        opened), `UsageError` (an argument, or a sum of value and noise that might not fit 32 bits).
        """
        check_shared(x)
        variance = _sigma2(sigma2)
        sensitivity2 = _positive(sensitivity2, "A squared sensitivity")
        of = sampler(variance)
        most = max(1, abs(x.low), abs(x.high))
        check_bounds(-most - of.bound, most + of.bound)
        event = plan_sum(Question(b"", x.size, most, sensitivity2), (0,), variance).event
        # agreed on before it is charged: a party that runs another program shall cost nobody budget
        release = self._agree("noisy", repr((x, of.digest, sensitivity2)))
        self._charge(event, release)
        drawn = gaussian_noise(self._gates, self._gates.release_bits(release), of, x.size, np.uint32)
        opened = centred(open_ring(self._trio, x.share.reshape(x.size) + drawn))
        return NoisyArray(opened.reshape(x.shape), variance, event.rho)

    def arg_max(self, scores: SharedArray, *, sensitivity: int, epsilon: Fraction | int | float) -> Selection:
        """Open the position of a large score: the exponential mechanism, by Gumbel noise and a secure arg max.

        Position q is opened with probability in proportion to exp(epsilon score_q / (2 sensitivity)), up to the finite
        precision that `docs/design/mechanisms.md` 1.3 bounds. Charges epsilon^2 / 8 of zCDP to the guard before it is
        opened. scores: shape (n,), n >= 2. sensitivity: public, by which one unit can change any one score, whatever the
        data; the caller answers for it. Who learns what: all three, the position; nobody a score, a margin or the noise.
        About 20 to 35 rounds. Raises `BudgetRefused` (nothing is opened), `UsageError`.
        """
        check_shared(scores)
        sensitivity = _positive(sensitivity, "A sensitivity")
        plan = _selection_plan(scores, sensitivity, epsilon)
        release = self._agree("arg max", repr((scores, sensitivity, plan.event.rho, plan.a)))
        self._charge(plan.event, release)
        ring = np.uint32 if plan.ring_bits == 32 else np.uint64
        shifted = add_public(self._trio, scores.share, np.array(-scores.low, np.int64))
        wide = shifted if ring is np.uint32 else lift(self._trio, shifted)
        gumbel = gumbel_noise(self._gates, self._gates.release_bits(release), len(scores), plan.a, ring)
        keys = wide.scaled(np.array(plan.weights, np.int64)) + gumbel
        return Selection(argmax(self._gates, keys), _root(8 * plan.event.rho), plan.event.rho)

    def union(
        self, identifiers: Sequence[str | int] | None = None, *, owners: tuple[int, int] = (0, 1)
    ) -> UnionRows:
        """The private set union of two parties' lists: everybody learns its size, each owner the rows of its own.

        identifiers: private, at the owners: different texts or integers (texts are compared caseless, blanks trimmed); None
        at the third party, which helps to compute. Who learns what: all, the lengths of both lists and the size of the
        union, hence how many are common: EXACT, and not charged; nobody, which of its own another party holds; rows are in a
        fresh random order. Raises `DataRefused` (an identifier missing or twice), `UsageError`, before anything is sent.
        """
        pair = _two(owners)
        if (identifiers is None) != (self.number not in pair):
            lacks = "brings no list" if identifiers is None else "owns no list and brings one"
            raise UsageError(
                f"Party {self.number} {lacks}; a union joins the lists of parties {pair[0]} and {pair[1]}."
            )
        own = None
        if identifiers is not None:
            if isinstance(identifiers, str | bytes) or not isinstance(identifiers, Iterable):
                raise UsageError(
                    f"Identifiers are a sequence of texts or integers, got {type(identifiers).__name__}."
                )
            own = _POLICY.encode([_within_reach(identifiers, self.number)], str(self.number))
        self._unions += 1
        stream = f"union {self._unions}"
        members = tuple(Member(f"party {n}", bytes([n]) * 32, n) for n in range(PARTIES))
        context = Context(
            hashlib.sha256(stream.encode()).digest(),
            tuple(sorted((members[n] for n in pair), key=lambda m: m.number)),
            None,
            members,
        )
        self._agree("union", repr(tuple(sorted(pair))))
        spec = AlignmentSpec("merge3", min_size=0)
        found = align(OwnSession(self._wire, stream), own, spec, context, _SizesArePublic())
        return UnionRows(found.n_rows, found.rows)

    def open(self, x: SharedArray) -> NDArray[np.int64]:
        """Open x to all three, EXACT: int64 of x's shape. Not differentially private, and charged to nobody. 2 rounds."""
        check_shared(x)
        self._agree("open", repr(x))
        return centred(open_ring(self._trio, x.share))

    def _own_elements(
        self, values: object, owns: bool, shape: tuple[int, ...], low: int, high: int
    ) -> NDArray[np.uint32] | None:
        """A party's own values as ring elements. Raises `UsageError`, `DataRefused`; no value is named."""
        if not owns:
            if values is not None:
                raise UsageError(f"Party {self.number} brings values that another party is to own.")
            return None
        if values is None:
            raise UsageError(f"Party {self.number} is the owner and brings no values.")
        own = integers(values, f"The values of party {self.number}")
        if own.shape != shape:
            raise UsageError(f"Party {self.number} brings an array of shape {own.shape}, not {shape}.")
        if own.min() < low or own.max() > high:
            raise DataRefused(
                f"Party {self.number} has values outside the public bounds {low} to {high}, and nothing was sent; clip them, or "
                "agree on other bounds."
            )
        return own.astype(np.uint32)

    def _owner(self, owner: int) -> int:
        if not is_integer(owner) or not 0 <= owner < PARTIES:
            raise UsageError(f"An owner is party 0, 1 or 2, got {owner!r}.")
        return int(owner)

    def _agree(self, what: str, public: str) -> bytes:
        """The name of this operation, if all three call it alike. 1 round. Raises `ProtocolAborted`."""
        self._releases += 1
        name = binding(
            b"protocols",
            self._wire.session_id,
            self._releases.to_bytes(8, "big"),
            what.encode(),
            public.encode(),
        )
        other = self._trio.differing(name)
        if other is not None:
            raise ProtocolAborted(
                f"Party {other} calls another protocol than this party's {what}, or with other public arguments; nothing was "
                "opened: run the same program with the same public arguments everywhere."
            )
        return name

    def _charge(self, event: Event, release: bytes) -> None:
        self._guard.authorise(event, release)


_MAX_NUMBER = 10**30
_POLICY = IdentifierPolicy(("identifiers",), ("text",))


class _SizesArePublic(Guard):
    """Sizes of a union's lists are opened as they are (`ThreeParties.union` says so); there is nothing to charge."""

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Refuse what should not come."""
        raise BudgetRefused(
            f"A union with public sizes charges nothing, but '{event.what}' would be charged."
        )


def _within_reach(identifiers: Iterable[str | int], number: int) -> list[str | int]:
    """As a list. Raises `DataRefused`: an integer that no column of a table holds, and that Python does not write out."""
    own = list(identifiers)
    for row, identifier in enumerate(own):
        if isinstance(identifier, int) and not -_MAX_NUMBER < identifier < _MAX_NUMBER:
            raise DataRefused(
                f"Party {number}: the identifier of row {row + 1} is an integer of more than 30 digits; give it as text."
            )
    return own


def _selection_plan(scores: SharedArray, sensitivity: int, epsilon: Fraction | int | float) -> SelectionPlan:
    """Integers of the selection. Raises `UsageError`."""
    if len(scores.shape) != 1 or scores.size < 2:
        raise UsageError(f"An arg max takes a vector of two or more scores, got shape {scores.shape}.")
    if scores.size > most_candidates(1):
        raise UsageError(f"An arg max takes at most {most_candidates(1)} scores, got {scores.size}.")
    asked = _fraction(epsilon, "epsilon")
    spread = scores.high - scores.low
    if not 0 < asked <= 64 or not 1 <= spread <= MAX_ENTRY // 2:
        raise UsageError(
            f"An arg max takes 0 < epsilon <= 64 and scores that can differ by 1 to {MAX_ENTRY // 2}, got epsilon "
            f"{float(asked):g} and scores between {scores.low} and {scores.high}."
        )
    one, none = [Fraction(1)] * scores.size, [Fraction(0)] * scores.size
    try:
        return plan_selection(one, none, asked, [0] * scores.size, spread, sensitivity)
    except CosynthError:
        raise UsageError(
            f"An arg max with epsilon {float(asked):g}, sensitivity {sensitivity} and scores between {scores.low} and "
            f"{scores.high} does not fit integer keys; spend less epsilon, or give narrower bounds."
        ) from None


def _root(x: Fraction) -> Fraction:
    """The square root of a square of a rational number."""
    return Fraction(isqrt(x.numerator * x.denominator), x.denominator)


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    dimensions = shape if isinstance(shape, tuple) else (shape,)
    if not dimensions or not all(is_integer(count) and count > 0 for count in dimensions):
        raise UsageError(f"A shape is one or more positive integers, got {shape!r:.100}.")
    whole = tuple(int(count) for count in dimensions)
    if prod(whole) > MAX_ENTRIES:
        raise UsageError(f"An array of shape {shape} has more than {MAX_ENTRIES} entries; share it in parts.")
    return whole


def _two(owners: tuple[int, int]) -> tuple[int, int]:
    pair = tuple(owners) if isinstance(owners, tuple | list) else ()
    if len(pair) != 2 or len(set(pair)) != 2 or not all(is_integer(n) and 0 <= n < PARTIES for n in pair):
        raise UsageError(f"Owners are two different parties of 0, 1 and 2, got {owners!r}.")
    return int(pair[0]), int(pair[1])


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


def _positive(value: int, what: str) -> int:
    """As Python's integer, which does not wrap as NumPy's do where a charge is worked out."""
    if not is_integer(value) or not 0 < value <= MAX_ENTRY:
        raise UsageError(f"{what} must be a positive integer below 2^31, got {value!r:.100}.")
    return int(value)


def _fraction(value: Fraction | int | float, what: str) -> Fraction:
    number = isinstance(value, float | Fraction) or is_integer(value)
    if not number or not -_MAX_NUMBER < value < _MAX_NUMBER:  # false of what is no number, too
        raise UsageError(f"The {what} of a release is a finite number, got {value!r:.100}.")
    exact = Fraction(value)
    return Fraction(int(exact.numerator), int(exact.denominator))  # of NumPy's, where it was made of these


def _sigma2(value: Fraction | int | float) -> Fraction:
    sigma2 = _fraction(value, "sigma2")
    if not MIN_SIGMA2 <= sigma2 <= MAX_SIGMA2:
        raise UsageError(
            f"The sigma2 of discrete Gaussian noise lies between {float(MIN_SIGMA2):g} and 2^40, got {float(sigma2):g}."
        )
    return sigma2


def _product_bounds(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)
