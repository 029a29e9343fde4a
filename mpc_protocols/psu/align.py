"""One party's part in an alignment, whichever method the study names and whatever the party's role.

    owner                   result = align(wire, policy.encode(columns, name), spec, context, guard)
    owner, row-order        result = align(wire, number_of_rows, spec, context, guard)
    party without data      result = align(wire, None, spec, context, guard)

Order of things: the owner's list is checked and completed with dummies; what the sizes reveal is put on
record by the guard (it counts even if the run then fails); the types of key columns are compared; the
protocol runs; rows of dummies are dropped. In the two-owner protocols both owners then tell u to the
computing parties that own nothing. Every run has fresh keys, so rows of two runs cannot be compared.

Threat model, leakage and assumption of each protocol: its own module and descriptor (`method`); who learns
what: `functionality`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Event, Guard
from mpc_protocols.psu.dummies import PartyList, assemble, size_events
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Own
from mpc_protocols.psu.groups.group import Group
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.method import METHODS
from mpc_protocols.psu.randomness import Entropy, system
from mpc_protocols.wire import Wire


def align(
    wire: Wire,
    own: Own,
    spec: AlignmentSpec,
    context: Context,
    guard: Guard,
    group: Group | None = None,
    entropy: Entropy = system,
) -> Alignment:
    """A party's part; blocks until done. Result: `rows[i]` is the row of `own.entries[i]`, or i with method
    "row-order".

    own: an owner's identifiers, or with "row-order" the number of its rows; None at a party without data.
    group: of the Diffie-Hellman protocols, ristretto255 on all cores unless given. Raises `StudyInvalid`
    (these parties cannot run the method) and `DataRefused` before anything is sent (too few identifiers, more
    than pad_to), `BudgetRefused` by the guard, `ProtocolAborted` and `PeerLost` while it runs.
    """
    context.check(spec)
    method, side = METHODS[spec.method], context.side(wire.me)
    if (side is None) != (own is None) or isinstance(own, int) != (side is not None and not method.psu):
        raise ValueError(f"Party {wire.me} brings {type(own).__name__} to an alignment by {spec.method}.")
    sid = context.salt(spec, wire.session_id)
    mine: PartyList | None = None
    events: tuple[Event, ...] = ()
    if isinstance(own, Identifiers) and side is not None:
        mine = assemble(own.entries, spec, sid, side, context.owners[side].name, entropy, len(context.owners))
    if side is not None:
        recipients = [member.name for member in method.recipients(context, wire.me)]
        outside = [member.name for member in context.members if member not in context.owners]
        events = size_events(spec, recipients, len(context.owners), outside)
    for event in events:
        guard.authorise(event, sid)
    listed = replace(own, entries=mine.entries) if isinstance(own, Identifiers) and mine is not None else own
    result = method.align(wire, listed, spec, replace(context, group=group), entropy)
    rows = result.rows if mine is None else result.rows[: mine.real]
    if len(np.unique(rows)) < len(rows):
        raise ProtocolAborted(
            "Two identifiers of this party were taken for one, by chance; start the run again."
        )
    return replace(result, rows=rows, events=events, listed=0 if mine is None else len(mine.entries))
