"""Runs that share nobody, as their study states: a person has spent what one of them has cost
(`docs/design/accounts.md` 12).

`[prior] people = "disjoint"` says that nobody in a run was in an earlier release, nor in those that it rests
on. Runs are put into groups in which each two are stated to be apart. A person is in at most one run of a
group, and so is charged at most the largest of its charges; what all groups come to is at most their sum.
Nothing checks the statement: it is public, in the study's digest, and whoever takes part has agreed to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from parties.budget.spending import Charge, Reservation

Charged = tuple[Reservation, Charge]


def together(charged: Sequence[Charged]) -> Charge:
    """What one person can have been charged by all of these runs."""
    groups: list[list[Charged]] = []
    for one in charged:
        for group in groups:
            if all(_apart(one, other) for other in group):
                group.append(one)
                break
        else:
            groups.append([one])
    most = [reduce(_larger, [charge for _, charge in group]) for group in groups]
    return sum(most, Charge())


def _apart(one: Charged, other: Charged) -> bool:
    (first, own), (second, others) = one, other
    stated = second.run in first.apart or first.run in second.apart
    return stated and not own.curves and not others.curves  # of two curves neither need be the larger


def _larger(one: Charge, other: Charge) -> Charge:
    """Of two without curves, the larger of each part."""
    return Charge(
        max(one.rho, other.rho),
        max(one.beta, other.beta),
        max(one.size_rho, other.size_rho),
        max(one.size_delta, other.size_delta),
    )
