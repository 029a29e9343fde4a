"""One party's part in an alignment, whichever protocol the study names.

    owner:    result = align(wire, policy.encode(columns, owner), spec, context, guard)
    helper:   helper.serve(wire, spec, context)

Order of things: the owner's list is checked and completed with dummies; what the sizes reveal is put on record by the guard (it
counts even if the run then fails); the owners compare the types of their key columns; the protocol runs; rows of dummies are
dropped. Every run has fresh keys, so rows of two runs cannot be compared.

Threat model, leakage and assumption of each protocol: `florist`, `dh2`, `helper`; table in `functionality`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Guard
from mpc_protocols.psu import dh2, florist, helper
from mpc_protocols.psu.dummies import assemble, size_events
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.group import Group
from mpc_protocols.psu.normalise import KINDS, Identifiers
from mpc_protocols.psu.randomness import Entropy, system
from mpc_protocols.psu.ristretto import Ristretto255
from mpc_protocols.wire import Wire


def align(wire: Wire, identifiers: Identifiers, spec: AlignmentSpec, context: Context, guard: Guard,
          group: Group | None = None, entropy: Entropy = system) -> Alignment:
    """An owner's part; blocks until done. Result: `rows[i]` is the row of `identifiers.entries[i]`.

    group: ristretto255 on all cores unless given. Raises `DataRefused` before anything is sent (too few identifiers, more than
    pad_to), `BudgetRefused` by the guard, `ProtocolAborted` and `PeerLost` while it runs.
    """
    numbers = [owner.number for owner in context.owners]
    side = numbers.index(wire.me)
    peer = context.owners[1 - side]
    sid = context.salt(spec, wire.session_id)
    own = assemble(identifiers.entries, spec, sid, side, context.owners[side].name, entropy)
    recipients = [peer.name] + ([context.helper.name] if spec.method == "helper" and context.helper else [])
    events = size_events(spec, recipients)
    for event in events:
        guard.authorise(event, sid)
    _compare_kinds(wire, peer.number, peer.name, identifiers.kinds)
    if spec.method == "helper":
        result = helper.align(wire, own.entries, spec, context, entropy)
    else:
        protocol = florist.align if spec.method == "florist" else dh2.align
        result = protocol(wire, own.entries, spec, context, group or Ristretto255(), entropy)
    return replace(result, rows=result.rows[:own.real], events=events)


def _compare_kinds(wire: Wire, peer: int, name: str, kinds: Sequence[str]) -> None:
    """Both owners must hold the same types in their key columns: a number never equals a text that looks like it."""
    wire.send(peer, bytes(KINDS.index(kind) for kind in kinds))
    theirs = bytes(wire.receive(peer, len(kinds)))
    for column, (own, code) in enumerate(zip(kinds, theirs, strict=True)):
        other = KINDS[code] if code < len(KINDS) else "unknown values"
        if "untyped" not in (own, other) and own != other:
            raise ProtocolAborted(f"Key column {column + 1} of the alignment holds {other} at party {name} and {own} here; "
                                  "give both the same type.")
