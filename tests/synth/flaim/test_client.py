"""A client of FLAIM: what it answers, what it refuses, and what its records are charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from mpc_protocols.functionality import Question
from synth.algorithms.flaim.client import Client
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.questions import Asked, parse
from synth.mrf import Measurement, fit
from tests.synth.flaim.world import DOMAIN, SESSION, counter, planned, table

CELLS = sum(DOMAIN.sizes.values())
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def client(plan: FlaimPlan, rows: int = 200, seed: int = 0, **options: Any) -> Client:
    return Client(plan, counter(table(rows, seed)), SESSION, np.random.default_rng(seed).bytes, **options)


def question(asked: Asked, length: int) -> Question:
    marginals = len(DOMAIN) if asked.kind in ("register", "columns") else 1
    return Question(asked.to_bytes(), length, 1 << 20, marginals)


def uniform_model() -> bytes:
    return fit(DOMAIN.sizes, [Measurement(("a",), np.array([100.0, 100.0]), 1.0)]).to_bytes()


def choice(number: int, rows: int = 600) -> Question:
    return question(Asked("choose", number, PAIRS, rows, uniform_model()), len(PAIRS))


def counts(number: int) -> Question:
    return question(Asked("counts", number, PAIRS), sum(DOMAIN.cells(q) + 1 for q in PAIRS))


def participate(of: Client, number: int, columns: bool) -> np.ndarray[Any, Any]:
    """One participation; the counts that were sent."""
    of(question(Asked("size", number), 1))
    if columns:
        of(question(Asked("columns", number), CELLS))
    of(choice(number))
    return of(counts(number))


@pytest.mark.parametrize("often", [1, 3])
def test_the_first_cohort_is_charged_its_columns_and_its_choice_and_later_ones_what_the_variant_says(
    often: int,
) -> None:
    for name in ("private", "naive"):
        plan = planned(name, participations=often)
        own, release = client(plan), plan.charges.measuring(plan.sigma2)
        size, selection = plan.charges.counting(plan.size_sigma2), plan.charges.selecting(plan.epsilon)
        participate(own, 1, columns=True)
        assert own.charged == size + (len(DOMAIN) + 1) * release + selection
        for number in range(2, often + 1):
            participate(own, number, columns=plan.variant.columns)
        releases = plan.variant.releases(often, len(DOMAIN))
        assert own.charged == size + releases * release + often * selection
        assert plan.budget.rho_cap * (1 - Fraction(1, 10**6)) <= own.charged <= plan.budget.rho_cap


@pytest.mark.parametrize("often", [1, 3])
def test_one_participation_too_many_is_refused(often: int) -> None:
    own = client(planned(participations=often))
    for number in range(1, often + 1):
        own(
            question(Asked("size", number), 1)
        )  # an invitation that was accepted counts, whatever comes of it
    before = own.charged
    with pytest.raises(BudgetRefused, match=f"{often} times"):
        own(question(Asked("size", often + 1), 1))
    assert own.charged == before


def test_the_noisy_size_is_drawn_once() -> None:
    plan = planned(participations=3)
    own = client(plan)
    sizes = {int(own(question(Asked("size", number), 1))[0]) for number in (1, 2, 3)}
    assert len(sizes) == 1
    assert own.charged == plan.charges.counting(plan.size_sigma2)
    others = {int(client(plan, seed=seed)(question(Asked("size", 1), 1))[0]) for seed in range(20)}
    assert len(others) > 5  # noise of seven rows


def test_counts_of_what_was_not_chosen_are_zeros() -> None:
    own = client(planned())
    own(question(Asked("size", 1), 1))
    own(question(Asked("columns", 1), CELLS))
    vote = own(choice(1))
    assert sorted(vote.tolist()) == [0, 0, 1]
    sent, start = own(counts(1)), 0
    for chosen, clique in zip(vote.tolist(), PAIRS, strict=True):
        cells = DOMAIN.cells(clique)
        part, rows = sent[start : start + cells], sent[start + cells]
        start += cells + 1
        if chosen:
            assert part.tolist() == counter(table(200, 0))([clique])[0].tolist()
            assert rows == own._own_size()
        else:
            assert not part.any()
            assert rows == 0


@pytest.mark.parametrize(
    "wrong",
    [
        question(Asked("columns", 2), CELLS),  # of another round
        question(Asked("counts", 1, PAIRS), 19),  # before a choice
        question(Asked("drawn", 1, (("a", "b"),)), 7),  # of another variant
        question(Asked("choose", 1, (("a",), ("a", "b")), 600, b""), 2),  # no candidate of the plan
        question(Asked("columns", 1), CELLS + 1),  # of another length
        Question(b"{}\n", 1, 1, 1),
        Question(Asked("columns", 1).to_bytes(), CELLS, 1 << 20, 1),  # charged as one marginal
    ],
)
def test_questions_that_the_study_does_not_ask_now_are_refused(wrong: Question) -> None:
    own = client(planned())
    own(question(Asked("size", 1), 1))
    with pytest.raises(ProtocolAborted):
        own(wrong)


def test_a_question_is_answered_once() -> None:
    own = client(planned())
    participate(own, 1, columns=True)
    for again in (question(Asked("columns", 1), CELLS), choice(1), counts(1), question(Asked("size", 1), 1)):
        with pytest.raises((ProtocolAborted, BudgetRefused)):
            own(again)


def test_registration_is_once_and_before_the_rounds() -> None:
    own = client(planned("light"))
    ask = question(Asked("register", 0), CELLS)
    assert own(ask).sum() == 200 * len(DOMAIN)
    with pytest.raises(BudgetRefused, match="registered"):
        own(ask)
    late = client(planned("light"))
    late(question(Asked("size", 1), 1))
    with pytest.raises(BudgetRefused):
        late(ask)
    with pytest.raises(BudgetRefused):
        client(planned("private"))(ask)


def test_true_marginals_are_for_the_variant_without_a_claim() -> None:
    ask = question(Asked("truth", 0, PAIRS), sum(map(DOMAIN.cells, PAIRS)))
    with pytest.raises(ProtocolAborted, match="protects"):
        client(planned())(ask)
    own = client(planned("oracle"))
    assert own(ask).sum() == 200 * len(PAIRS)
    own(question(Asked("size", 1), 1))
    with pytest.raises(ProtocolAborted, match="without true marginals"):
        own(choice(1))


@pytest.mark.parametrize("content", [b"", b"[]", b"null\n", b'{"kind":"size"}\n', b"[" * 5000])
def test_what_is_no_question_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolAborted, match="no question"):
        parse(content)


def test_questions_have_one_encoding() -> None:
    asked = Asked("choose", 3, PAIRS, 44, b"\n{model\x00")
    assert parse(asked.to_bytes()) == asked
    with pytest.raises(ProtocolAborted):
        parse(asked.to_bytes().replace(b'"rows":44', b'"rows": 44'))
    with pytest.raises(ProtocolAborted):
        parse(asked.to_bytes().replace(b"choose", b"choice"))
