"""Descriptor of `helper`: two owners send keyed hashes to a computing party without data, which does not have
the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.psu.method import Misfit
from mpc_protocols.psu.two_owners.two_owner_method import TwoOwners

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
    from mpc_protocols.psu.helper import protocol
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.psu.two_owners.cost import Cost
    from mpc_protocols.wire import Wire
else:
    protocol = Later("mpc_protocols.psu.helper.protocol")

MAX_COMPUTING = 3
"""With more, a backend promises something against parties that work together, and this method does not."""


class Helper(TwoOwners):
    """Two owners, both computing, and a third party without data."""

    name = "helper"
    rank = 1
    hides_members = True
    helper = True
    way = "through a computing party without data (helper)"
    matched = "{together}: both owners sent keyed hashes to a computing party without data, which does not have the key (helper)."
    trust = (
        "This rests on the helper not working together with an owner: the two could try out identifiers against the other "
        "owner's list."
    )
    owners = "2, both computing, and a third party without data"
    adversary = "the third party together with an owner"
    speed = "a second, 50 B per identifier"

    @property
    def claim(self) -> str:
        return (
            "neither owner learns which of its records the other holds, as long as all follow the protocol and the helper does "
            "not work together with an owner"
        )

    def misfit(self, owners: Sequence[str], computing: Sequence[str]) -> Misfit | None:
        outside = [name for name in owners if computing and name not in computing]
        if len(owners) <= 2 and outside:
            does = "does" if len(outside) == 1 else "do"
            return Misfit(
                f"needs both owners among the computing parties, and {' and '.join(outside)} {does} not compute",
                "set compute = true there",
            )
        if len(owners) <= 2 and computing and all(name in owners for name in computing):
            return Misfit("needs a computing party without data, the helper", "let a third party compute")
        if len(owners) <= 2 and len(computing) > MAX_COMPUTING:
            return Misfit(
                "rests on the helper and an owner not working together, and more than three parties compute so that any "
                "minority may",
                'set via = "dh2"',
            )
        return super().misfit(owners, computing)

    def weakness(self, adjacency: Adjacency) -> str:
        return "a helper that deviates can put one person's two records into two rows, which doubles what that person changes"

    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        return protocol.align(wire, entries, spec, context, entropy)

    def help(
        self, wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> list[tuple[int, bytes]]:
        if context.helper is None or context.helper.number != wire.me:
            return []
        union = protocol.serve(wire, spec, context, entropy)
        return [(union, protocol.table_digest(context.salt(spec, wire.session_id), union))]

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        return protocol.cost(first, second)


METHOD = Helper()
