"""Sizes of junction trees in machine code: those that Python counts, also where a limit ends the counting."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.mrf.junction_tree import ColumnSet
from synth.mrf.levels import Chains
from synth.mrf.tree_size import compiled, estimator
from synth.mrf.tree_size.estimator import SizeEstimator

Clique = tuple[str, ...]

pytest.importorskip("llvmlite", reason="make kernel")


def sizes_with(
    chains: Chains, cliques: list[Clique], asked: list[tuple[Clique, float]], *, few: int
) -> tuple[list[float], SizeEstimator]:
    """MiB with each candidate below its limit, a multiple of the size without it, and what counted them.

    few: as `estimator.MIN_IN_PYTHON`.
    """
    columns = chains.columns()
    columns.steps = compiled.WORTH_COMPILING
    loose = chains.levels.keys() - {name for clique in cliques for name in clique}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator, "MIN_IN_PYTHON", few)
        sizes = SizeEstimator(chains.sizes, cliques, chains.coarser, loose, columns)
        return [sizes.with_clique(clique, limit * sizes.mb) for clique, limit in asked], sizes


@given(st.integers(0, 1 << 32), st.integers(2, 90), st.floats(0.5, 3), st.booleans())
def test_machine_code_counts_what_python_does(seed: int, count: int, dense: float, layered: bool) -> None:
    draw = random.Random(seed)
    sizes = {f"c{number}": draw.choice([1, 2, 3, 5, 10, 40]) for number in range(count)}
    levels = {}
    for name, size in sizes.items() if layered else ():
        for bins in range(2, min(size, 6), 2):
            levels[f"{name}/{bins}"] = Level(
                f"{name}/{bins}", name, tuple(v * bins // size for v in range(size))
            )
    levels = {name: level for name, level in levels.items() if nested(level, levels.values())}
    chains = Chains(sizes, levels)

    def clique() -> Clique:
        columns = draw.sample(list(sizes), min(count, draw.randint(1, 3)))
        return tuple(
            draw.choice([n for n in chains.sizes if chains.column[n] == column]) for column in columns
        )

    cliques = [clique() for _ in range(int(dense * count / 2))]
    candidates = [clique() for _ in range(30)]
    limits = [draw.choice([1.0, 1.01, 1.1, 2.0, 10.0, 1e6]) for _ in candidates]
    asked = list(zip(candidates, limits, strict=True))
    expected, python = sizes_with(chains, cliques, asked, few=1 << 30)
    found, machine = sizes_with(chains, cliques, asked, few=1)
    assert found == expected
    assert python._elimination is None
    grows = any(size != machine.mb for size in found)
    assert not grows or machine._elimination is not None


def nested(level: Level, others: Iterable[Level]) -> bool:
    """Whether all coarser levels of its column are sums of it."""
    return all(
        len(set(zip(level.bins, other.bins, strict=True))) == level.size
        for other in others
        if other.column == level.column and other.size < level.size
    )


def test_a_clique_of_too_many_cells_for_a_word_is_counted_in_python() -> None:
    chains = Chains({f"c{number}": 1000 for number in range(12)}, {})
    path: list[Clique] = [(f"c{number}", f"c{number + 1}") for number in range(11)]
    ring, huge = ("c0", "c11"), tuple(f"c{number}" for number in range(8))
    asked: list[tuple[Clique, float]] = [(ring, 1e6), (huge, 1e6), (huge, math.inf)]
    expected, _ = sizes_with(chains, path, asked, few=1 << 30)
    found, machine = sizes_with(chains, path, asked, few=1)
    assert found == expected
    assert machine._elimination is not None
    assert machine._elimination.grown(dict.fromkeys(range(8), 0b11111111), 1 << 40) is None


def test_columns_that_a_word_cannot_hold_are_counted_in_python() -> None:
    last_first = ColumnSet({"fine": 4, "coarse": 2}, {"fine": ("coarse",)})
    many = ColumnSet({f"c{n}": n + 2 for n in range(65)}, {"c64": tuple(f"c{n}" for n in range(64))})
    for columns in (last_first, many, ColumnSet({"long": 1 << 21})):
        columns.steps = compiled.WORTH_COMPILING
        placed = (1 << len(columns.names)) - 1
        near = [1 << number for number in range(len(columns.names))]
        assert compiled.elimination(columns, placed, near, range(len(columns.names))) is None


def test_what_counts_otherwise_is_not_used() -> None:
    call = compiled._compile()
    assert compiled._agrees(call)

    def wrong(*arguments: int) -> None:
        call(*arguments[:-2], 0, arguments[-1])  # whatever the limit is: nothing

    assert not compiled._agrees(wrong)
