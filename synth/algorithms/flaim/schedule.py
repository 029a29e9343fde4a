"""Who is invited when, where all clients are there from beginning to end: cohorts of about equal size, dealt
by a public seed.

With K clients, at most R participations and T rounds there are K R invitations. They are dealt round after
round to the clients in a public random order, again and again from its beginning: each round's are to
different clients, since R is at most T. Where that would make a cohort smaller than two groups there are
fewer rounds: in a cohort of one group, a marginal that enough clients chose is what every one of them chose.
With fewer clients than two groups every cohort is of everybody. Arrivals that come by themselves are
simulated instead (`bench utility --federated`). Who is invited is public; nothing private is gained from it
or lost by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synth.algorithms.flaim.plan import FlaimPlan


def deal(plan: FlaimPlan, clients: Sequence[int], session: bytes) -> list[tuple[int, ...]]:
    """The clients of each round, at least twice the group where there are so many; no round for fewer than
    the group.

    session: public id of the run.
    """
    if len(clients) < plan.config.group:
        return []
    invitations = len(clients) * plan.participations
    least = min(2 * plan.config.group, len(clients))
    rounds = min(plan.config.rounds, invitations // least) if plan.variant.in_rounds else 1
    order = sorted(clients, key=lambda client: _place(session, client))
    cuts = [invitations * number // rounds for number in range(rounds + 1)]
    return [
        tuple(sorted(order[slot % len(order)] for slot in range(begin, end))) for begin, end in pairwise(cuts)
    ]


def _place(session: bytes, client: int) -> bytes:
    return hashlib.sha256(b"cosynth order of clients\0" + client.to_bytes(8, "big") + session).digest()
