"""The FLAIM family: what each variant asks of a client, and what that is charged (`docs/design/flaim.md` 2).

With d columns, at most R participations of a client and one choice in each, the noisy sums that hold a record are

    naive, oracle  R + d    the first cohort's one-way marginals, and one chosen marginal each time
    private    R (1 + d)    one-way marginals and a chosen one each time; the start asks for no others
    random         R + d    nobody chooses: one public marginal a round
    bayes          d        one cohort, one-way marginals only
    light          1        one participation; everybody's one-way marginals have a share of the budget of their own
    one-shot       -        no cohorts: one batch of columns and pairs of everybody, each with noise of its own (`one_shot`)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

Skew = Literal["none", "columns", "truth"]
"""What is taken off a client's distance before it chooses: nothing, how far its single columns are from the model's, or how
far its own marginal is from the true one of everybody, which nobody may know."""


@dataclass(frozen=True)
class Variant:
    """One member of the family.

    skew: see `Skew`. chooses: whether clients choose. drawn: whether a public marginal is drawn in each round. columns: whether
    every cohort is asked for its one-way marginals, and not only the first. registration: share of the budget for everybody's
    one-way marginals, asked once. size: share for the client's noisy number of rows. once: one participation at most. union:
    whether everybody's counts are measured together, without cohorts. private: whether what is released is private.
    """

    name: str
    title: str
    skew: Skew = "none"
    chooses: bool = True
    drawn: bool = False
    columns: bool = False
    registration: Fraction = Fraction(0)
    size: Fraction = Fraction(1, 20)
    once: bool = False
    union: bool = False
    private: bool = True

    @property
    def starts_with_columns(self) -> bool:
        """Whether the first cohort is asked for its one-way marginals."""
        return not self.registration

    @property
    def in_rounds(self) -> bool:
        """Whether there is anything to ask after the first cohort's columns."""
        return self.chooses or self.drawn

    @property
    def offers_columns(self) -> bool:
        """Whether single columns are candidates."""
        return self.skew != "columns"

    @property
    def movement(self) -> int:
        """How much one row can move a client's distance: each term of it by one."""
        return 1 if self.skew == "none" else 2

    def releases(self, participations: int, columns: int) -> int:
        """Noisy sums of sensitivity one that hold a record, at most; one batch of one shot counts as one."""
        if self.union:
            return 1
        chosen = participations * (self.chooses or self.drawn)
        if self.columns:
            return chosen + participations * columns
        return chosen + columns * self.starts_with_columns


VARIANTS: Final[Mapping[str, Variant]] = {
    variant.name: variant
    for variant in (
        Variant("private", "AugFLAIM (Private)", skew="columns", columns=True),
        Variant("light", "FLAIM-light", skew="columns", registration=Fraction(3, 10), once=True),
        Variant("naive", "NaiveFLAIM"),
        Variant("oracle", "AugFLAIM (Oracle)", skew="truth", private=False),
        Variant("random", "FLAIM (Random)", chooses=False, drawn=True),
        Variant("bayes", "FedNaiveBayes", chooses=False, size=Fraction(0), once=True),
        Variant("one-shot", "one shot", chooses=False, size=Fraction(0), once=True, union=True),
    )
}
