"""Which marginals are shared, and that the others are exactly their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS, Clique, Level, StudyFacts
from mpc_protocols.public import cliques
from mpc_protocols.public.cliques import MAX_DERIVED_CELLS, MAX_LEVELS, CliqueRegister

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}
RNG = np.random.default_rng(0)
TABLE = {c: RNG.integers(0, s, 200) for c, s in SIZES.items()}

clique_lists = st.lists(
    st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4, unique=True).map(tuple),
    min_size=1,
    max_size=8,
)


def register(**sizes: int) -> CliqueRegister:
    return CliqueRegister(StudyFacts(sizes or SIZES, "add-remove", 1, 1000, b""))


def counted(clique: Clique) -> np.ndarray:
    """The marginal by numpy's histogram, which shares nothing with the code under test."""
    sample = np.stack([TABLE[c] for c in clique], axis=1)
    cells, _ = np.histogramdd(sample, bins=[np.arange(SIZES[c] + 1) - 0.5 for c in clique])
    return cells.reshape(-1).astype(np.int64)


def test_what_custodians_do_not_count_is_refused_before_anybody_looks() -> None:
    halves = Level("halves of c", "c", (0, 0, 1, 1))
    plan = frozenset(map(frozenset, [("a", "b"), ("b", "c"), ("d",)]))
    known = CliqueRegister(replace(register().facts, counted=plan))
    known.declare([halves])
    inside: list[Clique] = [("b", "a"), ("c",), (halves.name, "b"), ("d",)]
    assert known.to_share(inside) == [("b", "a"), ("c",), (halves.name, "b"), ("d",)]
    for outside in [("a", "c"), ("a", halves.name), ("a", "b", "c"), ("d", "a"), ("e",)]:
        with pytest.raises(StudyInvalid, match="inside no marginal that custodians count"):
            known.to_share([("a", "b"), outside])


@given(st.lists(clique_lists, min_size=1, max_size=3))
def test_every_handle_is_a_sum_of_shared_cells(batches: list[list[Clique]]) -> None:
    known = register()
    handles: dict[Clique, int] = {}
    for batch in batches:
        announced = known.to_share(batch)
        before = list(known.shared)
        for clique, handle in zip(batch, known.register(batch), strict=True):
            assert handles.setdefault(clique, handle) == handle
        assert known.shared == before + announced
        assert not known.to_share(batch)  # all of it is there now
    assert sorted(handles.values()) == list(range(len(handles)))
    shared = {clique: counted(clique) for clique in known.shared}
    for clique, handle in handles.items():
        assert known.cliques[handle] == clique
        derivation = known.derivation(handle)
        got = derivation.apply(shared[derivation.source])
        np.testing.assert_array_equal(got, counted(clique))
        assert got.dtype == np.int64
    # nothing is shared without need: no two shared cliques of one batch contain one another
    for x, y in permutations(known.shared, 2):
        if set(x) <= set(y):
            assert known.shared.index(x) < known.shared.index(y)


def test_maximal_cliques_only_and_in_order() -> None:
    known = register()
    batch: list[Clique] = [("a",), ("c", "b"), ("a", "b", "c"), ("e",), ("b", "c")]
    assert known.to_share(batch) == [("a", "b", "c"), ("e",)]
    assert known.register(batch) == [0, 1, 2, 3, 4]
    assert known.to_share([("a", "c"), ("e", "a")]) == [("e", "a")]


def test_same_columns_in_another_order_are_another_handle_of_the_same_shares() -> None:
    known = register()
    first, second = known.register([("b", "c"), ("c", "b")])
    assert known.shared == [("b", "c")] and first != second
    derivation = known.derivation(second)
    assert derivation.axes == (1, 0) and not derivation.is_identity
    np.testing.assert_array_equal(derivation.apply(counted(("b", "c"))), counted(("c", "b")))


def test_the_smallest_source_is_taken_and_kept() -> None:
    known = register()
    known.register([("b", "e", "c"), ("a", "b")])
    (b,) = known.register([("b",)])
    assert known.derivation(b).source == ("a", "b")


def test_sums_wrap_in_the_ring_of_the_shares() -> None:
    known = register()
    _, a = known.register([("a", "b"), ("a",)])
    shares = np.full(6, 2**31 + 1, dtype=np.uint32)
    got = known.derivation(a).apply(shares)
    assert got.dtype == np.uint32 and got.tolist() == [3 * (2**31 + 1) % 2**32] * 2


def test_refusals() -> None:
    known = register(a=2, wide=MAX_CELLS, wider=MAX_CELLS + 1)
    assert known.to_share([("wide",)]) == [("wide",)]
    refused: list[tuple[Clique, str]] = [
        (("x",), "'x'"), (("a", "a"), "none twice"), (("wide", "a"), str(2 * MAX_CELLS)), (("wider",), "16777217 cells")
    ]  # fmt: skip
    for clique, words in refused:
        with pytest.raises(StudyInvalid, match=words):
            known.to_share([clique])
    assert known.register([("a",)]) == [0]  # a refusal leaves nothing behind


def test_all_shared_cells_together_are_limited() -> None:
    known = register(**{f"c{i}": MAX_CELLS for i in range(17)})
    known.register([(f"c{i}",) for i in range(16)])
    with pytest.raises(StudyInvalid, match="were to be shared"):
        known.to_share([("c16",)])


def test_number_of_handles_is_limited() -> None:
    columns = {f"c{i}": 1 for i in range(420)}
    known = register(**columns)
    pairs = list(permutations(columns, 2))[: 2**16]
    known.register([tuple(columns)[:64]])
    with pytest.raises(StudyInvalid, match="at most 65536 marginals"):
        known.to_share(pairs)


def test_what_is_derived_and_kept_is_limited() -> None:
    """The same columns in another order are another marginal, which a party keeps."""
    known = register(**{f"c{i}": 16 for i in range(6)})
    orders = [
        tuple(order) for order in islice(permutations(known.facts.sizes), MAX_DERIVED_CELLS // MAX_CELLS + 2)
    ]
    known.register(orders[:-1])
    with pytest.raises(StudyInvalid, match="were to be sums of shared ones, at most 1073741824"):
        known.to_share(orders[-1:])
    assert known.register(orders[:1]) == [0]


def test_counts_of_levels_hold_few_marginals_of_own_values_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is held at once, they are the same sums."""
    known = register(a=6, b=5, c=4)
    levels = [
        Level(f"{name}/2", name, tuple(value % 2 for value in range(size)))
        for name, size in known.facts.sizes.items()
    ]
    asked: list[Clique] = [*combinations(["a/2", "b/2", "c/2"], 2), ("a/2",), ("c", "b/2", "a/2")]
    held: list[int] = []

    def own(cliques: Sequence[Clique]) -> list[np.ndarray]:
        held.append(sum(map(known.facts.cells, cliques)))
        return [np.arange(known.facts.cells(clique)) ** 2 for clique in cliques]

    whole = cliques.counts_at_levels(own, known.facts, levels)(asked)
    assert held == [30 + 24 + 20 + 6 + 120]
    for most, expected in ((60, [54, 26, 120]), (1, [30, 24, 20, 6, 120])):
        held.clear()
        monkeypatch.setattr(cliques, "BLOCK_CELLS", most)
        in_parts = cliques.counts_at_levels(own, known.facts, levels)(asked)
        assert all(map(np.array_equal, whole, in_parts)) and held == expected
    squares = (np.arange(30) ** 2).reshape(6, 5)
    assert whole[0].tolist() == [squares[i::2, j::2].sum() for i in (0, 1) for j in (0, 1)]
    assert not cliques.counts_at_levels(own, known.facts, levels)([])


def test_levels_of_a_column_are_limited() -> None:
    known = register(wide=100, other=3)
    levels = [
        Level(f"wide/{i}", "wide", tuple(min(v, i) for v in range(100))) for i in range(1, MAX_LEVELS + 1)
    ]
    known.declare(levels[:10])
    known.declare([*levels, Level("other/2", "other", (0, 0, 1))])
    with pytest.raises(StudyInvalid, match=r"column 'wide' would have 17 levels, at most 16"):
        known.declare([Level("one more", "wide", (0,) * 99 + (1,))])
    known.declare(levels)  # known ones may be named again


def test_comparing_marginals_is_limited_and_hardly_grows_with_honest_workloads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By column, all triples of 30 columns need 2^20 comparisons; all pairs of 4,525 marginals would be 2^23."""
    names = [f"c{i}" for i in range(30)]
    triples = [clique for size in (1, 2, 3) for clique in combinations(names, size)]
    monkeypatch.setattr("mpc_protocols.public.cliques.MAX_COMPARED", 1 << 20)
    known = register(**dict.fromkeys(names, 2))
    assert len(known.register(triples)) == len(triples) and len(known.shared) == 4060
    with pytest.raises(StudyInvalid, match="More than 1048576 pairs of marginals"):
        for _ in range(20):
            known.to_share(triples)


def test_a_level_of_a_refused_step_leaves_nothing_behind() -> None:
    """Another one of its name is what it says: the others never heard of the first."""
    known = register(x=4, **{f"c{i}": MAX_CELLS for i in range(17)})
    first, second = (Level("x/2", "x", bins) for bins in ((0, 0, 1, 1), (0, 1, 1, 1)))
    batch: list[Clique] = [("x",), ("x/2",)]
    declared = known.declare([first])
    with pytest.raises(StudyInvalid, match="were to be shared"):
        known.to_share([*batch, *((f"c{i}",) for i in range(17))])
    known.forget(declared)
    known.declare([second])
    known.register(batch)
    assert known.derivation(1).bins == (second.bins,)
