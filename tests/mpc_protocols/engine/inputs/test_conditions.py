"""The conditions themselves, in the clear: true of every table's marginals, false of everything else."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.engine.inputs.check.conditions import Conditions
from mpc_protocols.engine.inputs.check.relations import MAX_LISTED, links
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.public.cliques import CliqueRegister

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
LEVELS = [
    Level("b half", "b", (0, 0, 1, 1)),
    Level("b third", "b", (0, 1, 2, 2)),
    Level("d odd", "d", (0, 1, 0, 1, 0)),
]
NAMES = ["a", "b", "c", "d", *(level.name for level in LEVELS)]
CLIQUES = [
    clique
    for width in (1, 2, 3)
    for clique in itertools.combinations(NAMES, width)
    if len({name[0] for name in clique}) == width
]
SUBSETS = KeyStream(b"public coins....")


def register(sizes: Mapping[str, int] = SIZES) -> CliqueRegister:
    found = CliqueRegister(StudyFacts(sizes, "add-remove", 1, 1000, b"s" * 32))
    if sizes is SIZES:
        found.declare(LEVELS)
    return found


def marginal(rows: NDArray[np.int64], clique: Clique) -> NDArray[np.uint32]:
    columns = {name: rows[:, place] for place, name in enumerate(SIZES)}
    columns |= {level.name: np.array(level.bins)[columns[level.column]] for level in LEVELS}
    sizes = SIZES | {level.name: level.size for level in LEVELS}
    shape = tuple(sizes[name] for name in clique)
    cells = np.ravel_multi_index(tuple(columns[name] for name in clique), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.uint32)


def table(seed: int, rows: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in SIZES.values()], axis=1)


def fine(conditions: Conditions, marginals: Mapping[Clique, NDArray[np.uint32]]) -> bool:
    values = conditions.values(marginals, conditions.subsets(SUBSETS)) + conditions.offsets
    assert len(values) == conditions.size
    return bool((values.view(np.int32) >= 0).all())


def agree(
    of: CliqueRegister, one: Clique, other: Clique, marginals: Mapping[Clique, NDArray[np.uint32]]
) -> bool:
    """Every marginal that both cliques refine, by trying all of them."""
    common = [clique for clique in [*CLIQUES, ()] if of.refines(one, clique) and of.refines(other, clique)]
    return all(
        np.array_equal(
            of.derive(clique, one).apply(marginals[one]), of.derive(clique, other).apply(marginals[other])
        )
        for clique in common
    )


chosen = st.lists(st.sampled_from(CLIQUES), min_size=2, max_size=6, unique=True)


@given(chosen, st.integers(0, 1 << 30), st.integers(0, 40), st.integers(0, 6))
def test_every_table_satisfies_them(cliques: Sequence[Clique], seed: int, rows: int, split: int) -> None:
    of, own = register(), table(seed, rows)
    marginals = {clique: marginal(own, clique) for clique in cliques}
    assert fine(Conditions.of(of, cliques[:split], cliques[split:], max(rows, 1)), marginals)


@given(chosen, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_links_are_zero_if_and_only_if_all_marginals_agree(
    cliques: Sequence[Clique], sources: Sequence[int]
) -> None:
    """Marginals of up to three tables of equally many rows: some pairs agree by chance, others do not."""
    of = register()
    marginals = {
        clique: marginal(table(source, 4), clique) for clique, source in zip(cliques, sources, strict=False)
    }
    found = all(not link.difference(marginals).any() for link in links(of, [], cliques))
    assert found == all(agree(of, *pair, marginals) for pair in itertools.combinations(cliques, 2))


@given(chosen, st.lists(st.integers(0, 2), min_size=6, max_size=6), st.integers(1, 5))
def test_of_marginals_that_agree_already_only_the_new_ones_are_compared(
    cliques: Sequence[Clique], sources: Sequence[int], split: int
) -> None:
    of, agreed, fresh = register(), cliques[:split], cliques[split:]
    marginals = {clique: marginal(table(0, 4), clique) for clique in agreed}
    for clique, source in zip(fresh, sources, strict=False):
        marginals[clique] = marginal(table(source, 4), clique)
    found = all(not link.difference(marginals).any() for link in links(of, agreed, fresh))
    assert found == all(agree(of, *pair, marginals) for pair in itertools.combinations(cliques, 2))
    assert not links(of, cliques, [])


def test_wide_cliques_are_compared_one_by_one() -> None:
    """Those of which there are too many common marginals to list."""
    names = [f"c{number}" for number in range(16)]
    of = register(dict.fromkeys(names, 2))
    cliques = [tuple(names[:13]), tuple(names[3:]), tuple(names[5:8]), (names[0],)]
    assert 2 ** len(cliques[0]) > MAX_LISTED
    marginals = {}
    rows = np.random.default_rng(1).integers(0, 2, (50, 16))
    for clique in cliques:
        cells = np.ravel_multi_index(tuple(rows[:, names.index(name)] for name in clique), (2,) * len(clique))
        marginals[clique] = np.bincount(cells, minlength=2 ** len(clique)).astype(np.uint32)
    conditions = Conditions.of(of, [], cliques, 50)
    assert fine(conditions, marginals)
    for clique in cliques:
        moved = marginals[clique].copy()
        here = int(np.argmax(moved > 0))
        there = len(moved) - 1 - here  # every column has its other value
        moved[here] -= 1
        moved[there] += 1
        assert not fine(conditions, marginals | {clique: moved})


@pytest.mark.parametrize("rows", [1, 2, 100, (1 << 22), (1 << 31) - 1])
def test_extreme_cells_of_a_single_marginal(rows: int) -> None:
    """What is in 0..R, cells and sum, passes; nothing else does, also where sums wrap to it."""
    of, clique = register({"x": 5000}), ("x",)
    conditions = Conditions.of(of, [], [clique], rows)

    def passes(**at: int) -> bool:
        cells = np.zeros(5000, np.uint32)
        for place, value in at.items():
            cells[int(place[1:])] = value % (1 << 32)
        return fine(conditions, {clique: cells})

    assert passes() and passes(_0=rows) and passes(_4999=rows) and passes(_7=rows // 2, _8=rows - rows // 2)
    for value in (-1, -rows, rows + 1, 1 << 31, (1 << 31) + rows, (1 << 32) - rows):
        if not 0 <= value % (1 << 32) <= rows:
            assert not passes(_0=value) and not passes(_4999=value)
    assert not passes(_0=rows, _1=1) and not passes(_0=1, _4999=rows) and not passes(_0=rows, _1=-1)
    each = -(-(1 << 32) // 5000)
    if each <= rows:
        wrapped = {f"_{place}": each for place in range(4999)}
        assert not passes(**wrapped, _4999=(1 << 32) - 4999 * each)
    assert not fine(conditions, {clique: np.full(5000, rows, np.uint32)})


def test_a_difference_that_only_its_highest_bit_tells_is_seen() -> None:
    """Cells that a sum over random elements of the ring would miss half of the time."""
    of, rows = register({"x": 2, "y": 2}), (1 << 31) - 1
    cliques: list[Clique] = [("x",), ("x", "y")]
    conditions = Conditions.of(of, [], cliques, rows)
    for lie in ([1 << 31, 0, 0, 0], [0, 1 << 31, 1 << 31, 0], [1 << 30, 1 << 30, 0, 0]):
        assert not fine(
            conditions, {cliques[0]: np.zeros(2, np.uint32), cliques[1]: np.array(lie, np.uint32)}
        )
