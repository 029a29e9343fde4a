"""The populations of `coverage`, each with what is asked of its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synth.domain import Codes, Domain

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
    """x of 8 ordered values, g of 2, h of 4 of which the last is rare, y by a logistic law of x and g; w
    follows h."""
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
