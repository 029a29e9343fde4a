"""Cramer's V: that of the counts where there is no noise, and intervals that hold near independence and far
from it."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import Level
from synth.domain import Codes, Domain
from synth.inference.strength import MAX_PAIR_CELLS, strength
from synth.judgement.relations import cramers_v
from tests.synth.inference.small import AB, FACTS, ask, measured, model, people

DOMAIN = Domain(("a", "b"), (Codes(3), Codes(4)))
RUNS, ROWS = 400, 2000
WRONG = 43
"""Of 400 intervals of level .95, more miss with a chance below 1e-5 if each does with one of 0.06."""


def drawn(strength: float, rng: np.random.Generator, rows: int = ROWS) -> tuple[NDArray[np.int64], float]:
    """Rows of two columns, b following a in so many cases, and their V for the people."""
    a = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    b = np.where(rng.random(rows) < strength, a, rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1]))
    joint = np.array([0.5, 0.3, 0.2])[:, None] * (
        strength * np.eye(3, 4) + (1 - strength) * np.array([0.4, 0.3, 0.2, 0.1])
    )
    return np.stack([a, b], 1).astype(np.int64), cramers_v(joint)


def test_without_noise_it_is_that_of_the_counts() -> None:
    table = people(4000)
    exact = measured(table, [AB], [Fraction(1, 10**9)])
    joint = np.histogram2d(table[:, 0], table[:, 1], bins=(4, 2))[0]
    [answer] = ask(["cramers_v(a, b)"], exact, model(exact, 4000), target="rows")
    assert answer.estimate == pytest.approx(cramers_v(joint), rel=1e-6)
    assert answer.low == pytest.approx(answer.high, abs=1e-4) and not answer.note
    [of_people] = ask(["cramers_v(a, b)"], exact, model(exact, 4000))
    assert of_people.low is not None and of_people.high is not None and answer.estimate is not None
    assert of_people.low < answer.estimate < of_people.high
    assert of_people.noise_share == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("sigma", [5, 25])
def test_its_interval_holds(strength: float, sigma: int) -> None:
    rng = np.random.default_rng([int(100 * strength), sigma])
    missed = {"population": 0, "rows": 0}
    fitted = None
    for _ in range(RUNS):
        rows, of_people = drawn(strength, rng)
        noisy = measured(rows, [AB], [Fraction(sigma**2)], rng, DOMAIN)
        fitted = fitted or model(noisy, ROWS, DOMAIN)  # V is read off the measurements
        of_rows = cramers_v(np.histogram2d(rows[:, 0], rows[:, 1], bins=(3, 4))[0])
        for target, truth in (("population", of_people), ("rows", of_rows)):
            [answer] = ask(["cramers_v(a, b)"], noisy, fitted, domain=DOMAIN, target=target)
            assert answer.low is not None and answer.high is not None, answer
            missed[target] += not answer.low <= truth <= answer.high
    assert max(missed.values()) <= WRONG, missed


def test_codes_that_hardly_any_row_has_are_left_out_and_named() -> None:
    rng = np.random.default_rng(5)
    rows, _ = drawn(0.5, rng)
    rows = rows[rows[:, 1] < 3]
    noisy = measured(rows, [AB], [Fraction(25)], rng, DOMAIN)
    [answer] = ask(["cramers_v(b, a)"], noisy, model(noisy, len(rows), DOMAIN), domain=DOMAIN)
    assert answer.note == "Without b = 3, which hardly any row may have." and answer.table is None
    truth = cramers_v(np.histogram2d(rows[:, 0], rows[:, 1], bins=(3, 3))[0])
    assert answer.estimate == pytest.approx(truth, abs=4 * sqrt(25 * 12) / len(rows) + 0.05)


def test_a_cell_that_happens_to_be_empty_does_not_make_independent_columns_related() -> None:
    """Of 1,000 rows .4 are expected in the rarest cell of independent columns, and in two of three draws none is there: by these
    counts alone nothing varies in it, and the interval began above 0."""
    domain, table = Domain(("a", "b"), (Codes(2), Codes(2))), np.zeros((1000, 2), np.int64)
    table[:20, 0], table[20:40, 1] = 1, 1
    noisy = measured(table, [AB], [Fraction(1, 100)], None, domain)
    [of_people] = ask(["cramers_v(a, b)"], noisy, model(noisy, 1000, domain), domain=domain)
    [of_rows] = ask(["cramers_v(a, b)"], noisy, model(noisy, 1000, domain), domain=domain, target="rows")
    assert of_people.low == 0 and of_rows.low is not None and of_rows.low > 0.01


@pytest.mark.parametrize("rows", [400.0, 0.0])
def test_counts_that_are_independent_to_the_row_have_an_interval(rows: float) -> None:
    estimate = SimpleNamespace(values=np.full((2, 2), 100.0), names=("a", "b"), solved=lambda unit: 4 * unit)
    found = strength(cast(Any, estimate), rows, 1.96, 3.0, of_people=rows > 0)
    assert found.low == found.value == 0.0


@pytest.mark.parametrize(("lonely", "left_out"), [(40.0, ((2,), (2,))), (400.0, ((), ()))])
def test_a_code_all_of_whose_rows_are_of_a_code_left_out_is_left_out_too(
    lonely: float, left_out: tuple[tuple[int, ...], ...]
) -> None:
    """Its line among the others is noise, and may be below 0."""
    values = np.array([[150.0, 50.0, -30.0], [50.0, 150.0, -30.0], [-5.0, -5.0, lonely]])
    estimate = SimpleNamespace(values=values, names=("a", "b"), solved=lambda unit: 4 * unit)
    with np.errstate(all="raise"):
        found = strength(cast(Any, estimate), 400.0, 1.96, 3.0, of_people=True)
    assert found.left_out == left_out
    assert 0 <= found.low <= found.value <= found.high <= 1 and found.noise > 0


def test_what_cannot_be_said_has_a_reason() -> None:
    level = Level("a:2", "a", (0, 0, 1, 1))
    binned = measured(people(ROWS), [("a:2", "b")], [Fraction(9)], levels=[level])
    [answer] = ask(["cramers_v(a, b)"], binned, model(binned, ROWS))
    assert answer.estimate is None and "over bins only" in answer.reason
    heavy = measured(people(ROWS), [AB], [Fraction(10**9)])
    [answer] = ask(["cramers_v(a, b)"], heavy, model(heavy, ROWS))
    assert answer.estimate is None and "fewer than two values" in answer.reason
    [answer] = ask(["cramers_v(a, c)"], heavy, model(heavy, ROWS))
    assert answer.licence == "not measured"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cramers_v(a, b) - cramers_v(a, c)", "stands by itself"),
        ("cramers_v(a, b) | c", "takes no groups"),
        ("cramers_v(a, a)", "name each once"),
    ],
)
def test_what_it_does_not_go_with(text: str, words: str) -> None:
    exact = measured(people(ROWS), [AB], [Fraction(9)])
    with pytest.raises(UsageError, match=words):
        ask([text], exact, model(exact, ROWS))


def test_tables_too_large_are_refused() -> None:
    size = MAX_PAIR_CELLS // 2 + 1
    domain = Domain(("a", "b"), (Codes(size), Codes(2)))
    wide = measured(people(ROWS)[:, :2], [AB], [Fraction(9)], domain=domain)
    with pytest.raises(UsageError, match="is offered up to"):
        ask(["cramers_v(a, b)"], wide, model(wide, ROWS, domain), domain=domain)


@pytest.mark.parametrize(
    "question", ["corr(a, b)", "cramers_v(a, b)", "mean(a | b == 0)", "median(a | b == 0)"]
)
def test_a_relation_that_was_selected_at_little_noise_says_so(question: str) -> None:
    exact = measured(people(ROWS), [AB], [Fraction(1)])
    fitted = model(exact, ROWS)
    asked = {"selected": [["a", "b"]], "privacy": {"events": []}}
    registered = asked | {"public_study": {"inference": {"queries": ["table(a, b)"]}}}

    def note(facts: dict[str, Any], **options: Any) -> str:
        [answer] = ask([question], exact, fitted, facts=facts, **options)
        assert answer.estimate is not None
        return answer.note

    assert "were selected because they looked related" in note(asked)
    assert not note(registered) and not note(asked, target="rows") and not note(FACTS)
    [answer] = ask(["mean(a)"], exact, fitted, facts=asked)
    assert not answer.note


@pytest.mark.parametrize(
    "question", ["corr(a, b)", "cramers_v(a, b)", "mean(a | b == 0)", "median(a | b == 0)"]
)
def test_a_relation_that_was_selected_again_says_so_of_these_rows_too(question: str) -> None:
    noisy = measured(people(ROWS), [AB, AB], [Fraction(4)] * 2)
    fitted = model(noisy, ROWS)
    for picked, said in ((2, True), (1, False)):
        facts = {"selected": [["b", "a"]] + [["a", "b"]] * (picked - 1), "privacy": {"events": []}}
        [answer] = ask([question], noisy, fitted, facts=facts, target="rows")
        assert answer.estimate is not None and ("were selected again" in answer.note) == said
        [answer] = ask(["mean(a)"], noisy, fitted, facts=facts, target="rows")
        assert not answer.note


def test_at_much_noise_a_selection_does_no_harm() -> None:
    noisy = measured(people(ROWS), [AB], [Fraction(4000)])
    [answer] = ask(
        ["corr(a, b)"], noisy, model(noisy, ROWS), facts={"selected": [["a", "b"]], "privacy": {"events": []}}
    )
    assert answer.noise_share is not None and answer.noise_share > 0.5 and not answer.note
