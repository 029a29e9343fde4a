"""What an audit asks of an oracle: every kind of question, and what must have been authorised for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, MarginalOracle

EPSILON = Fraction(1, 2)
PICKS = 2
NO_NOISE = Fraction(1, 64)
"""A variance at which a draw is not 0 with a chance of 3e-14."""


@dataclass(frozen=True)
class Asked:
    """What was opened, in order. what: as events call it. cliques: of the marginals. sigma2: of each;
    epsilon: of a pick."""

    what: str
    cliques: tuple[Clique, ...] = ()
    sigma2: tuple[Fraction, ...] = ()
    epsilon: Fraction = Fraction(0)


def every_kind(
    oracle: MarginalOracle, columns: Sequence[str], sigma2: Fraction, rows: int
) -> tuple[list[Asked], list[NDArray[np.int64]]]:
    """Ask each kind of question; what was opened, and the noisy counts and distances. rows: about how many
    there are."""
    a, b, c = columns[:3]
    singles: list[Clique] = [(a,), (b,), (c,)]
    pairs: list[Clique] = [(a, b), (b, c), (a, c)]
    asked: list[Asked] = []
    handles = oracle.prepare(singles)
    oracle.expect_keys(len(pairs))  # of the first selection
    found = list(oracle.measure(handles, sigma2))
    asked.append(Asked("measure", tuple(singles), (sigma2,) * 3))
    wide = oracle.prepare(pairs)
    cells = [oracle.facts.cells(pair) for pair in pairs]
    answers = [np.full(n, rows / n) for n in cells]
    weights, penalties = [Fraction(2), Fraction(3), Fraction(1)], [Fraction(0)] * 3
    oracle.select(wide, answers, weights, penalties, EPSILON)
    oracle.select(wide, answers, weights, penalties, EPSILON, PICKS)
    asked += [Asked("select", epsilon=EPSILON)] * (1 + PICKS)
    each = [sigma2, 2 * sigma2, 4 * sigma2]
    found += oracle.measure(wide, each)
    asked.append(Asked("measure", tuple(pairs), tuple(each)))
    found.append(oracle.distances(wide, answers, sigma2))
    asked.append(Asked("distances", tuple(pairs), (sigma2,) * 3))
    found.append(np.array([oracle.total(sigma2)], np.int64))
    asked.append(Asked("total", sigma2=(sigma2,)))
    return asked, found
