"""Never worse than simple: when a table is too small for its budget, columns by themselves are the better
model.

Problem: on few rows, or at a small epsilon, the noise of joint marginals is larger than what they could
teach, and an algorithm that measures some all the same has less budget left for the columns: on 300 rows of
Adult at epsilon 1, AIM and MST come out 30 and 40 % worse than independent columns bought with the whole
budget.

Rule: once the number of rows is known (with noise), an algorithm compares it with the noise of a typical
question. With c = sqrt(2/pi), sigma the noise at which a marginal costs a twentieth of the whole budget, and
n the cells of the question,

    noise share = c sigma n / noisy total

is about the mean L1 distance that measuring it would bring into the table. Above a limit the table is small,
and each joint marginal must be worth its price (`synth.budget.small.small_table`). Where what was bought shows no
dependence, or nothing could, all that is left of the budget goes to the one-column marginals; together with
those measured before, they are then about as exact as the whole budget could make them. All of it reads
public sizes and released values: post-processing.

The limits were set on tables of 300 to 30,000 rows (`docs/design/judgement.md` 2): above them the rule for
small tables makes a better table than the algorithm as it was published, or one as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from synth.budget.charges import mean_noise

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.plan import Plan

SHARE = Fraction(1, 20)
"""Of the budget, for a typical question."""
MIN_TRIAL, MIN_COLUMNS = Fraction(1, 50), Fraction(1, 20)
"""Of the budget: the least that a small table's first joint marginals, and another measurement of its
columns, get (`synth.budget.small.small_table`)."""
TRIAL_ROUNDS = 2
"""Of an algorithm that buys one marginal at a time, before it is decided whether to go on."""
TRIAL_SELECTING = Fraction(1, 10)
"""Of the price of such a round."""
MAX_SHARE = 1000.0
"""What a share is called if it is larger, or if there seem to be no rows."""


def noise_share(plan: Plan, cells: int, noisy_total: float) -> float:
    """The noise of a question of so many cells as a share of the rows, at most MAX_SHARE."""
    if noisy_total <= 0:
        return MAX_SHARE
    sigma2 = plan.charges.sigma2(SHARE * plan.own_rho)
    return min(MAX_SHARE, float(mean_noise(sigma2) * cells / Fraction(noisy_total)))


def small_share(plan: Plan, cells: int, noisy_total: float, limit: float) -> float:
    """`noise_share` of a typical question, where it is above the limit and so the table small for its budget;
    else 0."""
    share = noise_share(plan, cells, noisy_total)
    return share if share > limit else 0.0


def least_share(columns: int) -> Fraction:
    """The least of the budget that a measurement on a small table of so many columns, or at the end of a run,
    may get."""
    return min(MIN_COLUMNS / columns, MIN_TRIAL / TRIAL_ROUNDS * (1 - TRIAL_SELECTING))


def joining_cells(candidates: Mapping[Clique, int]) -> int:
    """The cells it takes to join a column to another: the median, over columns, of the smallest joint
    candidate; 0 if none."""
    fewest: dict[str, int] = {}
    for clique, cells in candidates.items():
        if len(clique) > 1:
            fewest.update({name: min(cells, fewest.get(name, cells)) for name in clique})
    return median(fewest.values())


def median(cells: Iterable[int]) -> int:
    """The upper median; 0 of nothing."""
    ranked = sorted(cells)
    return ranked[len(ranked) // 2] if ranked else 0


def sentence(rows: float, share: float, *, tried: bool) -> str:
    """For the report. tried: whether some joint marginals were bought before."""
    rest = "and the few that were tried showed little else, so the rest of it" if tried else "so all of it"
    noise = "more than all" if share > 1 else f"{share:.0%}"
    return (
        f"With about {max(0, round(rows)):,} rows the noise of a typical joint marginal would be {noise} of them at this "
        f"budget, {rest} went to single columns, which are independent of each other."
    )
