"""The exponential mechanism by dithered discrete Gumbel noise, "G64": parameters, charge and integer
reference.

Problem: pick the candidate with the worst approximation, and charge exactly the distribution that is
implemented (`docs/design/mechanisms.md` 1.2, 1.3). With g = 2^a score units per grid step, gamma = 1/64:

    key_q = u_q + g K_q + V_q,   u_q = w'_q L1(M_q - c_q) - bias_q,   K from the table G64, V uniform on {0 .. g-1}
    selected: the largest key, the lowest position among equal ones

One selection is (eps'^2 / 8)-zCDP up to total variation n 2^-70, eps' = Delta_int / (32 g) * (1 + inflation),
Delta_int the sensitivity of u: theorems 1 and 2 there bound the inflation,
`tests/mpc_protocols/mechanisms/test_selection_law.py` computes the distribution exactly. k picks on the same
scores cost k times as much (1.6); candidates that cannot win are pruned by public numbers (2.2).

Threat model: all of a plan is public. Secret: M, K, V, the keys, their order and margins; opened: the
position alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.bounds import sign_bits
from mpc_protocols.mechanisms.interval import enclose, exp_minus, exp_plus, round_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_WEIGHT: Final = 4096
"""Finer integer weights would bring nothing."""
COARSEST: Final = 64
"""Weights up to 64 round to within 1.6 %; with fewer levels in 32-bit keys, 64-bit keys are taken."""
RINGS: Final = (32, 64)
MAX_COMPARISONS: Final = 1 << 29
"""Comparisons of several picks together: 9,459 candidates twelve times. A party holds two to four bytes of
each. One pick has no more candidates than a run has handles, and backends compare many in groups."""
MAX_FAMILY: Final = 4
"""Candidates of a family, which are compared with one another first (`SelectionPlan.families`)."""
MAX_DRAWS: Final = 1 << 20
"""Draws of noise of one selection, picks times candidates: 1.2 GB of traffic."""
_PLACES: Final = 64
_WORKING_BITS: Final = 192


@dataclass(frozen=True)
class SelectionPlan:
    """Public integers of a selection of one or several picks, the same at every party.

    a: lg of the grid step, bits of V. sensitivity: Delta_int. weights, biases: w' and bias of every candidate
    offered (also of those that cannot win). contenders: positions of the candidates that some pick can take,
    ascending; only these get noise. ring_bits: the ring of the keys, in which differences of keys on one list
    are read with their sign. sign_bits: planes k of a cell's difference. row_bound: n', to which answers are
    clipped. event: what each pick is charged. picks: how many there are at most. lowest, highest: bounds of
    each candidate's key. conflicts: of each candidate, the others that leave with it.
    """

    a: int
    sensitivity: int
    weights: tuple[int, ...]
    biases: tuple[int, ...]
    contenders: tuple[int, ...]
    ring_bits: int
    sign_bits: int
    row_bound: int
    event: Event
    picks: int = 1
    lowest: tuple[int, ...] = ()
    highest: tuple[int, ...] = ()
    conflicts: tuple[frozenset[int], ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """One for each pick."""
        if self.picks == 1:
            return (self.event,)
        return tuple(
            replace(self.event, detail={**self.event.detail, "pick": number + 1, "picks": self.picks})
            for number in range(self.picks)
        )

    def candidates(self, picked: Sequence[int]) -> tuple[int, ...]:
        """Positions among which the next pick is made, after these: a function of public inputs; empty if
        none is left."""
        if not picked and self.picks == 1:
            return self.contenders
        known = self._candidates_after
        if (left := known.get(tuple(picked))) is None:
            left = known[tuple(picked)] = self._remaining(picked)
        return left

    @cached_property
    def _candidates_after(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """By the picks before, as far as they were asked for: each list is asked for several times."""
        return {}

    def _remaining(self, picked: Sequence[int]) -> tuple[int, ...]:
        gone = list(set(picked).union(*(self.conflicts[q] for q in picked)))
        contenders, lowest, highest = self._bounds
        stay = np.ones(len(self.weights), np.bool_)
        stay[gone] = False
        stay = stay[contenders]
        if not stay.any():
            return ()
        stay &= highest >= lowest[stay].max()
        left: list[int] = contenders[stay].tolist()
        return tuple(left)

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
        """The contenders, and the lowest and the highest key of each; integers of any size where they need it."""
        contenders = np.array(self.contenders, np.intp)
        lowest, highest = (_array([of[q] for q in self.contenders]) for of in (self.lowest, self.highest))
        return contenders, lowest, highest

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The contenders in their order, those that follow one another and leave together in one family of at
        most MAX_FAMILY.

        Together leave candidates that are in conflict with one another and with the same others, whichever of
        them is picked. Each is a family of its own where the keys of all contenders do not fit the ring with
        their differences.
        """
        _, lowest, highest = self._bounds
        if int(highest.max()) - int(lowest.min()) >= 1 << self.ring_bits - 1:
            return tuple((q,) for q in self.contenders)
        return _families(self.contenders, self.conflicts)

    def families_of(self, candidates: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the families that have a member among ascending candidates, ascending."""
        numbers: list[int] = np.unique(self._family_of[np.array(candidates, np.intp)]).tolist()
        return tuple(numbers)

    @cached_property
    def _family_of(self) -> NDArray[np.intp]:
        """Of each contender the number of its family, by its position."""
        numbers = np.zeros(len(self.weights), np.intp)
        lengths = list(map(len, self.families))
        numbers[list(chain.from_iterable(self.families))] = np.repeat(np.arange(len(lengths)), lengths)
        return numbers


@lru_cache(maxsize=2)  # the next selection has often the same candidates
def _families(
    contenders: tuple[int, ...], conflicts: tuple[frozenset[int], ...]
) -> tuple[tuple[int, ...], ...]:
    """As `SelectionPlan.families`, of keys whose differences fit."""
    found: list[list[int]] = []
    leaving: frozenset[int] = frozenset()  # with a member of the last family, itself among them
    for q in contenders:
        if q in leaving and len(found[-1]) < MAX_FAMILY and conflicts[q] | {q} == leaving:
            found[-1].append(q)
        else:
            found.append([q])
            leaving = conflicts[q] | {q}
    return tuple(map(tuple, found))


def _array(integers: Sequence[int]) -> NDArray[Any]:
    """Integers of any size: of 64 bits where all fit, else objects."""
    fit = not integers or -(1 << 62) < min(integers) <= max(integers) < 1 << 62
    return np.array(integers, np.int64 if fit else object)


def most_candidates(picks: int) -> int:
    """The most candidates of which a selection can pick so many at once."""
    if picks == 1:
        return MAX_DRAWS
    return min(MAX_DRAWS // picks, (1 + math.isqrt(1 + 8 * MAX_COMPARISONS // picks)) // 2)


@cache
def tie_inflation() -> Fraction:
    """Theorem 1: an upper bound of tanh(gamma / 4)."""
    e = Fraction(exp_minus(enclose(gumbel.GAMMA / 2, _WORKING_BITS), _WORKING_BITS)[0], 1 << _WORKING_BITS)
    return round_up((1 - e) / (1 + e), _PLACES)


@cache
def dither_inflation(a: int) -> Fraction:
    """Theorem 2: an upper bound of 2 kappa for a grid of 2^a score units."""
    gamma, per_unit = gumbel.GAMMA, Fraction(1, 1 << a)
    h = gamma * (1 + per_unit)

    def exp_above(x: Fraction) -> Fraction:
        return Fraction(exp_plus(enclose(x, _WORKING_BITS), _WORKING_BITS)[1], 1 << _WORKING_BITS)

    first = gamma**2 * exp_above(4 * h) * (Fraction(1, 3) + 2 * per_unit) + 2 * gamma * per_unit
    second = gamma**2 * exp_above(6 * h) * (Fraction(3, 2) + 9 * per_unit) + 4 * gamma * per_unit
    return round_up(2 * (first + second) / (1 - first), _PLACES)


@dataclass(frozen=True)
class Scale:
    """Grid and sensitivity of a selection, and the bounded range `epsilon` (eps') that it really has."""

    a: int
    sensitivity: int
    epsilon: Fraction


def _scale(epsilon: Fraction, most_sensitive: int) -> Scale | None:
    """The largest sensitivity on the finest grid with eps' <= epsilon; None if epsilon is too large for this
    cap."""
    cells_per_step = most_sensitive / (32 * epsilon)
    if cells_per_step < 1:
        return None
    a = (cells_per_step.numerator // cells_per_step.denominator).bit_length() - 1
    grid, tie, dither = 1 << a, tie_inflation(), dither_inflation(a)
    by_dither = int(32 * grid * epsilon / (1 + dither))
    by_grid = grid * int(32 * epsilon / (1 + tie))
    sensitivity, inflation = (by_grid, tie) if by_grid >= by_dither else (by_dither, dither)
    return Scale(a, sensitivity, Fraction(sensitivity, 32 * grid) * (1 + inflation))


def _choose_ring(epsilon: Fraction, widest: int, factor: int) -> tuple[int, Scale]:
    """The smallest ring whose keys cannot overflow; `widest` bounds both the rows and the sum of an answer."""
    for ring in RINGS:
        weight_cap = min(MAX_WEIGHT, ((1 << ring - 4) - 1) // widest)
        most_sensitive = min(factor * weight_cap, int((1 << ring - 3) * epsilon / 108))
        if most_sensitive < (COARSEST if ring < RINGS[-1] else 1) * factor:
            continue
        scale = _scale(epsilon, most_sensitive)
        if scale is not None and scale.sensitivity >= factor:
            return ring, scale
    raise StudyInvalid(
        f"A selection with epsilon {float(epsilon):.3g} over at most {widest} rows with a sensitivity factor of {factor} does "
        "not fit the integer keys; spend less on selecting, lower max_rows, or bound the rows of a unit more tightly."
    )


def plan_selection(
    weights: Sequence[Fraction],
    penalties: Sequence[Fraction],
    epsilon: Fraction,
    answer_sums: Sequence[int],
    row_bound: int,
    factor: int,
    picks: int = 1,
    conflicts: Sequence[Sequence[int]] = (),
) -> SelectionPlan:
    """Integers of a selection among n candidates (`docs/design/mechanisms.md` 1.3, 2.2, 5).

    weights: positive rationals. penalties: in counts, taken off the L1 distance. epsilon: what may be charged
    at most, epsilon^2 / 8. answer_sums: at least the sum of each candidate's rounded answer. row_bound: n'.
    factor: how many counts one privacy unit moves a candidate's L1 distance (add-remove: unit_rows; replace:
    2 unit_rows). picks: how often one is selected. conflicts: for each candidate the later ones that leave if
    it is picked, and with which it leaves; empty if there are none. Raises `StudyInvalid` if no ring holds
    the keys, `ValueError` for arguments outside their ranges.
    """
    n = len(weights)
    if not n or len(penalties) != n or len(answer_sums) != n:
        raise ValueError(
            f"{n} weights, {len(penalties)} penalties and {len(answer_sums)} sums of answers do not belong together."
        )
    different = {id(weight): weight for weight in weights}  # thousands of candidates have few weights
    if (
        min(weight.numerator for weight in different.values()) <= 0
        or epsilon <= 0
        or min(answer_sums) < 0
        or row_bound < 1
        or factor < 1
    ):
        raise ValueError(
            "Weights, epsilon, row bound and factor must be positive and sums of answers must not be negative."
        )
    ring, scale = _choose_ring(epsilon, max(row_bound, *answer_sums), factor)
    largest, heaviest = scale.sensitivity // factor, _heaviest(tuple(different.values()))
    floors = {known: _floor(weight, largest, heaviest) for known, weight in different.items()}
    integers = tuple(floors[id(weight)] for weight in weights)
    rounded: dict[tuple[int, int], int] = {}
    for w, penalty in zip(integers, penalties, strict=True):
        if (known := (w, id(penalty))) not in rounded:
            rounded[known] = _rounded(w * penalty.numerator, penalty.denominator)
    biases = tuple(rounded[w, id(penalty)] for w, penalty in zip(integers, penalties, strict=True))
    of_weight, of_bias, of_sum = map(_array, (integers, biases, answer_sums))
    wide = (max(integers) * (row_bound + max(answer_sums)) + max(map(abs, biases))).bit_length()
    if max(wide, scale.a + gumbel.HIGH.bit_length()) > 60:  # integers of any size
        of_weight, of_bias, of_sum = (of.astype(object) for of in (of_weight, of_bias, of_sum))
    lowest = (gumbel.LOW << scale.a) - of_bias
    highest = of_weight * (row_bound + of_sum) - of_bias + ((gumbel.HIGH + 1 << scale.a) - 1)
    conflict_sets = _both_ways(n, tuple(map(tuple, conflicts)))
    lows = np.sort(lowest[of_weight > 0])[::-1]
    leaving = sorted(map(len, conflict_sets), reverse=True)[: picks - 1]
    floor = lows[min(sum(leaving) + len(leaving), len(lows) - 1)]
    kept = np.flatnonzero((of_weight > 0) & (highest >= floor))
    contenders = tuple(kept.tolist())
    low, high = lowest[kept], highest[kept]
    # Of several picks two keys of one list differ by less than the sum of their ranges: each range reaches the list's floor.
    spread = int(high.max() - low.min()) if picks == 1 else 2 * int((high - low).max())
    if spread >= 1 << ring - 1:
        raise StudyInvalid(
            f"Keys of a selection would spread over {spread}, more than a ring of {ring} bits tells apart."
        )
    event = Event(
        "select",
        rho=scale.epsilon**2 / 8,
        beta=n * gumbel.BETA,
        detail={
            "epsilon": float(scale.epsilon),
            "a": scale.a,
            "sensitivity": scale.sensitivity,
            "candidates": n,
        },
    )
    planes = sign_bits(row_bound)
    return SelectionPlan(
        scale.a,
        scale.sensitivity,
        integers,
        biases,
        contenders,
        ring,
        planes,
        row_bound,
        event,
        picks,
        tuple(lowest.tolist()),
        tuple(highest.tolist()),
        conflict_sets,
    )


@lru_cache(maxsize=2)  # the next selection has often the same candidates
def _both_ways(n: int, conflicts: tuple[tuple[int, ...], ...]) -> tuple[frozenset[int], ...]:
    """Of each candidate, all that it is in conflict with."""
    if not conflicts:
        return (frozenset(),) * n
    both = list(map(list, conflicts))
    for q, later in enumerate(conflicts):
        for p in later:
            both[p].append(q)
    return tuple(map(frozenset, both))


def _heaviest(weights: Sequence[Fraction]) -> Fraction:
    """The largest weight; of integers, as they usually are, without comparing thousands of rationals."""
    if all(weight.denominator == 1 for weight in weights):
        return Fraction(max(weight.numerator for weight in weights))
    return max(weights)


def _floor(weight: Fraction, largest: int, heaviest: Fraction) -> int:
    """floor(weight * largest / heaviest), in integers: a selection has thousands of candidates."""
    return weight.numerator * largest * heaviest.denominator // (weight.denominator * heaviest.numerator)


def _rounded(numerator: int, denominator: int) -> int:
    """The nearest integer of a quotient, an even one if there are two."""
    below, rest = divmod(numerator, denominator)
    return below + (2 * rest > denominator or (2 * rest == denominator and below % 2))


def reference(scores: Sequence[int], uniforms: Sequence[int], dithers: Sequence[int], a: int) -> int:
    """Position of the selected score given the random bits: per candidate 80 bits U and a bits V.

    The secure protocol must equal it bit for bit.
    """
    keys = [
        score + (gumbel.invert(uniform) << a) + dither
        for score, uniform, dither in zip(scores, uniforms, dithers, strict=True)
    ]
    return max(range(len(keys)), key=lambda q: (keys[q], -q))
