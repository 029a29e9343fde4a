"""Sizes of junction trees with a candidate: what is taken over from the elimination without it changes
nothing."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.mrf.levels import Chains
from synth.mrf.tree_size import SizeEstimator, model_size_mb

Clique = tuple[str, ...]


@st.composite
def layered(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, Level]]:
    """Up to 12 columns, some with one or two nested levels."""
    sizes = {
        f"c{i}": n
        for i, n in enumerate(draw(st.lists(st.sampled_from([1, 2, 3, 4, 7, 9]), min_size=1, max_size=12)))
    }
    levels: dict[str, Level] = {}
    for name, size in sizes.items():
        bins = tuple(range(size))
        for cut in draw(st.lists(st.sampled_from([2, 3]), max_size=2)):
            if max(bins) + 1 > 2:
                bins = tuple(value // cut for value in bins)
                if max(bins) > 0:
                    level = Level(f"{name}/{max(bins) + 1}", name, bins)
                    levels[level.name] = level
    return sizes, levels


@st.composite
def cliques_at_levels(
    draw: st.DrawFn, sizes: dict[str, int], levels: dict[str, Level], most: int
) -> list[Clique]:
    names = {
        column: [column, *(n for n, level in levels.items() if level.column == column)] for column in sizes
    }
    one = st.permutations(list(sizes)).flatmap(
        lambda columns: st.tuples(*(st.sampled_from(names[c]) for c in columns[: draw(st.integers(1, 4))]))
    )
    return draw(st.lists(one, max_size=most))


def eliminated(chains: Chains, cliques: list[Clique], loose: set[str]) -> float:
    """MiB of the tree by elimination in its plainest form: sets of names, every neighbourhood counted anew at
    each step.

    cliques: to be had without the loose names.
    """
    own = [name for name in chains.sizes if name not in loose]
    edges: dict[str, set[str]] = {}

    for clique in [*cliques, *((name,) for name in own)]:
        held = {m for n in clique for m in (n, *chains.coarser[n]) if m in own and chains.sizes[m] > 1}
        for name in held:
            edges.setdefault(name, {name}).update(held)
    for name in own:
        edges.setdefault(name, {name})

    def cells(names: set[str]) -> int:
        return prod(chains.sizes[name] for name in chains.finest(names).values())

    maximal: list[set[str]] = []
    while edges:
        name = min(edges, key=lambda n: (cells(edges[n]), chains.rank[n]))
        together = edges.pop(name)
        if not any(together <= larger for larger in maximal):
            maximal.append(together)
        for neighbour in together - {name}:
            edges[neighbour] = (edges[neighbour] | together) - {name}
    return sum(map(cells, maximal)) * 8 / 2**20


@given(st.data())
def test_a_candidates_size_is_that_of_an_elimination_from_the_start(data: st.DataObject) -> None:
    sizes, levels = data.draw(layered())
    chains = Chains(sizes, levels)
    cliques, columns = data.draw(cliques_at_levels(sizes, levels, 12)), chains.columns()
    candidates = data.draw(cliques_at_levels(sizes, levels, 8))
    for count in (len(cliques) // 2, len(cliques)):  # the second time, much is remembered of the first
        had = cliques[:count]
        loose = levels.keys() - {name for clique in had for name in clique}
        estimator = SizeEstimator(chains.sizes, had, chains.coarser, loose, columns)
        assert estimator.mb == eliminated(chains, had, loose)
        for candidate in candidates:
            together = [*had, candidate]
            expected = eliminated(chains, together, loose - set(candidate))
            built = Chains.used(sizes, levels, together)
            assert model_size_mb(built.sizes, together, built.coarser) == expected
            limit = data.draw(st.floats(0, 2 * expected))
            limited = estimator.with_clique(candidate, limit)
            assert limited == expected if expected <= limit else limited > limit or limited == estimator.mb
            assert estimator.with_clique(candidate) == expected
        some = candidates[: data.draw(st.integers(0, 4))]
        assert estimator.with_cliques(some) == eliminated(
            chains, [*had, *some], loose - {name for clique in some for name in clique}
        )


def test_two_new_levels_whose_columns_are_held_together_meet() -> None:
    sizes = {"a": 3, "b": 3}
    levels = {f"{name}/2": Level(f"{name}/2", name, (0, 0, 1)) for name in sizes}
    chains = Chains(sizes, levels)
    estimator = SizeEstimator(chains.sizes, [("a", "b")], chains.coarser, levels)
    both: list[Clique] = [("a/2",), ("b/2",)]
    assert estimator.with_cliques(both) == estimator.mb == eliminated(chains, [("a", "b"), *both], set())
