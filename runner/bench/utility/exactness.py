"""An oracle that leaves out some of the noise, to see what the noise costs: for public data only, it protects
nothing.

Every question is put to the oracle behind it, which charges for it and draws its noise as always. Then what
is to be exact is replaced: the picks by those of the largest scores, the noisy counts by the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpc_protocols.functionality import Clique, Handle, Level, MarginalOracle
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain


class Exactness(NamedTuple):
    """Which answers come without noise."""

    selection: bool = False
    measurements: bool = False

    def __str__(self) -> str:
        parts = [name for name, exact in zip(self._fields, self, strict=True) if exact]
        return " and ".join(parts) or "nothing"


NOTHING = Exactness()
VARIANTS = (NOTHING, Exactness(True, False), Exactness(False, True), Exactness(True, True))


class KnowingOracle(RelayedOracle):
    """`oracle` with the answers in `exact` replaced by what the rows themselves say. codes: (rows, columns of
    the domain)."""

    def __init__(
        self, oracle: MarginalOracle, domain: Domain, codes: NDArray[np.int64], exact: Exactness
    ) -> None:
        super().__init__(oracle)
        self._exact = exact
        self._sizes = dict(domain.sizes)
        self._values = dict(zip(domain.names, codes.T, strict=True))
        self._cliques: dict[Handle, Clique] = {}
        self._counted: dict[Clique, NDArray[np.int64]] = {}

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        for level in levels:
            self._sizes[level.name] = level.size
            self._values[level.name] = np.array(level.bins)[self._values[level.column]]
        handles = self.oracle.prepare(cliques, levels)
        self._cliques.update(zip(handles, cliques, strict=True))
        return handles

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
        noisy = self.oracle.select(handles, answers, weights, penalties, epsilon, picks, conflicts)
        if not self._exact.selection:
            return noisy
        scores = np.array(
            [
                float(weight) * (float(np.abs(self._counts(handle) - answer).sum()) - float(penalty))
                for handle, answer, weight, penalty in zip(handles, answers, weights, penalties, strict=True)
            ]
        )
        found: list[int] = []
        while len(found) < picks and scores.max() > -np.inf:
            found.append(int(scores.argmax()))
            excluded = {a + b - found[-1] for a, b in conflicts if found[-1] in (a, b)}
            scores[[found[-1], *excluded]] = -np.inf
        return found

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        noisy = self.oracle.measure(handles, sigma2)
        return [self._counts(handle) for handle in handles] if self._exact.measurements else noisy

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        noisy = self.oracle.distances(handles, answers, sigma2)
        if not self._exact.measurements:
            return noisy
        exact = [np.abs(self._counts(h) - answer).sum() for h, answer in zip(handles, answers, strict=True)]
        return np.rint(exact).astype(np.int64)

    def _counts(self, handle: Handle) -> NDArray[np.int64]:
        clique = self._cliques[handle]
        if clique not in self._counted:
            sizes = [self._sizes[name] for name in clique]
            cells = np.ravel_multi_index([self._values[name] for name in clique], sizes)
            self._counted[clique] = np.bincount(cells, minlength=int(np.prod(sizes)))
        return self._counted[clique]
