"""A toy alignment method: two owners show each other all identifiers. IT PROTECTS NOTHING; it shows what a method has to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.psu.cost import Cost
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.two_owners import TwoOwners

if TYPE_CHECKING:
    from mpc_protocols.psu.groups.group import Group
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.wire import Wire

LIMIT = 1 << 24


class Open(TwoOwners):
    """Sorted identifiers in the clear."""

    name = "open"
    union_only = True
    way = "in the clear between the two owners (open)"
    matched = "{together}, in the clear."
    trust = "The owners showed each other all identifiers."
    owners = "2, at least one computing"
    adversary = "the other owner"
    speed = "no time at all"

    @property
    def claim(self) -> str:
        return "each owner learns every identifier of the other"

    def between(
        self,
        wire: Wire,
        entries: Sequence[bytes],
        spec: AlignmentSpec,
        context: Context,
        group: Group | None,
        entropy: Entropy,
    ) -> Alignment:
        peer = next(owner.number for owner in context.owners if owner.number != wire.me)
        wire.send(peer, b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries))
        theirs, union = bytes(wire.receive_up_to(peer, LIMIT)), set(entries)
        while theirs:
            size = 2 + int.from_bytes(theirs[:2], "big")
            union.add(theirs[2:size])
            theirs = theirs[size:]
        row = {entry: number for number, entry in enumerate(sorted(union))}
        sid = context.salt(spec, wire.session_id)
        return Alignment(
            len(union),
            np.array([row[entry] for entry in entries], np.int64),
            digest(b"open", sid, *sorted(union)),
        )

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        total = Cost()
        total.send(0, 1, 40 * first)
        total.send(1, 0, 40 * second)
        total.receive(0, 1)
        total.receive(1, 0)
        return total


METHOD = Open()
