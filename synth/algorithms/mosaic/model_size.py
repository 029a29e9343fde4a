"""How large the model of a run of Mosaic would become with one marginal more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synth.algorithms.mosaic.candidates import Candidate
from synth.mrf import SizeEstimator

if TYPE_CHECKING:
    from synth.algorithms.mosaic.loop import MosaicRun


class ModelSize:
    """How large the model of what a run has measured would become. mb: without anything more."""

    def __init__(self, run: MosaicRun, beside: Sequence[Candidate] = ()) -> None:
        cliques = [*run.followed, *(c.clique for c in beside), *run.plan.domain.impossible]
        loose = run.levels.keys() - {name for clique in cliques for name in clique}
        self._size = SizeEstimator(run.chains.sizes, cliques, run.chains.coarser, loose, run.column_set)
        self.mb = self._size.mb

    def beside(self, candidate: Candidate, limit_mb: float) -> float:
        """MiB with the candidate, and with the levels it brings; something above the limit if it is that, and
        more than `mb`."""
        return self._size.with_clique(candidate.clique, max(limit_mb, self.mb))
