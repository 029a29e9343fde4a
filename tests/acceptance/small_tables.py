"""Small tables: what each algorithm keeps of them, beside independent columns bought with the whole budget.

    python -m tests.acceptance.small_tables [--data DIR] [--tables diabetes,compas,adult-vfl,nltcs] [--rows 300,600,1500,5000]
        [--epsilon .5,1,2,3] [--algorithms mosaic,aim,mst,mwem,privmrf] [--modes pairs,label]
        [--runs 20] [--permuted] [--plain] [--processes 1] [--json FILE]
    python -m tests.acceptance.small_tables --strong      six columns that depend strongly, 6,000 rows, all triples

`diabetes` and `compas` are drawn from laws written here, which resemble two well-known tables: nine columns
and a label that one column (glucose) predicts well, or that none does. Others are NAME.csv with
NAME-domain.json of --data, as of `bench utility`; without it they are left out, and that is said. --permuted:
the same columns, each shuffled, so that nothing depends on anything. --plain: every algorithm without its
rule for small tables, as if the table were large. Noise is seeded: a simulation on public data.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from runner.bench.utility import tables
from synth.algorithm import ALGORITHMS
from synth.algorithms.aim import loop as aim_loop
from synth.algorithms.mosaic import loop as mosaic_loop
from synth.algorithms.mst import loop as mst_loop
from synth.algorithms.mwem import loop as mwem_loop
from synth.algorithms.privmrf import loop as privmrf_loop
from synth.budget.accounting import Accountant, Budget
from synth.budget.charges import Charges
from synth.domain import Codes, Domain
from synth.judgement.metrics import marginal
from synth.judgement.metrics.prediction import auc
from synth.judgement.relations import relations
from synth.mrf import Measurement, fit
from synth.workload import Workload

Table = NDArray[np.int64]
Rng = np.random.Generator
DELTA, TEST_ROWS = 1e-6, 4000
INDEPENDENT = "independent"
LOOPS = (aim_loop, mosaic_loop, mst_loop, mwem_loop, privmrf_loop)
STRONG = ("mix", "chain", "hub", "apart", "functional", "levels")


@dataclass(frozen=True)
class Case:
    """A table: rows to be synthesised, others kept apart, and the label, if it has a binary one."""

    name: str
    domain: Domain
    rows: Table
    test: Table
    label: str | None


def diabetes(rng: Rng, rows: int) -> tuple[dict[str, int], Table]:
    """Nine columns; the last one, yes or no, is well predicted by the second."""
    beside_label = (0.30, 0.68, 0.22, 0.33, 0.42, 0.44, 0.24, 0.34)
    others = {
        (0, 7): 0.54,
        (1, 4): 0.58,
        (3, 5): 0.6,
        (2, 7): 0.33,
        (1, 7): 0.27,
        (1, 5): 0.22,
        (2, 5): 0.28,
        (1, 2): 0.2,
    }
    others |= {(4, 5): 0.22, (1, 3): 0.2, (0, 2): 0.2, **{(i, 8): r for i, r in enumerate(beside_label)}}
    sizes = dict(
        zip(
            ["pregnancies", "glucose", "pressure", "skin", "insulin", "bmi", "pedigree", "age"],
            (18, 16, 12, 11, 11, 16, 12, 13),
            strict=True,
        )
    )
    z = _normal(rng, rows, 9, others)
    columns = []
    for place, size in enumerate(sizes.values()):
        skewed = (
            np.exp(0.8 * z[:, place]) / np.exp(0.8 * 2.4)
            if place in (0, 4, 6, 7)
            else (z[:, place] + 2.6) / 5.2
        )
        codes = np.clip((skewed * size).astype(int), 0, size - 1)
        if place in (3, 4):  # the last code says that it is missing
            codes = np.where(
                rng.random(rows) < (0.3 if place == 3 else 0.45), size - 1, np.minimum(codes, size - 2)
            )
        columns.append(codes)
    return {**sizes, "outcome": 2}, np.column_stack([*columns, z[:, 8] > 0.39]).astype(np.int64)


def compas(rng: Rng, rows: int) -> tuple[dict[str, int], Table]:
    """Nine columns; the last one, yes or no, depends a little on most of the others."""
    pairs = {
        (4, 8): 0.36,
        (1, 8): -0.26,
        (6, 8): 0.45,
        (0, 8): 0.12,
        (2, 8): -0.12,
        (3, 8): 0.2,
        (5, 8): -0.1,
        (7, 8): 0.22,
    }
    pairs |= {
        (4, 6): 0.5,
        (1, 6): -0.45,
        (2, 6): -0.3,
        (3, 6): 0.3,
        (1, 4): 0.1,
        (6, 7): 0.3,
        (4, 7): 0.3,
        (4, 5): -0.15,
    }
    pairs |= {(1, 3): -0.2, (2, 4): -0.2}
    z = _normal(rng, rows, 9, pairs)
    columns = [
        z[:, 0] > -0.87,
        np.clip(np.exp(0.4 * z[:, 1]) * 4, 0, 11),
        np.searchsorted([0.0, 0.4, 1.3, 2.0, 2.4], z[:, 2]),
        np.searchsorted([1.1, 1.7, 2.2], z[:, 3]),
        np.clip(np.exp(1.1 * z[:, 4]) * 1.6 - 0.6, 0, 15),
        z[:, 5] > 0.35,
        np.clip((z[:, 6] + 2) / 4 * 10, 0, 9),
        np.clip(np.exp(z[:, 7]) * 1.2, 0, 7),
        z[:, 8] > 0.1,
    ]
    sizes = dict(sex=2, age=12, race=6, juvenile=4, priors=16, degree=2, decile=10, jail=8, again=2)
    return sizes, np.column_stack([column.astype(np.int64) for column in columns])


def strong(kind: str, rng: Rng, rows: int) -> tuple[dict[str, int], Table]:
    """Six columns that depend strongly on each other."""
    sizes = (40, 30, 24, 16, 40, 20) if kind == "levels" else (8, 6, 5, 4, 8, 3)

    def noisy(codes: Table, size: int, share: float) -> Table:
        return np.where(rng.random(rows) < share, rng.integers(0, size, rows), codes % size)

    a = rng.integers(0, 8, rows)
    if kind == "mix":
        b = noisy(a, 6, 0.3)
        c, d = noisy(b, 5, 0.3), noisy(a, 4, 0.25)
        columns = [a, b, c, d, noisy(c + d, 8, 0.3), noisy(b, 3, 0.2)]
    elif kind == "chain":
        columns = list(
            itertools.accumulate(sizes[1:], lambda codes, size: noisy(codes, size, 0.2), initial=a)
        )
    elif kind == "hub":
        columns = [a, *(noisy(a, size, 0.25) for size in sizes[1:])]
    elif kind == "apart":
        c, e = rng.integers(0, 5, rows), rng.integers(0, 8, rows)
        columns = [a, noisy(a, 6, 0.15), c, noisy(c, 4, 0.15), e, noisy(e, 3, 0.15)]
    elif kind == "functional":
        b = rng.integers(0, 6, rows)
        columns = [a, b, (a + b) % 5, a % 4, a * b % 8, b % 3]
    else:
        u = rng.random(rows)
        columns = [
            np.clip(((u + rng.normal(0, 0.08, rows)) % 1 * size).astype(int), 0, size - 1) for size in sizes
        ]
    return {f"c{place}": size for place, size in enumerate(sizes)}, np.column_stack(columns).astype(np.int64)


def _normal(
    rng: Rng, rows: int, columns: int, correlations: dict[tuple[int, int], float]
) -> NDArray[np.float64]:
    matrix = np.eye(columns)
    for (i, j), r in correlations.items():
        matrix[i, j] = matrix[j, i] = r
    values, vectors = np.linalg.eigh(matrix)
    found: NDArray[np.float64] = (
        rng.standard_normal((rows, columns)) @ (vectors * np.sqrt(np.maximum(values, 1e-6))).T
    )
    return found


DRAWN: dict[str, Callable[[Rng, int], tuple[dict[str, int], Table]]] = {
    "diabetes": diabetes,
    "compas": compas,
}


@functools.lru_cache(maxsize=4)
def case(name: str, rows: int, data: Path | None, permuted: bool) -> Case | None:
    """A table of so many rows; None if it is in no folder that was named."""
    rng = np.random.default_rng([rows, len(name)])
    label: str | None = None
    if name in DRAWN or name in STRONG:
        sizes, codes = (
            DRAWN[name](rng, rows + TEST_ROWS) if name in DRAWN else strong(name, rng, rows + TEST_ROWS)
        )
        domain = Domain(tuple(sizes), tuple(Codes(size) for size in sizes.values()))
        label = domain.names[-1] if name in DRAWN else None
        used, test = codes[:rows], codes[rows:]
    else:
        table = None if data is None else tables.read(data, name)
        if table is None:
            return None
        domain, order = table.domain, rng.permutation(len(table.codes))
        used, test = table.codes[order[:rows]], table.codes[order[-TEST_ROWS:]]
        label = table.label or next(
            (column for column in reversed(domain.names) if domain.sizes[column] == 2), None
        )
    if permuted:
        used = np.column_stack([rng.permutation(column) for column in used.T])
    return Case(name, domain, used, test, label)


def one(algorithm: str, case: Case, epsilon: float, spec: dict[str, Any], seed: int) -> dict[str, float]:
    """One run's figures: total variation of pairs, columns, and the workload; AUC; whether no relation is
    kept."""
    rng = np.random.default_rng([seed, 20])
    domain, workload = case.domain, Workload.from_spec(spec, case.domain)
    facts = StudyFacts(domain.sizes, "add-remove", 1, 1 << 22, rng.bytes(32))

    def oracle(budget: Budget) -> IdealOracle:
        return IdealOracle(
            facts,
            lambda cliques: [marginal(case.rows, domain, c) for c in cliques],
            Accountant(budget),
            rng.bytes,
        )

    kept = 0
    if algorithm == INDEPENDENT:
        budget = Budget.of(epsilon, DELTA, Fraction(1, 2**40))
        columns, sigma2 = (
            [(name,) for name in domain.names],
            Charges("add-remove", 1).sigma2(budget.rho_cap / len(domain)),
        )
        asked = oracle(budget)
        values = asked.measure(asked.prepare(columns), sigma2)
        measured = [
            Measurement(c, v.astype(np.float64), float(sigma2)) for c, v in zip(columns, values, strict=True)
        ]
        model = fit(domain.sizes, measured, total=max(1.0, asked.noisy_total or 1.0))
        rows = max(1, round(model.total))
    else:
        chosen = ALGORITHMS[algorithm]
        plan = chosen.plan(
            domain, workload, chosen.config(), epsilon=epsilon, delta=DELTA, adjacency="add-remove"
        )
        plan = plan.knowing(dict.fromkeys(domain.names, "first"))
        got = chosen.run(oracle(plan.budget), plan, unobserved)
        model, rows = got.model, max(1, got.rows)
        kept = relations(model, got.measurements, domain.sizes, got.noise_share is not None).kept
    codes = model.sample(rows, rng, targets=workload.cliques)
    pairs = list(itertools.combinations(domain.names, 2))
    found = {
        "pairs": _distance(case.rows, codes, domain, pairs),
        "columns": _distance(case.rows, codes, domain, [(name,) for name in domain.names]),
        "workload_distance": _distance(case.rows, codes, domain, workload.cliques),
        "apart": float(kept == 0),
    }
    if case.label is not None:
        found["auc"] = auc(codes, case.test, domain, case.label)
    return found


def _distance(real: Table, made: Table, domain: Domain, cliques: Sequence[tuple[str, ...]]) -> float:
    return float(
        np.mean(
            [
                np.abs(marginal(real, domain, c) / len(real) - marginal(made, domain, c) / len(made)).sum()
                / 2
                for c in cliques
            ]
        )
    )


@dataclass(frozen=True)
class Cell:
    """A line of the table: runs of an algorithm on a case."""

    table: str
    rows: int
    epsilon: float
    workload: str
    algorithm: str
    runs: int
    permuted: bool
    is_plain: bool
    data: Path | None

    @property
    def case(self) -> Case:
        """Its table. Raises `LookupError` if --data has none of this name."""
        found = case(self.table, self.rows, self.data, self.permuted)
        if found is None:
            raise LookupError(f"No folder that was named has the table {self.table}.")
        return found

    @property
    def spec(self) -> dict[str, Any]:
        """What its workload asks."""
        if self.workload == "triples":
            return {"degree": 3}
        return {"degree": 2} | ({"label": self.case.label} if self.workload == "label" else {})


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The cells of the table; those without a label where one is asked for are left out."""
    names, sizes = (
        (STRONG, [6000]) if options.strong else (options.tables.split(","), _numbers(options.rows, int))
    )
    epsilons = _numbers("0.3,1,3" if options.strong else options.epsilon, float)
    modes = ["triples"] if options.strong else options.modes.split(",")
    algorithms = [*options.algorithms.split(","), INDEPENDENT]
    for name, rows in itertools.product(names, sizes):
        found = case(name, rows, options.data, options.permuted)
        if found is None:
            print(f"{name}: left out, for --data names no folder that has it")
            continue
        for epsilon, mode, algorithm in itertools.product(epsilons, modes, algorithms):
            if mode != "label" or found.label is not None:
                yield Cell(
                    name,
                    rows,
                    epsilon,
                    mode,
                    algorithm,
                    options.runs,
                    options.permuted,
                    options.plain,
                    options.data,
                )


def line(cell: Cell) -> dict[str, Any]:
    """A cell's means; of AUC also the standard deviation, the least, and that of a model of the real rows."""
    found = cell.case
    for loop in LOOPS if cell.is_plain else ():
        loop.NOISE_LIMIT = math.inf  # type: ignore[attr-defined]
    runs = [one(cell.algorithm, found, cell.epsilon, cell.spec, seed) for seed in range(cell.runs)]
    means: dict[str, Any] = {key: float(np.mean([of[key] for of in runs])) for key in runs[0]}
    if found.label is not None:
        curve = [of["auc"] for of in runs]
        means |= {"auc_sd": float(np.std(curve)), "auc_least": min(curve)}
        means["auc_real"] = auc(found.rows, found.test, found.domain, found.label)
    means["pairs_error"] = float(np.std([of["pairs"] for of in runs]) / max(1, cell.runs - 1) ** 0.5)
    named = {key: getattr(cell, key) for key in ("table", "rows", "epsilon", "workload", "algorithm", "runs")}
    return named | means


def shown(of: dict[str, Any]) -> str:
    """A line as it is printed."""
    curve = ""
    if "auc" in of:
        curve = f"{of['auc']:.3f} +- {of['auc_sd']:.3f} ({of['auc_least']:.2f} of {of['auc_real']:.2f})"
    return (
        f"{of['table']:10} {of['rows']:6} {of['epsilon']:4g} {of['workload']:8} {of['algorithm']:12} {curve:30} "
        f"{of['pairs']:.4f} {of['columns']:.4f} {of['workload_distance']:.4f} {of['apart']:.2f}"
    )


def lines(asked: Sequence[Cell], processes: int) -> Iterator[dict[str, Any]]:
    """The cells' lines in order, by so many processes."""
    if processes == 1:
        yield from map(line, asked)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(line, asked)


def _numbers(text: str, kind: Callable[[str], Any]) -> list[Any]:
    return [kind(part) for part in text.split(",")]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", default="diabetes,compas,adult-vfl,nltcs")
    parser.add_argument("--rows", default="300,600,1500,5000")
    parser.add_argument("--epsilon", default="0.5,1,2,3")
    parser.add_argument("--algorithms", default="mosaic")
    parser.add_argument("--modes", default="pairs,label")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--strong", action="store_true")
    parser.add_argument("--permuted", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        "table rows epsilon workload algorithm: AUC +- sd (least, of real rows) | pairs | columns | workload | share without "
        "relations"
    )
    for of in lines(list(cells(options)), options.processes):
        print(shown(of), flush=True)
        if options.json:
            with options.json.open("a", encoding="utf-8") as written:
                written.write(json.dumps(of) + "\n")


if __name__ == "__main__":
    main()
