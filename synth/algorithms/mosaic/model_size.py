"""How large the model of a run of Mosaic would become with one marginal more, and which candidates there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from synth.algorithms.mosaic.candidates import Candidate
from synth.mrf import SizeEstimator

if TYPE_CHECKING:
    from synth.algorithms.mosaic.loop import MosaicRun

RECOUNTED, ROOM, MIN_SHARE = 3, 8.0, 0.02
"""By how much a candidate would enlarge the model is counted in every third list; in the others it is taken to fit where there is
room for so many times as large a share, and as this one."""


class ModelSize:
    """How large the model of what a run has measured would become. mb: without anything more."""

    def __init__(self, run: MosaicRun) -> None:
        cliques = [*run.followed, *run.plan.domain.impossible]
        loose = run.levels.keys() - {name for clique in cliques for name in clique}
        self._size = SizeEstimator(run.chains.sizes, cliques, run.chains.coarser, loose, run.column_set)
        self.mb = self._size.mb

    def beside(self, candidate: Candidate, limit_mb: float) -> float:
        """MiB with the candidate, and with the levels it brings; something above the limit if it is that, and
        more than `mb`."""
        return self._size.with_clique(candidate.clique, max(limit_mb, self.mb))

    def together(self, candidates: Sequence[Candidate], limit_mb: float) -> float:
        """MiB with all of these; something above the limit if it is that. limit_mb: at least `mb`."""
        return self._size.with_cliques([c.clique for c in candidates], limit_mb)


class Room:
    """Of a run's candidates those that there is room for, list by list; sizes are taken over from one list to later ones."""

    def __init__(self, run: MosaicRun) -> None:
        self._run = run
        self.size: ModelSize
        """Of the model that the last list was for; there is none before."""
        self._grown: dict[Candidate, float] = {}
        self._enlarges: dict[Candidate, float] = {}  # the model, by what share of its size
        self._lists = 0

    def recount(self, candidate: Candidate) -> None:
        """It is not to be taken to fit again."""
        self._enlarges.pop(candidate, None)

    def fitting(self, offered: Sequence[Candidate], limit_mb: float) -> set[Candidate]:
        """Those that keep the model within the limit, or are in it already.

        Of a set of columns, what is coarser than one that fits is taken to fit; what was too large for a smaller model to be
        still so; and what enlarged the model by a share when it was last counted, to do so by no more than `ROOM` times that
        share now: picks are looked at again before they are measured. In a dry run, what fitted then is taken to fit.
        """
        size = self.size = ModelSize(self._run)
        found = set[Candidate]()
        finest: dict[tuple[str, ...], int] = {}
        if self._lists % RECOUNTED == 0:
            self._enlarges.clear()
        self._lists += 1
        room = 0.0 if self._run.oracle.presumed else ROOM
        enlarges, mb = self._enlarges, size.mb
        for candidate in sorted(offered, key=attrgetter("cells"), reverse=True):
            cells, columns = candidate.cells, candidate.columns
            if finest.get(columns, 0) >= cells:
                found.add(candidate)
                continue
            share = enlarges.get(candidate)
            if share is not None and mb * (1 + room * max(MIN_SHARE, share)) <= limit_mb:
                finest[columns] = cells
                found.add(candidate)
            elif self._grown.get(candidate, 0.0) <= limit_mb:
                grown = self._grown[candidate] = size.beside(candidate, limit_mb)
                if grown <= limit_mb or grown == mb:
                    enlarges[candidate] = grown / mb - 1
                    finest[columns] = cells
                    found.add(candidate)
        return found
