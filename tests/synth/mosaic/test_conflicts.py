"""Which candidates of a batch exclude one another: what is derived once for a run equals what each batch
would find anew."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from synth.algorithms.mosaic.conflicts import conflicts, related

SETS = st.lists(st.sets(st.sampled_from("abcde"), min_size=1).map(lambda s: tuple(sorted(s))), max_size=30)


@settings(deadline=None)
@given(SETS, st.data())
def test_the_pairs_are_those_of_a_comparison_of_all_candidates(
    known: list[tuple[str, ...]], data: st.DataObject
) -> None:
    asked = data.draw(st.lists(st.sampled_from(known), max_size=20)) if known else []
    expected = [
        (a, b)
        for a, b in combinations(range(len(asked)), 2)
        if set(asked[a]) <= set(asked[b]) or set(asked[b]) <= set(asked[a])
    ]
    assert conflicts(asked, related(list(dict.fromkeys(known)))) == expected
