"""How often the intervals of `infer` hold the truth, beside those of who reads a table as if it were real.

    python -m tests.acceptance.coverage --data DIR [--tables adult,eight,nltcs,acs,law] [--algorithms mosaic,aim]
        [--rows 1000,10000] [--epsilon 0.3,1,3] [--runs 40] [--seed 1] [--share 0.2] [--replicates 20]
        [--record FILE] [--seconds 500]

Each run draws so many rows from a population (adult, eight: five and eight columns of adult-vfl.csv, nltcs,
acs: all columns of these, with replacement; law: a law written in `coverage_populations.py`, whose truth is
exact), makes a release of them in the clear with seeded noise, and asks. --share: the questions are
registered, for so much of the budget. Of each cell:

    infer     the share of 95 % intervals that hold the population's value: of answers whose columns were measured together at
              full resolution, of those over bins, and how many had none
    table     the synthetic table read as real rows; rows: the real rows themselves; of the same measured answers
    replicas  of the same answers: the released table with the error that so many replicates tell (--replicates)
    width     the median of the interval's width as a multiple of the real rows'; of registered questions after a stroke as a
              multiple of what `plan` foretells on rows of the population

--record: a campaign in pieces. Each run is appended to FILE, and those that are there are not made again;
--seconds: no run begins after so many CPU seconds, and the table holds what there is.

Ends 1 if a cell's measured answers are held in fewer than 92 % by more than two binomial errors (of a quarter
as many, for answers of one run go together). DIR holds the public tables that the papers we compare with have
used.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from runner.api.conditions import allowed
from runner.forecast.intervals import foretold
from runner.party.synthesis import plan_of
from runner.study import Study
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.domain import Domain
from synth.inference import Answer, infer
from synth.inference.estimands import Estimand, estimands
from synth.inference.language import parse
from synth.inference.licence import Unanswerable
from synth.inference.moments import Moment, Moments
from synth.inference.replicates import Replicates
from synth.judgement.metrics import marginal
from synth.synthesis import Synthesis
from tests.acceptance.coverage_populations import QUESTIONS, Population, population

DELTA, LEVEL, Z = 1e-5, 0.95, 1.959964
LEAST, DEPENDENT = 0.92, 4


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


def release(
    of: Population,
    rows: NDArray[np.int64],
    study: Study,
    seed: bytes,
    oracle_of: Callable[..., IdealOracle] = IdealOracle,
) -> Synthesis:
    """A run in the clear, with seeded noise."""
    chosen, domain = ALGORITHMS[study.algorithm], of.domain
    owners = {name: party.name for party in study.parties for name in party.columns or ()}
    plan = plan_of(study).knowing(owners)
    rng = np.random.default_rng(list(seed))
    oracle = oracle_of(
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
    """The halves of the intervals of registered questions, as `plan` foretells them on rows of the
    population."""
    drawn = of.draw(100_000, np.random.default_rng(0))
    plan = plan_of(study)
    return {one.name: one.half for one in foretold(study, plan, rows, drawn) if one.half is not None}


@dataclass(frozen=True)
class Asked:
    """One number of one run. licence: "none" without an interval. held: whether its interval, the table, the
    real rows and the replicates, as far as there are these, hold the population's. width: by that of the real
    rows; foretold: by what `plan` says.
    """

    name: str
    licence: str
    held: Mapping[str, bool] = field(default_factory=dict)
    width: float | None = None
    foretold: float | None = None


@dataclass(frozen=True)
class Cell:
    """What runs of one kind have in common."""

    table: str
    algorithm: str
    rows: int
    epsilon: float
    share: float

    def seed(self, campaign: int, run: int) -> bytes:
        """Of one run."""
        return np.random.default_rng([campaign, run, self.rows, int(10 * self.epsilon)]).bytes(16)


class Tally:
    """Of one cell: intervals that held, and that there were; widths."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.held: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        self.by_name: dict[str, list[int]] = {}
        measured = [one for one in asked if one.licence == "measured"]
        for one in asked:
            if one.licence != "measured":
                self._add(one.licence, one.held.get("infer", False))
        for one in measured:
            for kind, held in one.held.items():
                self._add("measured" if kind == "infer" else kind, held)
            counts = self.by_name.setdefault(one.name, [0, 0])
            counts[0] += one.held["infer"]
            counts[1] += 1
        self.widths = [one.width for one in measured if one.width is not None]
        self.as_foretold = [one.foretold for one in measured if one.foretold is not None]

    def _add(self, kind: str, held: bool) -> None:
        self.held[kind] = self.held.get(kind, 0) + held
        self.asked[kind] = self.asked.get(kind, 0) + 1

    def share(self, kind: str) -> str:
        """For the table."""
        asked = self.asked.get(kind, 0)
        return f"{self.held.get(kind, 0) / asked:.3f}" if asked else "-"

    def falls_short(self) -> bool:
        """By more than chance."""
        asked = self.asked.get("measured", 0)
        bar = LEAST - 2 * math.sqrt(LEAST * (1 - LEAST) * DEPENDENT / asked) if asked else 0.0
        return asked > 0 and self.held["measured"] / asked < bar

    def line(self, cell: Cell, runs: int) -> str:
        """Of the table."""
        width = f"{np.median(self.widths):.2f}" if self.widths else "-"
        width += f" / {np.median(self.as_foretold):.2f}" if self.as_foretold else ""
        registered = f" ({cell.share:g} registered)" if cell.share else ""
        return (
            f"| {cell.table} | {cell.algorithm}{registered} | {cell.rows:,} | {cell.epsilon:g} | {runs} "
            f"| {self.share('measured')} ({self.asked.get('measured', 0)}) "
            f"| {self.share('over bins')} ({self.asked.get('over bins', 0)}) | {self.asked.get('none', 0)} "
            f"| {self.share('table')} | {self.share('replicas')} | {self.share('rows')} | {width} |"
        )


def one_run(
    of: Population,
    questions: Sequence[str],
    study: Study,
    rows: int,
    seed: bytes,
    truth: Mapping[str, float],
    replicates: int,
    halves: Mapping[str, float],
) -> list[Asked]:
    """Draw, release, ask. halves: of the intervals, as foretold."""
    rng = np.random.default_rng([*seed, 1])
    real = of.draw(rows, rng)
    synthesis = release(of, real, study, seed)
    facts: dict[str, Any] = {"privacy": {"events": []}}
    answers = infer(
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
    return [
        _asked(answer, truth.get(answer.name, math.nan), beside, halves.get(answer.name))
        for answer in answers
    ]


def by_replicates(
    domain: Domain,
    synthesis: Synthesis,
    questions: Sequence[str],
    number: int,
    table: NDArray[np.int64],
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Of each number its value in the released table, and an error that makes value +- Z error the interval
    of the replicates."""
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


def _asked(
    answer: Answer, truth: float, beside: Mapping[str, Mapping[str, tuple[float, float]]], half: float | None
) -> Asked:
    if answer.low is None or answer.high is None:
        return Asked(answer.name, "none")
    held, width, foretold = {"infer": answer.low <= truth <= answer.high}, answer.high - answer.low, None
    if answer.licence != "measured":
        return Asked(answer.name, "over bins", held)
    for kind, answers in beside.items():
        if answer.name in answers:
            value, error = answers[answer.name]
            held[kind] = abs(value - truth) <= Z * error
    if half:
        foretold = width / 2 / half
    error = beside["rows"].get(answer.name, (0.0, 0.0))[1]
    return Asked(answer.name, "measured", held, width / (2 * Z * error) if error > 0 else None, foretold)


class Record:
    """Runs by cell, in a file of one JSON object a line; without a file, in memory."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.runs: dict[Cell, dict[int, list[Asked]]] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                of = json.loads(line)
                asked = [Asked(**one) for one in of["asked"]]
                self.runs.setdefault(Cell(**of["cell"]), {})[of["run"]] = asked

    def add(self, cell: Cell, run: int, asked: list[Asked]) -> None:
        """One run."""
        self.runs.setdefault(cell, {})[run] = asked
        if self._file is not None:
            line = {"cell": asdict(cell), "run": run, "asked": [asdict(one) for one in asked]}
            with self._file.open("a") as out:
                out.write(json.dumps(line) + "\n")

    def asked(self, cell: Cell, runs: int) -> list[list[Asked]]:
        """Of the first so many runs, those that there are."""
        return [asked for run, asked in self.runs.get(cell, {}).items() if run < runs]


def fill(record: Record, cell: Cell, given: argparse.Namespace) -> None:
    """Make the runs of a cell that its record lacks, until the time is over."""
    missing = [run for run in range(given.runs) if run not in record.runs.get(cell, {})]
    if not missing or time.process_time() > given.seconds:
        return
    of, questions = population(cell.table, given.data), QUESTIONS[cell.table]
    truth = {e.name: e.scalar.value for e, _ in Rows(of.domain, of.cells, of.weights).ask(questions)}
    study = study_of(of, cell.algorithm, cell.epsilon, questions, cell.share)
    halves = expected(of, study, cell.rows)
    for run in missing:
        if time.process_time() > given.seconds:
            return
        seed = cell.seed(given.seed, run)
        record.add(cell, run, one_run(of, questions, study, cell.rows, seed, truth, given.replicates, halves))


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
    parser.add_argument("--record", type=Path)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--names", action="store_true", help="coverage of each question, too")
    given = parser.parse_args()
    print(
        "| table | algorithm | rows | epsilon | runs | measured (of) | over bins (of) | none | table | replicas | real rows "
        "| width |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    record, failed = Record(given.record), False
    for table, algorithm, rows, epsilon in itertools.product(
        given.tables.split(","),
        given.algorithms.split(","),
        map(int, given.rows.split(",")),
        map(float, given.epsilon.split(",")),
    ):
        cell = Cell(table, algorithm, rows, epsilon, given.share)
        fill(record, cell, given)
        runs = record.asked(cell, given.runs)
        if not runs:
            continue
        tally = Tally([one for run in runs for one in run])
        failed |= tally.falls_short()
        print(tally.line(cell, len(runs)), flush=True)
        if given.names:
            for name, (held, number) in tally.by_name.items():
                print(f"    {name}: {held} of {number}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
