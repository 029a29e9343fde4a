"""One party's part in an alignment, whichever method the study names and whatever the party's role.

    owner                   result = align(wire, policy.encode(columns, name), spec, context, guard)
    owner, row-order        result = align(wire, number_of_rows, spec, context, guard)
    party without data      result = align(wire, None, spec, context, guard)

Order of things: the owner's list is checked and completed with dummies; what the sizes reveal is put on record by the guard (it
counts even if the run then fails); the types of key columns are compared; the protocol runs; rows of dummies are dropped. In the
two-owner protocols both owners then tell u to the computing parties that own nothing. Every run has fresh keys, so rows of two
runs cannot be compared.

Threat model, leakage and assumption of each protocol: `florist`, `dh2`, `helper`, `merge3`, `row_order`; who learns what:
`functionality`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Guard
from mpc_protocols.psu import florist, helper, row_order
from mpc_protocols.psu.dh2 import owner as dh2
from mpc_protocols.psu.dummies import PartyList, assemble, size_events
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.groups.group import Group
from mpc_protocols.psu.identifiers.normalise import KINDS, Identifiers
from mpc_protocols.psu.merge3 import protocol as merge3
from mpc_protocols.psu.randomness import Entropy, system
from mpc_protocols.wire import Wire

COUNT_BYTES, DIGEST_BYTES = 8, 32


def align(
    wire: Wire,
    own: Identifiers | int | None,
    spec: AlignmentSpec,
    context: Context,
    guard: Guard,
    group: Group | None = None,
    entropy: Entropy = system,
) -> Alignment:
    """A party's part; blocks until done. Result: `rows[i]` is the row of `own.entries[i]`, or i with method "row-order".

    own: an owner's identifiers, or with "row-order" the number of its rows; None at a party without data. group: of the
    Diffie-Hellman protocols, ristretto255 on all cores unless given. Raises `StudyInvalid` (these parties cannot run the method)
    and `DataRefused` before anything is sent (too few identifiers, more than pad_to), `BudgetRefused` by the guard,
    `ProtocolAborted` and `PeerLost` while it runs.
    """
    context.check(spec)
    side = context.side(wire.me)
    if (side is None) != (own is None) or isinstance(own, int) != (
        side is not None and spec.method == "row-order"
    ):
        raise ValueError(f"party {wire.me} brings {type(own).__name__} to an alignment by {spec.method}")
    sid = context.salt(spec, wire.session_id)
    mine = None
    if isinstance(own, Identifiers) and side is not None:
        mine = assemble(own.entries, spec, sid, side, context.owners[side].name, entropy, len(context.owners))
    outside = [member.name for member in context.members if member not in context.owners]
    events = (
        ()
        if side is None
        else size_events(spec, _recipients(spec, context, wire.me), len(context.owners), outside)
    )
    for event in events:
        guard.authorise(event, sid)
    if spec.method == "row-order":
        result = row_order.align(wire, own if isinstance(own, int) else None, spec, context, entropy)
    elif spec.method == "merge3":
        kinds = own.kinds if isinstance(own, Identifiers) else ()
        result = merge3.align(wire, None if mine is None else mine.entries, kinds, spec, context)
    elif isinstance(own, Identifiers) and mine is not None:
        result = _between_two(wire, own, mine, spec, context, group, entropy)
    else:
        result = _outside_two(wire, spec, context, entropy)
    rows = result.rows if mine is None else result.rows[: mine.real]
    if len(np.unique(rows)) < len(rows):
        raise ProtocolAborted(
            "Two identifiers of this party were taken for one, by chance; start the run again."
        )
    return replace(result, rows=rows, events=events)


def _recipients(spec: AlignmentSpec, context: Context, me: int) -> list[str]:
    """Who learns something from an owner's sizes."""
    if spec.method == "row-order":
        return [member.name for member in row_order.onlookers(context)]
    helper = [context.helper] if spec.method == "helper" and context.helper else []
    return [
        member.name
        for member in dict.fromkeys([*context.owners, *helper, *context.computing])
        if member.number != me
    ]


def _between_two(
    wire: Wire,
    own: Identifiers,
    mine: PartyList,
    spec: AlignmentSpec,
    context: Context,
    group: Group | None,
    entropy: Entropy,
) -> Alignment:
    """An owner's part in a protocol of two."""
    peer = next(owner for owner in context.owners if owner.number != wire.me)
    _compare_kinds(wire, peer.number, peer.name, own.kinds)
    if spec.method == "helper":
        result = helper.align(wire, mine.entries, spec, context, entropy)
    else:
        from mpc_protocols.psu.groups.ristretto import (
            Ristretto255,
        )  # libsodium takes 50 ms that the other methods need not spend

        protocol = florist.align if spec.method == "florist" else dh2.align
        result = protocol(wire, mine.entries, spec, context, group or Ristretto255(), entropy)
    for member in _told(context):
        wire.send(member.number, result.n_rows.to_bytes(COUNT_BYTES, "big") + result.digest)
    return result


def _outside_two(wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy) -> Alignment:
    """Everybody else's part in a protocol of two: help, or be told u."""
    known: list[tuple[int, bytes]] = []
    if spec.method == "helper" and context.helper is not None and context.helper.number == wire.me:
        union = helper.serve(wire, spec, context, entropy)
        known.append((union, helper.table_digest(context.salt(spec, wire.session_id), union)))
    if wire.me in [member.number for member in _told(context)]:
        for owner in context.owners:
            said = bytes(wire.receive(owner.number, COUNT_BYTES + DIGEST_BYTES))
            known.append((int.from_bytes(said[:COUNT_BYTES], "big"), said[COUNT_BYTES:]))
    if len(set(known)) != 1:
        raise ProtocolAborted(
            f"Parties {context.owners[0].name} and {context.owners[1].name} did not arrive at the same common "
            "table; the alignment was stopped."
        )
    return Alignment(known[0][0], np.zeros(0, np.int64), known[0][1])


def _told(context: Context) -> list[Member]:
    """Computing parties that own nothing: they hold shares of the common table later, so they must know its rows."""
    return [member for member in context.computing if member not in context.owners]


def _compare_kinds(wire: Wire, peer: int, name: str, kinds: Sequence[str]) -> None:
    """Both owners must hold the same types in their key columns: a number never equals a text that looks like it."""
    wire.send(peer, bytes(KINDS.index(kind) for kind in kinds))
    theirs = bytes(wire.receive(peer, len(kinds)))
    for column, (own, code) in enumerate(zip(kinds, theirs, strict=True)):
        other = KINDS[code] if code < len(KINDS) else "unknown values"
        if "untyped" not in (own, other) and own != other:
            raise ProtocolAborted(
                f"Key column {column + 1} of the alignment holds {other} at party {name} and {own} here; "
                "give both the same type."
            )
