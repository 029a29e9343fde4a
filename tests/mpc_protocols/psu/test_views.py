"""What an owner sees can be simulated from its own set, the other's size and u: the simulators of the paper,
and that of `docs/design/psu.md` 1.2, compared with recorded views of real runs.

A simulator knows the simulated party's own set and coins (its seed) and nothing of the other's set. Real and
simulated view must agree exactly in what can be counted (lengths, repetitions, matches between lists under
the own keys), and neither may show an order: positions against file order and against encodings (Spearman),
bytes of encodings (chi-square). Every statistic's bound is passed by an honest run but with probability
10^-6; there are about 60 of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.psu.dh2.matching import Matching
from mpc_protocols.psu.dh2.owner import Owner
from mpc_protocols.psu.groups.group import Elements
from mpc_protocols.psu.groups.hashing import NAME_BYTES
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.research.florist import protocol as florist
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, TRAPS, Run, ids, run, spec_of

X, Y = ids(range(120)), ids(range(60, 200))
N, M, U = len(X), len(Y), 200
K = N + M - U
SIGMAS = 4.9
"""Two-sided 10^-6 point of a standard normal variable."""
CHI_255 = 384.0
"""Upper 10^-6 point of chi-square with 255 degrees of freedom."""


def seeded(seed: int) -> Entropy:
    """Coins that a test can draw again. Tests only."""
    return np.random.default_rng(seed).bytes


@dataclass
class View:
    """What one owner received: each message in order, lists as rows."""

    lists: dict[str, NDArray[np.uint8]]


def received(done: Run, receiver: int, shape: Sequence[tuple[str, int]]) -> View:
    """The named messages that `receiver` got, in rows of the given widths."""
    payloads = [f.payload for f in done.frames if f.receiver == receiver]
    assert len(payloads) == len(shape)
    return View(
        {
            name: np.frombuffer(raw, np.uint8).reshape(-1, width)
            for (name, width), raw in zip(shape, payloads, strict=True)
            if width
        }
    )


def elements(group: Ristretto255, count: int) -> Elements:
    """Independent uniform elements."""
    return group.hash_many([system(32) for _ in range(count)], bytes(32))


def common(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> int:
    return len({row.tobytes() for row in a} & {row.tobytes() for row in b})


def shapes(view: View) -> dict[str, int]:
    """Lengths, distinct entries, and entries shared by two lists as they are."""
    out = {name: len(rows) for name, rows in view.lists.items()}
    out |= {f"distinct {name}": common(rows, rows) for name, rows in view.lists.items()}
    return out | {
        f"{a}, {b}": common(x, y)
        for (a, x), (b, y) in itertools.combinations(view.lists.items(), 2)
        if x.shape[1] == y.shape[1]
    }


def assert_no_order(ranks: NDArray[np.int64]) -> None:
    """A sequence of distinct numbers in no particular order: Spearman's coefficient with positions."""
    n = len(ranks)
    order = np.argsort(np.argsort(ranks)).astype(float)
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < SIGMAS / np.sqrt(n - 1)


def assert_uniform(view: View) -> None:
    """Encodings: bytes 8 to 23 of elements (the ends of a field element are not uniform) and all of tags; no
    sorted order."""
    for rows in view.lists.values():
        middle = rows[:, 8:24] if rows.shape[1] == 32 else rows
        counts = np.bincount(middle.reshape(-1), minlength=256)
        expected = middle.size / 256
        assert ((counts - expected) ** 2 / expected).sum() < CHI_255
        assert_no_order(rows[:, 8:16].copy().view("<u8").reshape(-1).astype(np.float64))


def places(entries: Elements, rows: Elements) -> NDArray[np.int64]:
    """Position in `rows` of each of `entries`."""
    at = {row.tobytes(): i for i, row in enumerate(rows)}
    return np.array([at[e.tobytes()] for e in entries])


# FLORIST. Received by the active party: size, 5, 12q, 4, 11a, 9; by the passive: size, 3, 11q, 6, 12a, size
# of U, 8.

ACTIVE = [("size", 0), ("set", 32), ("questions", 32), ("own set", 32), ("answers", 32), ("union", 32)]
PASSIVE = [
    ("size", 0),
    ("set", 32),
    ("questions", 32),
    ("own set", 32),
    ("answers", 32),
    ("size", 0),
    ("union", 32),
]


def florist_run() -> Run:
    spec = spec_of("florist")
    return run(
        spec,
        *[  # type: ignore[arg-type]
            lambda wire, e=e, s=s: florist.align(wire, e, spec, CONTEXT, Ristretto255(), seeded(s))
            for s, e in ((1, X), (2, Y))
        ],
    )


def simulated_active(group: Ristretto255, keys: list[int], n: int, m: int, u: int) -> View:
    """From n, m, u and the own keys s1, s2, s3."""
    s1, _, s3 = keys
    q = group.order
    both = elements(group, u)  # H(x)^{s1 t1} of the union
    records = elements(group, u)
    back = group.inverses([s1, s1 * s3 % q])
    theirs = np.concatenate([both[: n + m - u], both[n:]])
    return View(
        {
            "set": group.power(theirs, back[0])[permutation(m)],
            "questions": elements(group, m),
            "own set": both[:n][permutation(n)],
            "answers": group.power(records[:n], back[1]),
            "union": records[permutation(u)],
        }
    )


def simulated_passive(group: Ristretto255, keys: list[int], n: int, m: int, u: int) -> View:
    """From the active's size n, the own m, u and the own keys t1, t2, t3; the union it gets is raised by it
    afterwards."""
    t1, t2, t3 = keys
    q = group.order
    both, records = elements(group, u), elements(group, u)  # H(x)^{s1 t1} and records of the union
    back = group.inverses([t2 * t3 % q, t1 * t3 % q, t1])
    others = np.concatenate([both[: n + m - u], both[m:]])
    return View(
        {
            "set": group.power(others, back[2])[permutation(n)],
            "questions": elements(group, n),
            "own set": both[:m][permutation(m)],
            "answers": group.power(records[:m], back[1]),
            "union": group.power(records, back[0])[permutation(u)],
        }
    )


def matches_active(group: Ristretto255, keys: list[int], view: View) -> tuple[int, int]:
    """Common elements of both sets under s1 t1, and own records in the union."""
    s1, _, s3 = keys
    records = group.power(view.lists["answers"], s1 * s3 % group.order)
    return (
        common(group.power(view.lists["set"], s1), view.lists["own set"]),
        common(records, view.lists["union"]),
    )


def matches_passive(group: Ristretto255, keys: list[int], view: View) -> tuple[int, int]:
    """What the passive party can compare: its own set under both keys with the active's; own records with the
    union."""
    t1, t2, t3 = keys
    q = group.order
    return (
        common(group.power(view.lists["set"], t1), view.lists["own set"]),
        common(
            group.power(view.lists["answers"], t1 * t3 % q), group.power(view.lists["union"], t2 * t3 % q)
        ),
    )


def test_florist_views() -> None:
    done = florist_run()
    group = Ristretto255()
    for receiver, seed, shape, simulate, matches in (
        (0, 1, ACTIVE, simulated_active, matches_active),
        (1, 2, PASSIVE, simulated_passive, matches_passive),
    ):
        keys = group.random_exponents(3, seeded(seed))
        real = received(done, receiver, shape)
        simulated = simulate(group, keys, N, M, U)
        assert shapes(real) == shapes(simulated)
        assert matches(group, keys, real) == matches(group, keys, simulated)
        for view in (real, simulated):
            assert_uniform(view)
        assert matches(group, keys, real)[0] == K  # what sizes and u say anyway


def test_florist_orders() -> None:
    """Known keys open every list: no list is in file order, and no two lists of the same elements are in the
    same order."""
    done = florist_run()
    group = Ristretto255()
    sid = CONTEXT.salt(spec_of("florist"), done.session_id)
    s1, s2, _ = group.random_exponents(3, seeded(1))
    t1, t2, _ = group.random_exponents(3, seeded(2))
    views = received(done, 0, ACTIVE), received(done, 1, PASSIVE)
    for side, entries, first, second, other in ((0, X, s1, s2, t1), (1, Y, t1, t2, s1)):
        hashed, sent, back = group.hash_many(entries, sid), views[1 - side], views[side]
        blinded = group.power(hashed, first)
        orders = (
            places(blinded, sent.lists["set"]),
            places(group.power(hashed, second), sent.lists["questions"]),
            places(group.power(blinded, other), back.lists["own set"]),
        )
        for order in orders:
            assert_no_order(order)
        for one, two in itertools.combinations(orders, 2):
            assert_no_order(one[np.argsort(two)])


# dh2. Received by the answering owner: size, commitment, keys; list; queries; pool and traps; answers for its
# traps; a bitmap; names; comparison. By the asking owner: tags instead of queries, and answers instead of the
# bitmap.

ANSWERING = [
    ("keys", 0),
    ("list", 32),
    ("queries", 32),
    ("shown", 0),
    ("traps", 0),
    ("bitmap", 0),
    ("names", 32),
    ("compared", 0),
    ("hash", 0),
]
ASKING = [
    ("keys", 0),
    ("list", 32),
    ("tags", NAME_BYTES),
    ("shown", 0),
    ("traps", 0),
    ("answers", 32),
    ("names", 32),
    ("compared", 0),
    ("hash", 0),
]


class Watched(Owner):
    """Remembers its matching step; what it holds is the simulated party's own side of the view."""

    step: Matching

    def matching(self) -> Matching:
        self.step = super().matching()
        return self.step


def dh2_run() -> tuple[Run, list[Watched]]:
    spec, owners = spec_of("dh2"), {}

    def body(wire: Wire) -> None:
        owners[wire.me] = Watched(wire, (X, Y)[wire.me], spec, CONTEXT, Ristretto255(), traps=TRAPS)
        owners[wire.me].run()

    return run(spec, body, body), [owners[0], owners[1]]


@dataclass
class Dh2View(View):
    """With the positions of the other's traps in its list, the elements that answer for own traps, and where
    common records stand in the other's list and among the entries of O, both without traps."""

    traps: NDArray[np.int64]
    answered: Elements
    common: NDArray[np.int64]
    tests: NDArray[np.int64]


def seen(done: Run, own: Watched, side: int) -> Dh2View:
    """The real view."""
    view = received(done, side, (ANSWERING, ASKING)[side])
    answered = [f.payload for f in done.frames if f.receiver == side][4]
    if side == 0:
        bits = np.unpackbits(np.frombuffer([f.payload for f in done.frames if f.receiver == 0][5], np.uint8))
        tests = np.flatnonzero(bits)
    else:  # own tags among the other's, from the answers
        step: Any = own.step
        asked = np.flatnonzero(~np.isin(step.tests, step.their_traps))
        raised = own.group.power_each(
            view.lists["answers"], own.group.inverses(exponents_of(step.blinds[asked]))
        )
        found = step.entries(step.points[step.tests[asked]], raised)
        tests = np.flatnonzero(np.isin(step.their_entries, found))
    return Dh2View(
        view.lists,
        own.step.their_traps,
        np.frombuffer(answered, np.uint8)[: 32 * TRAPS].reshape(-1, 32),
        np.flatnonzero(own.common),
        tests,
    )


def exponents_of(scalars: NDArray[np.uint8]) -> list[int]:
    return [int.from_bytes(scalar.tobytes(), "little") for scalar in scalars]


def simulated_dh2(group: Ristretto255, side: int, mine: int, theirs: int, u: int) -> Dh2View:
    """From both sizes and u alone: everything is random, but that k tests and k positions of the other's list
    are common."""
    k = mine + theirs - u
    lists = {"list": elements(group, theirs + TRAPS)}
    if side == 0:
        lists["queries"] = elements(group, mine + TRAPS)
    else:
        lists |= {
            "tags": np.frombuffer(system(NAME_BYTES * (mine + TRAPS)), np.uint8).reshape(-1, NAME_BYTES),
            "answers": elements(group, theirs),
        }
    lists["names"] = elements(group, mine)
    tests = theirs if side == 0 else mine
    return Dh2View(
        lists,
        permutation(theirs + TRAPS)[:TRAPS],
        elements(group, TRAPS),
        np.sort(permutation(theirs)[:k]),
        np.sort(permutation(tests)[:k]),
    )


def assert_uniform_subset(at: NDArray[np.int64], count: int) -> None:
    """Wilcoxon's rank sum of a subset of 0 .. count - 1."""
    k = len(at)
    assert abs(at.sum() - k * (count - 1) / 2) < SIGMAS * np.sqrt(k * (count - k) * (count + 1) / 12)


@pytest.mark.parametrize("side", [0, 1])
def test_dh2_views(side: int) -> None:
    (done, owners), group = dh2_run(), Ristretto255()
    mine, theirs = (N, M) if side == 0 else (M, N)
    own = owners[side]
    real, simulated = seen(done, own, side), simulated_dh2(group, side, mine, theirs, U)
    assert shapes(real) == shapes(simulated)
    for view in (real, simulated):
        assert_uniform(view)
        assert len(view.common) == len(view.tests) == K
        assert_uniform_subset(view.common, theirs)
        assert_uniform_subset(view.tests, theirs if side == 0 else mine)
        assert_uniform_subset(view.traps, theirs + TRAPS)
        # points of the tags, and what came, under the own keys in any combination: nothing meets
        points = own.step.hashed(group.power(view.lists["list"], own.list_key))
        came = [rows for name, rows in view.lists.items() if rows.shape[1] == 32] + [view.answered, points]
        exponents = [1, *own.exponents, *group.inverses(own.exponents)]
        raised = [np.concatenate([group.power(rows, exponent) for exponent in exponents]) for rows in came]
        assert all(common(a, b) == 0 for a, b in itertools.combinations(raised, 2))


def test_dh2_orders() -> None:
    """With both parties' keys: list, tags, queries and positions of traps are in no order of the file, nor of
    each other."""
    (done, owners), group = dh2_run(), Ristretto255()
    sid = CONTEXT.salt(spec_of("dh2"), done.session_id)
    views = received(done, 0, ANSWERING), received(done, 1, ASKING)
    for side, entries in ((0, X), (1, Y)):
        own, step = owners[side], owners[side].step
        listed = places(
            group.power(group.hash_many(entries, sid), own.list_key), views[1 - side].lists["list"]
        )
        assert_no_order(listed)
        # the other's list as tested, position by position, found again in what was sent
        if side == 0:
            tested: Any = step
            tags = (
                tested.entries(step.points, group.power(step.points, tested.kappa))
                .view(np.uint8)
                .reshape(-1, NAME_BYTES)
            )
            sent = places(tags, views[1].lists["tags"])
        else:
            asked: Any = step
            place = np.argsort(step.tests)
            sent = places(
                group.power_each(step.points, exponents_of(asked.blinds[place])), views[0].lists["queries"]
            )
        assert_no_order(sent)
        owned = places(
            group.power(group.hash_many((Y, X)[side], sid), owners[1 - side].list_key),
            views[side].lists["list"],
        )
        assert_no_order(sent[owned])


@pytest.mark.parametrize("side", [0, 1])
def test_dh2_names_are_what_they_should_be(side: int) -> None:
    """With the other's key as well: powers of the points exactly where records are common. So the test above
    can fail."""
    (done, owners), group = dh2_run(), Ristretto255()
    real, own, other = seen(done, owners[side], side), owners[side], owners[1 - side]
    due = group.power(own.points, other.name_key)
    assert common(due, real.lists["names"]) == common(due[real.common], real.lists["names"]) == K


def statistic_detects(break_it: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]) -> bool:
    view = View({"list": break_it(elements(Ristretto255(), 120))})
    try:
        assert_uniform(view)
    except AssertionError:
        return True
    return False


def test_the_statistics_can_fail() -> None:
    """A sorted list and a list of small numbers are told from random ones."""
    assert statistic_detects(lambda rows: rows[np.argsort(rows[:, 8:16].copy().view("<u8").reshape(-1))])
    assert statistic_detects(lambda rows: rows & 0x7F)  # type: ignore[arg-type, return-value]
    assert not statistic_detects(lambda rows: rows)
    with pytest.raises(AssertionError):
        assert_no_order(np.arange(100))
