"""How often the intervals of `infer` hold the truth, beside those of who reads a table as if it were real.

    python -m tests.acceptance.coverage --data DIR [--tables adult,eight,nltcs,acs,law] [--algorithms mosaic,aim]
        [--rows 1000,10000] [--epsilon 0.3,1,3] [--runs 40] [--seed 1] [--share 0.2] [--replicates 20]

Each run draws so many rows from a population (`adult`, `eight`: five and eight columns of adult-vfl.csv, `nltcs`, `acs`: all
columns of these, with replacement; `law`: a law written here, whose truth is exact), makes a release of them in the clear with
seeded noise, and asks. --share: the questions are registered, for so much of the budget. Of each cell:

    infer     the share of 95 % intervals that hold the population's value: of answers whose columns were measured together at
              full resolution, of those over bins, and how many had none
    table     the synthetic table read as real rows; rows: the real rows themselves; of the same measured answers
    replicas  of the same answers: the released table with the error that so many replicates tell (--replicates)
    width     the median of the interval's width as a multiple of the real rows'; of registered questions after a stroke as a
              multiple of what `plan` foretells on rows of the population

Ends 1 if a cell's measured answers are held in fewer than 92 % by more than two binomial errors (of a quarter as many, for
answers of one run go together). DIR holds the public tables that the papers we compare with have used.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.functionality import StudyFacts, unobserved
from mpc_protocols.ideal.oracle import IdealOracle
from runner.api.conditions import allowed
from runner.forecast.intervals import foretold
from runner.party.synthesis import plan_of
from runner.study import Study
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.domain import Codes, Domain
from synth.inference import Answer, infer
from synth.inference.estimands import Estimand, estimands
from synth.inference.language import parse
from synth.inference.licence import Unanswerable
from synth.inference.moments import Moment, Moments
from synth.inference.replicates import Replicates
from synth.metrics import marginal
from synth.run import Synthesis

DELTA, LEVEL, Z = 1e-5, 0.95, 1.959964
LEAST, DEPENDENT = 0.92, 4
EIGHT = (
    "age",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "sex",
    "hours-per-week",
    "income",
)
ADULT = ("age", "sex", "marital-status", "race", "income")
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "adult": (
        "mean(age)",
        "mean(age) | sex",
        "share(income == 1)",
        "share(race == 2)",
        "share(income == 1 | sex == 0)",
        "share(income == 1 | sex == 0) - share(income == 1 | sex == 1)",
        "share(income == 1 | sex == 0) / share(income == 1 | sex == 1)",
        "share(income == 1 | `marital-status` == 2)",
        "share(`marital-status` == 2 & income == 1)",
        "mean(age | income == 1) - mean(age | income == 0)",
        "corr(age, income)",
        "income ~ sex",
        "income ~ age + sex",
        "logistic(income ~ sex)",
    ),
    "eight": (
        "mean(age)",
        "mean(age) | sex",
        "mean(`hours-per-week`) | income",
        "share(income == 1 | sex == 0) - share(income == 1 | sex == 1)",
        "share(income == 1 | `marital-status` == 2)",
        "share(income == 1 | education == 9)",
        "share(occupation == 3 | sex == 0)",
        "corr(age, `hours-per-week`)",
        "income ~ age + sex",
        "income ~ age + `hours-per-week`",
        "logistic(income ~ sex)",
    ),
    "acs": (
        "share(a0 == 1)",
        "share(a3 == 1 | a4 == 1)",
        "share(a5 == 1 | a7 == 1) - share(a5 == 1 | a7 == 0)",
        "share(a13 == 1 | a14 == 0)",
        "corr(a11, a12)",
        "corr(a15, a16)",
        "a17 ~ a18",
        "a2 ~ a1 + a6",
    ),
    "nltcs": (
        "share(a0 == 1)",
        "share(a3 == 1)",
        "share(a1 == 1 | a0 == 1)",
        "share(a5 == 1 | a4 == 1) - share(a5 == 1 | a4 == 0)",
        "share(a8 == 1 | a9 == 1)",
        "corr(a6, a7)",
        "corr(a10, a11)",
        "a12 ~ a13",
        "a2 ~ a1 + a0",
    ),
    "law": (
        "mean(x)",
        "mean(x) | g",
        "share(y == 1)",
        "share(y == 1 | g == 1) - share(y == 1 | g == 0)",
        "share(y == 1 | h == 3)",
        "share(h == 3)",
        "corr(x, y)",
        "y ~ x + g",
        "logistic(y ~ g)",
        "logistic(y ~ x)",
        "x ~ C(h)",
    ),
}


@dataclass(frozen=True, eq=False)
class Population:
    """draw: so many rows of codes. cells: all of it as rows, each with its weight."""

    domain: Domain
    draw: Callable[[int, np.random.Generator], NDArray[np.int64]]
    cells: NDArray[np.int64]
    weights: NDArray[np.float64]


def population(name: str, data: Path | None) -> Population:
    """One of `QUESTIONS`'."""
    if name == "law":
        return _law()
    if data is None:
        raise SystemExit(f"The table {name} needs --data DIR.")
    import pandas as pd

    file = "adult-vfl" if name in ("adult", "eight") else name
    sizes = json.loads((data / f"{file}-domain.json").read_text())
    frame = pd.read_csv(data / f"{file}.csv")
    columns = {"adult": ADULT, "eight": EIGHT}.get(name, tuple(frame.columns))
    codes = frame[list(columns)].to_numpy(np.int64)
    domain = Domain(columns, tuple(Codes(sizes[column]) for column in columns))
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    return Population(
        domain, lambda rows, rng: codes[rng.integers(len(codes), size=rows)], cells, counts / len(codes)
    )


def _law() -> Population:
    """x of 8 ordered values, g of 2, h of 4 of which the last is rare, y by a logistic law of x and g; w follows h."""
    sizes = {"x": 8, "g": 2, "h": 4, "y": 2, "w": 3}
    cells = np.stack(np.unravel_index(np.arange(math.prod(sizes.values())), list(sizes.values())), 1)
    x, g, h, y, w = cells.T
    weights = np.exp(-np.square(x - 2.5 - 1.5 * g) / 8)
    weights *= np.array([0.6, 0.4])[g] * np.array([[0.5, 0.3, 0.18, 0.02], [0.3, 0.4, 0.25, 0.05]])[g, h]
    high = 1 / (1 + np.exp(2.0 - 0.35 * x - 0.8 * g))
    weights *= np.where(y == 1, high, 1 - high) * np.where(w == h % 3, 0.6, 0.2)
    weights /= weights.sum()
    domain = Domain(tuple(sizes), tuple(map(Codes, sizes.values())))

    def draw(rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = cells[rng.choice(len(cells), size=rows, p=weights)].astype(np.int64)
        return drawn

    return Population(domain, draw, cells.astype(np.int64), weights)


def study_of(of: Population, algorithm: str, epsilon: float, questions: Sequence[str], share: float) -> Study:
    """On all pairs. share: of the budget, for the questions; 0: they are not registered."""
    tables: dict[str, Any] = {"inference": {"queries": list(questions), "share": share}} if share else {}
    split = algorithm == "vertimrf"
    names = of.domain.names
    parties: list[Any] = ["one", "two", "three"]
    if split:
        half = len(names) // 2
        tables["alignment"] = {"method": "row-order"}
        parties = [
            {"name": "one", "address": "127.0.0.1:7101", "columns": list(names[:half])},
            {"name": "two", "address": "127.0.0.1:7102", "columns": list(names[half:])},
        ]
    return Study.of(
        "coverage",
        of.domain.sizes,
        parties,
        epsilon=epsilon,
        delta=DELTA,
        algorithm=algorithm,
        backend="ideal",
        partition="vertical" if split else "horizontal",
        **tables,
    )


def release(of: Population, rows: NDArray[np.int64], study: Study, seed: bytes) -> Synthesis:
    """A run in the clear, with seeded noise."""
    chosen, domain = ALGORITHMS[study.algorithm], of.domain
    plan = plan_of(study).knowing(dict.fromkeys(domain.names, "first"))
    rng = np.random.default_rng(list(seed))
    oracle = IdealOracle(
        StudyFacts(domain.sizes, "add-remove", 1, 1 << 22, rng.bytes(32)),
        lambda cliques: [marginal(rows, domain, clique) for clique in cliques],
        Accountant(plan.budget),
        rng.bytes,
    )
    synthesis: Synthesis = chosen.run(oracle, plan, unobserved)
    return synthesis


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows read as if nothing had been done to them: classical estimates, with their influence."""

    domain: Domain
    cells: NDArray[np.int64]
    weights: NDArray[np.float64]

    def _at(self, columns: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
        place = {name: j for j, name in enumerate(self.domain.names)}
        return tuple(self.cells[:, place[name]] for name in columns)

    def ask(self, questions: Sequence[str]) -> list[tuple[Estimand, float]]:
        """Each number, and the variance of what one row adds."""

        def evaluate(moment: Moment) -> float:
            return float((self.weights * moment.centre[self._at(moment.columns)]).sum())

        def table(columns: tuple[str, ...]) -> NDArray[np.float64]:
            found = np.zeros([self.domain.sizes[name] for name in columns])
            np.add.at(found, self._at(columns), self.weights)
            return found

        moments, found = Moments(self.domain.sizes, evaluate, table), []
        for text in questions:
            for estimand in estimands(parse(text), text, self.domain, codes_of(self.domain), moments):
                influence = np.zeros(len(self.cells))
                for key, slope in estimand.scalar.gradient.items():
                    moment = moments.asked[key]
                    influence += slope * moment.centre[self._at(moment.columns)]
                found.append((estimand, float(self.weights @ np.square(influence))))
        return found


def codes_of(domain: Domain) -> Callable[[str, Any], NDArray[np.bool_]]:
    """See `synth.inference.parts`."""
    return lambda name, value: allowed(domain, {name: value})[name]


def of_rows(domain: Domain, table: NDArray[np.int64]) -> Rows:
    """Equal rows."""
    return Rows(domain, table, np.full(len(table), 1 / max(1, len(table))))


def expected(of: Population, study: Study, rows: int) -> dict[str, float]:
    """The halves of the intervals of registered questions, as `plan` foretells them on rows of the population."""
    drawn = of.draw(100_000, np.random.default_rng(0))
    plan = plan_of(study)
    return {one.name: one.half for one in foretold(study, plan, rows, drawn) if one.half is not None}


@dataclass
class Tally:
    """Of one cell: intervals that held, and that there were; widths as multiples of the rows'."""

    held: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    widths: list[float] = field(default_factory=list)
    expected: Mapping[str, float] = field(default_factory=dict)
    as_foretold: list[float] = field(default_factory=list)
    by_name: dict[str, list[int]] = field(default_factory=dict)

    def add(self, kind: str, held: bool) -> None:
        """One interval."""
        self.held[kind] = self.held.get(kind, 0) + held
        self.asked[kind] = self.asked.get(kind, 0) + 1

    def share(self, kind: str) -> str:
        """For the table."""
        asked = self.asked.get(kind, 0)
        return f"{self.held.get(kind, 0) / asked:.3f}" if asked else "-"


def one_run(
    of: Population,
    questions: Sequence[str],
    study: Study,
    rows: int,
    seed: bytes,
    tally: Tally,
    truth: Mapping[str, float],
    replicates: int,
) -> None:
    """Draw, release, ask, count."""
    rng = np.random.default_rng([*seed, 1])
    real = of.draw(rows, rng)
    synthesis = release(of, real, study, seed)
    facts: dict[str, Any] = {"privacy": {"events": []}}
    found = infer(
        questions, of.domain, synthesis.model, synthesis.measurements, facts, codes_of(of.domain), level=LEVEL
    )
    table = synthesis.model.sample(synthesis.rows, rng)
    beside: dict[str, dict[str, tuple[float, float]]] = {"rows": {}, "table": {}}
    for kind, drawn in (("rows", real), ("table", table)):
        for text in questions:
            try:
                for estimand, variance in of_rows(of.domain, drawn).ask([text]):
                    beside[kind][estimand.name] = (
                        estimand.scalar.value,
                        math.sqrt(variance / max(1, len(drawn))),
                    )
            except Unanswerable:  # a table without such rows has no answer
                continue
    if replicates:
        beside["replicas"] = by_replicates(of.domain, synthesis, questions, replicates, table, rng)
    for answer in found:
        _count(answer, truth, beside, tally)


def by_replicates(
    domain: Domain,
    synthesis: Synthesis,
    questions: Sequence[str],
    number: int,
    table: NDArray[np.int64],
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Of each number its value in the released table, and an error that makes value +- Z error the interval of the replicates."""
    made = Replicates(synthesis.model, synthesis.measurements, {"privacy": {"events": []}})
    values: dict[str, list[float]] = {}
    for drawn in (table, *(made.model(rng).sample(synthesis.rows, rng) for _ in range(number))):
        for text in questions:
            try:
                for estimand, _ in of_rows(domain, drawn).ask([text]):
                    values.setdefault(estimand.name, []).append(estimand.scalar.value)
            except Unanswerable:
                continue
    factor = float(stats.t.ppf((1 + LEVEL) / 2, number - 1)) / Z * math.sqrt(1 + 1 / number)
    return {
        name: (found[0], factor * float(np.std(found[1:], ddof=1)))
        for name, found in values.items()
        if len(found) == number + 1
    }


def _count(
    answer: Answer,
    truth: Mapping[str, float],
    beside: Mapping[str, Mapping[str, tuple[float, float]]],
    tally: Tally,
) -> None:
    if answer.low is None or answer.high is None:
        tally.add("none", False)
        return
    held = answer.low <= truth[answer.name] <= answer.high
    if answer.licence != "measured":
        tally.add("bins", held)
        return
    tally.add("measured", held)
    if half := tally.expected.get(answer.name):
        tally.as_foretold.append((answer.high - answer.low) / 2 / half)
    counts = tally.by_name.setdefault(answer.name, [0, 0])
    counts[0] += held
    counts[1] += 1
    for kind, answers in beside.items():
        if answer.name in answers:
            value, error = answers[answer.name]
            tally.add(kind, abs(value - truth[answer.name]) <= Z * error)
    if answer.name in beside["rows"] and beside["rows"][answer.name][1] > 0:
        tally.widths.append((answer.high - answer.low) / (2 * Z * beside["rows"][answer.name][1]))


def main() -> int:
    """See the file's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", default="law")
    parser.add_argument("--algorithms", default="mosaic,aim")
    parser.add_argument("--rows", default="1000,10000")
    parser.add_argument("--epsilon", default="0.3,1,3")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--names", action="store_true", help="coverage of each question, too")
    given = parser.parse_args()
    failed = False
    print(
        "| table | algorithm | rows | epsilon | runs | measured (of) | over bins (of) | none | table | replicas | real rows "
        "| width |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for table in given.tables.split(","):
        of, questions = population(table, given.data), QUESTIONS[table]
        truth = {e.name: e.scalar.value for e, _ in Rows(of.domain, of.cells, of.weights).ask(questions)}
        for algorithm in given.algorithms.split(","):
            for rows in map(int, given.rows.split(",")):
                for epsilon in map(float, given.epsilon.split(",")):
                    tally = Tally()
                    study = study_of(of, algorithm, epsilon, questions, given.share)
                    tally.expected = expected(of, study, rows)
                    for run in range(given.runs):
                        seed = np.random.default_rng([given.seed, run, rows, int(10 * epsilon)]).bytes(16)
                        one_run(of, questions, study, rows, seed, tally, truth, given.replicates)
                    width = f"{np.median(tally.widths):.2f}" if tally.widths else "-"
                    width += f" / {np.median(tally.as_foretold):.2f}" if tally.as_foretold else ""
                    print(
                        f"| {table} | {algorithm} | {rows:,} | {epsilon:g} | {given.runs} "
                        f"| {tally.share('measured')} ({tally.asked.get('measured', 0)}) "
                        f"| {tally.share('bins')} ({tally.asked.get('bins', 0)}) | {tally.asked.get('none', 0)} "
                        f"| {tally.share('table')} | {tally.share('replicas')} | {tally.share('rows')} | {width} |",
                        flush=True,
                    )
                    asked = tally.asked.get("measured", 0)
                    if asked:
                        share = tally.held["measured"] / asked
                        failed |= share < LEAST - 2 * math.sqrt(LEAST * (1 - LEAST) * DEPENDENT / asked)
                    if given.names:
                        for name, (held, number) in tally.by_name.items():
                            print(f"    {name}: {held} of {number}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
