"""Descriptor of `florist`: the private set union of FLORIST as its authors print it, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.psu.two_owners.two_owner_method import TwoOwners

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
    from mpc_protocols.psu.groups import ristretto
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.psu.two_owners.cost import Cost
    from mpc_protocols.research.florist import protocol
    from mpc_protocols.wire import Wire
else:
    protocol = Later("mpc_protocols.research.florist.protocol")
    ristretto = Later("mpc_protocols.psu.groups.ristretto")


class Florist(TwoOwners):
    """Two owners, at least one computing; semi-honest only."""

    name = "florist"
    rank = 3
    hides_members = True
    union_only = True
    groups = True
    way = "by FLORIST's protocol as printed, whose owners can learn memberships by deviating (florist)"
    matched = "{together}, by the private set union of FLORIST as its authors print it (florist)."
    trust = (
        "This rests on both owners following the protocol, on the decisional Diffie-Hellman assumption, and on a hash function "
        "taken as random. An owner that departs from it can learn which of its records the other holds, without being noticed."
    )
    owners = "2, at least one computing"
    adversary = "an owner that deviates, unnoticed: for comparison only"
    speed = "half a minute of CPU"

    @property
    def claim(self) -> str:
        return (
            "neither owner learns which of its records the other holds, as long as both follow the protocol, if the decisional "
            "Diffie-Hellman problem is hard; one that does not can learn it unnoticed"
        )

    def weakness(self, adjacency: Adjacency) -> str:
        return "an owner that deviates can learn which of its records the other holds, without being noticed"

    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        return protocol.align(
            wire, entries, spec, context, context.group or ristretto.Ristretto255(), entropy
        )

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        return protocol.cost(first, second, union)


METHOD = Florist()
