"""What the last steps of a descent say about the next one: Anderson acceleration of a least-squares fit.

Problem: mirror descent on the potentials needs hundreds of steps, each a pass through the whole junction
tree. Each step shows how the weighted residuals answer to it. Over the span of the last steps the loss is
nearly a quadratic form, whose minimum a small system of equations gives: the same idea as in nonlinear GMRES
(Anderson 1965; Washio, Oosterlee 1997; Walker, Ni 2011).
"""

from __future__ import annotations

import numpy as np

from synth.mrf.factor import Array

STEPS = 20
RIDGE = 1e-8  # of the normalised system: steps that say the same must not cancel


class Memory:
    """The last `STEPS` steps and by how much each changed the residuals, in arrays that are allocated once."""

    def __init__(self, cells: int) -> None:
        """cells: length of a step, and of the residuals."""
        self._steps, self._changes = np.zeros((STEPS, cells)), np.zeros((STEPS, cells))
        self._products = np.zeros((STEPS, STEPS))  # of the changes with one another
        self._next = self._held = 0

    def forget(self) -> None:
        """Start again: where the loss rose, the last steps say little."""
        self._next = self._held = 0

    def add(self, step: Array, change: Array) -> None:
        """Remember a step and what it changed; one that changed nothing says nothing. The oldest makes room."""
        size = float(change @ change)
        if not 0 < size < np.inf:
            return
        place, self._next = self._next, (self._next + 1) % STEPS
        self._held = min(self._held + 1, STEPS)
        self._steps[place], self._changes[place] = step, change
        row = self._changes[: self._held] @ change
        self._products[place, : self._held] = self._products[: self._held, place] = row

    def best(self, residuals: Array) -> tuple[Array, Array] | None:
        """(the combination of the last steps that lowers the residuals' squares most, what it leaves of the
        residuals).

        None without a step to combine.
        """
        if not self._held:
            return None
        products, changes = self._products[: self._held, : self._held], self._changes[: self._held]
        scale = 1 / np.sqrt(products.diagonal())
        system = products * np.outer(scale, scale) + RIDGE * np.eye(self._held)
        shares = scale * np.linalg.solve(system, -scale * (changes @ residuals))
        return shares @ self._steps[: self._held], residuals + shares @ changes
