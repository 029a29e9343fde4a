"""A scripted oracle that knows levels, several picks and a variance per handle."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Event, Handle, Level
from tests.synth.oracles import ScriptedOracle


class LayeredOracle(ScriptedOracle):
    """`ScriptedOracle` at several resolutions.

    With `rng` it picks any candidate that the earlier picks leave, and measures nonsense.
    """

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        known = self.__dict__.setdefault("levels", {})
        known.update({level.name: level for level in levels})
        self.handles += cliques
        return list(range(len(self.handles) - len(cliques), len(self.handles)))

    def truth(self, clique: Clique) -> NDArray[np.int64]:
        levels = self.__dict__.get("levels", {})
        columns = tuple(levels[name].column if name in levels else name for name in clique)
        [cells] = self.counts([columns])
        table = cells.reshape([self.facts.sizes[name] for name in columns])
        for axis, name in enumerate(clique):
            if name in levels:
                bins = np.array(levels[name].bins)
                summed = np.zeros(
                    [*table.shape[:axis], levels[name].size, *table.shape[axis + 1 :]], np.int64
                )
                np.add.at(np.moveaxis(summed, axis, 0), bins, np.moveaxis(table, axis, 0))
                table = summed
        return table.reshape(-1)

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        for _ in range(picks):
            beta = len(handles) * Fraction(1, 2**70)
            self.guard.authorise(Event("select", self.charges.selecting(epsilon), beta), b"")
        cliques = [self.handles[handle] for handle in handles]
        self.selections.append((cliques, list(weights), list(penalties), epsilon))
        truths = [self.truth(clique) for clique in cliques]
        assert all(answer.shape == truth.shape for answer, truth in zip(answers, truths, strict=True))
        scores = [
            float(w) * (np.abs(truth - answer).sum() - float(penalty))
            for w, truth, answer, penalty in zip(weights, truths, answers, penalties, strict=True)
        ]
        against: dict[int, set[int]] = {}
        for a, b in conflicts:
            assert 0 <= a < b < len(handles)
            against.setdefault(a, set()).add(b)
            against.setdefault(b, set()).add(a)
        left, found = list(range(len(handles))), list[int]()
        while left and len(found) < picks:
            pick = int(self.rng.choice(left)) if self.rng is not None else max(left, key=lambda q: scores[q])
            found.append(pick)
            left = [q for q in left if q != pick and q not in against.get(pick, ())]
        return found

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        each = [sigma2] * len(handles) if isinstance(sigma2, Fraction) else list(sigma2)
        rho = sum((self.charges.measuring(of) for of in each), Fraction(0))
        beta = sum((self.charges.distance(of) for of in each), Fraction(0))
        self.guard.authorise(Event("measure", rho, beta), b"")
        return self.released([self.truth(self.handles[handle]) for handle in handles])
