"""One run of an algorithm on a table, by the ideal functionality, and what its table is worth.

err     mean L1 distance of the workload's normalised marginals, 0..2: the table against the rows it was made of
out3    the same of triples that are not in the workload        all2    of all pairs
auc     of a prediction of the label on real rows kept apart, trained on the table (where a table has a label)
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import StudyInvalid, UsageError
from mpc_protocols.functionality import MarginalOracle, StudyFacts, unobserved
from runner.bench.utility.exactness import Exactness, KnowingOracle
from runner.bench.utility.tables import Table
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant, Budget
from synth.budget.charges import Charges
from synth.judgement.metrics import marginal, workload_error
from synth.judgement.metrics.prediction import auc
from synth.mrf import Measurement, Model, fit

INDEPENDENT = "independent"
"""A row to compare with: every column by itself, measured with the whole budget."""
METRICS = ("err", "out3", "all2", "auc")


class Row(NamedTuple):
    """An algorithm with what its table of the study would say. text: as it was asked for.

    label: if the workload is one for prediction, the degree of its sets without the label.
    """

    text: str
    algorithm: str
    options: Mapping[str, Any]
    label: int | None = None

    @classmethod
    def parse(cls, text: str) -> Row:
        """Read NAME or NAME:KEY=VALUE:KEY=VALUE; label=DEGREE is a key of any. Raises `UsageError`."""
        name, *parts = text.split(":")
        if name not in (*ALGORITHMS.names, INDEPENDENT):
            raise UsageError(
                f"There is no algorithm {name!r}; there are {', '.join((*ALGORITHMS.names, INDEPENDENT))}."
            )
        options: dict[str, Any] = {}
        for part in parts:
            key, _, value = part.partition("=")
            options[key] = _value(value)
        label = options.pop("label", None)
        if label is not None and not (type(label) is int and label > 0):
            raise UsageError(f"{text} needs label=DEGREE: so many columns beside the label in each clique.")
        return cls(text, name, options, label)


def _value(text: str) -> Any:
    """A value as a study file would say it: a number, true, false, or a word."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


@dataclass(frozen=True)
class Result:
    """Figures of one run. cpu_s: of planning, asking and fitting; of drawing the table."""

    scores: Mapping[str, float]
    cpu_s: tuple[float, float]
    selected: int
    rho_share: float


def run(
    row: Row, table: Table, epsilon: float, delta: float, seed: int, exact: Exactness | None = None
) -> Result:
    """Plan, run, sample, score. seed: of the noise too; this is a simulation on public data. Raises what a
    plan raises.

    exact: leave out this noise, and score the model's own answers too (`model_err`).
    """
    rng = np.random.default_rng([seed, 20])
    began = time.process_time()
    plan, go = _planned(row, table, epsilon, delta)
    guard = Accountant(plan.budget)
    facts = StudyFacts(table.domain.sizes, "add-remove", 1, 1 << 22, rng.bytes(32))
    oracle: MarginalOracle = IdealOracle(
        facts, lambda cliques: [marginal(table.codes, table.domain, c) for c in cliques], guard, rng.bytes
    )
    if exact is not None:
        oracle = KnowingOracle(oracle, table.domain, table.codes, exact)
    synthesis = go(oracle, plan)
    asked = time.process_time()
    codes = synthesis.model.sample(max(1, synthesis.rows), rng, targets=table.workload.cliques)
    sampled = time.process_time()
    pairs = list(itertools.combinations(table.domain.names, 2))
    scores = {
        "err": workload_error(table.codes, codes, table.domain, table.workload.cliques),
        "all2": workload_error(table.codes, codes, table.domain, pairs),
    }
    if exact is not None:
        scores["model_err"] = _model_error(synthesis.model, table)
    if unseen := table.unseen:
        scores["out3"] = workload_error(table.codes, codes, table.domain, unseen)
    if table.label is not None and table.test is not None:
        scores["auc"] = auc(codes, table.test, table.domain, table.label)
    return Result(
        scores,
        (asked - began, sampled - asked),
        len(synthesis.selected),
        float(guard.rho / plan.budget.rho_cap),
    )


def _model_error(model: Model, table: Table) -> float:
    """`err` of the model's answers, before rows are drawn."""
    cliques = table.workload.cliques
    distances = [
        float(
            np.abs(
                answer / answer.sum() - marginal(table.codes, table.domain, clique) / len(table.codes)
            ).sum()
        )
        for clique, answer in zip(cliques, model.marginals(cliques), strict=True)
    ]
    return sum(distances) / len(distances)


class _Independent(NamedTuple):
    budget: Budget
    charges: Charges


class _Columns(NamedTuple):
    model: Model
    rows: int
    selected: tuple[()]


def _planned(row: Row, table: Table, epsilon: float, delta: float) -> tuple[Any, Any]:
    """(a plan, what runs it on an oracle)."""
    if row.algorithm == INDEPENDENT:
        charges = Charges("add-remove", 1)
        return _Independent(Budget.of(epsilon, delta, Fraction(1, 2**40)), charges), _independent
    algorithm = ALGORITHMS[row.algorithm]
    try:
        config = algorithm.config(**row.options)
    except TypeError:
        raise UsageError(f"[{row.algorithm}] does not know a key of {row.text!r}.") from None
    names = table.domain.names
    workload = table.workload if row.label is None else table.predicting(row.label)
    plan = algorithm.plan(
        table.domain, workload, config, epsilon=epsilon, delta=delta, adjacency="add-remove"
    ).knowing({name: "first" if 2 * place < len(names) else "second" for place, name in enumerate(names)})
    return plan, lambda oracle, plan: algorithm.run(oracle, plan, unobserved)


def _independent(oracle: MarginalOracle, plan: _Independent) -> _Columns:
    """All columns, each with the same share of the whole budget."""
    sizes = oracle.facts.sizes
    columns = [(name,) for name in sizes]
    sigma2 = plan.charges.sigma2(plan.budget.rho_cap / len(columns))
    values = oracle.measure(oracle.prepare(columns), sigma2)
    total = oracle.noisy_total
    if total is None:
        raise StudyInvalid("The oracle knows no total once columns have been measured.")
    measured = [
        Measurement(column, of.astype(np.float64), float(sigma2))
        for column, of in zip(columns, values, strict=True)
    ]
    return _Columns(fit(sizes, measured, total=max(1.0, total)), round(total), ())
