"""Answers: classical where there is no noise, right where there is, refused where nothing was measured."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import Level
from synth.domain import Binned, Categorical, Codes, Domain, Integer
from synth.inference import Answer
from synth.synthesis import Measured
from tests.synth.inference.small import AB, AC, BC, FACTS, ask, measured, model, people

ROWS = 4000
TINY = [Fraction(1, 10**9)] * 3


@pytest.fixture(scope="module")
def exact() -> list[Measured]:
    return measured(people(ROWS), [AB, BC, AC], TINY)


def one(text: str, measurements: list[Measured], **options: Any) -> Answer:
    """The answer of a question that has one number. The model is fitted to marginals without noise."""
    [answer] = ask(
        [text], measurements, model(measured(people(ROWS), [AB, BC, AC], [Fraction(9)] * 3), ROWS), **options
    )
    return answer


def classical(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error, by the sum over n."""
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def test_without_noise_a_mean_has_the_classical_standard_error(exact: list[Measured]) -> None:
    answer, (mean, error) = one("mean(a)", exact), classical(people(ROWS)[:, 0].astype(float))
    assert answer.estimate == pytest.approx(mean, rel=1e-6) and answer.standard_error == pytest.approx(
        error, rel=1e-6
    )
    assert answer.noise_share == pytest.approx(0, abs=1e-6) and answer.licence == "measured"


def test_who_was_drawn_is_told_by_what_was_measured_not_by_a_model_that_departs_from_it() -> None:
    table = people(ROWS)
    few = table[
        (table[:, 1] == 0) | (table[:, 0] > 1)
    ]  # b tells how far a spreads, which columns alone do not
    alone = model(measured(few, [("a",), ("b",), ("c",)], [Fraction(9)] * 3), len(few))
    for group in (0, 1):
        mean, error = classical(few[few[:, 1] == group, 0].astype(float))
        [answer] = ask([f"mean(a | b == {group})"], measured(few, [AB, BC, AC], TINY), alone)
        assert answer.estimate == pytest.approx(mean, rel=1e-6)
        assert answer.standard_error == pytest.approx(error, rel=1e-4)


def test_without_noise_a_share_in_a_group_has_wilsons_interval(exact: list[Measured]) -> None:
    table = people(ROWS)
    group = table[table[:, 1] == 1]
    hits, n, z = int((group[:, 2] == 2).sum()), len(group), 1.959963985
    middle = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    answer = one("share(c == 2 | b == 1)", exact)
    assert answer.low == pytest.approx(middle - half, abs=1e-6) and answer.high == pytest.approx(
        middle + half, abs=1e-6
    )


def test_without_noise_regressions_have_the_sandwich_errors_of_statsmodels(exact: list[Measured]) -> None:
    frame = pd.DataFrame(people(ROWS), columns=["a", "b", "c"])
    frame["top"] = (frame["c"] == 2).astype(int)
    theirs = smf.ols("a ~ b + c", frame).fit(cov_type="HC0")
    mine = ask(
        ["a ~ b + c"], exact, model(measured(people(ROWS), [AB, BC, AC], [Fraction(1, 100)] * 3), ROWS)
    )
    for answer, name in zip(mine, ("Intercept", "b", "c"), strict=True):
        assert answer.name.endswith(name)
        assert answer.estimate == pytest.approx(theirs.params[name], rel=1e-5)
        assert answer.standard_error == pytest.approx(
            theirs.bse[name], rel=0.02
        )  # the model's joint counts stand in
    logit = smf.logit("top ~ a", frame).fit(disp=0, cov_type="HC0")
    mine = ask(
        ["logistic(c == 2 ~ a)"],
        exact,
        model(measured(people(ROWS), [AB, BC, AC], [Fraction(1, 100)] * 3), ROWS),
    )
    for answer, name in zip(mine, ("Intercept", "a"), strict=True):
        assert answer.estimate == pytest.approx(logit.params[name], rel=1e-5)
        assert answer.standard_error == pytest.approx(logit.bse[name], rel=1e-3)


def test_without_noise_these_rows_are_known(exact: list[Measured]) -> None:
    answer = one("share(c == 2 | b == 1)", exact, target="rows")
    assert answer.high is not None and answer.low is not None and answer.high - answer.low < 1e-4
    assert answer.noise_share == 1.0


def test_differences_and_ratios_follow_the_influence_of_their_parts(exact: list[Measured]) -> None:
    table = people(ROWS)
    p, q = (table[table[:, 1] == k, 2] == 2 for k in (1, 0))
    gap = one("share(c == 2 | b == 1) - share(c == 2 | b == 0)", exact)
    assert gap.standard_error == pytest.approx(
        math.hypot(classical(p * 1.0)[1], classical(q * 1.0)[1]), rel=1e-5
    )
    ratio = one("share(c == 2 | b == 1) / share(c == 2 | b == 0)", exact)
    relative = math.hypot(classical(p * 1.0)[1] / p.mean(), classical(q * 1.0)[1] / q.mean())
    assert ratio.standard_error == pytest.approx(p.mean() / q.mean() * relative, rel=1e-5)


def test_a_correlation_and_the_counts_of_a_table_are_those_of_the_rows(exact: list[Measured]) -> None:
    table = people(ROWS)
    assert one("corr(a, c)", exact).estimate == pytest.approx(
        np.corrcoef(table[:, 0], table[:, 2])[0, 1], abs=1e-6
    )
    fitted = model(measured(table, [AB, BC, AC], [Fraction(9)] * 3), ROWS)
    cells = ask(["table(b, c)"], exact, fitted)
    assert [round(cell.estimate or 0) for cell in cells] == np.bincount(
        table[:, 1] * 3 + table[:, 2]
    ).tolist()
    assert [cell.name for cell in cells][:2] == ["0, 0", "0, 1"]


def test_a_quantiles_interval_holds_it_and_reaches_over_whole_codes(exact: list[Measured]) -> None:
    answer = one("quantile(a, 0.5 | b == 1)", exact)
    median = float(np.quantile(people(ROWS)[people(ROWS)[:, 1] == 1, 0], 0.5, method="inverted_cdf"))
    assert answer.low is not None and answer.high is not None and answer.low <= median <= answer.high
    assert answer.low == int(answer.low) and answer.high == int(answer.high)


def test_intervals_hold_the_rows_values_as_often_as_they_say() -> None:
    """Of 300 releases of one table, 95 % intervals for these rows: three standard errors are .038."""
    table, held, asked = people(600), 0, 0
    truths = {
        "mean(a)": table[:, 0].mean(),
        "share(c == 2 | b == 1)": (table[table[:, 1] == 1, 2] == 2).mean(),
        "count(a == 3 & c == 2)": ((table[:, 0] == 3) & (table[:, 2] == 2)).sum(),
    }
    fitted = model(measured(table, [AB, BC, AC], [Fraction(9)] * 3), 600)
    for seed in range(300):
        noisy = measured(table, [AB, BC, AC], [Fraction(100)] * 3, np.random.default_rng(seed))
        for answer in ask(list(truths), noisy, fitted, target="rows"):
            assert answer.low is not None and answer.high is not None
            held += answer.low <= truths[answer.question] <= answer.high
            asked += 1
    assert 0.912 <= held / asked <= 0.988


def test_a_count_has_the_interval_of_its_share_and_of_all_rows_the_noise_alone(exact: list[Measured]) -> None:
    """As of that many rows drawn, not of a Poisson variable, which of nearly all rows varies several times as much."""
    count, share = one("count(c <= 1)", exact), one("share(c <= 1)", exact)
    for limit, of_share in ((count.low, share.low), (count.high, share.high)):
        assert limit is not None and limit == pytest.approx(ROWS * (of_share or 0), rel=1e-6)
    noisy = measured(people(ROWS), [("c",)], [Fraction(25)])
    everybody = one("count()", noisy)
    assert (everybody.low, everybody.high) == pytest.approx(
        (ROWS - 1.959964 * math.sqrt(75), ROWS + 1.959964 * math.sqrt(75)), rel=1e-3
    )


def test_a_share_near_zero_keeps_an_interval_of_some_width() -> None:
    noisy = measured(
        people(ROWS)[people(ROWS)[:, 2] < 2], [AB, BC, AC], [Fraction(4)] * 3, np.random.default_rng(1)
    )
    answer = one("share(c == 2)", noisy)
    assert answer.low == 0 and answer.high is not None and 5e-4 < answer.high < 0.01


@pytest.mark.parametrize("target", ["population", "rows"])
@pytest.mark.parametrize(
    ("question", "end"), [("share(c == 2)", 0.0), ("count(c == 2)", 0.0), ("3 - share(c == 2)", 3.0)]
)
def test_an_estimate_that_noise_puts_beyond_what_is_possible_keeps_an_interval_of_some_width(
    question: str, end: float, target: str
) -> None:
    [clear] = measured(people(ROWS)[people(ROWS)[:, 2] < 2], [("c",)], [Fraction(25)])
    far = [
        replace(clear, values=clear.values - np.array([0, 0, 15]))
    ]  # 15 below 0: three standard deviations
    answer = one(question, far, target=target)
    assert answer.estimate == end and answer.low is not None and answer.high is not None
    near, other = sorted([answer.low, answer.high], key=lambda limit: abs(limit - end))
    assert near == end and abs(other - end) > (5 if "count" in question else 5 / ROWS)


def test_a_number_times_a_ratio_and_another_number_have_the_ratios_interval() -> None:
    noisy = measured(people(ROWS), [AB, BC, AC], [Fraction(100)] * 3, np.random.default_rng(1))
    share, gap = "share(a == 3 & b == 0)", "mean(a | b == 1) - mean(a | b == 0)"
    for part, text, slope, shift in (
        (share, f"100 * {share}", 100, 0),
        (share, f"1 - {share}", -1, 1),
        (share, f"(2 + {share} / 4) * 2", 0.5, 4),
        (gap, f"3 - ({gap}) / 2", -0.5, 3),
    ):
        plain, line = one(part, noisy), one(text, noisy)
        assert plain.low is not None and plain.high is not None and plain.estimate is not None
        ends = sorted((shift + slope * plain.low, shift + slope * plain.high))
        assert [line.low, line.high] == pytest.approx(ends)
        assert line.estimate == pytest.approx(shift + slope * plain.estimate)


def test_a_group_that_may_be_empty_gets_no_interval() -> None:
    table = people(ROWS)
    noisy = measured(table[table[:, 0] < 3], [AB, BC, AC], [Fraction(400)] * 3, np.random.default_rng(1))
    answer = one("share(b == 1 | a == 3)", noisy)
    assert answer.licence == "open" and answer.low is None and "may be empty" in answer.reason
    groups = ask(["share(b == 1) | a"], noisy, model(noisy, ROWS))
    assert [group.low is None for group in groups] == [False, False, False, True]


def test_regressors_that_the_noise_cannot_tell_apart_get_no_interval() -> None:
    table = people(ROWS)
    table = table[(table[:, 1] == 1) == (table[:, 2] == 2)]  # C(c) tells b
    noisy = measured(table, [AB, BC, AC], [Fraction(9)] * 3, np.random.default_rng(3))
    found = ask(["a ~ b + C(c)"], noisy, model(noisy, len(table)))
    assert all(answer.low is None and "may be collinear" in answer.reason for answer in found)


def test_a_logistic_fit_whose_outcome_a_value_may_decide_by_itself_gets_no_interval() -> None:
    b = np.repeat([0, 1], 500)
    for few in (12, 250):  # of 500: 12 is within what noise of 6 in each of two cells may leave of none
        y = np.concatenate([np.arange(500) < few, np.arange(500) < 250]).astype(np.int64)
        table = np.stack([y, b, y], 1).astype(np.int64)
        fitted = model(measured(table, [AB, BC, AC], [Fraction(1)] * 3), len(table))
        for formula in ("b", "C(b)"):
            noisy = measured(table, [AB, BC], [Fraction(36)] * 2)
            found = ask([f"logistic(a == 1 ~ {formula})"], noisy, fitted)
            assert [answer.low is None for answer in found] == [few == 12] * 2


def test_a_difference_of_means_holds_under_strong_noise() -> None:
    """Noise of a tenth of the smaller group, which a linearisation alone covers less often; 200 releases,
    these rows."""
    table = people(600)
    truth = table[table[:, 2] == 2, 0].mean() - table[table[:, 2] != 2, 0].mean()
    fitted, held, asked = model(measured(table, [AB, BC, AC], [Fraction(9)] * 3), 600), 0, 0
    for seed in range(200):
        noisy = measured(table, [AC], [Fraction(200)], np.random.default_rng([seed, 2]))
        [answer] = ask(["mean(a | c == 2) - mean(a | c != 2)"], noisy, fitted, target="rows")
        assert answer.low is not None and answer.high is not None
        held += answer.low <= truth <= answer.high
        asked += 1
    assert 0.90 <= held / asked <= 0.996  # three standard errors of a true 95 %: .046


def test_a_divisor_that_other_people_could_bring_to_0_is_refused_for_the_population_alone() -> None:
    b, c = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    c[:10] = 0  # shares .475 and .5: a difference of half of what drawing people makes of it
    table = np.stack([c, b, c], 1).astype(np.int64)
    sharp = measured(table, [AB, BC, AC], [Fraction(1, 100)] * 3)
    fitted, text = model(sharp, 400), "1 / (share(c == 1 | b == 1) - share(c == 1 | b == 0))"
    [rows] = ask([text], sharp, fitted, target="rows")
    assert rows.low is not None and rows.high is not None and rows.low < 40 < rows.high
    [population] = ask([text], sharp, fitted)
    assert population.low is None and "divides by a number that may be 0" in population.reason


def test_a_correlation_whose_divisor_the_noise_leaves_open_says_so_and_what_to_ask() -> None:
    heavy = measured(people(40), [AB, BC, AC], [Fraction(900)] * 3)
    answer = one("corr(a, b)", heavy)
    assert answer.licence == "open" and "leaves open how much " in answer.reason
    assert "varies, by which a correlation divides; ask how much it differs between groups" in answer.reason


def test_joint_intervals_are_wider() -> None:
    noisy = measured(people(ROWS), [AB, BC, AC], [Fraction(25)] * 3, np.random.default_rng(1))
    alone, joint = (
        ask(["mean(a)", "mean(c)"], noisy, model(noisy, ROWS), joint=joint)[0] for joint in (False, True)
    )
    assert joint.high is not None and alone.high is not None and joint.high > alone.high


def test_a_model_that_departs_from_its_measurements_is_told() -> None:
    noisy = measured(people(ROWS), [AB, BC, AC], [Fraction(9)] * 3, np.random.default_rng(1))
    apart = measured(people(ROWS)[people(ROWS)[:, 0] < 2], [AB, BC, AC], [Fraction(9)] * 3)
    assert "departs from the measurements" in ask(["mean(a)"], noisy, model(apart, ROWS))[0].note
    assert ask(["mean(a)"], noisy, model(noisy, ROWS))[0].note == ""


def test_no_question_about_columns_that_were_not_measured_together_is_answered() -> None:
    """400 random questions about a chain of measured pairs: an answer only where one marginal holds all
    columns."""
    rng = np.random.default_rng(4)
    names = ("p", "q", "r", "s", "t")
    domain = Domain(names, tuple(Codes(3) for _ in names))
    pairs = [("p", "q"), ("q", "r"), ("r", "s", "t")]
    table = rng.integers(0, 3, (3000, 5))
    noisy = measured(table, pairs, [Fraction(4)] * 3, rng, domain)
    fitted = model(noisy, 3000, domain)
    forms = {
        "share({0} == 1 | {1} == 2)": 2,
        "mean({0} | {1} > 0)": 2,
        "corr({0}, {1})": 2,
        "count({0} == 1 & {1} == 0)": 2,
        "mean({0})": 1,
        "share({0} == 1 & {1} != 2 | {2} <= 1)": 3,
        "table({0}, {1})": 2,
        "{0} ~ {1}": 2,
        "logistic({0} == 1 ~ {1})": 2,
        "median({0} | {1} in [0, 2])": 2,
    }
    refused = 0
    for text, count in itertools.islice(itertools.cycle(forms.items()), 400):
        columns = [names[k] for k in rng.choice(5, count, replace=False)]
        is_measured = any(set(columns) <= set(pair) for pair in pairs)
        for answer in ask([text.format(*columns)], noisy, fitted, domain):
            assert (answer.low is not None) == is_measured
            if not is_measured:
                assert answer.licence == "not measured" and "would have to be measured" in answer.reason
                assert all(name in answer.reason for name in columns)
        refused += not is_measured
    assert 120 < refused < 360


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mean(z)", "no column z"),
        ("mean(work)", "holds texts, which have no mean"),
        ("work ~ age", "holds texts, which have no mean"),
        ("age ~ sick + C(sick)", "collinear"),
        ("age ~ log(sick)", "functions are not computed"),
        ("age ~ sick + 2", "cannot be read"),
        ("age ~ 2:sick", "holds the number 2"),
        ("age ~ age", "both sides"),
        ("age ~ sick + ", "cannot be read"),
        ("share(sick == True | age < 10)", "No row can meet the conditions on age"),
        ("share(sick == True | work == 'Nowhere')", "not a value of it"),
        ("mean(age", "needs ')'"),
        ("mean()", "needs the name of a column"),
        ("__import__('os')", "needs a statistic"),
        ("age ~ __import__('os').system('true')", "cannot be read"),
        ("quantile(age, 1.5)", "between 0 and 1"),
        ("mean(age) | age, age", "hold one twice"),
        ("table(age, age)", "hold one twice"),
        ("share(age > 'old')", "compared with numbers"),
        ("median(age) - mean(age)", "A quantile stands by itself"),
        ("1 / 0 + mean(age)", "divides by a number"),
        ("logistic(age ~ sick)", "outcome of 0 and 1"),
        ("mean(age);", "unreadable"),
        ("", "needs a statistic"),
    ],
)
def test_a_bad_question_is_one_sentence(text: str, sentence: str) -> None:
    columns = (Integer(20, 59, 4), Categorical(("Private", "Gov")), Categorical((False, True)))
    domain = Domain(("age", "work", "sick"), columns)
    rows = np.random.default_rng(1).integers(0, 2, (500, 3))
    noisy = measured(rows, [("age", "work"), ("age", "sick")], [Fraction(1)] * 2, domain=domain)
    with pytest.raises(UsageError) as caught:
        ask([text], noisy, model(noisy, 500, domain), domain)
    assert sentence in caught.value.sentence
    assert caught.value.sentence.endswith(".") and caught.value.sentence.count("\n") == 0


def test_values_in_bins_get_bounds_and_a_condition_that_cuts_one_is_all_or_nothing() -> None:
    columns = (Integer(20, 59, 4), Codes(2))
    domain = Domain(("age", "g"), columns)
    rng = np.random.default_rng(2)
    rows = np.stack([rng.integers(0, 4, 2000), rng.integers(0, 2, 2000)], 1)
    noisy = measured(rows, [("age", "g")], [Fraction(1)], rng, domain)
    mean, cut, whole = ask(
        ["mean(age)", "share(age < 25)", "share(age < 30)"], noisy, model(noisy, 2000, domain), domain
    )
    assert isinstance(columns[0], Binned)
    assert (
        mean.bounds is not None
        and mean.low is not None
        and mean.bounds[0] == pytest.approx(mean.low - 4.5, abs=0.01)
    )
    share = float((rows[:, 0] == 0).mean())
    assert cut.estimate == pytest.approx(share / 2, abs=0.01)
    assert cut.bounds is not None and cut.bounds[0] < 0.02 and cut.bounds[1] > share
    assert whole.estimate == pytest.approx(share, abs=0.01) and whole.bounds == (whole.low, whole.high)


def test_a_relation_measured_over_bins_has_an_interval_that_allows_for_them() -> None:
    level = Level("a/2", "a", (0, 0, 0, 1))
    table = people(ROWS)
    noisy = measured(
        table, [("a",), ("a/2", "b")], [Fraction(1)] * 2, np.random.default_rng(1), levels=[level]
    )
    over, carried = ask(["mean(a | b == 1)", "share(a == 3 | b == 1)"], noisy, model(noisy, ROWS))
    truth = table[table[:, 1] == 1, 0].mean()
    assert over.licence == "measured over bins" and over.low is not None and over.high is not None
    assert over.low < truth < over.high
    assert carried.licence == "measured"
    median, related = ask(["median(a | b == 1)", "corr(a, b)"], noisy, model(noisy, ROWS))
    assert median.licence == "measured over bins" and "first order" not in over.note + median.note
    assert related.licence == "measured over bins" and "to first order" in related.note


def test_over_bins_ratios_hold_for_every_way_to_fill_them() -> None:
    """All these tables have the same released marginals: who has which value of a in a bin is told by
    nothing."""
    rng, level = np.random.default_rng(3), Level("a/2", "a", (0, 0, 1, 1))
    table = np.stack(
        [
            rng.choice(size, ROWS, p=p)
            for size, p in [(4, [0.05, 0.45, 0.25, 0.25]), (2, None), (3, [0.4, 0.3, 0.3])]
        ],
        1,
    )
    exact_marginals = measured(table, [("a",), ("a/2", "b", "c")], TINY[:2], levels=[level])

    def share(of: np.ndarray, *group: int) -> float:
        whole = of[(of[:, : len(group)] == group).all(1), 2]
        return float((whole == 1).mean()) if len(whole) else math.nan

    questions = {
        "share(c == 1 | a == 1 & b == 0)": lambda of: share(of, 1, 0),
        "share(c == 1 | a == 0) / share(c == 1 | a == 1)": lambda of: share(of, 0) / share(of, 1),
        "share(c == 1 | a == 2) - share(c == 1 | a == 0)": lambda of: share(of, 2) - share(of, 0),
        "share(c == 1 | a == 1) / share(c == 1 | a == 2)": lambda of: share(of, 1) / share(of, 2),
    }
    answers = ask(list(questions), exact_marginals, model(exact_marginals, ROWS), target="rows")
    assert [answer.licence for answer in answers] == [*["measured over bins"] * 3, "open"]
    assert "may divide by 0" in answers[3].reason
    reached = dict.fromkeys(questions, 0.0)
    for of_b, of_c in itertools.product((-2, -1, 0, 1, 2), (-1, 0, 1)):
        other = table.copy()
        for codes in ((0, 1), (2, 3)):
            inside = np.flatnonzero(np.isin(table[:, 0], codes))
            key = table[inside, 1] * of_b + (table[inside, 2] == 1) * of_c
            other[inside[np.argsort(key, kind="stable")], 0] = np.sort(table[inside, 0])
        for answer, (text, value) in zip(answers[:3], questions.items(), strict=False):
            assert answer.low is not None and answer.high is not None and answer.estimate is not None
            truth = value(other)
            if not math.isnan(truth):
                assert answer.low - 1e-3 <= truth <= answer.high + 1e-3, (text, of_b, of_c)
                reached[text] = max(
                    reached[text], (truth - answer.estimate) / (answer.high - answer.estimate)
                )
    assert all(
        share_of_it > 0.5 for share_of_it in list(reached.values())[:3]
    )  # and no wider than it must be


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"privacy": {"events": [{"what": "own model"}]}}, "each owner reported marginals of its own table"),
        ({"privacy": {"events": [], "clients": []}}, "clients answered for themselves"),
        ({"privacy": {"events": []}, "contributors": {"after": [{"noise": 1.0}]}}, "a later wave"),
    ],
)
def test_runs_whose_counts_are_no_sums_over_all_rows_are_refused(
    facts: dict[str, object], sentence: str
) -> None:
    noisy = measured(people(ROWS), [AB], [Fraction(9)])
    fitted = model(noisy, ROWS)
    [answer] = ask(["mean(a)"], noisy, fitted, facts=facts)
    assert answer.low is None and sentence in answer.reason
    with pytest.raises(UsageError, match="no column z"):
        ask(["mean(z)"], noisy, fitted, facts=facts)


def test_marginals_of_some_rows_are_left_out() -> None:
    noisy = measured(people(ROWS), [AB, BC], [Fraction(9)] * 2)
    some = Measured(BC, Fraction(9), 1, noisy[1].values, rows=1000)
    mean, share = ask(["mean(a)", "share(c == 2)"], [noisy[0], some], model(noisy, ROWS))
    assert mean.low is not None and share.licence == "not measured"
    [none] = ask(["mean(a)"], [some], model(noisy, ROWS), facts=FACTS)
    assert none.low is None and "no marginal that counts all rows" in none.reason


def test_a_value_that_nobody_has_gets_no_coefficient() -> None:
    """Its count is noise alone; scaled to a unit diagonal, as collinearity is judged, it looks like any
    other."""
    domain = Domain(("a", "y"), (Codes(4), Codes(2)))
    counts = (2000, 1500, 497)
    table = np.concatenate(
        [np.c_[np.full(n, a), (np.arange(n) < n // 3).astype(int)] for a, n in enumerate(counts)]
    ).astype(np.int64)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        released = measured(table, [("a",), ("y",), ("a", "y")], [Fraction(4)] * 3, rng, domain)
        fitted = model(released, float(len(table)), domain)
        for answer in ask(["y ~ C(a)"], released, fitted, domain, target="rows"):
            assert answer.low is None and "collinear" in answer.reason
