"""AIM: an adaptive, iterative mechanism for synthetic data, on any marginal oracle (`plan`: before a run; `loop`: the run).

Importing this needs the standard library only; NumPy and the model are loaded by `run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.aim.plan import AimConfig, AimPlan, plan
from synth.plan import Observe, unobserved

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.run import Synthesis

__all__ = ["AimConfig", "AimPlan", "Observe", "plan", "run"]


def run(oracle: MarginalOracle, plan: AimPlan, observe: Observe = unobserved) -> Synthesis:
    """Run a plan on an oracle: see `synth.aim.loop.run`."""
    from synth.aim import loop

    return loop.run(oracle, plan, observe)
