"""Pairs of columns across the tree side by side, against elimination pair by pair and against the full table."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.mrf import Chains, Model
from synth.mrf.marginals import elimination, stacks
from synth.mrf.marginals.calibrated import CalibratedTree
from synth.mrf.marginals.stacks import PairsAcross
from synth.mrf.marginals.tables import MAX_TABLE_CELLS

Clique = tuple[str, ...]


def leveled(sizes: dict[str, int], coarse: set[str]) -> dict[str, Level]:
    """Two levels of some columns; the bins of the coarsest are not contiguous."""
    levels = {}
    for name in sorted(name for name in coarse if sizes[name] > 2):
        middle = tuple(value // 2 for value in range(sizes[name]))
        levels[f"{name}/m"] = Level(f"{name}/m", name, middle)
        if max(middle) > 1:
            levels[f"{name}/2"] = Level(f"{name}/2", name, tuple(of % 2 for of in middle))
    return levels


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Of seven to nine columns, each joined to one or two that stand before it, at any level."""
    count = draw(st.integers(7, 9))
    sizes = {f"c{number}": draw(st.integers(2, 6)) for number in range(count)}
    levels = leveled(sizes, set(draw(st.lists(st.sampled_from(list(sizes)), max_size=4))))
    at = {name: [name, *(of for of in levels if levels[of].column == name)] for name in sizes}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    potentials = {}
    names = list(sizes)
    chains = Chains(sizes, levels)
    for number in range(1, count):
        others = draw(
            st.lists(st.sampled_from(names[max(0, number - 4) : number]), min_size=1, max_size=2, unique=True)
        )
        columns = [*sorted(others), names[number]]
        clique = tuple(draw(st.sampled_from(at[name])) for name in columns)
        cells = int(np.prod([chains.sizes[name] for name in clique]))
        potentials[clique] = 2 * rng.standard_normal(cells)
    return Model(sizes, 1000.0, potentials, levels)


def pairs_of(model: Model) -> list[Clique]:
    """All pairs of columns, at all levels, in both orders."""
    chains = Chains(model.sizes, model.levels)
    found = [
        pair for pair in combinations(chains.sizes, 2) if chains.column[pair[0]] != chains.column[pair[1]]
    ]
    return [pair if number % 3 else pair[::-1] for number, pair in enumerate(found)]


@given(models(), st.sampled_from([1, 40, 2**15]))
@settings(max_examples=60, deadline=None)
def test_pairs_side_by_side_are_those_of_elimination(model: Model, cells: int) -> None:
    """With stacks of one column, of a few, and of all."""
    pairs = pairs_of(model)
    alone = [model.marginal(pair) for pair in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MANY_PAIRS", 1)
        patch.setattr(stacks, "STACK_CELLS", cells)
        together = model.marginals(pairs)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def chain(length: int, size: int) -> tuple[Model, CalibratedTree, dict[str, np.ndarray]]:
    """A Markov chain, its tree, and of each column the matrix P(column | the one before)."""
    sizes = {f"c{number:02}": size for number in range(length)}
    names, rng = list(sizes), np.random.default_rng(5)
    potentials: dict[Clique, np.ndarray] = {}
    steps: dict[str, np.ndarray] = {}
    for before, name in pairwise(names):
        steps[name] = rng.random((size, size)) + 0.1
        steps[name] /= steps[name].sum(axis=1, keepdims=True)
        potentials[before, name] = np.log(steps[name]).reshape(-1)
    model = Model(sizes, 500.0, potentials)
    return model, CalibratedTree(model.tree, Chains(sizes, {}), 500.0, model._conditionals), steps


def test_all_that_no_node_holds_is_answered_and_known() -> None:
    """Of a Markov chain a pair is a product of its steps."""
    model, tree, steps = chain(24, 3)
    names = list(model.sizes)
    across = {pair for pair in combinations(names, 2) if names.index(pair[1]) - names.index(pair[0]) > 1}
    assert len(across) >= elimination.MANY_PAIRS - 8
    found = PairsAcross(tree).marginals(combinations(names, 2))
    assert found.keys() == across
    for (one, other), counts in found.items():
        between = names[names.index(one) + 1 : names.index(other) + 1]
        expected = model.marginal((one,))[:, None] * np.linalg.multi_dot(
            [np.eye(3), *(steps[name] for name in between)]
        )
        np.testing.assert_allclose(counts.reshape(3, 3), expected, rtol=1e-9)


def test_many_pairs_of_a_list_are_answered_so_and_a_few_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs inside a larger clique of the list are sums of that."""
    asked: list[int] = []
    answer = PairsAcross.marginals

    def counted(self: PairsAcross, pairs: list[Clique]) -> dict[Clique, np.ndarray]:
        asked.append(len(pairs))
        return answer(self, pairs)

    monkeypatch.setattr(PairsAcross, "marginals", counted)
    model = chain(24, 3)[0]
    pairs = list(combinations(model.sizes, 2))
    model.marginals(pairs)
    model.marginals(pairs[:10])
    model.marginals([*pairs, ("c00", "c10", "c20")])
    assert asked == [len(pairs), len(pairs) - 3]


def test_rows_that_several_parties_draw_do_not_depend_on_what_is_answered_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whose last digits are others: with proofs all parties draw the rows, of releases that may differ."""
    monkeypatch.setattr(PairsAcross, "marginals", lambda self, pairs: pytest.fail("side by side"))
    model = chain(30, 3)[0]  # 406 pairs that no node holds
    model.sample(50, np.random.default_rng(1), pair_by_pair=True)
    with pytest.raises(pytest.fail.Exception, match="side by side"):
        model.sample(50, np.random.default_rng(1))


def test_a_pair_beyond_memory_is_refused_by_name() -> None:
    size = 1 << 15
    assert size * size > MAX_TABLE_CELLS
    sizes = {"a": size, "b": 2, "c": size}
    model = Model(sizes, 10.0, {("a", "b"): np.zeros(2 * size), ("b", "c"): np.zeros(2 * size)})
    tree = CalibratedTree(model.tree, Chains(sizes, {}), 10.0, model._conditionals)
    with pytest.raises(ValueError, match=r"needs a table of 1073741824 cells over"):
        PairsAcross(tree).marginals([("a", "c")])
