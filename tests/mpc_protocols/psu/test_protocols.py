"""The protocols compute the functionality, at the cost they say."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.psu.align import align
from mpc_protocols.psu.dh2 import owner, traps
from mpc_protocols.psu.dh2.cost import dh2_cost
from mpc_protocols.psu.dummies import assemble, overlap_noise
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, ideal_align
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.helper import protocol as helper
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy, Identifiers
from mpc_protocols.psu.method import resolve
from mpc_protocols.psu.two_owners import cost, exchange
from mpc_protocols.research.florist import protocol as florist
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.psu.owners import (
    CONTEXT,
    EAST,
    NORTH,
    SOUTH,
    TRAPS,
    assert_ideal,
    ids,
    run,
    small_residues,
    spec_of,
)

METHODS = ("florist", "dh2", "dh2+proofs", "helper")
OVERLAPS = [
    (0, 0, 0),
    (1, 0, 0),
    (0, 1, 0),
    (1, 1, 0),
    (1, 1, 1),
    (2, 1, 1),
    (12, 12, 0),
    (12, 12, 5),
    (12, 12, 12),
    (5, 20, 5),
    (20, 5, 0),
    (40, 13, 12),
    (0, 30, 0),
]
"""Sizes of the two sets and of their intersection."""


def sets(first: int, second: int, common: int, seed: int = 0) -> tuple[list[bytes], list[bytes]]:
    """Two lists in unrelated random orders."""
    rng = np.random.default_rng((seed, first, second, common))
    numbers = rng.permutation(1000)
    a, b = numbers[:first], np.concatenate([numbers[:common], numbers[first : first + second - common]])
    return ids(rng.permutation(a).tolist()), ids(rng.permutation(b).tolist())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", OVERLAPS)
def test_every_overlap(method: str, sizes: tuple[int, int, int]) -> None:
    spec, lists = spec_of(method), sets(*sizes)
    assert_ideal(lists, run(spec, *lists).results, ideal_align(lists, spec))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.integers(0, 14)), st.sets(st.integers(0, 14)), st.randoms(use_true_random=False))
def test_random_sets(method: str, a: set[int], b: set[int], shuffle: object) -> None:
    first, second = sorted(a), sorted(b)
    shuffle.shuffle(first)  # type: ignore[attr-defined]
    shuffle.shuffle(second)  # type: ignore[attr-defined]
    spec, lists = spec_of(method), (ids(first), ids(second))
    assert_ideal(lists, run(spec, *lists).results, ideal_align(lists, spec))


@pytest.mark.parametrize("sizes", [(0, 3, 0), (7, 5, 3), (6, 6, 6)])
@pytest.mark.parametrize("method", ["florist", "dh2", "dh2+proofs"])
def test_the_papers_group(method: str, sizes: tuple[int, int, int]) -> None:
    spec, lists = spec_of(method), sets(*sizes)
    assert_ideal(lists, run(spec, *lists, group=small_residues).results, ideal_align(lists, spec))


def cost_of(method: str, n: int, m: int, u: int, width: int) -> cost.Cost:
    if method == "helper":
        return helper.cost(n, m)
    if method == "florist":
        return florist.cost(n, m, u, width)
    return dh2_cost(n, m, u, proofs="+" in method, traps=TRAPS, element_bytes=width)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 0, 0), (9, 7, 4), (30, 41, 17), (25, 25, 25), (20, 20, 0)])
@pytest.mark.parametrize("block", [4, 1 << 15])
def test_cost_is_exact(
    method: str, sizes: tuple[int, int, int], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exponentiations, bytes, messages and rounds, also when lists take many blocks."""
    for module in (exchange, helper):
        monkeypatch.setattr(module, "BLOCK", block)
    n, m, common = sizes
    done = run(spec_of(method), *sets(*sizes))
    due = cost_of(method, n, m, n + m - common, 32)
    for counter in ("powers", "generated", "hashes"):
        assert [getattr(r.operations, counter) for r in done.results] == getattr(due, counter)[:2], counter
    assert [t.bytes_sent for t in done.traffic] == due.sent
    assert [t.messages_sent for t in done.traffic] == due.messages
    assert [t.rounds for t in done.traffic] == due.clocks


def test_promised_sizes_at_a_hundred_thousand() -> None:
    """When half is common: 12 n and 13 n exponentiations, 208 n and 352 n bytes; what dh2's traps cost on top
    does not grow."""
    n, u = 100_000, 150_000
    assert sum(florist.cost(n, n, u).powers) == 13 * n and florist.cost(n, n, u).bytes == 352 * n + 24
    of_traps, whole = dh2_cost(0, 0, 0), dh2_cost(n, n, u)
    assert [a - b for a, b in zip(whole.powers, of_traps.powers, strict=True)] == [6 * n, 6 * n, 0]
    assert [a - b for a, b in zip(whole.generated, of_traps.generated, strict=True)] == [n // 2, n // 2, 0]
    assert [a - b for a, b in zip(whole.hashes, of_traps.hashes, strict=True)] == [2 * n, 2 * n, 0]
    assert whole.bytes - of_traps.bytes == 208 * n + n // 8
    assert sum(whole.powers) < sum(florist.cost(n, n, u).powers)
    assert whole.bytes < 21.2e6 and max(of_traps.powers) < 19 * traps.TRAPS
    assert whole.rounds == 10
    proven = dh2_cost(n, n, u, proofs=True)
    assert [a - b for a, b in zip(proven.powers, whole.powers, strict=True)] == [n + 3 * 4, 2 * n + 4 * 4, 0]
    assert helper.cost(n, n).bytes < 41 * n


@pytest.mark.parametrize("method", ["dh2", "dh2+proofs"])
@pytest.mark.parametrize("block", [5, 1 << 15])
def test_cost_is_exact_with_pools(method: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exchange, helper):
        monkeypatch.setattr(module, "BLOCK", block)
    spec = spec_of(
        method, adjacency="add-remove", size_epsilon=Fraction(2), size_delta=Fraction(1, 1000), pad_to=(9, 14)
    )
    lists: dict[int, list[bytes]] = {}

    def body(wire: Wire) -> Alignment:
        lists[wire.me] = assemble(
            sets(8, 12, 5)[wire.me], spec, CONTEXT.salt(spec, wire.session_id), wire.me, "x"
        ).entries
        return owner.align(wire, lists[wire.me], spec, CONTEXT, Ristretto255(), traps=TRAPS)

    done = run(spec, body, body)
    due = dh2_cost(
        len(lists[0]),
        len(lists[1]),
        len(set(lists[0] + lists[1])),
        proofs="+" in method,
        pool=2 * overlap_noise(spec).c,
        traps=TRAPS,
    )
    assert [r.operations.powers for r in done.results] == due.powers[:2]
    assert [r.operations.hashes for r in done.results] == due.hashes[:2]
    assert [(t.bytes_sent, t.messages_sent, t.rounds) for t in done.traffic] == list(
        zip(due.sent, due.messages, due.clocks, strict=True)
    )
    assert done.results[0].n_rows == len(set(lists[0] + lists[1]))


@pytest.mark.parametrize("method", METHODS)
def test_rows_do_not_depend_on_file_order(method: str) -> None:
    """The row of the first identifier is uniform on 4 rows: chi-square below its 1 - 10^-6 quantile (30.7, 3
    degrees)."""
    counts = np.zeros(4)
    for _ in range(160):
        done = run(spec_of(method), ids([0, 1, 2]), ids([2, 3]))
        counts[done.results[0].rows[0]] += 1
    assert ((counts - 40) ** 2 / 40).sum() < 30.7


@pytest.mark.parametrize("method", METHODS)
def test_two_runs_share_nothing(method: str) -> None:
    """Fresh keys: no 16 bytes of one run's lists occur in the other's, even in the same session.

    Only pieces of at least ten different bytes count: four small row numbers in a row (of which some lists
    are made) may well be the same twice.
    """
    lists = sets(10, 10, 5)
    one, two = (run(spec_of(method), *lists, session_id=bytes(32)) for _ in range(2))
    chunks = [
        {
            frame.payload[i : i + 16]
            for frame in done.frames
            if len(frame.payload) >= 160
            for i in range(0, len(frame.payload) - 15, 16)
            if len(set(frame.payload[i : i + 16])) >= 10
        }
        for done in (one, two)
    ]
    assert len(chunks[0]) > 10 and not chunks[0] & chunks[1]


def test_bound_to_study_identities_session_and_parameters() -> None:
    """Any change gives another salt; owners with different studies do not finish."""
    spec = spec_of("dh2")
    contexts = (
        CONTEXT,
        Context(bytes(32), (NORTH, SOUTH), EAST),
        Context(CONTEXT.study, (SOUTH, NORTH), EAST),
        Context(CONTEXT.study, (Member("north", b"other", 0), SOUTH), EAST),
    )
    salts = {context.salt(spec, bytes(32)) for context in contexts}
    salts |= {
        CONTEXT.salt(changed, session)
        for changed, session in (
            (spec, bytes(31) + b"\x01"),
            (spec_of("dh2+proofs"), bytes(32)),
            (spec_of("dh2", min_size=1), bytes(32)),
        )
    }
    assert len(salts) == 7
    other = Context(bytes(32), (NORTH, SOUTH), EAST)
    with pytest.raises(ProtocolAborted, match="other than it had committed to"):
        run(
            spec,
            ids(range(3)),
            lambda wire: owner.align(wire, ids(range(3)), spec, other, Ristretto255(), traps=TRAPS),
        )


def entry(
    identifiers: Identifiers, spec: AlignmentSpec, ledger: Recorder | None = None
) -> Callable[[Wire], Alignment]:
    def body(wire: Wire) -> Alignment:
        return align(wire, identifiers, spec, CONTEXT, ledger or Recorder())

    return body


@pytest.mark.parametrize("method", METHODS)
def test_from_tables_to_rows(method: str) -> None:
    """The entry point: columns, policy, protocol; rows in the order of the identifiers; membership."""
    policy = IdentifierPolicy(("name", "born"), ("name", "date"), "first")
    north = policy.encode(
        [["Ann  Lee", "Bob", "ann lee"], ["2001-02-03", "19991231", "20010203"]], "north", untyped=True
    )
    south = policy.encode([["BOB", "Ann", "ANN LEE"], ["1999-12-31", "2001-02-03", "2001-02-03"]], "south")
    assert north.rows.tolist() == [0, 1] and north.duplicates == 1
    spec = spec_of(method)
    a, b = run(spec, entry(north, spec), entry(south, spec)).results
    assert a.n_rows == b.n_rows == 3 and a.rows.tolist() == [b.rows[2], b.rows[0]] and a.events == ()
    assert a.membership.sum() == 2 and (a.membership & b.membership).sum() == 2 and b.membership.all()


def test_columns_of_different_types() -> None:
    policy, spec = IdentifierPolicy(("id",), ("text",)), spec_of("florist")
    numbers, texts = policy.encode([[1, 2]], "north"), policy.encode([["1", "2"]], "south")
    with pytest.raises(
        ProtocolAborted,
        match=r"^Key column 1 of the alignment holds (text|integer) at party (north|south) and",
    ):
        run(spec, entry(numbers, spec), entry(texts, spec))
    untyped = policy.encode([["1", "2"]], "south", untyped=True)
    assert run(spec, entry(numbers, spec), entry(untyped, spec)).results[0].n_rows == 2


def test_own_list_is_refused_before_anything_is_sent() -> None:
    spec = spec_of("dh2", min_size=3, max_size=5)
    for count, words in ((2, "fewer identifiers than"), (6, "more than 5 identifiers")):
        with pytest.raises(DataRefused, match=words):
            ideal_align([ids(range(count))], spec)
        with pytest.raises(DataRefused, match=words):
            run(
                spec,
                entry(Identifiers(ids(range(count)), np.arange(count), ("text",)), spec),
                lambda wire: wire.receive(0, 1),
            )
    with pytest.raises(DataRefused, match="duplicate identifiers"):
        ideal_align([ids([1, 2, 1])], spec)


def test_parameters_are_validated() -> None:
    for changes, words in (
        ({"method": "merge"}, "is not one of"),
        ({"security": "proofs", "method": "florist"}, "is not offered by via"),
        ({"min_size": 10, "max_size": 5}, "must lie between"),
        ({"pad_to": (5000, 5000)}, "only with adjacency"),
        ({"adjacency": "add-remove", "pad_to": (1, 1)}, "pad_to must lie"),
        ({"adjacency": "add-remove", "size_epsilon": 0}, "must lie in"),
    ):
        with pytest.raises(StudyInvalid, match=words):
            AlignmentSpec(**{"method": "dh2", **changes})  # type: ignore[arg-type]
    with pytest.raises(StudyInvalid, match="different ones"):
        Context(bytes(32), (NORTH, NORTH))


def test_a_computing_party_without_data_is_told_the_union() -> None:
    """In the protocols of two, with or without helping: the same number of rows and digest as the owners."""
    lists = sets(12, 9, 4)
    for method in METHODS:
        helping = NORTH if method == "helper" else None
        spec, context = spec_of(method), Context(bytes(32), (SOUTH, EAST), helping, (NORTH, SOUTH, EAST))

        def body(wire: Wire, spec: AlignmentSpec = spec, context: Context = context) -> Alignment:
            side = context.side(wire.me)
            own = None if side is None else Identifiers(lists[side], np.arange(len(lists[side])), ("text",))
            return align(wire, own, spec, context, Recorder())

        third, *owners = MemoryNetwork(3).run([body] * 3)
        assert_ideal(lists, owners, ideal_align(lists, spec))
        assert (third.n_rows, third.digest, len(third.rows)) == (17, owners[0].digest, 0)


def test_who_can_run_what() -> None:
    west = Member("west", bytes([7]) * 32, 3)
    hill = Member("hill", bytes([8]) * 32, 4)
    three = (NORTH, SOUTH, EAST)
    names = ("a", "b", "c", "d", "e")
    for via, owners, computing, method in (
        ("auto", 2, 3, "merge3"),
        ("auto", 5, 3, "merge3"),
        ("auto", 2, 2, "dh2"),
        ("dh2", 2, 3, "dh2"),
    ):
        assert resolve(via, names[:owners], names[:computing]).name == method
    assert resolve("auto", names[:2], names[:3], allowed=("dh2",)).name == "dh2"
    for via, owners, computing, words in (
        ("auto", 3, 2, "aligns two owners, and there are 3"),
        *(
            (via, 3, 5, r'and there are 3 .*; let three parties compute \(via = "merge3"\)')
            for via in ("auto", "dh2", "helper")
        ),
        ("merge3", 3, 5, "needs exactly three computing parties, and 5 compute; let three parties compute"),
        ("helper", 3, 3, 'aligns two owners, and there are 3 .*use via = "merge3"'),
        ("row-order", 2, 3, "must be one of"),
        ("merge", 2, 3, "must be one of"),
    ):
        with pytest.raises(StudyInvalid, match=words):
            resolve(via, names[:owners], names[:computing])
    for via, adjacency, method in (
        ("auto", "add-remove", "merge3"),
        ("merge3", "replace", "merge3"),
        ("dh2", "replace", "dh2"),
    ):
        assert resolve(via, names[:2], names[:3], None, adjacency).name == method  # type: ignore[arg-type]
    for via, adjacency, words in (
        ("helper", "replace", r'cannot stand with .* "malicious": .* two rows.*; use via = "merge3"'),
        ("florist", "replace", "without being noticed"),
        ("dh2", "add-remove", "1 in 1,000"),
    ):
        with pytest.raises(StudyInvalid, match=words):
            resolve(via, names[:2], names[:3], None, adjacency)  # type: ignore[arg-type]
        with pytest.raises(StudyInvalid, match=f"by {via} does not stand against a party that deviates"):
            spec_of(via, adjacency=adjacency, malicious=True)
    for adjacency in ("add-remove", "replace"):  # what the parties lack, not that `dh2` is too weak
        with pytest.raises(
            StudyInvalid, match='"merge3" needs exactly three computing parties, and 2 compute'
        ):
            resolve("auto", names[:3], names[:2], None, adjacency)  # type: ignore[arg-type]
    for method, context, words in (
        ("dh2", Context(bytes(32), three), "aligns two owners, and there are 3"),
        ("helper", Context(bytes(32), (NORTH, SOUTH)), "needs a third"),
        ("merge3", Context(bytes(32), three, None, (NORTH, SOUTH)), "three computing parties"),
        ("dh2", Context(bytes(32), (west, hill), None, three), "needs a connection"),
        ("helper", Context(bytes(32), (NORTH, hill), EAST, three), "needs both owners among the computing"),
    ):
        with pytest.raises(StudyInvalid, match=words):
            context.check(spec_of(method))
    with pytest.raises(StudyInvalid, match="names 3 sizes for 2 owners"):
        CONTEXT.check(spec_of("dh2", adjacency="add-remove", pad_to=(5, 5, 5)))
    for members in ((NORTH,), (NORTH, SOUTH, EAST) * 3):
        with pytest.raises(StudyInvalid, match="2 to 8 parties"):
            Context(bytes(32), members)
