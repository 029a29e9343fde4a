"""Mosaic's run: select several, measure, fit, until the budget is spent (`plan` fixes noise, `synth.run` keeps and fits).

    0   measure all one-way marginals, each with its own noise (one batch); bins; share the candidates' finest grids, once
    t   candidates: those that can win at their noise, that the budget can pay and the model can hold; select a batch of them on
        one pass of scores, none of whose columns contain another's; measure those that fit together (one batch); refit

A batch's selections are all charged. One whose measurement does not fit, beside the earlier ones of the batch, into the model
or into the budget is not measured: that choice reads released values only, and costs a tenth of what the measurement would.

Adaptive rounds: if for at least half of a batch the model's answer moved by no more than the noise would move it, measurements
and selections get half as much again of the budget. When less than two batches are left, the batch takes as many picks as can
be paid, and its noise is scaled so that all is spent. The loop is a zCDP filter's client, as AIM's. If no candidate can win,
what is left sharpens the one-way marginals. Where a typical question's noise is large, each purchase is decided by itself
(`small`); with fixed rounds the study has decided. While a run has little evidence of dependence, the model follows shrunk joint
marginals (`evidence`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.functionality import MAX_MARGINALS, unobserved
from synth.algorithms.mosaic.answers import Resolutions, answers
from synth.algorithms.mosaic.candidates import (
    Candidate,
    Priced,
    at_most,
    candidates,
    grid_of,
    joint_candidates,
    prices,
    typical_cells,
)
from synth.algorithms.mosaic.conflicts import conflicts, related
from synth.algorithms.mosaic.evidence import beside_columns, evidence
from synth.algorithms.mosaic.foreseen import LIKE, SEEN, batches_left
from synth.algorithms.mosaic.inherit import inherit, rake_again
from synth.algorithms.mosaic.model_size import Room
from synth.algorithms.mosaic.plan import BATCH, MIN_SHARPENING, SMALL_BUDGETS
from synth.algorithms.mosaic.small import SmallMosaic
from synth.budget.charges import mean_noise
from synth.budget.small.fallback import noise_share
from synth.budget.small.small_table import Bought
from synth.mrf import Chains, Measurement
from synth.mrf.fit import TOLERANCE
from synth.prior.run import Heir
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, root
from synth.synthesis import Measured, Synthesis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.algorithms.mosaic.plan import MosaicPlan

PRICE_FACTOR = Fraction(3, 2)
"""Of the noise in the score: once for the noise that a measurement brings, half for what it costs."""
NOISE_LIMIT = 0.3
"""Of the noise of a typical question, as a share of the rows; above it the table is small."""
ENOUGH_EVIDENCE = 4.0
"""Of dependence, in units of what noise shows, to believe marginals as they are (`evidence`)."""
JOINT_CELLS, CLEAR, MAX_RAISE = 12, 0.12, 2.0
"""The first picks cost up to so many times more, until a joint marginal of so many cells has at most this noise, of the rows."""
BESIDE_LABEL = 0.2
"""The most noise of a column beside the label, as a share of the rows."""
RESOLUTIONS = 3
"""At which a set of columns is a candidate, about."""
MIN_VALUES = 33
"""Of an ordered column, from which on it is smoothed: one with fewer enters joint marginals value by value."""
ROUND_TOLERANCE = 0.2
"""Of a fit between batches: the next one goes on from it. 0.4 saves no time and gives the same error."""
GROWTH, FAST_GROWTH = Fraction(3, 2), Fraction(2)
"""Of the budget of a step that was too small to see anything; in batches smaller than `BATCH`."""


def run(oracle: MarginalOracle, plan: MosaicPlan, observe: Observe = unobserved) -> Synthesis:
    """Run Mosaic on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is released after that.
    """
    run = MosaicRun(oracle, plan, observe)
    run.measure_all_columns()
    run.choose_resolutions()
    run.refit(0, ROUND_ITERATIONS)
    if plan.prior is not None:
        inherit(plan.prior, run)
    if plan.reserved.cliques:
        run.measure_reserved()
        run.refit(0, ROUND_ITERATIONS)
    rounds = plan.config.fixed_rounds
    if rounds is not None:
        run.fixed(rounds)
    elif run.is_small:
        SmallMosaic(run).carry_out()
    else:
        run.ordinary()
    run.finish()
    return run.synthesis()


class MosaicRun(Heir):
    """A run of Mosaic. picks: selections charged so far."""

    plan: MosaicPlan

    def __init__(self, oracle: MarginalOracle, plan: MosaicPlan, observe: Observe) -> None:
        super().__init__(oracle, plan, observe)
        self.picks = 0
        self._rounds: dict[Candidate, int] = {}  # of the picks of the last batch
        self._final = False
        self._typical = 0
        self._room = Room(self)
        self._limit_mb = self._evidence = 0.0
        self._is_evident = False
        self._shrunk: dict[int, NDArray[np.float64]] = {}  # by the measurement
        self._conflicting: tuple[list[Clique], list[tuple[int, int]]] = ([], [])

    def measure_all_columns(self) -> None:
        """Measure the one-way marginals; they give the noisy total."""
        columns = self.plan.one_way
        self.handles = dict(zip(columns, self.oracle.prepare(columns), strict=True))
        self.foresee(RESOLUTIONS * len(self.plan.candidates), self.plan.config.fixed_rounds)
        noise = [self.plan.column_sigma2[clique] for clique in columns]
        if self.plan.prior is None and not self.plan.reserved.cliques:
            self._foresee_batch(list(map(self.plan.charges.measuring, noise)), self.plan.budgets[-1])
        self._measure(columns, noise, [0] * len(columns))
        self.observe(
            "measure",
            "measured",
            round=0,
            cliques=[list(clique) for clique in columns],
            sigma=max(root(m.sigma2) for m in self.measurements),
            noisy_total=self.noisy_total,
            **self.spending(),
        )

    def choose_resolutions(self) -> None:
        """Derive bins and candidates from the columns' marginals, and make them available."""
        domain, weights, sets = self.plan.domain, self.plan.workload.weights, self.plan.candidates
        self.grid = grid_of(domain, self.measurements)
        self.levels = dict(self.grid.levels)
        self.chains = Chains(domain.sizes, self.levels)
        self.column_set = self.chains.columns()
        self.resolutions = Resolutions(self.grid)
        most = MAX_MARGINALS - len(self.handles) - len(self.plan.reserved.cliques)
        self.candidates = at_most(most, partial(candidates, self.grid, sets, weights), self.plan.budgets)
        self._typical = typical_cells(self.candidates)
        self.is_small = noise_share(self.plan, self._typical, self.noisy_total) > NOISE_LIMIT
        if self.is_small:
            self.candidates = at_most(
                most, partial(joint_candidates, self.grid, sets, weights), SMALL_BUDGETS
            )
        self.related = related(list(dict.fromkeys(c.columns for c in self.candidates)))
        priced = prices(self.candidates) if self.candidates else []
        self.shares = dict(zip(self.candidates, priced, strict=True))
        cliques = [candidate.clique for candidate in self.candidates]
        used = {name for clique in cliques for name in clique}
        handles = self.oracle.prepare(cliques, [level for name, level in self.levels.items() if name in used])
        self.handles |= dict(zip(cliques, handles, strict=True))

    def fall_back(self, cells: int | None = None, limit: float = NOISE_LIMIT) -> None:
        """See `Run`; of a typical question, if none is named. A fit that was the last until now followed joint marginals."""
        self._final = False
        super().fall_back(self._typical if cells is None else cells, limit)

    def cells_at(self, rho: Fraction, noise: float) -> float:
        """Cells of a marginal whose noise, at this price, is such a share of the rows."""
        return noise * self.total / float(mean_noise(self.plan.charges.sigma2(rho)))

    def ordinary(self, goes_on: Callable[[Sequence[Bought], Fraction], bool] | None = None) -> None:
        """Batches at prices that fall with what is seen, on a table that is not small. goes_on: as `adaptive`'s."""
        selecting, measuring = self.plan.pick_rho
        factor = self._raise(measuring)
        self.adaptive(selecting * factor, measuring * factor, self.plan.batch, goes_on)

    def _raise(self, measuring: Fraction) -> Fraction:
        """By how much more to begin, so that the cheapest marginal of two columns or more at `JOINT_CELLS` is clear."""
        joint = [c for c in self.candidates if len(c.columns) > 1 and c.cells >= JOINT_CELLS]
        if not joint:
            return Fraction(1)
        cheapest = min(joint, key=lambda c: self.shares[c])
        wanted = self.cells_at(measuring * self.shares[cheapest], CLEAR)
        return Fraction(math.floor(1000 * min(MAX_RAISE, max(1.0, (cheapest.cells / wanted) ** 2))), 1000)

    def buy_beside_label(self, label: str, rho: Fraction, least: int) -> list[Bought]:
        """Measure each column beside the label for so much, at the finest resolution that is clear at this price, or that has
        `least` cells."""
        most = max(least, self.cells_at(rho, BESIDE_LABEL))
        chosen: dict[tuple[str, ...], Candidate] = {}
        for candidate in self.candidates:
            if len(candidate.columns) == 2 and label in candidate.columns and candidate.cells <= most:
                known = chosen.get(candidate.columns)
                if known is None or known.cells < candidate.cells:
                    chosen[candidate.columns] = candidate
        fits = self._room.fitting(list(chosen.values()), self.plan.config.max_model_mb)
        batch = self._priced({c: Fraction(1) for c in chosen.values() if c in fits}, rho, Fraction(1))
        if not batch:
            return []
        asked = [p.candidate for p in batch]
        return self._measure_batch(
            batch, dict(zip(asked, answers(self.model, asked, self.resolutions), strict=True))
        )

    def adaptive(
        self,
        selecting: Fraction,
        measuring: Fraction,
        batch_size: int,
        goes_on: Callable[[Sequence[Bought], Fraction], bool] | None = None,
    ) -> None:
        """Batches until the budget is spent, with less noise whenever a batch saw nothing but noise.

        selecting, measuring: rho of the first selections and measurements. goes_on: asked after each batch, with its price.
        """
        growth = GROWTH if batch_size >= BATCH else FAST_GROWTH
        typical = selecting + measuring
        costs: list[Fraction] = []
        while self.candidates and self.picks < self.plan.rounds[1]:
            if self.oracle.presumed and len(costs) == SEEN:
                self._foresee(costs, batch_size)
                break
            spent = self.spent
            epsilon = self.plan.charges.epsilon(selecting)
            select_rho = self.plan.charges.selecting(epsilon)
            final = self.left < 2 * batch_size * typical
            picks = batch_size if not final else max(1, min(2 * batch_size, self.left // typical))
            picks = min(picks, self.plan.rounds[1] - self.picks)
            offered = self._offered(
                self._priced(self.shares, measuring, PRICE_FACTOR),
                self.left - picks * select_rho,
                picks * typical,
                final,
            )
            if not offered:
                break
            chosen, before = self._select(offered, picks, epsilon)
            batch = self._payable(chosen, 2 * typical)
            if not batch:
                continue
            bought = self._measure_batch(batch, before)
            costs.append(self.spent - spent)
            typical = select_rho + sum((p.rho for p in batch), Fraction(0)) / len(batch)
            if goes_on is not None and not goes_on(bought, costs[-1]):
                break
            if 2 * sum(of.moved > of.noise for of in bought) <= len(batch):
                selecting, measuring, typical = selecting * growth, measuring * growth, typical * growth

    def _foresee(self, costs: Sequence[Fraction], batch_size: int) -> None:
        """The rest of a dry run, which is told and not made."""
        most = -(-(self.plan.rounds[1] - self.picks) // batch_size)
        self.observe("select", "foreseen", batches=min(most, batches_left(costs, self.left)), like=LIKE)
        self.spent = self.plan.budget.rho_cap

    def fixed(self, rounds: int) -> None:
        """So many picks in batches, each pick with the same share of what is left."""
        epsilon = self.plan.epsilon
        select_rho = self.plan.charges.selecting(epsilon)
        while self.candidates and self.picks < rounds:
            picks = min(self.plan.batch, rounds - self.picks)
            each = self.left / (rounds - self.picks) - select_rho
            last = self.picks + picks == rounds
            priced = self._priced(dict.fromkeys(self.candidates, Fraction(1)), each, Fraction(1))
            offered = self._offered(priced, self.left, picks * (each + select_rho), last)
            if not offered:
                break
            self.oracle.expect(self._batch_sigma2(self.left, rounds))
            chosen, before = self._select(offered, picks, epsilon)
            batch = self._payable(chosen, self.left if last else Fraction(0))  # the last takes all
            if batch:
                self._foresee_batch([p.rho for p in batch], max(c.cells for c in self.candidates))
                self._measure_batch(batch, before)

    def _foresee_batch(self, prices: Sequence[Fraction], cells: int) -> None:
        """With fixed rounds, tell the oracle before a measurement of these prices what the batch after it will be measured
        with, and what so many cells a pick come to. The last batch has less noise if some of its picks are left out."""
        rounds, left = self.plan.config.fixed_rounds, self.left - sum(prices, Fraction(0))
        picks = min(self.plan.batch, (rounds or 0) - self.picks)
        if rounds is None or picks <= 0:
            return
        fewest = picks // 2 + 1 if self.picks + picks == rounds else picks
        for kept in range(picks, fewest - 1, -1):
            self.oracle.expect_counts(self._batch_sigma2(left, rounds, kept), kept * cells)

    def _batch_sigma2(self, left: Fraction, rounds: int, kept: int = 0) -> Fraction:
        """The noise of the next batch, where so much is left before its selection: each of so many picks takes the same share,
        the last batch all, scaled as `_payable` does. kept: picks of the last batch that are not left out; 0: all."""
        select_rho = self.plan.charges.selecting(self.plan.epsilon)
        picks = min(self.plan.batch, rounds - self.picks)
        if self.picks + picks < rounds:
            return self.plan.charges.sigma2(left / (rounds - self.picks) - select_rho)
        return self.plan.charges.sigma2((left - picks * select_rho) / (kept or picks))

    def finish(self) -> None:
        """Spend what is left on the columns if nothing else took it, and fit to the end."""
        if self.left > MIN_SHARPENING * self.plan.budget.rho_cap:
            self.sharpen_columns(self.left, self.rounds + 1)
            rake_again(self)
        elif self._final:
            return
        self.refit(self.rounds, FINAL_ITERATIONS)

    def sharpen_columns(self, rho: Fraction, number: int = 0) -> None:
        """See `Run`; each column with its share."""
        one_way = self.plan.one_way
        noise = [self.plan.charges.sigma2(rho * self.column_share(clique)) for clique in one_way]
        self._measure(one_way, noise, [number] * len(one_way))
        self.observe(
            "measure",
            "measured",
            round=number,
            cliques=[list(clique) for clique in one_way],
            sigma=max(map(root, noise)),
            noisy_total=self.noisy_total,
            **self.spending(),
        )

    @property
    def rounds(self) -> int:
        """Picks so far: of the selections charged, those that found a candidate."""
        return sum(bool(clique) for clique in self.selected)

    def bins(self, candidate: Candidate) -> dict[str, int]:
        """How many bins it has of each column that it asks for over bins."""
        return {self.levels[n].column: self.levels[n].size for n in candidate.clique if n in self.levels}

    def _is_spent(self) -> bool:
        """Whether nothing more can be asked: then the fit after this batch is the last."""
        self._final = self.left <= Fraction(1, 1000) * self.plan.budget.rho_cap
        return self._final

    def refit(self, number: int, iterations: int, tolerance: float = TOLERANCE) -> None:
        """As `Run.refit`; while there is little evidence of dependence, to shrunk joint marginals."""
        self.judge()
        if not self._is_evident and self.noise_share is None and not self.is_inheriting:
            joints = [beside_columns(m, self.model) for m in self.measurements if len(m.clique) > 1]
            self._evidence = evidence(joints)
            self._is_evident = self._evidence >= ENOUGH_EVIDENCE
            self._shrunk = {} if self._is_evident else {id(j.measured): j.shrunk() for j in joints}
        super().refit(number, iterations, tolerance)

    def _followed(self, measured: Measured) -> Sequence[Measurement]:
        """See `Run`; of a joint marginal, if there is little evidence of dependence, shrunk."""
        shrunk = self._shrunk.get(id(measured))
        if shrunk is None or self.noise_share is not None:
            return super()._followed(measured)
        return [Measurement(measured.clique, shrunk, float(measured.sigma2))]

    @property
    def _smoothed_from(self) -> int:
        return super()._smoothed_from or MIN_VALUES

    def column_share(self, clique: tuple[str, ...]) -> Fraction:
        """Of what the columns get, the share of this one."""
        return self.plan.column_shares[clique]

    def _priced(self, shares: Mapping[Candidate, Fraction], unit: Fraction, factor: Fraction) -> list[Priced]:
        """Candidates, each at so many units of rho. Exact fractions are slow: few shares and sizes stand for many candidates."""
        bought: dict[tuple[int, int, int], tuple[Fraction, Fraction, Fraction, Fraction]] = {}
        of_share: dict[tuple[int, int], tuple[Fraction, Fraction, Fraction, Fraction]] = {}
        found = []
        for candidate, share in shares.items():
            if (price := of_share.get((id(share), candidate.cells))) is None:
                key = share.numerator, share.denominator, candidate.cells
                if (price := bought.get(key)) is None:
                    sigma2 = self.plan.charges.sigma2(unit * share)
                    noise = mean_noise(sigma2) * candidate.cells
                    price = bought[key] = self.plan.charges.measuring(sigma2), sigma2, noise, factor * noise
                of_share[id(share), candidate.cells] = price
            found.append(Priced(candidate, *price))
        return found

    def _offered(self, priced: Sequence[Priced], left: Fraction, batch: Fraction, last: bool) -> list[Priced]:
        """Candidates that can win, be paid, and fit the share of the model that the budget reaches with this batch, or had
        reached."""
        most = 2 * Fraction(self.total)
        of_price = {id(p.penalty): p for p in priced}  # few: see `_priced`
        can = {price: p.rho <= left and p.penalty <= most for price, p in of_price.items()}
        payable = [p for p in priced if can[id(p.penalty)]]
        used = min(Fraction(1), (self.spent + batch) / self.plan.budget.rho_cap)
        beside = self.plan.config.max_model_mb - self.inherited_mb
        self._limit_mb = max(self._limit_mb, self.inherited_mb + beside * (1.0 if last else float(used)))
        fits = self._room.fitting([p.candidate for p in payable], self._limit_mb)
        return [p for p in payable if p.candidate in fits]

    def _select(
        self, offered: Sequence[Priced], picks: int, epsilon: Fraction
    ) -> tuple[list[Priced], dict[Candidate, NDArray[np.float64]]]:
        """The picks of a batch, in order, and the model's answers of all candidates offered."""
        asked, picks = [p.candidate for p in offered], min(picks, len(offered))
        found = answers(self.model, asked, self.resolutions)
        weights = {weight: Fraction(weight) for weight in {c.weight for c in asked}}
        positions = self.oracle.select(
            [self.handles[c.clique] for c in asked],
            found,
            [weights[c.weight] for c in asked],
            [p.penalty for p in offered],
            epsilon,
            picks,
            self._conflicts([c.columns for c in asked]),
        )
        self.spent += picks * self.plan.charges.selecting(epsilon)
        self._rounds = {asked[position]: number for number, position in enumerate(positions, self.rounds + 1)}
        for candidate, number in self._rounds.items():
            self.observe(
                "select",
                "selected",
                round=number,
                rounds=self.plan.known_rounds,
                clique=list(candidate.columns),
                bins=self.bins(candidate),
                candidates=len(asked),
                epsilon=float(epsilon),
                **self.spending(),
            )
        self.picks += picks  # all are charged, also those that found no candidate left
        self.selected += [candidate.clique for candidate in self._rounds]
        if picks > len(positions):
            self.selected += [()] * (picks - len(positions))
            self.observe("select", "exhausted", charged=picks, found=len(positions), **self.spending())
        return [offered[position] for position in positions], dict(zip(asked, found, strict=True))

    def _conflicts(self, asked: list[Clique]) -> list[tuple[int, int]]:
        """Of candidates of these columns; most batches ask about those of the one before."""
        if self._conflicting[0] != asked:
            self._conflicting = asked, conflicts(asked, self.related)
        return self._conflicting[1]

    def _payable(self, chosen: Sequence[Priced], rest: Fraction) -> list[Priced]:
        """Of a batch's picks those that fit together, into the model and the budget; at the price of all that is left, if
        less than `rest` would remain."""
        kept: list[Priced] = []
        price, size = Fraction(0), self._room.size
        mb = size.mb
        for pick in chosen:
            grown = size.together([p.candidate for p in (*kept, pick)], max(self._limit_mb, mb))
            fits = grown <= self._limit_mb or grown == mb
            if fits and price + pick.rho <= self.left:
                kept.append(pick)
                price, mb = price + pick.rho, grown
            else:
                if not fits:
                    self._room.recount(pick.candidate)
                self.observe(
                    "select",
                    "left_out",
                    round=self._rounds[pick.candidate],
                    clique=list(pick.candidate.columns),
                    bins=self.bins(pick.candidate),
                )
        if kept and self.left - price < rest:
            scale = self.left / price
            return self._priced({p.candidate: p.rho for p in kept}, scale, Fraction(1))
        return kept

    def _measure_batch(
        self, batch: Sequence[Priced], before: dict[Candidate, NDArray[np.float64]]
    ) -> list[Bought]:
        """Measure and refit; what each taught."""
        cliques = [p.candidate.clique for p in batch]
        self._measure(cliques, [p.sigma2 for p in batch], [self._rounds.get(p.candidate, 0) for p in batch])
        for p, m in zip(batch, self.measurements[-len(batch) :], strict=True):
            self.observe(
                "measure",
                "measured",
                round=m.round,
                clique=list(p.candidate.columns),
                bins=self.bins(p.candidate),
                sigma=root(p.sigma2),
                cells=len(m.values),
                noisy_l1_to_model=float(np.abs(m.values - before[p.candidate]).sum()),
                l1_of_noise=float(p.noise),
                **self.spending(),
            )
        if self._is_spent():
            self.refit(self.rounds, FINAL_ITERATIONS)
        else:
            self.refit(self.rounds, ROUND_ITERATIONS, ROUND_TOLERANCE)
        after = answers(self.model, [p.candidate for p in batch], self.resolutions)
        return [
            Bought(float(np.abs(now - before[p.candidate]).sum()), float(p.noise))
            for p, now in zip(batch, after, strict=True)
        ]

    def _measure(
        self, cliques: Sequence[tuple[str, ...]], sigma2: Sequence[Fraction], rounds: Sequence[int]
    ) -> None:
        values = self.oracle.measure([self.handles[clique] for clique in cliques], sigma2)
        self.spent += sum((self.plan.charges.measuring(of) for of in sigma2), Fraction(0))
        self.measurements += [
            Measured(clique, of, number, noisy, tuple(self.levels[n] for n in clique if n in self.levels))
            for clique, of, number, noisy in zip(cliques, sigma2, rounds, values, strict=True)
        ]
