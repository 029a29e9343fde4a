"""AIM: an adaptive, iterative mechanism for synthetic data, on any marginal oracle (`plan`: before a run; `loop`: the run).

Importing this needs the standard library only; NumPy and the model are loaded by `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from synth.aim.plan import AimConfig, AimPlan, plan

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.aim.loop import Synthesis

__all__ = ["AimConfig", "AimPlan", "Observe", "plan", "run"]

Observe = Callable[..., None]
"""observe(phase, event, **public_json_fields)"""


def _unobserved(phase: str, event: str, **fields: object) -> None:
    """For callers that do not want to know."""


def run(oracle: MarginalOracle, plan: AimPlan, observe: Observe = _unobserved) -> Synthesis:
    """Run a plan on an oracle: see `synth.aim.loop.run`."""
    from synth.aim import loop

    return loop.run(oracle, plan, observe)
