"""MST's run (`plan` fixes noise and candidates, `synth.run` asks and fits).

    0   measure all one-way marginals (one batch); their sums give the noisy total, the only row count used anywhere; fit
    1   share all candidate pairs, once
    t   candidates: pairs that connect two components and keep the model within max_model_mb; select the one whose marginal
        is farthest from independence (the model stays that of step 0, so that its answers are computed once)
    -   measure the chosen pairs (one batch) with all that is left of rho; fit

Where joining two columns has much noise, it buys a few edges at a time, and goes on while that is worth it
(`synth.budget.small.small_table`).

Each selection reads the data through the oracle alone, and which pairs are offered follows from those chosen
before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.functionality import Observe, unobserved
from synth.algorithms.mst.plan import TRIAL_EDGES, Components
from synth.budget.small import fallback
from synth.budget.small.fallback import joining_cells
from synth.budget.small.small_table import Bought, SmallTable
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, Run
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, MarginalOracle
    from synth.algorithms.mst.plan import MstPlan

NOISE_LIMIT = 0.06
"""Of the noise of joining a column to another, as a share of the rows; above it the table is small."""
SELECTING = 6
"""A selection costs this part of a measurement there."""


def run(oracle: MarginalOracle, plan: MstPlan, observe: Observe = unobserved) -> Synthesis:
    """Run MST on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is
    released after that.
    """
    run = Run(oracle, plan, observe)
    run.measure_columns(plan.one_way, plan.sigma2, 0)
    run.measure_reserved()
    run.refit(0, ROUND_ITERATIONS if plan.candidates else FINAL_ITERATIONS)
    joining = joining_cells(plan.candidates)
    tree = Tree(run)
    if small_share(plan, run.noisy_total):
        small_table(tree, joining)
        return run.synthesis()
    run.share(list(plan.candidates))
    tree.grow(plan.epsilon, len(plan.domain))
    if run.selected:
        tree.measure(run.left, run.selected)
        run.refit(len(run.selected), FINAL_ITERATIONS)
    return run.synthesis()


def small_share(plan: MstPlan, noisy_total: float) -> float:
    """See `synth.algorithm.Algorithm`."""
    return fallback.small_share(plan, joining_cells(plan.candidates), noisy_total, NOISE_LIMIT)


class Tree:
    """The edges of a run, and what the model said of them before any was measured."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.plan: MstPlan = run.plan  # type: ignore[assignment]
        self._components = Components(run.plan.domain.names)
        self._independent: dict[Clique, NDArray[np.float64]] = {}

    def grow(self, epsilon: Fraction, edges: int, offered: Collection[Clique] | None = None) -> list[Clique]:
        """Select up to so many edges more; the model stays that of the columns, so that its answers are
        computed once."""
        run, plan, first = self.run, self.plan, len(self.run.selected)
        if not self._independent:
            candidates = list(plan.candidates)
            self._independent = dict(zip(candidates, run.model.marginals(candidates), strict=True))
        for _ in range(edges):
            apart = [
                q for q in plan.candidates if self._components.apart(q) and (offered is None or q in offered)
            ]
            pairs = run.fitting(apart, plan.config.max_model_mb, beside=run.selected)
            if not pairs:
                break
            nothing, one = [Fraction(0)] * len(pairs), [Fraction(1)] * len(pairs)
            chosen = run.select(pairs, [self._independent[pair] for pair in pairs], one, nothing, epsilon)
            self._components.join(pairs[chosen])
        return run.selected[first:]

    def measure(self, rho: Fraction, edges: Sequence[Clique]) -> list[Fraction]:
        """Measure the edges selected last for so much together; the L1 norms of their noise."""
        sigma2 = self.plan.pair_sigma2(rho, len(edges))
        noise = [self.plan.noise(pair, sigma2) for pair in edges]
        self.run.measure_selected(edges, [self._independent[pair] for pair in edges], sigma2, noise)
        return noise


def small_table(tree: Tree, joining: int) -> None:
    """Few edges at a time, while they are worth it, and the rest of the tree at once where that is
    (`synth.budget.small.small_table`). What is left is the columns'. joining: cells of what joins a column to
    another."""
    run, plan, table = tree.run, tree.plan, SmallTable(tree.run)
    price = table.trial
    if price:
        table.sharpen_columns()
        run.refit(0, ROUND_ITERATIONS)
        run.share(list(plan.candidates))
    while price and run.left >= price:
        each = price / TRIAL_EDGES
        sigma2 = plan.charges.sigma2(each)
        noise_of = {q: plan.noise(q, sigma2) for q in plan.candidates}
        clear = table.clear(noise_of)
        if not run.selected:
            clear = clear or table.telling(noise_of, plan.candidates)
        before = run.left
        edges = tree.grow(plan.charges.epsilon(each / SELECTING), TRIAL_EDGES, clear)
        if not edges:
            break
        answers = run.model.marginals(edges)
        noise = tree.measure(price - (before - run.left), edges)
        run.refit(len(run.selected), ROUND_ITERATIONS)
        moved = [float(np.abs(a - b).sum()) for a, b in zip(run.model.marginals(edges), answers, strict=True)]
        table.learn([Bought(m, float(n)) for m, n in zip(moved, noise, strict=True)], before - run.left)
        if not table.goes_on():
            break
        if table.is_dependent and table.pays(run.left):
            rest = tree.grow(plan.charges.epsilon(run.left / (3 * len(plan.domain))), len(plan.domain))
            if rest:
                tree.measure(run.left, rest)
                run.refit(len(run.selected), FINAL_ITERATIONS)
                return
            break
    if not run.selected or not table.is_dependent:
        run.fall_back(joining, NOISE_LIMIT)
    run.sharpen()
