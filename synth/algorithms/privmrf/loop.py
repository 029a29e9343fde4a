"""PrivMRF's run (`plan` fixes noise and candidates, `graph` says what the dependences mean, `synth.run` asks
and fits).

    0   share all pairs; measure all one-way marginals (one batch); fit: columns independent
    1   ask how far each pair is from independence (one batch of noisy L1 distances)
    2   graph of the most dependent pairs within 16 max_model_mb, its junction tree; candidates: sets of columns inside a node
        whose noise is half of their counts at most; share them, once
    3   measure a marginal for each column (one batch); fit
    t   select several of the rest on one pass of scores, measure those that fit the model together (one batch), refit; the last
        batch takes what is left

Graph, tree and candidates are functions of released values. Once there is no candidate left, or no dependence
was seen, what remains sharpens the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.functionality import unobserved
from mpc_protocols.mechanisms.selection import most_candidates
from synth.algorithms.privmrf.graph import dependent_pairs, first_marginals, inside, nodes_of
from synth.algorithms.privmrf.plan import MIN_SHARPENING
from synth.budget.charges import mean_noise
from synth.budget.small import fallback
from synth.budget.small.fallback import joining_cells
from synth.budget.small.small_table import buy_few
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, Run, root
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.algorithms.privmrf.plan import PrivMrfPlan

GRAPH_SHARE = 16
"""Of max_model_mb, for the junction tree of the graph: its nodes only say what may be asked. A model of what
is asked is many times smaller, and each pick keeps it within max_model_mb."""
NOISE_LIMIT = 0.06
"""Of the noise of joining a column to another, as a share of the rows; above it the table is small
(`synth.budget.small.small_table`)."""
THETA = 2
"""A marginal is useful if a cell's mean count is so many times the mean noise in it."""


def run(oracle: MarginalOracle, plan: PrivMrfPlan, observe: Observe = unobserved) -> Synthesis:
    """Run PrivMRF on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is
    released after that.
    """
    return PrivMrfRun(oracle, plan, observe).carry_out()


def small_share(plan: PrivMrfPlan, noisy_total: float) -> float:
    """See `synth.algorithm.Algorithm`."""
    if not plan.pairs:
        return 0.0
    return fallback.small_share(plan, joining_cells(plan.candidates), noisy_total, NOISE_LIMIT)


class PrivMrfRun(Run):
    """A run of PrivMRF. nodes: of the junction tree. dependence: of each pair, as a share of the rows."""

    plan: PrivMrfPlan

    def carry_out(self) -> Synthesis:
        """The whole run."""
        plan = self.plan
        self.share(
            plan.pairs
        )  # first, for columns are sums of pairs: one pass over the owners' rows, not two
        self.measure_columns(plan.one_way, plan.sigma2, 0)
        self.measure_reserved()
        if not plan.pairs:
            self.refit(0, FINAL_ITERATIONS)
            return self.synthesis()
        self.refit(0, ROUND_ITERATIONS)
        if small_share(plan, self.noisy_total):
            buy_few(self, joining_cells(plan.candidates), NOISE_LIMIT, lambda _: 1, plan.rounds[1])
            return self.synthesis()
        candidates = self.look_for_dependence()
        if candidates:
            sigma2 = self.measure_first(candidates)
            self.select_and_measure(candidates, sigma2)
        if self.left > MIN_SHARPENING * plan.budget.rho_cap:
            self.sharpen()
        return self.synthesis()

    @property
    def graph_mb(self) -> float:
        """How large the junction tree of the graph may be."""
        return GRAPH_SHARE * self.plan.config.max_model_mb

    def joined_pairs(self) -> list[Clique]:
        """The edges of the graph."""
        return dependent_pairs(self.plan.domain.sizes, self.dependence, self.graph_mb)

    def look_for_dependence(self) -> list[Clique]:
        """Ask for the pairs' distances; returns the useful candidates inside the tree that they give, shared."""
        plan, pairs = self.plan, self.plan.pairs
        distances = self.oracle.distances(
            [self.handles[pair] for pair in pairs], self.model.marginals(pairs), plan.pairs_sigma2
        )
        self.spent += plan.charges.measuring_distances(plan.pairs_sigma2, len(pairs))
        rows = max(1.0, self.noisy_total)
        self.dependence = {pair: float(value) / rows for pair, value in zip(pairs, distances, strict=True)}
        joined = self.joined_pairs()
        self.nodes = nodes_of(plan.domain.sizes, joined) if joined else []
        self.observe(
            "measure",
            "dependences",
            pairs=len(pairs),
            sigma=root(plan.pairs_sigma2),
            joined=[list(pair) for pair in joined],
            **self.spending(),
        )
        noise = mean_noise(plan.marginal_sigma2(len(plan.domain)))
        useful = [
            clique for clique, cells in plan.candidates.items() if THETA * noise * cells <= Fraction(rows)
        ]
        candidates = inside(self.nodes, useful)
        larger = [clique for clique in candidates if clique not in self.handles]
        if larger:
            self.handles |= dict(zip(larger, self.oracle.prepare(larger), strict=True))
        return candidates

    def measure_first(self, candidates: Sequence[Clique]) -> Fraction:
        """Measure a marginal for each column, and fit; returns the noise, which the next ones have too."""
        first: list[Clique] = []
        for clique in first_marginals(self.plan.domain.names, self.nodes, self.dependence, candidates):
            first += self._within([clique], first)
        sigma2 = self.plan.marginal_sigma2(len(first))
        if first:
            self._measure(first, self.model.marginals(first), sigma2, [0] * len(first))
            self.refit(0, ROUND_ITERATIONS)
        return sigma2

    def select_and_measure(self, candidates: Sequence[Clique], sigma2: Fraction) -> None:
        """Batches of selections, each measured and fitted; the last one has what noise the rest of the budget
        buys."""
        plan, most = self.plan, self.plan.rounds[1]
        measured = {m.clique for m in self.measurements}
        offered = [clique for clique in candidates if clique not in measured]
        for batch in range(plan.most_batches):
            offered = self._within(offered)
            if not offered:
                break
            picks = -(-(most - len(self.selected)) // (plan.most_batches - batch))
            picks = min(picks, len(offered))
            asked = offered[: most_candidates(picks)]  # of the fewest cells
            answers = self.model.marginals(asked)
            chosen = self._select(asked, answers, picks, sigma2)
            kept: dict[
                Clique, tuple[int, int]
            ] = {}  # picks may fit the model one by one, and not all together
            for number, position in enumerate(chosen, len(self.selected) - picks + 1):
                if self._within([asked[position]], list(kept)):
                    kept[asked[position]] = (number, position)
            last = len(self.selected) == most or picks == len(offered)
            if last:
                sigma2 = plan.charges.sigma2(self.left / len(kept))
            numbers = [number for number, _ in kept.values()]
            self._measure(list(kept), [answers[position] for _, position in kept.values()], sigma2, numbers)
            picked = {asked[position] for position in chosen}
            offered = [clique for clique in offered if clique not in picked]
            self.refit(len(self.selected), FINAL_ITERATIONS if last else ROUND_ITERATIONS)
            if last:
                break

    def _within(self, cliques: Sequence[Clique], beside: Sequence[Clique] = ()) -> list[Clique]:
        """Those that keep the model within its limit: a tree of fewer cliques is not always a part of the
        graph's."""
        return self.fitting(cliques, self.plan.config.max_model_mb, beside)

    def _measure(
        self,
        cliques: Sequence[Clique],
        answers: Sequence[NDArray[np.float64]],
        sigma2: Fraction,
        rounds: Sequence[int],
    ) -> None:
        noise = mean_noise(sigma2)
        penalties = [noise * self.plan.candidates[clique] for clique in cliques]
        self.measure_shared(cliques, answers, sigma2, penalties, rounds)

    def _select(
        self, offered: Sequence[Clique], answers: Sequence[NDArray[np.float64]], picks: int, sigma2: Fraction
    ) -> list[int]:
        """Positions of the picks of a batch: distance to the model, less the noise that measuring would
        bring."""
        plan, noise = self.plan, mean_noise(sigma2)
        positions = self.oracle.select(
            [self.handles[clique] for clique in offered],
            answers,
            [Fraction(1)] * len(offered),
            [noise * plan.candidates[clique] for clique in offered],
            plan.epsilon,
            picks,
        )
        self.spent += picks * plan.charges.selecting(plan.epsilon)
        for position in positions:
            self.selected.append(offered[position])
            self.observe(
                "select",
                "selected",
                round=len(self.selected),
                rounds=plan.rounds[1],
                clique=list(offered[position]),
                candidates=len(offered),
                epsilon=float(plan.epsilon),
                **self.spending(),
            )
        return positions
