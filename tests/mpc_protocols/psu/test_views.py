"""What an owner sees can be simulated from its own set, the other's size and u: the simulators of the paper, and that of
`psu.md` 1.2, compared with recorded views of real runs.

A simulator knows the simulated party's own set and coins (its seed) and nothing of the other's set. Real and simulated view must
agree exactly in what can be counted (lengths, repetitions, matches between lists under the own keys), and neither may show an
order: positions against file order and against encodings (Spearman), bytes of encodings (chi-square). Every statistic's bound is
passed by an honest run but with probability 10^-6; there are about 60 of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.psu import dh2, florist
from mpc_protocols.psu.group import Elements
from mpc_protocols.psu.hashing import NAME_BYTES, row_names
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.psu.ristretto import Ristretto255
from tests.mpc_protocols.psu.owners import CONTEXT, Run, ids, run, spec_of

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
    return View({name: np.frombuffer(raw, np.uint8).reshape(-1, width)
                 for (name, width), raw in zip(shape, payloads, strict=True) if width})


def elements(group: Ristretto255, count: int) -> Elements:
    """Independent uniform elements."""
    return group.hash_many([system(32) for _ in range(count)], bytes(32))


def common(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> int:
    return len({row.tobytes() for row in a} & {row.tobytes() for row in b})


def shapes(view: View) -> dict[str, int]:
    """Lengths, distinct entries, and entries shared by two lists as they are."""
    out = {name: len(rows) for name, rows in view.lists.items()}
    out |= {f"distinct {name}": common(rows, rows) for name, rows in view.lists.items()}
    return out | {f"{a}, {b}": common(x, y) for (a, x), (b, y) in itertools.combinations(view.lists.items(), 2)
                  if x.shape[1] == y.shape[1]}


def assert_no_order(ranks: NDArray[np.int64]) -> None:
    """A sequence of distinct numbers in no particular order: Spearman's coefficient with positions."""
    n = len(ranks)
    order = np.argsort(np.argsort(ranks)).astype(float)
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < SIGMAS / np.sqrt(n - 1)


def assert_uniform(view: View) -> None:
    """Encodings: bytes 8 to 23 of elements (the ends of a field element are not uniform) and all of tags; no sorted order."""
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


# FLORIST. Received by the active party: size, 5, 12q, 4, 11a, 9; by the passive: size, 3, 11q, 6, 12a, size of U, 8.

ACTIVE = [("size", 0), ("set", 32), ("questions", 32), ("own set", 32), ("answers", 32), ("union", 32)]
PASSIVE = [("size", 0), ("set", 32), ("questions", 32), ("own set", 32), ("answers", 32), ("size", 0), ("union", 32)]


def florist_run() -> Run:
    spec = spec_of("florist")
    return run(spec, *[lambda wire, e=e, s=s: florist.align(wire, e, spec, CONTEXT, Ristretto255(), seeded(s))  # type: ignore[misc]
                       for s, e in ((1, X), (2, Y))])


def simulated_active(group: Ristretto255, keys: list[int], n: int, m: int, u: int) -> View:
    """From n, m, u and the own keys s1, s2, s3."""
    s1, _, s3 = keys
    q = group.order
    both = elements(group, u)  # H(x)^{s1 t1} of the union
    records = elements(group, u)
    back = group.inverses([s1, s1 * s3 % q])
    theirs = np.concatenate([both[:n + m - u], both[n:]])
    return View({"set": group.power(theirs, back[0])[permutation(m)], "questions": elements(group, m),
                 "own set": both[:n][permutation(n)], "answers": group.power(records[:n], back[1]),
                 "union": records[permutation(u)]})


def simulated_passive(group: Ristretto255, keys: list[int], n: int, m: int, u: int) -> View:
    """From the active's size n, the own m, u and the own keys t1, t2, t3; the union it gets is raised by it afterwards."""
    t1, t2, t3 = keys
    q = group.order
    both, records = elements(group, u), elements(group, u)  # H(x)^{s1 t1} and records of the union
    back = group.inverses([t2 * t3 % q, t1 * t3 % q, t1])
    others = np.concatenate([both[:n + m - u], both[m:]])
    return View({"set": group.power(others, back[2])[permutation(n)], "questions": elements(group, n),
                 "own set": both[:m][permutation(m)], "answers": group.power(records[:m], back[1]),
                 "union": group.power(records, back[0])[permutation(u)]})


def matches_active(group: Ristretto255, keys: list[int], view: View) -> tuple[int, int]:
    """Common elements of both sets under s1 t1, and own records in the union."""
    s1, _, s3 = keys
    records = group.power(view.lists["answers"], s1 * s3 % group.order)
    return (common(group.power(view.lists["set"], s1), view.lists["own set"]), common(records, view.lists["union"]))


def matches_passive(group: Ristretto255, keys: list[int], view: View) -> tuple[int, int]:
    """What the passive party can compare: its own set under both keys with the active's; own records with the union."""
    t1, t2, t3 = keys
    q = group.order
    return (common(group.power(view.lists["set"], t1), view.lists["own set"]),
            common(group.power(view.lists["answers"], t1 * t3 % q), group.power(view.lists["union"], t2 * t3 % q)))


def test_florist_views() -> None:
    done = florist_run()
    group = Ristretto255()
    for receiver, seed, shape, simulate, matches in (
            (0, 1, ACTIVE, simulated_active, matches_active), (1, 2, PASSIVE, simulated_passive, matches_passive)):
        keys = group.random_exponents(3, seeded(seed))
        real = received(done, receiver, shape)
        simulated = simulate(group, keys, N, M, U)
        assert shapes(real) == shapes(simulated)
        assert matches(group, keys, real) == matches(group, keys, simulated)
        for view in (real, simulated):
            assert_uniform(view)
        assert matches(group, keys, real)[0] == K  # what sizes and u say anyway


def test_florist_orders() -> None:
    """Known keys open every list: no list is in file order, and no two lists of the same elements are in the same order."""
    done = florist_run()
    group = Ristretto255()
    sid = CONTEXT.salt(spec_of("florist"), done.session_id)
    s1, s2, _ = group.random_exponents(3, seeded(1))
    t1, t2, _ = group.random_exponents(3, seeded(2))
    views = received(done, 0, ACTIVE), received(done, 1, PASSIVE)
    for side, entries, first, second, other in ((0, X, s1, s2, t1), (1, Y, t1, t2, s1)):
        hashed, sent, back = group.hash_many(entries, sid), views[1 - side], views[side]
        blinded = group.power(hashed, first)
        orders = (places(blinded, sent.lists["set"]), places(group.power(hashed, second), sent.lists["questions"]),
                  places(group.power(blinded, other), back.lists["own set"]))
        for order in orders:
            assert_no_order(order)
        for one, two in itertools.combinations(orders, 2):
            assert_no_order(one[np.argsort(two)])


# dh2. Received: size and commitment, list, commitment, tags, ordered answers, queries, answers, commitment, hash.

DH2 = [("size", 0), ("list", 32), ("commitment", 0), ("tags", NAME_BYTES), ("ordered", 32), ("queries", 32), ("answers", 32),
       ("commitment", 0), ("hash", 0)]


def dh2_run() -> Run:
    spec = spec_of("dh2")
    return run(spec, *[lambda wire, e=e, s=s: dh2.align(wire, e, spec, CONTEXT, Ristretto255(), seeded(s))  # type: ignore[misc]
                       for s, e in ((1, X), (2, Y))])


def tag_of(group: Ristretto255, sid: bytes, rows: Elements, key: int) -> NDArray[np.uint8]:
    return row_names(sid, dh2.TAG, group.power(rows, key)).view(np.uint8).reshape(-1, NAME_BYTES)


def simulated_dh2(group: Ristretto255, sid: bytes, key: int, mine: int, theirs: int, u: int) -> View:
    """From the own first key, both sizes and u: everything is random but k tags at random positions of the other's list."""
    k = mine + theirs - u
    listed = elements(group, theirs)
    matching = tag_of(group, sid, listed, key)[permutation(theirs)[:k]]
    others = np.frombuffer(system(NAME_BYTES * (mine - k)), np.uint8).reshape(-1, NAME_BYTES)
    return View({"list": listed, "tags": np.concatenate([matching, others])[permutation(mine)], "ordered": elements(group, mine),
                 "queries": elements(group, u - theirs), "answers": elements(group, u - mine)})


@pytest.mark.parametrize("receiver", [0, 1])
def test_dh2_views(receiver: int) -> None:
    done, group = dh2_run(), Ristretto255()
    sid = CONTEXT.salt(spec_of("dh2"), done.session_id)
    mine, theirs = (N, M) if receiver == 0 else (M, N)
    first, second = group.random_exponents(2, seeded(1 + receiver))
    real, simulated = received(done, receiver, DH2), simulated_dh2(group, sid, first, mine, theirs, U)
    assert shapes(real) == shapes(simulated)
    for view in (real, simulated):
        assert_uniform(view)
        tags = tag_of(group, sid, view.lists["list"], first)
        assert common(tags, view.lists["tags"]) == K
        seen = {tag.tobytes() for tag in view.lists["tags"]}
        at = np.flatnonzero([tag.tobytes() in seen for tag in tags])
        # matching positions are a uniform subset: Wilcoxon's rank sum
        assert abs(at.sum() - K * (theirs - 1) / 2) < SIGMAS * np.sqrt(K * (theirs - K) * (theirs + 1) / 12)
        # under the own keys nothing else meets: answers, queries and lists are unrelated
        raised = {name: group.power(view.lists[name], second) for name in ("list", "ordered", "queries", "answers")}
        assert all(common(a, b) == 0 for a, b in itertools.combinations([*raised.values(), *(view.lists[n] for n in raised)], 2))


def test_dh2_orders() -> None:
    """With both parties' keys: list and tags are in no order of the file nor of each other; queries in none of the list."""
    done, group = dh2_run(), Ristretto255()
    sid = CONTEXT.salt(spec_of("dh2"), done.session_id)
    coins = [seeded(1), seeded(2)]
    keys = [group.random_exponents(2, c) for c in coins]
    for receiver, entries in ((1, X), (0, Y)):
        view = received(done, receiver, DH2)
        own = keys[1 - receiver]
        listed = places(group.power(group.hash_many(entries, sid), own[0]), view.lists["list"])
        assert_no_order(listed)
        other = received(done, 1 - receiver, DH2).lists["list"]
        tags = places(tag_of(group, sid, other, own[0]), view.lists["tags"])
        assert_no_order(tags)


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
    assert statistic_detects(lambda rows: rows & 0x7F)
    assert not statistic_detects(lambda rows: rows)
    with pytest.raises(AssertionError):
        assert_no_order(np.arange(100))
