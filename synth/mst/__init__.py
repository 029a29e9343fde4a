"""MST: a maximum spanning tree of two-column marginals, on any marginal oracle (`plan`: before a run; `loop`: the run).

Importing this needs the standard library only; NumPy and the model are loaded by `run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.mst.plan import MstConfig, MstPlan, plan
from synth.plan import Observe, unobserved

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.run import Synthesis

__all__ = ["MstConfig", "MstPlan", "plan", "run"]


def run(oracle: MarginalOracle, plan: MstPlan, observe: Observe = unobserved) -> Synthesis:
    """Run a plan on an oracle: see `synth.mst.loop.run`."""
    from synth.mst import loop

    return loop.run(oracle, plan, observe)
