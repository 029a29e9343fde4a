"""What a client chooses by: how far its own marginals are from the public model's, in whole counts, and a
private choice.

With n^ the client's noisy number of rows, p_q the model's marginal, N^ the noisy rows of the cohort
(`docs/design/flaim.md` 2.2):

    D_q = L1(M_q - n^ p_q) - tau_q         tau_q = mean over j in q of L1(M_j - n^ p_j), or 0
    u_q = w_q (D_q - sqrt(2/pi) sigma n_q n^ / N^)

A row moves L1 by at most 1 when it is added or removed, so D_q by at most 1, with tau by 2. Answers n^ p_q
are rounded by the public systematic rounding (`docs/design/mechanisms.md` 2.1), and D_q is kept as an
integer, a multiple of itself (`lcm_of`), so that the choice is that of the integer mechanism
(`docs/design/mechanisms.md` 1) with all that is proven of it. Nothing here leaves the client but the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from mpc_protocols.mechanisms import gumbel, selection
from mpc_protocols.mechanisms.rounding import systematic
from mpc_protocols.mechanisms.selection import plan_selection

Counts = NDArray[np.int64]
Randomness = Callable[[int], bytes]
"""So many independent uniform bytes."""


def lcm_of(cliques: Sequence[Clique]) -> int:
    """What distances are multiplied by so that means over the columns of each clique are integers."""
    return math.lcm(*(len(clique) for clique in cliques))


def scaled_to(shares: Sequence[NDArray[np.float64]], rows: int, theta: float, bound: int) -> list[Counts]:
    """A model's normalised marginals as whole counts of about so many rows, at least none. theta: of the
    public rounding."""
    return systematic([max(rows, 0) * share for share in shares], bound, theta)


def distances(
    counts: Mapping[Clique, Counts], answers: Mapping[Clique, Counts], cliques: Sequence[Clique]
) -> dict[Clique, int]:
    """L1(M_q - c_q) of each clique."""
    return {clique: int(np.abs(counts[clique] - answers[clique]).sum()) for clique in cliques}


def against_columns(l1: Mapping[Clique, int], cliques: Sequence[Clique], scale: int) -> list[int]:
    """scale times (L1_q - mean of L1_j over the columns of q); scale: of `lcm_of`. A row moves each by at
    most 2 scale."""
    return [
        scale * l1[clique] - scale // len(clique) * sum(l1[(column,)] for column in clique)
        for clique in cliques
    ]


def choose(
    scores: Sequence[int],
    weights: Sequence[Fraction],
    penalties: Sequence[Fraction],
    epsilon: Fraction,
    *,
    factor: int,
    highest: int,
    lowest: int,
    randomness: Randomness,
) -> int:
    """The position of the chosen candidate: the exponential mechanism by integer keys, charged epsilon^2 / 8.

    scores: D_q, integers between -lowest and highest whatever the data. penalties: in the same units. factor:
    how much a unit moves a score at most. Raises `StudyInvalid` if no ring holds the keys.
    """
    raised = [penalty + lowest for penalty in penalties]
    plan = plan_selection(weights, raised, epsilon, [0] * len(scores), highest + lowest, factor)
    keys = [
        plan.weights[q] * (min(max(scores[q], -lowest), highest) + lowest) - plan.biases[q]
        for q in plan.contenders
    ]
    uniforms = [_uniform(randomness, gumbel.BITS) for _ in keys]
    dithers = [_uniform(randomness, plan.a) for _ in keys]
    return plan.contenders[selection.reference(keys, uniforms, dithers, plan.a)]


def _uniform(randomness: Randomness, bits: int) -> int:
    return int.from_bytes(randomness((bits + 7) // 8), "big") >> -bits % 8
