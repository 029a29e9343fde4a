"""Marginals that a run measures whatever it selects, with a share of the budget that nothing else may take.

Problem: what a selection picks follows from the data, so nobody can say before a run that a question will be
answered with an interval, and how wide. The study names its questions (`[inference] queries`); the marginals
that hold their columns (`synth.inference.needed`) are measured in one batch, right after the columns, at full
resolution and with the same noise each; the rest of the budget is the algorithm's, whose model and selections
see what was measured.

A planner asks `beside` for the two functions that `synth.plan.calibrate` takes, and plans with `rest` of what
that finds; the run calls `Run.measure_reserved`. rho: of `cliques` together the share, so that all of the
run's is at most the cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mpc_protocols.functionality import Clique
from synth.budget.charges import Charges

Function = Callable[[Fraction], Fraction]


@dataclass(frozen=True)
class Reserved:
    """cliques: in domain order, none inside another. share: of rho, for all of them; 0 where there is none."""

    cliques: tuple[Clique, ...] = ()
    share: Fraction = Fraction(0)

    def rest(self, rho: Fraction) -> Fraction:
        """What is left of it for everything else."""
        return (1 - self.share) * rho

    def sigma2(self, charges: Charges, rho: Fraction) -> Fraction:
        """The noise of each of these marginals, of a run that may spend rho."""
        return charges.sigma2(self.share * rho / len(self.cliques))

    def beside(self, charges: Charges, widest: Function, distance: Function) -> tuple[Function, Function]:
        """The most noise of any question, by rho, and the bound of beta, by that noise, with these marginals;
        without them as given."""
        if not self.cliques:
            return widest, distance
        return (
            lambda rho: max(widest(self.rest(rho)), self.sigma2(charges, rho)),
            lambda sigma2: distance(sigma2) + len(self.cliques) * charges.distance(sigma2),
        )


NOTHING_RESERVED = Reserved()
