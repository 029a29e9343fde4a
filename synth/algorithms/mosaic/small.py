"""Mosaic on a small table: each purchase is decided by itself, at a price at which it is clear, and by what the last ones showed.

A table is small where a typical question of the ordinary run would carry noise of more than `NOISE_LIMIT` of the rows. Single
columns are then most of what can be had, but the few joint marginals of few cells that matter most can be had as well. In turn:

    columns      a share of the budget at once, the larger the noisier they are: what is chosen next is compared with them
    trial        with a label, every column beside it at the finest resolution that is clear; else a few selections among coarse
                 candidates. Its share shrinks as the columns' own noise grows: 0.14, and none where nothing would be clear
    evidence     if the trial shows no more than noise and drawing would (`synth.dependence`), the columns take what is left
    further      selections while what a batch taught is worth more than what the columns lose by it; the rest goes to the columns

Worth: with k pairs of columns, a batch that moved the model's answers by g_1, g_2, .. of the rows (L1, less what their noise
would) improves the mean pair by about sum g / k; paying for it raises the columns' noise by some h of the rows each, which every
pair has twice. All of it reads released values and public sizes: post-processing. Figures: `docs/design/mosaic.md` 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from synth.algorithms.mosaic.candidates import two_thirds
from synth.algorithms.mosaic.plan import MIN_SHARPENING, MIN_TRIAL, SMALL_BUDGETS
from synth.budget.charges import mean_noise
from synth.fallback import median

if TYPE_CHECKING:
    from synth.algorithms.mosaic.loop import Bought, MosaicRun

PICKS = 3
"""Selections of a batch."""
CELLS = 8
"""Of a candidate that costs the unit price; others in proportion to (cells)^(2/3)."""
TRIAL, MORE = Fraction(14, 100), Fraction(1, 5)
"""Of the budget: for the trial, at most; for a second look at the columns beside the label."""
EASY, HOPELESS = 0.15, 0.45
"""Noise of a column, as a share of the rows, if all that is left went to the columns: up to the one the trial has its whole
share, from the other on none."""
CLEAR, DEAR = 0.15, 0.25
"""Noise of a marginal of `CELLS` cells as a share of the rows that is worth no higher price; of one of 4 cells that makes a trial
useless."""
COLUMNS_FIRST, COLUMNS_PER_NOISE = Fraction(2, 5), 3.3
"""Of the budget, for the columns before anything is selected: at most, and for each unit of their noise."""
SELECTING = 6
"""A selection costs this part of a measurement."""
DIGITS = 1000


class SmallTable:
    """The purchases of a run on a small table."""

    def __init__(self, run: MosaicRun) -> None:
        self.run = run
        self._taught: list[tuple[float, Fraction]] = []  # of each batch: its worth and its price

    def carry_out(self) -> None:
        """Buy what is worth it. What is left then is the columns'."""
        run = self.run
        rho = run.plan.budget.rho_cap
        trial = self._trial_share() * rho
        if not run.candidates:
            return
        if trial < MIN_TRIAL * rho or self.run.cells_at(trial / PICKS, DEAR) < min(SMALL_BUDGETS):
            run.fall_back()
            return
        label = run.plan.workload.label
        if label is None:
            self._sharpen()
        else:
            self._beside_label(label, trial)
            if not run.is_dependent():
                run.fall_back()
                return
            if self._pays(MORE * rho):
                self._beside_label(label, MORE * rho)
            self._sharpen()
        unit = self._unit(trial / PICKS)
        run.shares = {c: two_thirds(c.cells, CELLS) for c in run.candidates}
        run.adaptive(unit / SELECTING, unit, PICKS, self._goes_on)

    def _trial_share(self) -> Fraction:
        hard = (self._column_noise(Fraction(0)) - EASY) / (HOPELESS - EASY)
        return TRIAL * Fraction(math.floor(DIGITS * min(1.0, max(0.0, 1 - hard))), DIGITS)

    def _unit(self, most: Fraction) -> Fraction:
        """The price of `CELLS` cells: what makes them clear, but no less than in the ordinary run, and no more than `most`."""
        run = self.run
        cells = run.cells_at(most, CLEAR)
        price = most * Fraction(math.ceil(DIGITS * min(1.0, (CELLS / cells) ** 2)), DIGITS)
        return max(price, run.plan.pick_rho[1] * two_thirds(CELLS, median(c.cells for c in run.candidates)))

    def _column_noise(self, price: Fraction) -> float:
        """Mean noise of a column as a share of the rows, if all that is left but this price went to the columns."""
        run = self.run
        spent = run.column_rho()
        rest = max(Fraction(0), run.left - price)
        noise = [
            float(mean_noise(run.plan.charges.sigma2(spent[clique] + rest * run.column_share(clique))))
            * run.plan.domain.cells(clique)
            for clique in run.plan.one_way
        ]
        return sum(noise) / len(noise) / max(1.0, run.noisy_total)

    def _sharpen(self) -> None:
        """Measure the columns again, before anything is compared with them."""
        noise = Fraction(math.floor(DIGITS * COLUMNS_PER_NOISE * self._column_noise(Fraction(0))), DIGITS)
        rho = (
            min(COLUMNS_FIRST, noise, self.run.left / self.run.plan.budget.rho_cap)
            * self.run.plan.budget.rho_cap
        )
        if rho >= MIN_SHARPENING * self.run.plan.budget.rho_cap:
            self.run.sharpen_columns(rho)

    def _beside_label(self, label: str, rho: Fraction) -> None:
        """Measure every column beside the label, for so much together."""
        run = self.run
        bought = run.buy_beside_label(label, rho / (len(run.plan.domain) - 1), min(SMALL_BUDGETS))
        self._taught = [(self._worth(bought), rho)]

    def _worth(self, bought: Sequence[Bought]) -> float:
        """By how much of the rows a batch improved the mean pair of columns."""
        rows, columns = max(1.0, self.run.noisy_total), len(self.run.plan.domain)
        moved = [math.sqrt(max(0.0, of.moved**2 - of.noise**2)) / rows for of in bought]
        return sum(moved) / math.comb(columns, 2)

    def _pays(self, price: Fraction) -> bool:
        """Whether the last batches' worth, for this price, is more than what the columns lose by it."""
        worth = sum(worth for worth, _ in self._taught[-2:])
        return worth >= 2 * (self._column_noise(price) - self._column_noise(Fraction(0)))

    def _goes_on(self, bought: Sequence[Bought], price: Fraction) -> bool:
        """After a batch of selections: whether another one may be worth it."""
        trial = self.run.plan.workload.label is None and not self._taught
        self._taught.append((self._worth(bought), price))
        if trial and not self.run.is_dependent():
            self.run.fall_back()
            return False
        return self._pays(sum((price for _, price in self._taught[-2:]), Fraction(0)))
