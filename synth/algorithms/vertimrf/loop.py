"""VertiMRF's run: PrivMRF's (`synth.algorithms.privmrf.loop`), whose graph takes the dependent pairs inside
each owner's columns first, as long as the junction tree stays within a quarter of its limit, and then all
others within the whole of it.

All questions go to the oracle, also those about one owner's columns: a model that an owner fitted alone would
describe its whole table, not the hidden intersection, and its noise would be known to that owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.functionality import unobserved
from synth.algorithms.privmrf.graph import dependent_pairs
from synth.algorithms.privmrf.loop import PrivMrfRun

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.algorithms.vertimrf.plan import VertiMrfPlan
    from synth.synthesis import Synthesis

OWN_SHARE = 1 / 4
"""Of the graph's limit, for the structure inside the owners' columns."""


def run(oracle: MarginalOracle, plan: VertiMrfPlan, observe: Observe = unobserved) -> Synthesis:
    """Run VertiMRF on an oracle; see `synth.algorithms.privmrf.loop.run`."""
    return VertiMrfRun(oracle, plan, observe).carry_out()


class VertiMrfRun(PrivMrfRun):
    """A run of VertiMRF."""

    plan: VertiMrfPlan

    def joined_pairs(self) -> list[Clique]:
        """See `PrivMrfRun`."""
        plan, sizes = self.plan, self.plan.domain.sizes
        own = {pair: value for pair, value in self.dependence.items() if plan.is_one_owners(pair)}
        others = {pair: value for pair, value in self.dependence.items() if pair not in own}
        first = dependent_pairs(sizes, own, OWN_SHARE * self.graph_mb)
        return dependent_pairs(sizes, others, self.graph_mb, first)
