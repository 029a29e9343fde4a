"""Mosaic on a small table (`synth.budget.small.small_table`): each purchase at a price at which it is clear.

A table is small where a typical question of the ordinary run would carry noise of more than `NOISE_LIMIT` of
the rows. Candidates are then joint ones of few cells. The trial measures, with a label, every column beside
it at the finest resolution that is clear; else it is a few selections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from synth.algorithms.mosaic.candidates import candidates, grid_of, joint_candidates, typical_cells
from synth.algorithms.mosaic.plan import SMALL_BUDGETS
from synth.budget.prices import two_thirds
from synth.budget.small import fallback
from synth.budget.small.fallback import median
from synth.budget.small.small_table import DIGITS, Bought, SmallTable

if TYPE_CHECKING:
    from synth.algorithms.mosaic.loop import MosaicRun
    from synth.algorithms.mosaic.plan import MosaicPlan
    from synth.synthesis import Measured

PICKS = 3
"""Selections of a batch."""
CELLS = 8
"""Of a candidate that costs the unit price; others in proportion to (cells)^(2/3)."""
MORE = Fraction(1, 5)
"""Of the budget, for a second look at the columns beside the label."""
CLEAR, DEAR = 0.15, 0.25
"""Noise of a marginal of `CELLS` cells as a share of the rows that is worth no higher price; of one of 4
cells that makes a trial useless."""
SELECTING = 6
"""A selection costs this part of a measurement."""


def small_share(
    plan: MosaicPlan, measurements: Sequence[Measured], noisy_total: float, limit: float
) -> float:
    """See `synth.algorithm.Algorithm`. limit: of the noise of a typical question, above which the table is
    small."""
    grid, weights = grid_of(plan.domain, measurements[: len(plan.one_way)]), plan.workload.weights
    if plan.config.fixed_rounds is not None or not joint_candidates(
        grid, plan.candidates, weights, SMALL_BUDGETS
    ):
        return 0.0
    typical = typical_cells(candidates(grid, plan.candidates, weights, plan.budgets))
    return fallback.small_share(plan, typical, noisy_total, limit)


class SmallMosaic:
    """The purchases of a run on a small table."""

    def __init__(self, run: MosaicRun) -> None:
        self.run = run
        self.table = SmallTable(run)

    def carry_out(self) -> None:
        """Buy what is worth it. What is left then is the columns'. With a prior, as on any table, until the
        data reject it."""
        if self.run.is_inheriting:
            self.run.ordinary(lambda *_: self.run.is_inheriting)
        if self.run.is_inheriting:
            return
        run, table, label = self.run, self.table, self.run.plan.workload.label
        trial, more = table.trial, MORE * run.plan.own_rho
        if not run.candidates:
            return
        if not trial or run.cells_at(trial / PICKS, DEAR) < min(SMALL_BUDGETS):
            run.fall_back()
            return
        if label is not None:
            self._beside_label(label, trial)
            if table.is_doubtful and (table.pays(more) or not table.is_dependent):
                self._beside_label(label, more)
            if not table.is_dependent:
                run.fall_back()
                return
        table.sharpen_columns()
        unit = self._unit(trial / PICKS)
        run.shares = {c: two_thirds(c.cells, CELLS) for c in run.candidates}
        run.adaptive(unit / SELECTING, unit, PICKS, self._goes_on)
        if all(len(m.clique) == 1 for m in run.measurements):  # nothing that is clear could be had
            run.fall_back()

    def _unit(self, most: Fraction) -> Fraction:
        """The price of `CELLS` cells: what makes them clear, but no less than in the ordinary run, and no
        more than `most`."""
        run = self.run
        cells = run.cells_at(most, CLEAR)
        price = most * Fraction(math.ceil(DIGITS * min(1.0, (CELLS / cells) ** 2)), DIGITS)
        return max(price, run.plan.pick_rho[1] * two_thirds(CELLS, median(c.cells for c in run.candidates)))

    def _beside_label(self, label: str, rho: Fraction) -> None:
        """Measure every column beside the label, for so much together."""
        each = rho / (len(self.run.plan.domain) - 1)
        self.table.learn(self.run.buy_beside_label(label, each, min(SMALL_BUDGETS)), rho)

    def _goes_on(self, bought: Sequence[Bought], price: Fraction) -> bool:
        """After a batch of selections: whether another one may be worth it."""
        table = self.table
        table.learn(bought, price)
        goes_on = table.goes_on()
        if not goes_on and not table.is_dependent:
            self.run.fall_back()
        return goes_on
