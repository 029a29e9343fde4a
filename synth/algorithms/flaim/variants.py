"""The FLAIM family: what each variant asks of a client, and what that is charged (`docs/design/flaim.md` 2).

With d columns, at most R participations of a client and one choice in each, the noisy sums that hold a record
are

    naive, oracle  R + d    the first cohort's one-way marginals, and one chosen marginal each time
    private    R (1 + d)    one-way marginals and a chosen one each time; the start asks for no others
    random         R + d    nobody chooses: one public marginal a round
    bayes          d        one cohort, one-way marginals only
    light          1        one participation; everybody's one-way marginals have a share of the budget of their own
    one-shot       -        no cohorts: one batch of columns and pairs of everybody, each with noise of its own (`one_shot`)
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from mpc_protocols.registry import Registry
from synth.algorithms.flaim.variant import Variant

_FAMILY: Final = (
    Variant("private", "AugFLAIM (Private)", 0, skew="columns", columns=True),
    Variant("light", "FLAIM-light", 1, skew="columns", registration=Fraction(3, 10), once=True),
    Variant("naive", "NaiveFLAIM", 2),
    Variant("random", "FLAIM (Random)", 4, chooses=False, draws=True),
    Variant("bayes", "FedNaiveBayes", 5, chooses=False, size=Fraction(0), once=True),
    Variant("one-shot", "one shot", 6, chooses=False, size=Fraction(0), once=True, union=True),
)
_OF_RESEARCH: Registry[Variant] = Registry(
    "synth.algorithms.flaim", "variant", Variant, research="synth.research"
)
VARIANTS: Final[Mapping[str, Variant]] = {
    variant.name: variant for variant in sorted((*_FAMILY, *_OF_RESEARCH), key=lambda variant: variant.rank)
}
