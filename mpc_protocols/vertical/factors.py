"""Factors of a request's tables from what owners have input, whatever the backend's matrices are: the order
of the products.

multiply: row-wise products of pairs of matrices, in one round of the backend's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mpc_protocols.vertical.tables import Factor, Joint, Tables

M = TypeVar("M")
Multiply = Callable[[Sequence[tuple[M, M]]], list[M]]


def product_of_all(members: Sequence[M], multiply: Multiply[M]) -> M:
    """Of all memberships, or of their complements; neighbours first. A round for each doubling."""
    left = list(members)
    while len(left) > 1:
        pairs = list(zip(left[::2], left[1::2], strict=False))
        left = [*multiply(pairs), *left[2 * len(pairs) :]]
    return left[0]


def all_factors(
    plan: Tables[Any], joints: Mapping[Joint, M], memberships: M | None, multiply: Multiply[M]
) -> dict[Factor, M]:
    """Every factor of the plan. memberships: the product of all, where the plan needs it. A round a level."""
    factors = {Factor((part,), False): matrix for part, matrix in joints.items()}
    if memberships is not None:
        factors[Factor((), True)] = memberships
    for level in plan.levels():
        pairs = [
            (factors[Factor(step.parts[:-1], step.restricted)], joints[step.parts[-1]]) for step in level
        ]
        factors |= dict(zip(level, multiply(pairs), strict=True))
    return factors
