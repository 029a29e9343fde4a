"""What is told to users instead of FLORIST: a differentially private table of what two owners have in common,
any model on it.

    python -m tests.acceptance.table_instead --runs 2                   Adult, income; aim and vertimrf, epsilon 1, 25 % overlap
    python -m tests.acceptance.table_instead --systems aim:rounds=adaptive --share 0.9

A tenth of the rows is kept apart to judge by. Of the others each owner holds a share (0.5: 25 % are held by
both), and the table is made of those that both hold: replace, delta 1e-6, sets of three columns with the
label. Printed: AUC of gradient boosting (scikit-learn, which the environment lacks: `pip install
scikit-learn`; without it, left out) and of the logistic regression of `bench utility`, trained on the table,
and on the real rows that both hold. Figures, not a test; the bar is 0.875 at epsilon 1.

The table is adult-vfl.csv with adult-vfl-domain.json in the folder `DATA`, not shipped: without it this says
so and ends with 0.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from runner.bench.utility.runs import Row
from runner.bench.utility.tables import Table, read
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.judgement.metrics import marginal
from synth.judgement.metrics.prediction import auc
from synth.workload import Workload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LABEL = "income"
BAR = 0.875


def synthetic(text: str, table: Table, epsilon: float) -> NDArray[np.int64]:
    """Rows of one run of a system, on the ideal functionality."""
    row, rng = Row.parse(text), np.random.default_rng()
    algorithm, names = ALGORITHMS[row.algorithm], table.domain.names
    workload = Workload.from_spec({"degree": 2, "label": LABEL}, table.domain)
    plan = algorithm.plan(
        table.domain,
        workload,
        algorithm.config(**row.options),
        epsilon=epsilon,
        delta=1e-6,
        adjacency="replace",
    ).knowing({name: "first" if 2 * place < len(names) else "second" for place, name in enumerate(names)})
    facts = StudyFacts(table.domain.sizes, "replace", 1, 1 << 16, rng.bytes(32))
    oracle = IdealOracle(
        facts,
        lambda cliques: [marginal(table.codes, table.domain, clique) for clique in cliques],
        Accountant(plan.budget),
    )
    made = algorithm.run(oracle, plan, unobserved)
    return np.asarray(made.model.sample(max(1, made.rows), rng, targets=workload.cliques), np.int64)


def boosted(rows: NDArray[np.int64], test: NDArray[np.int64], place: int) -> float | None:
    """AUC of gradient boosting; None without scikit-learn."""
    if importlib.util.find_spec("sklearn") is None:
        return None
    ensemble, metrics = (importlib.import_module(f"sklearn.{name}") for name in ("ensemble", "metrics"))
    model = ensemble.HistGradientBoostingClassifier(random_state=0)
    model.fit(np.delete(rows, place, axis=1), rows[:, place])
    scores = model.predict_proba(np.delete(test, place, axis=1))[:, 1]
    return float(metrics.roc_auc_score(test[:, place], scores))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", default="aim:rounds=adaptive,vertimrf")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.5, help="of the rows, at each owner")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    whole = read(DATA, "adult-vfl") if DATA.is_dir() else None
    if whole is None:
        print(f"{DATA} does not hold adult-vfl: nothing to do")
        return
    place = whole.domain.names.index(LABEL)
    found: dict[str, list[tuple[float | None, float]]] = {}
    for seed in range(options.runs):
        rng = np.random.default_rng([seed, 31])
        codes = whole.codes[rng.permutation(len(whole.codes))]
        test, rest = codes[: len(codes) // 10], codes[len(codes) // 10 :]
        both = (rng.random((2, len(rest))) < options.share).all(axis=0)
        table = replace(whole, codes=rest[both])
        for name in ("real rows", *options.systems.split(",")):
            rows = table.codes if name == "real rows" else synthetic(name, table, options.epsilon)
            figures = boosted(rows, test, place), auc(rows, test, table.domain, LABEL)
            found.setdefault(name, []).append(figures)
            print(
                f"{seed + 1}: {name}, {both.sum():,} rows in common: boosting, regression {figures}",
                flush=True,
            )
    for name, runs in found.items():
        grown = [one for one, _ in runs if one is not None]
        told = f"boosting {statistics.mean(grown):.4f} (bar {BAR}), " if grown else ""
        print(f"{name}: {told}regression {statistics.mean(one for _, one in runs):.4f}")


if __name__ == "__main__":
    main()
