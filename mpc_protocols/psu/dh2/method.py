"""Descriptor of `dh2`: a Diffie-Hellman private set union of two owners in which deviating to learn
memberships is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.psu.two_owners.two_owner_method import TwoOwners

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu import dummies
    from mpc_protocols.psu.dh2 import cost, owner
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
    from mpc_protocols.psu.groups import ristretto
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.psu.two_owners.cost import Cost
    from mpc_protocols.wire import Wire
else:
    cost = Later("mpc_protocols.psu.dh2.cost")
    dummies = Later("mpc_protocols.psu.dummies")
    owner = Later("mpc_protocols.psu.dh2.owner")
    ristretto = Later("mpc_protocols.psu.groups.ristretto")


class Dh2(TwoOwners):
    """Two owners, at least one computing."""

    name = "dh2"
    rank = 2
    hides_members = True
    automatic = True
    proofs = True
    union_only = True
    way = (
        "by Diffie-Hellman between the two owners, where deviating to learn memberships is noticed but for a chance below 1 in "
        "1,000 or a right guess (dh2)"
    )
    matched = "{together}, by a Diffie-Hellman private set union between the two owners (dh2)."
    trust = (
        "This rests on the hardness of Diffie-Hellman problems, with hash functions taken as random. An owner that departs from "
        "the protocol to learn which of its records the other holds is noticed, and the run stops, except with a chance below "
        "one in a thousand or if it guesses which they are; that is argued, not formally proven. It could still choose what to "
        "enter, which the sizes then tell it, or enter wrong data."
    )
    trust_with_proofs = "The answers that the matching rests on were proven to be right."
    owners = "2, at least one computing"
    adversary = (
        "an owner that deviates, with a chance below 1 in 1,000 or if it guesses which of its people are common; else it is "
        'noticed or gains nothing (`security = "proofs"`: spoiling matches is noticed too)'
    )
    speed = "half a minute of CPU"

    @property
    def claim(self) -> str:
        return (
            "neither owner learns which of its records the other holds, and one that departs from the protocol to learn it is "
            "noticed but for a chance below 1 in 1,000 or a right guess, if Diffie-Hellman problems are hard"
        )

    def weakness(self, adjacency: Adjacency) -> str:
        if adjacency == "replace":
            return ""
        return (
            "an owner that deviates learns whether the other holds a record with a chance of 1 in 1,000, and with adjacency = "
            '"add-remove" that is protected'
        )

    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        # libsodium takes 50 ms that the other methods need not spend
        return owner.align(wire, entries, spec, context, context.group or ristretto.Ristretto255(), entropy)

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        pool = 0 if spec.adjacency == "replace" else 2 * dummies.overlap_noise(spec).c
        return cost.dh2_cost(first, second, union, proofs=spec.security == "proofs", pool=pool)


METHOD = Dh2()
