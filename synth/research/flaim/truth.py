"""True marginals of everybody: how the server gets them, and how a client takes its distance from them off
that from the model.

With M_q a client's marginal, n^ p_q the model's and n^ t_q the true one, both at the client's number of rows:

    D_q = L1(M_q - n^ p_q) - L1(M_q - n^ t_q)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Cohorts
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.questions import Asked, question_of
from synth.algorithms.flaim.scores import Counts, distances


def references(
    plan: FlaimPlan, cohorts: Cohorts, candidates: Sequence[Clique], opened: dict[Clique, Counts]
) -> bytes:
    """The true marginals of these candidates; those that are not open yet are opened and added."""
    unknown = tuple(clique for clique in candidates if clique not in opened)
    if unknown:
        everybody = tuple(cohorts.clients)
        cells = [plan.candidates[clique] for clique in unknown]
        question = question_of(plan, Asked("truth", 0, unknown))
        revealed = cohorts.reveal(question, everybody, plan.exposed_event(list(everybody), unknown))
        opened |= dict(zip(unknown, np.split(revealed, np.cumsum(cells)[:-1]), strict=True))
    return b"".join(opened[clique].astype("<i8").tobytes() for clique in candidates)


def scores(
    plan: FlaimPlan,
    asked: Asked,
    counts: Mapping[Clique, Counts],
    l1: Mapping[Clique, int],
    scale: int,
    as_own: Callable[[Sequence[NDArray[np.float64]]], list[Counts]],
) -> list[int]:
    """scale times D_q of each candidate. Raises `ProtocolAborted`: the marginals were not sent."""
    cliques = asked.cliques
    cells = [plan.candidates[clique] for clique in cliques]
    if len(asked.references) != 8 * sum(cells):
        raise ProtocolAborted(
            "A client was asked to choose without true marginals to compare with; stop the run."
        )
    marginals = np.split(np.frombuffer(asked.references, "<i8"), np.cumsum(cells)[:-1])
    true = as_own([marginal / max(1, int(marginal.sum())) for marginal in marginals])
    skew = distances(counts, dict(zip(cliques, true, strict=True)), cliques)
    return [scale * (l1[clique] - skew[clique]) for clique in cliques]
