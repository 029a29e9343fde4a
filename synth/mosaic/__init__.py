"""Mosaic: AIM with resolutions, on any marginal oracle (`plan`: before a run; `bins`, `candidates`: once the columns are known;
`loop`: the run).

A marginal may be asked over bins of its columns: far fewer cells at the same sensitivity, so the budget pays for many more of
them, and the model hangs the fine column off its coarse one. Bins come from the released one-column marginals.

Importing this needs the standard library only; NumPy and the model are loaded by `run`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth.mosaic.plan import MosaicConfig, MosaicPlan, plan
from synth.plan import Observe, unobserved

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.run import Synthesis

__all__ = ["MosaicConfig", "MosaicPlan", "Observe", "plan", "run"]


def run(oracle: MarginalOracle, plan: MosaicPlan, observe: Observe = unobserved) -> Synthesis:
    """Run a plan on an oracle: see `synth.mosaic.loop.run`."""
    from synth.mosaic import loop

    return loop.run(oracle, plan, observe)
