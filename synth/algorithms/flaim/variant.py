"""What a member of the FLAIM family is. Standard library only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Cohorts
    from synth.algorithms.flaim.plan import FlaimPlan
    from synth.algorithms.flaim.questions import Asked

Skew = Literal["none", "columns"]
"""What is taken off a client's distance before it chooses: nothing, or how far its single columns are from
the model's."""


class Exposure(ABC):
    """What a variant opens as it is for clients to compare with: no budget covers it, and it protects nothing
    (research)."""

    @abstractmethod
    def references(
        self,
        plan: FlaimPlan,
        cohorts: Cohorts,
        candidates: Sequence[Clique],
        opened: dict[Clique, NDArray[np.int64]],
    ) -> bytes:
        """What clients are sent with these candidates. opened: what is open already; the rest is asked for
        and added."""

    @abstractmethod
    def scores(
        self,
        plan: FlaimPlan,
        asked: Asked,
        counts: Mapping[Clique, NDArray[np.int64]],
        l1: Mapping[Clique, int],
        scale: int,
        as_own: Callable[[Sequence[NDArray[np.float64]]], list[NDArray[np.int64]]],
    ) -> list[int]:
        """Of a client, for each candidate: scale times what it chooses by. counts: its own. l1: their
        distance to the model's. as_own: shares of all rows as counts of as many rows as the client has.
        Raises `ProtocolAborted`."""


@dataclass(frozen=True)
class Variant:
    """One member of the family.

    rank: its place where variants are listed. skew: see `Skew`. chooses: whether clients choose. draws:
    whether a public marginal is drawn in each round. columns: whether every cohort is asked for its one-way
    marginals, and not only the first. registration: share of the budget for everybody's one-way marginals,
    asked once. size: share for the client's noisy number of rows. once: one participation at most. union:
    whether everybody's counts are measured together, without cohorts. exposes: what it opens that nothing
    protects.
    """

    name: str
    title: str
    rank: int
    skew: Skew = "none"
    chooses: bool = True
    draws: bool = False
    columns: bool = False
    registration: Fraction = Fraction(0)
    size: Fraction = Fraction(1, 20)
    once: bool = False
    union: bool = False
    exposes: Exposure | None = None

    @property
    def private(self) -> bool:
        """Whether what is released is private."""
        return self.exposes is None

    @property
    def starts_with_columns(self) -> bool:
        """Whether the first cohort is asked for its one-way marginals."""
        return not self.registration

    @property
    def in_rounds(self) -> bool:
        """Whether there is anything to ask after the first cohort's columns."""
        return self.chooses or self.draws

    @property
    def offers_columns(self) -> bool:
        """Whether single columns are candidates."""
        return self.skew != "columns"

    @property
    def movement(self) -> int:
        """How much one row can move a client's distance: each term of it by one."""
        return 1 if self.skew == "none" and self.exposes is None else 2

    def releases(self, participations: int, columns: int) -> int:
        """Noisy sums of sensitivity one that hold a record, at most; one batch of one shot counts as one."""
        if self.union:
            return 1
        chosen = participations * (self.chooses or self.draws)
        if self.columns:
            return chosen + participations * columns
        return chosen + columns * self.starts_with_columns
