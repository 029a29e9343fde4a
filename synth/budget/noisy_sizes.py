"""What the noisy sizes of an alignment add to an epsilon: by their rho or by their epsilons, whichever is
less.

A size (`mpc_protocols.psu.dummies`) is pure epsilon-DP but for truncated tails of probability delta. So it is
delta-approximate (epsilon^2 / 2)-zCDP (Bun-Steinke 2016, definition 8.1): its rho adds to rho, its delta to
delta. By basic composition its epsilon adds to the epsilon of everything else as well. Both sums hold for
releases that are fixed beforehand, so the lesser one does. The second is less where a few sizes are most of
the sum: the conversion of zCDP pays for Gaussian tails, which sizes do not have. What a cap may rest on:
`docs/design/accounts.md` 7. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from mpc_protocols.functionality import Event
from synth.budget.accounting import Budget, epsilon_beside, epsilon_of


def epsilon_of_both(rho: Fraction, sizes: Sequence[Fraction], delta: Fraction, beta: Fraction) -> float:
    """The lesser epsilon, rounded up, of releases that come to rho at this delta; infinite if there is none.

    sizes: rho of each noisy size among them. delta: without the deltas of the sizes. beta: of all samplers.
    """
    rest = rho - sum(sizes, Fraction(0))
    epsilons = sum(math.nextafter(math.sqrt(2 * each), math.inf) for each in sizes)  # rho = epsilon^2 / 2
    by_epsilon = math.nextafter(epsilon_beside(rest, delta, beta) + epsilons, math.inf)
    return min(epsilon_beside(rho, delta, beta), by_epsilon)


def view(epsilon: float, delta: float, budget: Budget, sizes: Sequence[Event]) -> tuple[float, float]:
    """(epsilon, delta) of a study's results, which keep the promise (epsilon, delta), and of these sizes on
    top.

    The samplers' statistical distance is taken off at the larger epsilon, where it leaves half of delta;
    elsewhere the sum by epsilons stands.
    """
    total = epsilon + math.fsum(float(cast(float, event.detail["epsilon"])) for event in sizes)
    rest = delta - (1 + math.exp(min(total, 700.0))) * float(budget.beta_cap)
    if sizes and rest >= 0.5 * delta:
        rho = budget.rho_cap + sum((event.rho for event in sizes), Fraction(0))
        total = min(total, epsilon_of(rho, rest))
    return total, delta + math.fsum(float(event.beta) for event in sizes)
