"""What a prior is worth, and what it costs where the data have changed: `docs/design/prior.md` has the
figures.

    python -m tests.acceptance.prior --data DIR [--cases halves,columns,one,mixed,table,year] [--seeds 0:10] [--epsilon 0.5]
        [--record FILE] [--seconds 500] [--table adult-vfl]

A table is split at random; the first part is last month's, the second this month's. Each run makes this
month's release in the clear with seeded noise, with and without the prior; the error is the mean L1 distance
of 64 marginals of three columns from this month's rows. Of each case:

    halves   nothing has changed; last month was released at epsilon 1
    columns  last month leans to low codes of the first and the last column
    one      last month the last column was independent of all others
    mixed    last month half of the columns had been dealt anew to two rows in five
    table    the first part is public: its rows are the prior
    year     twelve months, each on a twelfth of the rows and with the one before as prior: the twelfth's error, with the first
             month's table as "unchanged", and how many of its 95 % intervals (`infer`) hold the shares of all rows

--record: a campaign in pieces. Each run is appended to FILE, and those that are there are not made again;
--seconds: no run begins after so many CPU seconds, and the table holds what there is. Ends 1 if in a changed
case the prior costs more than 2 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from runner.api.conditions import allowed
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.config import MosaicConfig
from synth.budget.accounting import Accountant
from synth.domain import Codes, Domain
from synth.inference import infer
from synth.judgement.metrics import marginal
from synth.prior import Prior, PublicTable, Release, known_of
from synth.synthesis import Synthesis
from synth.workload import Workload

Rows = NDArray[np.int64]
CASES = ("halves", "columns", "one", "mixed", "table", "year")
WORKLOAD = {"degree": 3, "count": 64, "seed": 123}
MONTHS, FIRST_EPSILON, QUESTIONS = 12, 1.0, 30
CHANGED, MOST = ("columns", "one", "mixed"), 1.02


def release(
    rows: Rows, domain: Domain, epsilon: float, seed: list[int], prior: Prior | None = None
) -> Synthesis:
    """A run of mosaic in the clear, with seeded noise."""
    workload = Workload.from_spec(WORKLOAD, domain)
    plan = ALGORITHM.plan(
        domain, workload, MosaicConfig(), epsilon=epsilon, delta=1e-5, adjacency="add-remove"
    )
    rng = np.random.default_rng(seed)
    oracle = IdealOracle(
        StudyFacts(domain.sizes, "add-remove", 1, 1 << 20, rng.bytes(32)),
        lambda cliques: [marginal(rows, domain, clique) for clique in cliques],
        Accountant(plan.budget),
        rng.bytes,
    )
    return ALGORITHM.run(oracle, replace(plan, prior=prior), unobserved)


def prior_of(synthesis: Synthesis) -> Release:
    """What the next run has of it."""
    known = () if synthesis.prior is None else synthesis.prior.known
    model = synthesis.model
    return Release(tuple(model.sizes), model, known_of(synthesis.measurements, model.total, known))


def error(table: Rows, rows: Rows, domain: Domain) -> float:
    """Mean L1 distance of the workload's marginals."""
    cliques = Workload.from_spec(WORKLOAD, domain).cliques
    each = [marginal(table, domain, c) / len(table) - marginal(rows, domain, c) / len(rows) for c in cliques]
    return float(np.mean([np.abs(of).sum() for of in each]))


def parted(case: str, rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Last month's rows and this month's."""
    first = np.zeros(len(rows), np.bool_)
    first[rng.permutation(len(rows))[: len(rows) // 2]] = True
    if case == "columns":
        age, last = rows[:, 0], rows[:, -1]
        first = rng.random(len(rows)) < 1 / (1 + np.exp(0.08 * (age - age.mean()) + (last - last.mean())))
    before, now = rows[first].copy(), rows[~first]
    if case == "one":
        before[:, -1] = rng.permutation(before[:, -1])
    if case == "mixed":
        dealt = np.flatnonzero(rng.random(len(before)) < 0.4)
        block = rng.permutation(rows.shape[1])[: rows.shape[1] // 2]
        before[np.ix_(dealt, block)] = before[np.ix_(rng.permutation(dealt), block)]
    return before, now


def asked(rows: Rows, domain: Domain, rng: np.random.Generator) -> dict[str, float]:
    """Shares of cells of pairs that at least one row in twenty lies in, and what they are."""
    found: dict[str, float] = {}
    while len(found) < QUESTIONS:
        one, other = rng.choice(len(domain), 2, replace=False)
        row = rows[rng.integers(len(rows))]
        share = float(((rows[:, one] == row[one]) & (rows[:, other] == row[other])).mean())
        if share > 0.05:
            names = domain.names[one], domain.names[other]
            found[f"share(`{names[0]}` == {row[one]} & `{names[1]}` == {row[other]})"] = share
    return found


def year(rows: Rows, domain: Domain, epsilon: float, seed: int) -> dict[str, Any]:
    """Twelve months, each with the one before as its prior."""
    rng = np.random.default_rng([seed, 6])
    months = np.array_split(rows[rng.permutation(len(rows))], MONTHS)
    cliques = Workload.from_spec(WORKLOAD, domain).cliques
    made: list[Synthesis] = []
    for number, month in enumerate(months):
        made.append(release(month, domain, epsilon, [seed, number], prior_of(made[-1]) if made else None))
    last, alone = made[-1], release(months[-1], domain, epsilon, [seed, MONTHS])

    def score(synthesis: Synthesis) -> float:
        return error(synthesis.model.sample(len(rows), rng, targets=cliques), rows, domain)

    shares = asked(rows, domain, rng)
    answers = infer(
        list(shares),
        domain,
        last.model,
        last.measurements,
        {"privacy": {"events": []}},
        lambda name, value: allowed(domain, {name: value})[name],
    )
    given = [(a.low, shares[a.question], a.high) for a in answers if a.low is not None and a.high is not None]
    verdict = last.prior
    assert verdict is not None
    return {
        "unchanged": score(made[0]),
        "alone": score(alone),
        "with": score(last),
        "dropped": verdict.is_dropped,
        "drift": verdict.drift,
        "answers": len(given),
        "held": sum(low <= truth <= high for low, truth, high in given),
    }


def measured(case: str, rows: Rows, domain: Domain, epsilon: float, seed: int) -> dict[str, Any]:
    """One run of a case."""
    if case == "year":
        return year(rows, domain, epsilon, seed)
    rng = np.random.default_rng([seed, 5])
    before, now = parted(case, rows, rng)
    found: dict[str, Any] = {}

    def score(synthesis: Synthesis) -> float:
        cliques = Workload.from_spec(WORKLOAD, domain).cliques
        return error(synthesis.model.sample(len(now), rng, targets=cliques), now, domain)

    if case == "table":
        prior: Prior = PublicTable(domain.names, before, domain.sizes)
        found["unchanged"] = error(before, now, domain)
    else:
        earlier = release(before, domain, FIRST_EPSILON, [seed, 1])
        prior = prior_of(earlier)
        found["unchanged"] = score(earlier)
    found["alone"] = score(release(now, domain, epsilon, [seed, 2]))
    with_prior = release(now, domain, epsilon, [seed, 3], prior)
    found["with"] = score(with_prior)
    assert with_prior.prior is not None
    verdict = with_prior.prior
    found |= {"dropped": verdict.is_dropped, "drift": verdict.drift, "p": verdict.p_value}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="What a prior is worth.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--table", default="adult-vfl")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seeds", default="0:10")
    parser.add_argument("--epsilon", default="0.5")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    sizes = json.loads((given.data / f"{given.table}-domain.json").read_text())
    rows = pd.read_csv(given.data / f"{given.table}.csv")[list(sizes)].to_numpy(np.int64)
    domain = Domain(tuple(sizes), tuple(Codes(size) for size in sizes.values()))
    first, last = map(int, given.seeds.split(":"))
    record = {}
    if given.record is not None and given.record.exists():
        record = {line["key"]: line for line in map(json.loads, given.record.read_text().splitlines())}
    missed = False
    for case in given.cases.split(","):
        for epsilon in map(float, given.epsilon.split(",")):
            found = []
            for seed in range(first, last):
                key = f"{given.table} {case} {epsilon} {seed}"
                if key not in record and time.process_time() < given.seconds:
                    record[key] = {"key": key, **measured(case, rows, domain, epsilon, seed)}
                    if given.record is not None:
                        with given.record.open("a") as file:
                            file.write(json.dumps(record[key]) + "\n")
                if key in record:
                    found.append(record[key])
            if not found:
                continue
            mean = {
                name: float(np.mean([of[name] for of in found])) for name in ("unchanged", "alone", "with")
            }
            ratio = mean["with"] / mean["alone"]
            missed |= case in CHANGED and ratio > MOST
            dropped, drift = (
                sum(of["dropped"] for of in found),
                float(np.median([of["drift"] for of in found])),
            )
            asked_of = sum(of.get("answers", 0) for of in found)
            intervals = f"; intervals {sum(of['held'] for of in found)}/{asked_of}" if asked_of else ""
            print(
                f"{given.table:10} {case:8} eps {epsilon:4} {len(found):3} runs: unchanged {mean['unchanged']:.4f} alone "
                f"{mean['alone']:.4f} with prior {mean['with']:.4f} ({ratio:.3f}); dropped {dropped}, "
                f"drift {drift:.3f}{intervals}",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
