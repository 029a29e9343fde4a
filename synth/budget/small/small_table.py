"""A small table: single columns are most of what can be had, and each joint marginal must be worth what the
columns lose by it.

Problem: on few rows or at a small epsilon the noise of a typical joint marginal is larger than what it could
teach. A rule that looks at that noise throws away the few joint marginals that are clear, or so strong that
they show through it; one that buys all the same makes the table worse than independent columns. So the run
buys a little, looks at what it showed, and goes on or not:

    columns    a share of the budget first, the larger the noisier they are: what is bought next is compared with them
    trial      a share of the budget that shrinks as the columns' own noise grows, and is none where nothing would be clear, or
               tell of dependence through its noise
    evidence   if the trial shows no more than noise and drawing would (`judgement.dependence`), the columns take what is left;
               where it leaves that in doubt, after a second trial
    further    while what the last batches taught is worth more than what the columns lose by it
    the rest   goes to the columns, and where these are clear also to the joint marginals that told more than noise (not of
               Mosaic and MST)

Worth: with k pairs of columns, a batch that moved the model's answers by g_1, g_2, .. of the rows (L1, less
what their noise would) improves the mean pair by about sum g / k; paying for it raises the columns' noise by
some h of the rows each, which every pair has twice. All of it reads released values and public sizes:
post-processing. Figures: `docs/design/judgement.md` 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synth.budget.charges import MAX_EPSILON, mean_noise
from synth.budget.prices import two_thirds
from synth.budget.small.fallback import MIN_COLUMNS, MIN_TRIAL, TRIAL_ROUNDS, TRIAL_SELECTING, least_share
from synth.judgement.dependence import DOUBTFUL, EVIDENT, pairs_of, score

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.run import Run

ROUND_ITERATIONS = 100
"""Of a fit after a purchase."""

TRIAL = Fraction(14, 100)
"""Of the budget, for the trial at most."""
EASY, HOPELESS = 0.15, 0.45
"""Noise of a column, as a share of the rows, if all that is left went to the columns: up to the one the trial
has its whole share, from the other on none."""
CLEAR_COLUMNS = 0.1
"""The same: up to which the columns hardly miss what noisy joint marginals get."""
COLUMNS_FIRST, COLUMNS_PER_NOISE = Fraction(2, 5), 3.3
"""Of the budget, for the columns before anything is compared with them: at most, and for each unit of their
noise."""
DEAR = Fraction(1, 2)
"""The most noise of a candidate that is bought by itself before there is evidence, as a share of the rows."""
TELLING_CELLS = 8
"""Of a candidate that shows dependence just as well as it is clear."""
TRIALS = 2
"""At most, before there is evidence: the second one only where the first leaves it in doubt."""
DIGITS = 1000


@dataclass(frozen=True)
class Bought:
    """A measured marginal: by how much, in L1, the model's answer moved, and by how much the noise alone
    would move it."""

    moved: float
    noise: float

    @property
    def is_telling(self) -> bool:
        """Whether more than half of that (of its square) was not noise."""
        return self.moved**2 > 2 * self.noise**2


class SmallTable:
    """What a run on a small table has learned from its purchases; from here on all of them tell it the number
    of rows."""

    def __init__(self, run: Run) -> None:
        self._run = run
        run.is_small = True
        self._taught: list[tuple[float, Fraction]] = []  # of each batch: its worth and its price
        self._news = 0.0  # by what share of the rows a purchase of the last batch moved the model, less what noise would

    @property
    def trial(self) -> Fraction:
        """rho of the trial; 0 where it would be too little."""
        hard = (self._column_noise(Fraction(0)) - EASY) / (HOPELESS - EASY)
        share = TRIAL * Fraction(math.floor(DIGITS * min(1.0, max(0.0, 1 - hard))), DIGITS)
        return share * self._run.plan.own_rho if share >= MIN_TRIAL else Fraction(0)

    def goes_on(self, trials: int | None = None) -> bool:
        """Whether to buy more after so many trials, or as many as there were batches: while it pays, once
        columns are dependent; else one trial more where the first left that in doubt."""
        if self.is_dependent:
            return self.pays()
        return (len(self._taught) if trials is None else trials) < TRIALS and self.is_doubtful

    def sharpen_columns(self) -> None:
        """Measure the columns again, before anything is compared with them."""
        run, whole = self._run, self._run.plan.own_rho
        noise = Fraction(math.floor(DIGITS * COLUMNS_PER_NOISE * self._column_noise(Fraction(0))), DIGITS)
        rho = min(whole * min(COLUMNS_FIRST, noise), run.left)
        if rho >= MIN_COLUMNS * whole:
            run.sharpen_columns(rho)

    def learn(self, bought: Sequence[Bought], price: Fraction) -> None:
        """Take note of a batch and of what it cost."""
        rows, columns = self._run.total, len(self._run.plan.domain)
        moved = [math.sqrt(max(0.0, of.moved**2 - of.noise**2)) / rows for of in bought]
        self._taught.append((sum(moved) / math.comb(columns, 2), price))
        self._news = sum(moved) / max(1, len(moved))

    @property
    def is_dependent(self) -> bool:
        """Whether the joint marginals measured so far show more than noise and drawing would."""
        return self._score > EVIDENT

    @property
    def is_doubtful(self) -> bool:
        """Whether they show so much that, though it may be noise, a second trial is worth its price."""
        return self._score > DOUBTFUL

    @property
    def _score(self) -> float:
        sizes = self._run.plan.domain.sizes
        return score(pair for m in self._run.measurements for pair in pairs_of(m, sizes))

    def clear(self, noise: Mapping[Clique, Fraction]) -> list[Clique]:
        """Which candidates may be bought next, by their noise: at most `DEAR` of the rows, or once columns
        are dependent as much as the last purchases taught. What is noisier would be mostly noise."""
        share = Fraction(self._news) if self._news > DEAR and self.is_dependent else DEAR
        return [q for q in noise if noise[q] <= share * Fraction(self._run.total)]

    def telling(self, noise: Mapping[Clique, Fraction], cells: Mapping[Clique, int]) -> list[Clique]:
        """Which of them would show at least whether columns are dependent, where none is clear.

        By `synth.judgement.dependence` that shows by some (dependence / noise)^2 sqrt(cells): these show it
        as well as a clear one of `TELLING_CELLS`. A trial with them tells no more than that, so there is none
        where the columns would miss its price.
        """
        if not self.columns_are_clear:
            return []
        clear = DEAR * Fraction(self._run.total)
        return [q for q in noise if (noise[q] / clear) ** 4 * TELLING_CELLS <= cells[q]]

    @property
    def columns_are_clear(self) -> bool:
        """Whether the columns, with all that is left, would hardly miss a part of it."""
        return self._column_noise(Fraction(0)) <= CLEAR_COLUMNS

    def pays(self, price: Fraction | None = None) -> bool:
        """Whether the worth of the last two batches is more than what the columns lose by this price, or by
        theirs."""
        last = self._taught[-2:]
        cost = sum((price for _, price in last), Fraction(0)) if price is None else price
        lost = self._column_noise(cost) - self._column_noise(Fraction(0))
        return sum(worth for worth, _ in last) >= 2 * lost

    def _column_noise(self, price: Fraction) -> float:
        """Mean noise of a column as a share of the rows, if all that is left but this price went to the
        columns."""
        run = self._run
        spent, rest = run.column_rho(), max(Fraction(0), run.left - price)
        noise = [
            float(mean_noise(run.plan.charges.sigma2(spent[clique] + rest * run.column_share(clique))))
            * run.plan.domain.cells(clique)
            for clique in run.plan.one_way
        ]
        return sum(noise) / len(noise) / run.total


def buy_few(run: Run, joining: int, limit: float, weight: Callable[[Clique], int], most: int) -> None:
    """Single selections among what is shared, each measured and fitted, while they are worth it. What is left
    is the columns'.

    joining, limit: cells and noise of what made the table small. weight: of a candidate's score. most:
    selections. Raises as `synth.run.Run` does.
    """
    plan, table = run.plan, SmallTable(run)
    price = table.trial / TRIAL_ROUNDS
    joint = [q for q in run.handles if len(q) > 1 and q in plan.candidates and price]

    def bought_for(price: Fraction) -> tuple[Fraction, Fraction, dict[Clique, Fraction]]:
        epsilon = min(MAX_EPSILON, plan.charges.epsilon(TRIAL_SELECTING * price))
        sigma2 = plan.charges.sigma2(price - plan.charges.selecting(epsilon))
        return epsilon, sigma2, {q: mean_noise(sigma2) * plan.candidates[q] for q in joint}

    epsilon, sigma2, noise = bought_for(price) if joint else (Fraction(0), Fraction(0), {})
    trial = TRIAL_ROUNDS
    if joint and len(table.clear(noise)) < TRIAL_ROUNDS:  # then there is one, for all of it
        price, trial = table.trial, 1
        epsilon, sigma2, noise = bought_for(price)
    begins = bool(table.clear(noise) or table.telling(noise, plan.candidates))
    if begins:
        table.sharpen_columns()
        run.refit(0, ROUND_ITERATIONS)
    told: list[Clique] = []
    while begins and run.left >= price and len(run.selected) < most:
        offered = [q for q in table.clear(noise) if q not in run.selected]
        if not run.selected:
            offered = offered or table.telling(noise, plan.candidates)
        if len(run.selected) < trial:  # what a label depends on is asked first
            offered = [q for q in offered if len(q) == 2 and plan.workload.label in q] or offered
        offered = run.fitting(offered, plan.config.model_mb)
        if not offered:
            if not (run.selected and table.is_dependent and 2 * price <= run.left):
                break
            price *= 2  # what was bought was worth it, and nothing is clear any more at that price
            epsilon, sigma2, noise = bought_for(price)
            continue
        answers, before = run.model.marginals(offered), run.left
        weights = [Fraction(weight(q)) for q in offered]
        at = run.select(offered, answers, weights, [noise[q] for q in offered], epsilon)
        chosen = offered[at]
        run.measure_selected([chosen], [answers[at]], sigma2, [noise[chosen]])
        run.refit(len(run.selected), ROUND_ITERATIONS)
        moved = float(np.abs(run.model.marginal(chosen) - answers[at]).sum())
        bought = Bought(moved, float(noise[chosen]))
        table.learn([bought], before - run.left)
        if bought.is_telling:
            told.append(chosen)
        if len(run.selected) >= trial and not table.goes_on(len(run.selected) // trial):
            break
    if not run.selected or not table.is_dependent:
        run.fall_back(joining, limit)
    elif table.columns_are_clear:
        sharpen_measured(run, told)
        return
    run.sharpen()


def sharpen_measured(run: Run, joint: Sequence[Clique]) -> None:
    """Spend what remains on the one-way marginals and on these joint ones, which were selected. Ends the run.

    The shares are those of the least noise of all (`synth.budget.prices`); those that were selected get
    alike, and so do the columns.
    """
    number, plan = len(run.selected) + 1, run.plan
    parts = [part for part in (list(joint), list(plan.one_way)) if part]
    weights = [len(part) * two_thirds(sum(plan.domain.cells(q) for q in part), len(part)) for part in parts]
    least, left = least_share(len(plan.domain)) * plan.budget.rho_cap, run.left
    for part, weight in zip(parts, weights, strict=True):
        each = left * weight / sum(weights) / len(part)
        if each < least:
            continue
        sigma2 = plan.charges.sigma2(each)
        if part is parts[-1]:
            run.measure_columns(part, sigma2, number)
        else:
            answers, noise = run.model.marginals(part), mean_noise(sigma2)
            rounds = [run.selected.index(q) + 1 for q in part]
            run.measure_shared(part, answers, sigma2, [noise * plan.domain.cells(q) for q in part], rounds)
    run.sharpen()  # what was too little for one of them
