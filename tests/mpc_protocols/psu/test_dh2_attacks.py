"""Deviations from dh2, each tried for real: what it gains, and who notices. The honest party is `dh2.Owner`,
the other derived.

Where a deviation is caught by chance its frequency over many runs is compared with the prediction: such an
interval is missed by chance with probability 10^-6 at most (exact binomial tails); there are four of them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, e
from typing import Any

import numpy as np
import pytest

from mpc_protocols.psu.dh2 import traps
from mpc_protocols.psu.dh2.matching import CommonRecords, Matching, Positions
from mpc_protocols.psu.dh2.owner import Owner, align
from mpc_protocols.psu.dummies import POOL, PRIVATE
from mpc_protocols.psu.functionality import AlignmentSpec
from mpc_protocols.psu.groups.group import Elements
from mpc_protocols.psu.groups.hashing import Names
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.randomness import permutation, system
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.deviating import (
    MINE,
    PROOFS,
    SEMI_HONEST,
    THEIRS,
    UNION,
    K,
    N,
    attack,
    deviating,
)
from tests.mpc_protocols.psu.owners import CONTEXT, TRAPS, run, spec_of

MODES = pytest.mark.parametrize("spec", [SEMI_HONEST, PROOFS], ids=["semi-honest", "proofs"])
SIDES = pytest.mark.parametrize("side", [0, 1], ids=["answering", "asking"])


def within(count: int, runs: int, chance: float) -> bool:
    """Whether a binomial count is none of those that lie beyond it with probability 5 * 10^-7 on either side."""
    weights = [comb(runs, i) * chance**i * (1 - chance) ** (runs - i) for i in range(runs + 1)]
    return min(sum(weights[: count + 1]), sum(weights[count:])) > 5e-7


# Inputs that are no hashes.


class ScaledInputs(Owner):
    """Enters H(x)^c for a secret c of its own in place of H(x), for every other record; traps must be what
    they are."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.scale = self.group.random_exponents(1)[0]
        self.scaled = (self.order < self.size) & (self.order % 2 == 0)
        self.own_list[self.scaled] = self.group.power(self.own_list[self.scaled], self.scale)


@MODES
@SIDES
def test_scaled_inputs_gain_nothing(side: int, spec: AlignmentSpec) -> None:
    """Where names are powers of H(x) this gives the names of the other's records. Here they are records that
    nobody else holds: what comes back for them is no power of any tag's point, whatever is done with c.
    Nobody notices, for nothing is learnt."""
    done = attack(ScaledInputs, side, spec)
    own, group = done.deviating, done.deviating.group
    assert done.said == "" and done.result is not None and done.result.n_rows == 2 * N - K // 2
    assert own.common.sum() == K // 2
    given = group.parse(done.received(side, 6))
    scaled = given[own.scaled[own.order < own.size]]
    assert len(scaled) == N // 2
    due = rows_of(group.power(own.points, done.honest.name_key))  # for records that are common
    for exponent in (1, own.scale, *group.inverses([own.scale])):
        assert not rows_of(group.power(scaled, exponent)) & due
    assert len(rows_of(given) & due) == K // 2


def rows_of(elements: Elements) -> set[bytes]:
    return {row.tobytes() for row in elements}


# Tests of other tags than those one should test.


class Elsewhere(Matching):
    """Tests some positions of the other's list under another exponent. For traps it has the right answers, as
    far as they go."""

    tested: Positions
    other: int

    def tags(self, part: slice) -> Elements:
        tags = super().tags(part)
        inside = self.tested[(self.tested >= part.start) & (self.tested < part.stop)]
        tags[inside - part.start] = self.group.power(self.lists.theirs[inside], self.other)
        return tags

    def answer_traps(self) -> None:
        spoilt = self.points[self.tested]
        self.points[self.tested] = self.hashed(
            self.group.power(self.lists.theirs[self.tested], self.lists.key)
        )
        super().answer_traps()  # type: ignore[safe-super]
        self.points[self.tested] = spoilt

    def common_records(self, tests: Positions, common: np.ndarray) -> CommonRecords:
        self.gained = bool(common[np.isin(tests, self.tested)].any())
        return super().common_records(tests, common)


class RelatedExponents(deviating(Elsewhere)):  # type: ignore[misc]
    """Enters its first record, the target, under an exponent of its own, and tests m positions for the target
    under that."""

    m = 3

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.other = self.group.random_exponents(1)[0]
        target = self.group.hash_many([MINE[0]], self.exchange.sid)
        self.own_list[self.order == 0] = self.group.power(target, self.other)

    def matching(self) -> Matching:
        step: Any = super().matching()
        step.other, step.tested = self.other, permutation(len(self.their_list))[: self.m]
        return step


@SIDES
def test_related_exponents_are_caught_by_traps(side: int) -> None:
    """8 records, 4 traps, m = 3 of 12 positions: not caught with probability C(9,4) / C(12,4) = 0.25; not
    caught and the target found with probability 3/12 C(9,4) / C(11,4) = 0.10. Who is caught has found
    nothing."""
    runs, n, t, m = 150, 8, 4, RelatedExponents.m
    theirs = MINE[:1] + THEIRS[-(n - 1) :]
    passed = gained = 0
    for _ in range(runs):
        done = attack(RelatedExponents, side, mine=MINE[:n], theirs=theirs, traps=t)
        caught = "leave out traps of this party" in done.said
        assert caught or done.said == ""
        found = getattr(done.deviating.step, "gained", False)
        assert not (caught and found)
        passed, gained = passed + (not caught), gained + found
    assert within(passed, runs, comb(n + t - m, t) / comb(n + t, t))
    assert within(gained, runs, float(gain(n, t, m)))


def gain(n: int, t: int, m: int) -> Fraction:
    """Probability to test a target's position among m, and no trap's."""
    return Fraction(m, n + t) * Fraction(comb(n + t - m, t), comb(n + t - 1, t))


def test_the_bound() -> None:
    """By exact enumeration: at most 1 / (t + 1) whatever m is, and at most 1 / (e t) in long lists; and the
    constant suffices."""
    for n in range(1, 25):
        for t in range(1, 12):
            assert max(gain(n, t, m) for m in range(1, n + 1)) <= Fraction(1, t + 1)
    t = traps.TRAPS
    assert t + 1 > 1000
    n = 10**6
    around = [gain(n, t, m) for m in range(n // t - 40, n // t + 40)]
    assert around.index(max(around)) not in (0, 79)  # the worst m is among them
    assert float(max(around)) == pytest.approx(1 / (e * t), rel=2e-3)


@SIDES
def test_false_tags_are_always_caught(side: int) -> None:
    """Random elements for all tags, in O or in queries."""

    class Random(Matching):
        def tags(self, part: slice) -> Elements:
            return self.group.hash_many([system(32) for _ in range(part.stop - part.start)], bytes(32))

    done = attack(deviating(Random), side)
    assert "traps" in done.said and done.result is None and not hasattr(done.deviating, "common")


@SIDES
def test_a_record_cannot_be_shown_as_a_trap(side: int) -> None:
    """Else the other would say a record's tag. Nor can the position of a trap that was never entered."""

    class Shows(Owner):
        def matching(self) -> Matching:
            self.opened_positions[-1] = np.flatnonzero(self.order == 0)[0]
            return super().matching()

    done = attack(Shows, side)
    assert "could not show the pool and the traps" in done.said and not hasattr(done.deviating, "common")


# False answers and a false bitmap.


class SpoiltAnswers(Matching):
    """Answers every other query under another exponent."""

    def answers(self, queries: Elements) -> Elements:
        other = self.group.random_exponents(1)[0]
        out = self.group.power(queries, other)
        out[::2] = self.group.power(queries[::2], self.kappa)  # type: ignore[attr-defined]
        return out


def test_wrong_answers_spoil_matches_and_tell_nothing() -> None:
    """Which matches, is chance: fewer bits come back, for positions that the asking owner shuffled. With
    proofs it is noticed."""
    done = attack(deviating(SpoiltAnswers), 0)
    found = int(done.deviating.common.sum())
    assert (
        done.said == "" and done.result is not None and found < K and done.result.n_rows == 2 * N - found
    )  # K: 1 / C(40, 20)
    done = attack(deviating(SpoiltAnswers), 0, PROOFS)
    assert "sent answers whose proof does not hold" in done.said and not hasattr(done.deviating, "common")


def claims(change: Callable[[np.ndarray], np.ndarray], consistent: bool) -> type[Owner]:
    """An asking owner that changes which entries of O it says to have found; consistent: acts itself as if
    that were true."""

    class Claims(Matching):
        def compare(self, entries: Names) -> tuple[np.ndarray, np.ndarray]:
            own: Any = super()
            common, bits = own.compare(entries)
            bits = change(bits)
            return np.isin(entries, self.their_entries[bits]) if consistent else common, bits  # type: ignore[attr-defined]

    return deviating(Claims)


def some(bits: np.ndarray, value: bool, count: int) -> np.ndarray:
    """With `count` random ones of the bits that are not `value` set to it."""
    at = np.flatnonzero(bits != value)
    bits[at[permutation(len(at))[:count]]] = value
    return bits


def test_a_bitmap_that_claims_less() -> None:
    """As if it had entered other records, but it does not know in place of which. Acting against one's own
    claim is noticed."""
    done = attack(claims(lambda bits: some(bits, False, 5), True), 1)
    assert done.said == "" and done.result is not None and done.result.n_rows == UNION + 5
    done = attack(claims(lambda bits: some(bits, False, 1), False), 1)
    assert "did not arrive at the same union" in done.said


def test_a_bitmap_that_claims_more() -> None:
    """The other then counts fewer records; which of its own names to leave out, the liar does not know."""
    done = attack(claims(lambda bits: some(bits, True, 1), False), 1)
    assert "did not arrive at the same union" in done.said


class AllCommon(claims(np.ones_like, False)):  # type: ignore[misc]
    """Claims that all its records are common, and gives all names itself."""

    def exchange_names(self) -> None:
        self.common[:] = False
        super().exchange_names()
        self.own_names = np.concatenate(self.other_names)  # type: ignore[has-type]
        self.other_names = []  # type: ignore[var-annotated]


def test_that_all_are_common_may_be_claimed_and_tells_nothing() -> None:
    """It passes, for every name is the liar's own: it has learnt k, and not which of its records they are. It
    has placed its records without knowing where they belong: its data are wrong, which is not covered."""
    done = attack(AllCommon, 1)
    assert done.said == "" and done.result is not None and done.result.n_rows == N
    own, group = done.deviating, done.deviating.group
    came = group.parse(done.received(1, 6))  # every one a power of a point now, of which it cannot tell
    for exponent in (1, own.name_key, own.list_key):
        assert not rows_of(group.power(came, exponent)) & rows_of(own.points)


# False names, and the one guess.


class FalseName(Owner):
    """Gives a common record a name of its own making, and guesses which of its own records that is."""

    right: bool

    def exchange_names(self) -> None:
        at = int(np.flatnonzero(self.common)[0])
        self.common[at] = False
        super().exchange_names()
        names = np.concatenate(self.other_names)
        number = int((~self.common[:at]).sum())
        self.other_names = [np.delete(names, number)]
        self.own_names[self.guess(at)] = names[number]

    def guess(self, at: int) -> int:
        """A position in the own list: that of the record at the other's position, or of another common one."""
        honest: Any = self.honest  # type: ignore[attr-defined]
        record = THEIRS[honest.order[honest.order < honest.size][at]]
        own = [MINE[i] for i in self.order[self.order < self.size]]
        common = [entry for entry in THEIRS if entry in MINE]
        return own.index(record if self.right else next(entry for entry in common if entry != record))


@MODES
@SIDES
@pytest.mark.parametrize("right", [True, False])
def test_one_guess(right: bool, side: int, spec: AlignmentSpec) -> None:
    """Only the right guess passes, one of the k common records: so it tells what was guessed, and any other
    is noticed."""
    done = attack(type("Guessing", (FalseName,), {"right": right}), side, spec)
    assert (done.result is not None) == right
    assert done.said == "" if right else "did not arrive at the same union" in done.said


@SIDES
def test_false_names_without_a_guess_are_noticed(side: int) -> None:
    class AllFalse(Owner):
        def exchange_names(self) -> None:
            self.common[:] = False
            super().exchange_names()

    assert "did not arrive at the same union" in attack(AllFalse, side).said


# Pools.

NOISY = spec_of(
    "dh2", adjacency="add-remove", size_epsilon=Fraction(2), size_delta=Fraction(1, 1000), pad_to=(50, 50)
)


@SIDES
@pytest.mark.parametrize("missing", [1, 1000], ids=["one entry", "all"])
def test_a_pool_left_out_is_refused(side: int, missing: int) -> None:
    """Before anything is learnt: the other's noise stays over the size of the intersection."""

    class WithoutPool(Owner):
        def __init__(self, wire: Wire, entries: Any, spec: AlignmentSpec, *rest: Any, **named: Any) -> None:
            super().__init__(wire, entries, spec, *rest, **named)
            own = POOL + self.exchange.sid + bytes([side])
            out = [i for i, entry in enumerate(entries) if entry.startswith(own)][:missing]
            others = self.group.hash_many([PRIVATE + system(32) for _ in out], self.exchange.sid)
            self.own_list[np.isin(self.order, out)] = self.group.power(others, self.list_key)

    done = attack(WithoutPool, side, NOISY)
    assert "could not show the pool and the traps that its list must hold" in done.said
    assert done.result is None and not hasattr(done.deviating, "common")
    assert attack(Owner, side, NOISY).said == ""


def test_a_list_that_lacks_its_pool_is_a_mistake() -> None:
    """Of the caller, said before anything is sent."""
    with pytest.raises(ValueError, match="lacks entries of the pool"):
        run(NOISY, *[lambda wire: align(wire, MINE, NOISY, CONTEXT, Ristretto255(), traps=TRAPS)] * 2)  # type: ignore[arg-type]
