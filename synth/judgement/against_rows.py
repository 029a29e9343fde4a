"""Which relations of real rows a table carries. OFFLINE ONLY: a function of real rows, and so itself a
release.

For each pair of columns with the real rows' counts y, of N rows, and r = y - (row sums)(column sums)/N:

    related    the score of y (`dependence.score`, without noise) is beyond what drawing rows gives one of all the pairs in
               ten tables of independent columns
    carried    <r of the table, r> / (||r||^2 - what drawing adds), both as shares of their rows: 1 of a table that repeats the
               relation, 0 of one without it, below 0 of one that turns it round. Rows drawn do not favour a table: what drawing
               adds to r has nothing to do with it
    kept       related, and at least half of it carried
    strength   Cramer's V, corrected for the number of rows (Bergsma 2013, "A bias-correction for Cramer's V and Tschuprow's T")
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synth.judgement.dependence import PairCounts, residual, score
from synth.judgement.metrics import marginal
from synth.judgement.relations import KEPT, cramers_v, threshold

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.domain import Domain

Codes = NDArray[np.integer[Any]]

_NO_NOISE = 1e-6  # the variance of counts that nothing was added to; the score divides by it


@dataclass(frozen=True)
class PairBeside:
    """real, table: Cramer's V of either, 0 to 1. carried: of the real relation, by the table; None where the
    rows show none."""

    columns: Clique
    real: float
    table: float
    carried: float | None

    @property
    def kept(self) -> bool:
        """Whether it is a relation, and the table has it."""
        return self.carried is not None and self.carried >= KEPT


def beside(real: Codes, table: Codes, domain: Domain, pairs: Sequence[Clique]) -> list[PairBeside]:
    """Each pair in the real rows and in a table; both (rows, columns) of codes, neither empty."""
    limit = threshold(len(pairs))
    return [_pair(real, table, domain, pair, limit) for pair in pairs]


def _pair(real: Codes, table: Codes, domain: Domain, pair: Clique, limit: float) -> PairBeside:
    shape = tuple(domain[name].size for name in pair)
    truth, made = (marginal(of, domain, pair).reshape(shape).astype(np.float64) for of in (real, table))
    strengths = cramers_v(truth, corrected=True), cramers_v(made, corrected=True)
    counts = PairCounts(pair, truth, _NO_NOISE)
    if min(shape) < 2 or score([counts]) <= limit:
        return PairBeside(pair, *strengths, None)
    _, drawn, _ = counts.moments
    ours, theirs = residual(truth), residual(made)
    there = float(np.square(ours).sum()) - drawn * _NO_NOISE
    both = float((ours * theirs).sum()) * len(real) / len(table)
    return PairBeside(pair, *strengths, both / there if there > 0 else math.inf)
