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
        self._chains = run.chains
        self._used = {n: run.levels[n] for clique in cliques for n in clique if n in run.levels}
        self._loose = {name for name in run.levels if name not in self._used}
        self._size = SizeEstimator(
            self._chains.sizes, cliques, self._chains.coarser, self._loose, run.column_set
        )
        self.mb = self._size.mb

    def beside(self, candidate: Candidate, limit_mb: float) -> float:
        """MiB with the candidate, and with the levels it brings; something above the limit if it is that, and
        more than `mb`."""
        ties = [self._chains.beside(name, self._used) for name in candidate.clique if name in self._loose]
        return self._size.with_clique(candidate.clique, ties, max(limit_mb, self.mb))
