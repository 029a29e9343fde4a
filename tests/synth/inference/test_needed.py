"""Which marginals questions need, known before there is a release."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mpc_protocols.errors import UsageError
from runner.api.conditions import allowed
from synth.domain import Categorical, Codes, Domain, Integer, Numeric
from synth.inference.licence import Unanswerable
from synth.inference.needed import needed
from tests.synth.inference.small import AB, AC, BC, DOMAIN, ask, measured, model, people

PEOPLE = Domain(
    ("sex", "age", "income", "region"),
    (Categorical(("f", "m")), Numeric(0.0, 80.0, 8), Integer(0, 9), Codes(5)),
)


def of(*questions: str, domain: Domain = PEOPLE) -> set[tuple[str, ...]]:
    return set(needed(questions, domain, lambda name, value: allowed(domain, {name: value})[name]))


@pytest.mark.parametrize(
    ("question", "marginals"),
    [
        ("mean(age)", {("age",)}),
        ("mean(age) | sex", {("sex", "age")}),
        ("mean(age | sex == 'f' & region == 2)", {("sex", "age", "region")}),
        ("share(age < 30 | sex == 'f') - share(age < 30 | sex == 'm')", {("sex", "age")}),
        ("corr(age, income)", {("age", "income")}),
        ("median(income | region == 1)", {("income", "region")}),
        ("table(sex, region)", {("sex", "region")}),
        ("income ~ age + region", {("age", "income"), ("income", "region"), ("age", "region")}),
        ("logistic(sex == 'f' ~ age)", {("sex", "age")}),
        ("(mean(age | sex == 'f') - mean(age | sex == 'm')) / (mean(age | region == 1) - mean(age | region == 2))",
         {("sex", "age"), ("age", "region")}),
    ],
)  # fmt: skip
def test_the_columns_of_its_moments(question: str, marginals: set[tuple[str, ...]]) -> None:
    assert of(question) == marginals


def test_columns_of_the_same_values_may_be_compared_in_a_divisor() -> None:
    """In the tables that stand for a release they had the same counts, so that the question was refused as one that divides
    by 0."""
    twins = Domain(("before", "after", "sex"), (Codes(5), Codes(5), Codes(2)))
    assert of("mean(before | sex == 1) / (mean(after) - mean(before))", domain=twins) == {
        ("before", "sex"),
        ("after",),
    }


def test_numbers_that_hardly_differ_are_collinear_with_the_intercept() -> None:
    """Of three numbers around n, the smallest eigenvalue is 1 / (3 n^2)."""
    near, far = (Domain(("sex", "day"), (Codes(2), Integer(day, day + 2))) for day in (5000, 6000))
    assert of("sex ~ day", domain=near) == {("sex", "day")}
    with pytest.raises(Unanswerable, match="collinear"):
        of("sex ~ day", domain=far)


def test_of_several_questions_none_inside_another() -> None:
    assert of("mean(age)", "mean(age) | sex", "mean(age | sex == 'f' & region == 2)") == {
        ("sex", "age", "region")
    }


@pytest.mark.parametrize(
    "question", ["mean(height)", "mean(sex)", "mean(age | sex == 'x')", "mean(age", "corr(age, age)"]
)
def test_what_does_not_fit_the_columns_is_refused(question: str) -> None:
    with pytest.raises(UsageError):
        of(question)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("(" * 600 + "count()" + ")" * 600, "inside one another"),
        ("-" * 1900 + "count()", "inside one another"),
        ("1+" * 950 + "count()", "more than 100 operations"),
        ("1*" * 950 + "count()", "more than 100 operations"),
        (f"count(age == {'9' * 1500})", "not a value of it"),
        ("age ~ (sex + income + region)**60", "cannot be read"),
        ("age ~ income**99999", "cannot be read"),
        (f"age ~ (sex + income)**{'9' * 300}", "cannot be read"),
        ("age ~ (sex + income + region + C(sex) + C(income) + C(region))^9", "very many terms"),
        ("age ~ " + "*".join(["income", "sex", "region"] * 5), "very many terms"),
        ("age ~ C(income):C(region):C(age)", "at most 60 are fitted"),
        ("age ~ __import__('os').getpid()", "cannot be read"),
        ("age ~ {__import__('os').getpid()}", "functions are not computed"),
    ],
)
def test_what_somebody_else_has_written_to_be_read_without_end_is_refused(
    question: str, sentence: str
) -> None:
    """A study is read before anybody has agreed to it."""
    with pytest.raises(UsageError, match=sentence):
        of(question)


def test_formulas_are_multiplied_out_as_before() -> None:
    assert of("age ~ (sex + income)**2") == of("age ~ sex * income") == {("sex", "age", "income")}


def test_what_would_be_worked_at_for_minutes_is_refused() -> None:
    """A million cells for each of a thousand groups; and a table that a regression asks for."""
    wide = Domain(("a", "b", "c", "d"), (Codes(1000), Codes(1000), Codes(3000), Codes(2)))
    for question, sentence in (
        ("mean(a) | b", "register fewer"),
        ("logistic(d ~ a + b + c)", "fewer columns"),
    ):
        with pytest.raises(UsageError, match=sentence):
            of(question, domain=wide)


@pytest.mark.parametrize(
    "question", ["mean(a) | b", "share(c == 2 | a == 1 & b == 0)", "a ~ b + c", "corr(a, c)", "median(a | b == 1)"]
)  # fmt: skip
def test_a_release_of_these_marginals_alone_answers_and_one_of_others_does_not(question: str) -> None:
    table = people(5000)
    cliques = needed([question], DOMAIN, lambda name, value: allowed(DOMAIN, {name: value})[name])
    released = measured(table, list(cliques), [Fraction(1)] * len(cliques))
    fitted = model(measured(table, [AB, BC, AC], [Fraction(1)] * 3), 5000)
    assert all(answer.low is not None for answer in ask([question], released, fitted))
    for left_out in range(len(cliques)):
        rest = [m for place, m in enumerate(released) if place != left_out]
        if rest:
            assert any(answer.low is None for answer in ask([question], rest, fitted))
