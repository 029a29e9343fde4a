"""A paper's tables and figures, as items that are rerun or are not, and when a figure of ours agrees with a
printed one.

A figure agrees if the printed one lies within TOLERANCE of our mean, or within two spreads of one run of ours
(a printed range: if any of it does). Data, splits and accounting often differ, so what does not agree has a
reason, which stands with its item; the rule is not made wider for it. Of curves that are printed without
figures, what the paper says in words is a claim, which holds of our means or does not; one error matches
another within TOLERANCE.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

TOLERANCE: Final = 0.1
"""Share of the printed figure."""
SPREADS: Final = 2.0
Verdict = Literal["agrees", "lower", "higher", "no figure printed"]


@dataclass(frozen=True)
class Settings:
    """How an item is rerun. data: a folder of tables. quick: one run, small grids. seeds: runs of each
    figure."""

    data: Path
    quick: bool = False
    seeds: int = 4


@dataclass(frozen=True)
class Figure:
    """One figure of a table or curve. ours: of each run. printed: the least and the most that the paper
    prints; None: none."""

    where: str
    ours: tuple[float, ...]
    printed: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.ours:
            raise ValueError(f"The figure {self.where} has no run.")

    @property
    def mean(self) -> float:
        """Of our runs."""
        return statistics.fmean(self.ours)

    @property
    def spread(self) -> float:
        """Standard deviation of one run of ours; 0 of a single run."""
        return statistics.stdev(self.ours) if len(self.ours) > 1 else 0.0

    @property
    def verdict(self) -> Verdict:
        """Whether ours agrees with the printed one, or on which side it lies."""
        if self.printed is None:
            return "no figure printed"
        low, high = self.printed
        near = max(TOLERANCE * abs(low), TOLERANCE * abs(high), SPREADS * self.spread)
        if low - near <= self.mean <= high + near:
            return "agrees"
        return "lower" if self.mean < low else "higher"


Means = Mapping[str, float]
"""Of our figures, by where they stand."""


def matches(ours: float, other: float) -> bool:
    """Whether the one error is as low as the other, but for TOLERANCE."""
    return ours <= other * (1 + TOLERANCE)


@dataclass(frozen=True)
class Claim:
    """What the paper says of a curve in words. holds: of our means; `KeyError` where one is lacking."""

    text: str
    holds: Callable[[Means], bool]

    def verdict(self, figures: Sequence[Figure]) -> str:
        """Whether it holds here."""
        try:
            return "holds" if self.holds({each.where: each.mean for each in figures}) else "does not hold"
        except KeyError:
            return "not looked at: figures are lacking"


@dataclass(frozen=True)
class Item:
    """One table or figure. label: as the paper calls it. what: it shows. figures: rerun it; None if it cannot
    be. remark: what is not as in the paper; of one that cannot be rerun, why. slow: left out with --quick.
    claims: of a curve."""

    label: str
    what: str
    remark: str
    figures: Callable[[Settings], Iterator[Figure]] | None = None
    slow: bool = False
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Paper:
    """name: on the command line. source: of the figures (`docs/design/sources.md`)."""

    name: str
    source: str
    items: Sequence[Item] = ()

    def only(self, label: str) -> Paper:
        """With the items alone whose labels contain this."""
        return replace(self, items=tuple(item for item in self.items if label in item.label))


def number(printed: float) -> tuple[float, float]:
    """A single printed figure."""
    return printed, printed
