"""Pairs across a tree, all at once: against pair by pair, and against the joint distribution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.mrf import Model, elimination, pairs
from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique
from synth.mrf.levels import Chains
from tests.synth.mrf.test_levels import layered

Problem = tuple[dict[str, int], dict[str, Level], list[tuple[str, ...]]]


def answers(
    monkeypatch: pytest.MonkeyPatch, model: Model, asked: Sequence[Clique], least: int
) -> list[Array]:
    """The model's answers where so many pairs are answered at once."""
    monkeypatch.setattr(elimination, "PAYS_FROM", least)
    return model.marginals(asked)


@settings(max_examples=150, deadline=None)
@given(layered(), st.integers(0, 2**32 - 1))
def test_pairs_at_every_level_are_those_of_the_joint_distribution(problem: Problem, seed: int) -> None:
    sizes, levels, cliques = problem
    chains, rng = Chains(sizes, levels), np.random.default_rng(seed)
    potentials = {c: rng.normal(0, 2, math.prod(chains.sizes[n] for n in c)) for c in cliques}
    model = Model(sizes, 100.0, potentials, levels)
    fine = tuple(sizes)
    logs = sum(
        (v[chains.cells_of(c, fine)] for c, v in potentials.items()), np.zeros(math.prod(sizes.values()))
    )
    joint = np.exp(logs - logs.max())
    joint *= 100 / joint.sum()
    asked: list[Clique] = [
        pair
        for pair in itertools.permutations(chains.sizes, 2)
        if chains.column[pair[0]] != chains.column[pair[1]]
    ]
    with pytest.MonkeyPatch.context() as patch:
        found = answers(patch, model, asked, 1)
    for pair, values in zip(asked, found, strict=True):
        expected = np.bincount(chains.cells_of(pair, fine), joint, len(values))
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-9)


@st.composite
def trees(draw: st.DrawFn) -> Problem:
    """Fourteen columns, each but the first in cliques with earlier ones, at some level: ways of many nodes."""
    sizes = {f"c{j:02}": draw(st.integers(2, 5)) for j in range(14)}
    levels = {
        f"{name}/2": Level(f"{name}/2", name, tuple(value // 2 for value in range(size)))
        for name, size in sizes.items()
        if size > 2 and draw(st.booleans())
    }
    columns, cliques = list(sizes), list[tuple[str, ...]]()
    for j in range(1, 14):
        near = draw(st.lists(st.integers(max(0, j - 4), j - 1), min_size=1, max_size=2, unique=True))
        named = [columns[at] for at in sorted([*near, j])]
        cliques.append(tuple(f"{c}/2" if f"{c}/2" in levels and draw(st.booleans()) else c for c in named))
    return sizes, levels, sorted(set(cliques))


@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_pairs_at_once_are_those_one_by_one(problem: Problem, seed: int) -> None:
    """Some of all pairs, at any levels, in any order; other cliques beside them; a part of the cells is impossible."""
    sizes, levels, cliques = problem
    chains, rng = Chains(sizes, levels), np.random.default_rng(seed)
    potentials = {c: rng.normal(0, 2, math.prod(chains.sizes[n] for n in c)) for c in cliques}
    first = potentials[cliques[0]]
    first[rng.random(len(first)) < 0.2] = -np.inf
    first[0] = 0.0
    asked: list[Clique] = [
        pair
        for pair in itertools.permutations(chains.sizes, 2)
        if chains.column[pair[0]] != chains.column[pair[1]] and rng.random() < 0.7
    ]
    asked += [(name,) for name in chains.sizes] + [tuple(sizes)[:3]]
    with pytest.MonkeyPatch.context() as patch:
        expected = answers(patch, Model(sizes, 50.0, potentials, levels), asked, 10**9)
        found = answers(patch, Model(sizes, 50.0, potentials, levels), asked, 1)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_large_columns_and_few_pairs_are_left_to_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 3, "b": pairs.MAX_VALUES + 1, "c": 4, "d": 2}
    potentials: dict[Clique, Array] = {
        ("a", "b"): np.zeros(3 * 65),
        ("b", "c"): np.zeros(65 * 4),
        ("c", "d"): np.zeros(8),
    }
    model = Model(sizes, 10.0, potentials)
    asked = list(itertools.permutations(sizes, 2))
    taken: list[list[Clique]] = []
    at_once = pairs.PairsAcross.marginals

    def noted(across: pairs.PairsAcross, of: Iterable[Clique]) -> dict[Clique, Array]:
        taken.append(sorted(of))
        return at_once(across, of)

    monkeypatch.setattr(pairs.PairsAcross, "marginals", noted)
    answers(monkeypatch, model, asked, pairs.PAYS_FROM)
    assert not taken
    answers(monkeypatch, model, asked, 4)
    assert taken == [[("a", "c"), ("a", "d"), ("c", "a"), ("d", "a")]]
