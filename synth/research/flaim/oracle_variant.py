"""Descriptor of `[flaim] variant = "oracle"`: clients choose by how far the truth, and not a model, is from
the model.

It opens everybody's true marginals, which nobody may know: THERE IS NO PRIVACY CLAIM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from synth.algorithms.flaim.variant import Exposure, Variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Cohorts
    from synth.algorithms.flaim.plan import FlaimPlan
    from synth.algorithms.flaim.questions import Asked
    from synth.research.flaim import truth
else:
    truth = Later("synth.research.flaim.truth")


class TrueMarginals(Exposure):
    """Of all rows together, as little-endian int64."""

    def references(
        self,
        plan: FlaimPlan,
        cohorts: Cohorts,
        candidates: Sequence[Clique],
        opened: dict[Clique, NDArray[np.int64]],
    ) -> bytes:
        return truth.references(plan, cohorts, candidates, opened)

    def scores(
        self,
        plan: FlaimPlan,
        asked: Asked,
        counts: Mapping[Clique, NDArray[np.int64]],
        l1: Mapping[Clique, int],
        scale: int,
        as_own: Callable[[Sequence[NDArray[np.float64]]], list[NDArray[np.int64]]],
    ) -> list[int]:
        return truth.scores(plan, asked, counts, l1, scale, as_own)


VARIANT = Variant("oracle", "AugFLAIM (Oracle)", 3, exposes=TrueMarginals())
