"""Alignment by row order: the tables are aligned already, row t of every owner is the same record
(`docs/design/psu.md` 6, 3).

Nothing is private about who is in the tables, so nothing is hidden among the owners: the explicit unprotected
alternative to a private set union. The owners state their numbers of rows and the run stops unless all are
equal.

    adjacency "replace"       every owner -> every computing party: n
    adjacency "add-remove"    n is private to the owners. If some computing party owns no columns, the first owner draws a number
                              of EMPTY extra rows, P[K = t] ~ exp(-epsilon |t - c|), t = 0 .. 2c, tells the other owners, and all
                              announce n + K: one event, (epsilon, delta)-DP for one record more or less (`dummies`)

Where two owners have no connection (neither computes), K travels in two halves, K = a + b modulo 2^64 with a
uniform, each through another computing party: one of them alone sees a uniform number. Threat model:
semi-honest, at most one computing party corrupted. An owner that has another number of rows learns that by
the abort, and computing parties by how much: misaligned tables are a mistake in the study, not a secret that
the method keeps.

Cost (`cost`): 8 bytes from every owner to every computing party, and from those to owners that do not
compute; with K 8 to 32 bytes per other owner; 1 round, 2 if some owner does not compute, and those of K.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mpc_protocols.errors import DataRefused, ProtocolAborted
from mpc_protocols.psu.dummies import draw, list_noise
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.randomness import Entropy, system
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.wire import Wire

UNEQUAL = (
    "The owners' tables have different numbers of rows, so they are not aligned by row order; align them, or set "
    '[alignment] method = "psu".'
)
COUNT_BYTES = 8
_WORD = 1 << 64


def onlookers(context: Context) -> list[Member]:
    """Computing parties that own no columns: whom the number of rows is hidden from."""
    return [member for member in context.computing if member not in context.owners]


def align(
    wire: Wire, rows: int | None, spec: AlignmentSpec, context: Context, entropy: Entropy = system
) -> Alignment:
    """One party's part. rows: the number of rows of an owner's table, None without data. Result: row t is row
    t.

    Raises `DataRefused` (more rows than the longest list), `ProtocolAborted` (owners with different numbers
    of rows, or with a number of extra rows that nobody draws).
    """
    sid = context.salt(spec, wire.session_id)
    if rows is not None and rows > spec.max_size:
        raise DataRefused(f"This party has more than {spec.max_size} rows, the most an alignment takes.")
    extra = 0
    if spec.adjacency == "add-remove" and onlookers(context):
        extra = _tell_extra(wire, spec, context, entropy)
    mine = None if rows is None else (rows + extra) % _WORD
    announced = _announce(wire, mine, context)
    if len(set(announced)) > 1:
        raise ProtocolAborted(UNEQUAL)
    total = announced[0]
    if total > spec.max_size + 2 * (list_noise(spec).c if spec.adjacency == "add-remove" else 0):
        raise ProtocolAborted(
            f"The owners announced {total} rows, more than an alignment takes; the alignment was stopped."
        )
    if total < (rows or 0):
        raise ProtocolAborted(
            "The owners announced fewer rows than this party has, so the first of them did not follow the protocol; stop the run."
        )
    return Alignment(
        total, np.arange(rows or 0), digest(b"psu rows", sid, total.to_bytes(COUNT_BYTES, "big"))
    )


def cost(spec: AlignmentSpec, context: Context) -> Cost:
    """Bytes and rounds, by wire number."""
    parties = max(member.number for member in context.members) + 1
    total = Cost(sent=[0] * parties, messages=[0] * parties, clocks=[0] * parties)
    computing, owners = ([member.number for member in of] for of in (context.computing, context.owners))
    if spec.adjacency == "add-remove" and onlookers(context):
        for owner in owners[1:]:
            for path in _paths(owners[0], owner, context):
                for sender, receiver in pairwise(path):
                    total.send(sender, receiver, COUNT_BYTES)
                    total.receive(receiver, sender)
    outside = [owner for owner in owners if owner not in computing]
    for receivers, senders in ((computing, owners), (outside, computing)):
        ways = [(sender, receiver) for sender in senders for receiver in receivers if sender != receiver]
        for sender, receiver in ways:
            total.send(sender, receiver, COUNT_BYTES)
        for sender, receiver in ways:
            total.receive(receiver, sender)
    return total


def _announce(wire: Wire, mine: int | None, context: Context) -> list[int]:
    """Every owner's number of rows, as far as this party learns it: computing parties all of them, an outside
    owner its own and whether it is everybody's (computing parties answer with what they hold)."""
    computing = [member.number for member in context.computing]
    if mine is not None:
        for peer in computing:
            if peer != wire.me:
                wire.send(peer, mine.to_bytes(COUNT_BYTES, "big"))
    if wire.me not in computing:
        return [mine or 0, *(_number(wire, peer) for peer in computing)]
    announced = [
        _number(wire, owner.number) if owner.number != wire.me else mine or 0 for owner in context.owners
    ]
    outside = [owner.number for owner in context.owners if owner.number not in computing]
    for owner in outside:  # any number but its own stops it
        wire.send(
            owner,
            announced[0].to_bytes(COUNT_BYTES, "big") if len(set(announced)) == 1 else b"\xff" * COUNT_BYTES,
        )
    return announced


def _tell_extra(wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy) -> int:
    """K at the owners, 0 elsewhere. The first owner draws it."""
    first = context.owners[0].number
    noise = list_noise(spec)
    extra = draw(noise.epsilon, noise.c, entropy) if wire.me == first else 0
    # not judged by its size: whether K as a relay alters it could still be drawn would tell the relay about K
    relayed = 0
    for owner in context.owners[1:]:
        for share, path in zip(
            _halves(extra, first, owner.number, context), _paths(first, owner.number, context), strict=True
        ):
            for sender, receiver in pairwise(path):
                if wire.me == sender:
                    wire.send(receiver, (share if sender == first else relayed).to_bytes(COUNT_BYTES, "big"))
                elif wire.me == receiver:
                    relayed = _number(wire, sender)
            if wire.me == owner.number:
                extra = (extra + relayed) % _WORD
    return extra


def _paths(first: int, other: int, context: Context) -> list[tuple[int, ...]]:
    """How K gets from one owner to another: directly if they are connected, else in two halves over two
    computing parties."""
    computing = [member.number for member in context.computing]
    if first in computing or other in computing:
        return [(first, other)]
    return [(first, relay, other) for relay in computing[:2]]


def _halves(extra: int, first: int, other: int, context: Context) -> Iterator[int]:
    pieces = len(_paths(first, other, context)) - 1
    for _ in range(pieces):
        mask = secrets.randbelow(_WORD)
        yield mask
        extra -= mask
    yield extra % _WORD


def _number(wire: Wire, peer: int) -> int:
    return int.from_bytes(wire.receive(peer, COUNT_BYTES), "big")
