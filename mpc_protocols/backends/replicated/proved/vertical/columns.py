"""Which columns owners input for a plan, and which ones the parties keep for later requests: public, alike at
everybody.

What was input once serves every later request, so it is proved once and is the same in all of them.
Memberships are kept in any case; columns only while all that is kept takes no more than MAX_KEPT at a party,
and are input anew if they were not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.tables import Joint

MEMBERSHIP: Final[Clique] = ()
MAX_KEPT: Final = 1 << 28
"""Bytes of shares."""
COMPONENTS: Final = 2


@dataclass(frozen=True)
class OwnerInput:
    """One owner's part in a plan.

    known: all joints that the parties hold already. fresh: those that it inputs now, in this order. kept:
    what of these is kept from now on, with the membership in any case.
    """

    known: tuple[Clique, ...]
    fresh: tuple[Clique, ...]
    kept: tuple[Clique, ...]

    @property
    def sums_to_membership(self) -> bool:
        """Whether the membership becomes known as the sum of the first joint, which must be 0 or 1 itself."""
        return MEMBERSHIP not in (*self.known, *self.fresh)


class KeptColumns:
    """What has been input so far in a run."""

    def __init__(self) -> None:
        self._joints: dict[int, tuple[Clique, ...]] = {}
        self._bytes = 0

    def next(self, plan: Plan) -> dict[int, OwnerInput]:
        """What each owner with a part in the plan inputs; it counts as input from then on."""
        found = {}
        for owner in plan.inputs():
            known = self._joints.get(owner, ())
            fresh = tuple(joint for joint in plan.joints(owner) if joint not in known)
            kept = [] if MEMBERSHIP in known else [MEMBERSHIP]
            for joint in fresh:
                size = plan.partition.rows * plan.width(Joint(owner, joint)) * plan.element * COMPONENTS
                if joint != MEMBERSHIP and self._bytes + size <= MAX_KEPT:
                    self._bytes += size
                    kept.append(joint)
            self._joints[owner] = (*known, *kept)
            found[owner] = OwnerInput(known, fresh, tuple(kept))
        return found
