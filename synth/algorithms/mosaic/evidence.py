"""What the joint marginals bought so far say beyond their columns, against what noise alone would say.

Problem: on few rows or at a small epsilon a run buys joint marginals that are little but noise, and a model
that follows them is worse than independent columns.

A joint marginal y of n cells with noise sigma, less the product p of the model's columns, has a part that
sums over all columns but one show (the columns' part) and the rest, its interaction c, with f = n - 1 - sum_i
(n_i - 1) degrees of freedom. If the columns are independent, ||c||^2 is about f sigma^2. Over all joint
marginals of a run

    evidence = sum ||c||^2 / sigma^2  /  sum f

is about 1 then, and 1 more than that for as much signal as noise. While it is weak, the model follows each
joint marginal shrunk towards independence, as James and Stein (1961) shrink a mean, here by the factor's
positive part (Baranchik 1964):

    p + columns' part + max(0, 1 - f sigma^2 / ||c||^2) c

All of it reads released values only and changes nothing but what the model follows: post-processing, which
costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from synth.mrf import Model
    from synth.synthesis import Measured

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joint:
    """A measured joint marginal beside the product of its columns. expected: the product, as a table of the
    marginal's shape."""

    measured: Measured
    expected: Array

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        """(the columns' part, the interaction) of what is measured less what is expected."""
        rest = self.measured.values.reshape(self.expected.shape) - self.expected
        axes = range(rest.ndim)
        total = rest.mean()
        columns = total + np.zeros_like(rest)
        for axis in axes:
            columns += rest.mean(axis=tuple(other for other in axes if other != axis), keepdims=True) - total
        return columns, rest - columns

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the interaction."""
        shape: tuple[int, ...] = self.expected.shape
        return prod(shape) - 1 - sum(size - 1 for size in shape)

    @cached_property
    def size(self) -> float:
        """Squared length of the interaction, in variances of a cell."""
        return float(np.square(self._parts[1]).sum()) / float(self.measured.sigma2)

    @property
    def factor(self) -> float:
        """What is believed of the interaction: 0 if noise alone would be as large."""
        return max(0.0, 1.0 - self.freedom / self.size) if self.size > 0 else 0.0

    def shrunk(self) -> Array:
        """The counts with the interaction shrunk, flat."""
        columns, interaction = self._parts
        return (self.expected + columns + self.factor * interaction).reshape(-1)


def beside_columns(measured: Measured, model: Model) -> Joint:
    """A joint marginal beside the product of the model's columns (or of their levels)."""
    columns = [model.marginal((name,)) / model.total for name in measured.clique]
    return Joint(measured, model.total * reduce(np.multiply.outer, columns))


def evidence(joints: Sequence[Joint]) -> float:
    """How large the interactions of all are, in units of what noise alone would make; 0 of nothing."""
    freedom = sum(joint.freedom for joint in joints)
    return sum(joint.size for joint in joints) / freedom if freedom else 0.0
