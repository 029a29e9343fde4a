"""What belongs to children, folded, against people whose law is known: `docs/design/linked.md` 4 has the
figures.

    python -m tests.acceptance.linked_drugs [--rows 5000 20000] [--epsilon 1] [--seeds 2]

The people and visits of `tests.acceptance.linked`, and 0 to 3 drugs a visit, whose number and law follow its
diagnosis; a drug is that of the one before with probability 0.4. L1 distances (0 to 2) of tables that were
made from the real ones | of the product of the real shares of each column. In the clear, in this process: a
simulation on invented people.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from runner.api.running import run_study
from runner.study import Study
from tests.acceptance.linked import MOST, PARTIES, PEOPLE, VISITS, codes, distance, population, shares
from tests.acceptance.linked_panels import independent

DRUGS = 6


def drugs_of(visits: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """vid, drug; visits stand in the order of their vid, from 0."""
    law = np.random.default_rng(8).dirichlet(np.ones(DRUGS) * 0.4, size=10)
    many = np.random.default_rng(9).dirichlet(np.ones(4), size=10)
    diag = visits.diag.to_numpy()
    number = (many[diag].cumsum(1) < rng.random(len(visits))[:, None]).sum(1).clip(0, 3)
    vid = np.repeat(np.arange(len(visits)), number)
    drug = (law[diag[vid]].cumsum(1) < rng.random(len(vid))[:, None]).sum(1).clip(0, DRUGS - 1)
    again = np.r_[False, (vid[1:] == vid[:-1]) & (rng.random(len(vid) - 1) < 0.4)]
    for row in np.flatnonzero(again):
        drug[row] = drug[row - 1]
    return pd.DataFrame({"vid": vid, "drug": drug})


def repeats(drugs: pd.DataFrame) -> float:
    """The share of drugs that are that of the one before in the visit."""
    before = drugs.groupby("vid").drug.shift()
    return float((before == drugs.drug)[before.notna()].mean())


def errors(people: int, epsilon: float, seed: int) -> dict[str, tuple[float, float]]:
    """Of one run: made, and independent."""
    rng = np.random.default_rng(seed)
    persons, visits = population(people, rng)
    visits = visits.assign(vid=np.arange(len(visits)))
    drugs = drugs_of(visits, rng)
    tables = {
        "visits": {
            "parent": "people",
            "key": "pid",
            "max_rows": MOST,
            "order": "at",
            "columns": codes(VISITS),
        },
        "drugs": {"parent": "visits", "key": "vid", "max_rows": 3, "columns": codes({"drug": DRUGS})},
    }
    study = Study.of(
        "drugs", codes(PEOPLE), PARTIES, epsilon=epsilon, delta=1e-6, backend="ideal", algorithm="mosaic", table=tables,
    )  # fmt: skip
    data = {}
    for number, party in enumerate(PARTIES):
        own = visits[visits.pid % 3 == number]
        data[party] = {
            "people": persons[persons.pid % 3 == number].drop(columns="count").astype(str),
            "visits": own.astype(str),
            "drugs": drugs[drugs.vid.isin(own.vid)].astype(str),
        }
    with tempfile.TemporaryDirectory() as folder:
        run = run_study(study, data=data, out=Path(folder) / "out", replace=True)
        made = [pd.read_csv(run.directory / f"{name}.csv") for name in ("people", "visits", "drugs")]
    real, ours = (
        three[2].merge(three[1], on="vid").merge(three[0], on="pid")
        for three in ((persons, visits, drugs), made)
    )
    found = {}
    for columns in (["diag", "drug"], ["age", "drug"], ["dep", "drug"]):
        product = independent(shares(real, columns[:1]), shares(real, columns[1:]), columns)
        truth = shares(real, columns)
        found[" x ".join(columns)] = distance(truth, shares(ours, columns)), distance(truth, product)
    numbers = [
        own.assign(many=own.vid.map(theirs.groupby("vid").size()).fillna(0).astype(int))
        for own, theirs in ((visits, drugs), (made[1], made[2]))
    ]
    columns = ["diag", "many"]
    truth = shares(numbers[0], columns)
    product = independent(shares(numbers[0], columns[:1]), shares(numbers[0], columns[1:]), columns)
    found["diag x number of drugs"] = distance(truth, shares(numbers[1], columns)), distance(truth, product)
    alone = float((shares(drugs, ["drug"]) ** 2).sum())
    found["repeats, off by"] = abs(repeats(drugs) - repeats(made[2])), abs(repeats(drugs) - alone)
    return found


def main() -> int:
    """Print a table for each setting."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.linked_drugs", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 20000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    for people in asked.rows:
        for epsilon in asked.epsilon:
            each = [errors(people, epsilon, seed) for seed in range(asked.seeds)]
            print(f"n {people:,} epsilon {epsilon:g}: made | independent; {asked.seeds} seeds")
            for name in each[0]:
                print(
                    f"  {name:24s} "
                    + " | ".join(f"{np.mean([one[name][j] for one in each]):.3f}" for j in range(2))
                )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
