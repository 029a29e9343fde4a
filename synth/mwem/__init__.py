"""MWEM+PGM: multiplicative weights' rounds on a graphical model, on any marginal oracle (`plan`: before a run; `loop`: the run).

Importing this needs the standard library only; NumPy and the model are loaded by `run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.mwem.plan import MwemConfig, MwemPlan, plan
from synth.plan import Observe, unobserved

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.run import Synthesis

__all__ = ["MwemConfig", "MwemPlan", "plan", "run"]


def run(oracle: MarginalOracle, plan: MwemPlan, observe: Observe = unobserved) -> Synthesis:
    """Run a plan on an oracle: see `synth.mwem.loop.run`."""
    from synth.mwem import loop

    return loop.run(oracle, plan, observe)
