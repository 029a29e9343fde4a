"""Who is invited when."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from synth.algorithms.flaim.schedule import deal
from tests.synth.flaim.world import planned


@given(
    clients=st.integers(1, 40),
    rounds=st.integers(1, 12),
    often=st.one_of(st.integers(1, 12), st.just("all")),
    group=st.integers(1, 6),
    session=st.binary(min_size=32, max_size=32),
)
def test_everybody_is_invited_as_often_as_may_be_and_cohorts_are_of_two_groups_where_there_are_so_many(
    clients: int, rounds: int, often: int | str, group: int, session: bytes
) -> None:
    plan = planned(rounds=rounds, participations=often, group=group)
    numbers = range(3, 3 + clients)
    dealt = deal(plan, numbers, session)
    assert dealt == deal(plan, list(reversed(numbers)), session) and len(dealt) <= rounds
    for cohort in dealt:
        assert len(set(cohort)) == len(cohort) >= min(2 * group, clients) and set(cohort) <= set(numbers)
    assert bool(dealt) == (clients >= group)
    if dealt:
        invited = Counter(client for cohort in dealt for client in cohort)
        assert dict.fromkeys(numbers, plan.participations) == dict(invited)
        sizes = [len(cohort) for cohort in dealt]
        assert max(sizes) - min(sizes) <= 1


def test_another_run_has_other_cohorts_and_bayes_has_one() -> None:
    plan = planned(rounds=4, group=1)
    assert deal(plan, range(12), b"a" * 32) != deal(plan, range(12), b"b" * 32)
    assert deal(planned("bayes", rounds=4), range(12), b"a" * 32) == [tuple(range(12))]
