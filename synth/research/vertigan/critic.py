"""An owner's critic, and the sum of its clipped gradients over a batch, exactly and without a gradient per
row.

D(x) = v . f(W x + b), f leaky ReLU; a row x, its fake y and z = m x + (1 - m) y have the WGAN-GP loss D(y) -
D(x) + 10 (|grad D(z)| - 1)^2 (Gulrajani et al. 2017). With s = f'(.) and g = W^T (v s_z), its gradient in (W,
b) is

    - (v s_x) (x, 1)^T + (v s_y) (y, 1)^T + k (v s_z) (g, 0)^T,     k = 20 (|g| - 1) / |g|

of rank 3: its norm is a sum of 3 x 3 products, and the sum of clipped gradients three products of matrices.

What the charge rests on: each row moves the sum by at most `clip` in L2. Everything is float64; a norm is
taken from above (the products cancel: 2^-36 of the pieces' norms is more than their rounding) and clipped to
clip (1 - 2^-9), which leaves room for the rounding of sums (`docs/design/vertigan.md` 2). What is computed of
a row is computed in blocks of one shape (`seats`). A row whose gradient is not finite counts nothing. Rows
are (.., width), whatever dimensions stand before. Source of the clipping: Abadi et al. 2016. NumPy only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synth.research.vertigan.seats import LANES, groups, placed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PENALTY: Final = 10.0
SLOPE: Final = 0.2
RATE: Final = 5e-3
MARGIN: Final = 1 - 2.0**-9
CANCELLING: Final = 16.0
"""Times the clip: the most that the pieces of a clipped gradient may have in norm."""
_ROUNDING: Final = 2.0**-36
_FORGETTING: Final = 0.99
_TINY: Final = 1e-12


def hidden(width: int) -> int:
    """Units of a critic that looks at so many one-hot cells."""
    return -(-width // 2)


def parameters(width: int) -> int:
    """Numbers that a critic's step releases, noisily."""
    return hidden(width) * (width + 2)


class Compensated:
    """A sum of so many numbers over blocks, whose rounding does not grow with the number of blocks (Kahan
    1965)."""

    def __init__(self, size: int) -> None:
        self.value: Array = np.zeros(size)
        self._lost: Array = np.zeros(size)

    def add(self, part: Array) -> None:
        """Add one block's, (size,)."""
        part = part - self._lost
        grown = self.value + part
        self._lost = (grown - self.value) - part
        self.value = grown


class Critic:
    """weight: (units, width + 1), the bias last; output: (units,). Raises nothing; private to its owner."""

    def __init__(self, width: int, uniform: NDArray[Any]) -> None:
        """uniform: (units, width + 2) numbers between 0 and 1, for the first weights."""
        units = hidden(width)
        start = (2 * np.asarray(uniform, np.float64) - 1) / np.sqrt([width] * (width + 1) + [units])
        self.weight: Array = np.ascontiguousarray(start[:, :-1])
        self.output: Array = start[:, -1].copy()
        self._square = np.zeros(start.size)

    def clipped_sum(self, real: Array, fake: Array, mix: Array, clip: float) -> Array:
        """The sum over rows of their clipped gradients, (units * (width + 2),): of weight, row by row, then
        of output.

        real, fake: (n, width) float64. mix: (n, 1). Rows sit in blocks in their order.
        """
        total, seats = self.empty_sum(), np.arange(-(-len(real) // LANES) * LANES)
        for some in groups(np.where(seats < len(real), seats, -1).reshape(-1, LANES)):
            rows = placed(real, some), placed(fake, some), placed(mix, some)
            total.add(self.group_sum(*rows, some >= 0, clip))
        return total.value

    def empty_sum(self) -> Compensated:
        """For the sums of groups of blocks."""
        return Compensated(self.weight.size + self.output.size)

    def group_sum(self, real: Array, fake: Array, mix: Array, taken: NDArray[np.bool_], clip: float) -> Array:
        """As `clipped_sum`, of one group of blocks. real, fake: (blocks, LANES, width); mix: (blocks, LANES,
        1); taken: seats."""
        sides, inputs, last = self._pieces(real, fake, mix)
        norms, pieces = self._norms(sides, inputs, last)
        with np.errstate(all="ignore"):
            factor = np.minimum(clip * MARGIN / norms, CANCELLING * clip / pieces)
        counted = np.isfinite(factor) & np.isfinite(pieces)
        if not counted.all():
            seats = counted[..., None]
            sides, inputs = [[np.where(seats, piece, 0) for piece in part] for part in (sides, inputs)]
            last = np.where(seats, last, 0)
        factor = np.where(taken & counted, np.minimum(factor, 1.0), 0.0).reshape(-1)
        flat = [side.reshape(len(factor), -1) for side in sides]
        total = np.empty(self.weight.shape)
        total[:, :-1] = sum(
            (factor[:, None] * side).T @ given.reshape(len(factor), -1)
            for side, given in zip(flat, inputs, strict=True)
        )
        total[:, -1] = factor @ (flat[0] + flat[1])
        return np.concatenate([total.reshape(-1), factor @ last.reshape(len(factor), -1)])

    def norms(self, real: Array, fake: Array, mix: Array) -> Array:
        """Of each row's gradient, from above: (..)."""
        return self._norms(*self._pieces(real, fake, mix))[0]

    def input_gradient(self, x: Array) -> Array:
        """The gradient of D in its input, (.., width)."""
        return (self.output * self._slopes(self._before(x))) @ self.weight[:, :-1]

    def descend(self, gradient: Array) -> None:
        """One step of RMSprop."""
        self._square = _FORGETTING * self._square + (1 - _FORGETTING) * gradient**2
        step = RATE * gradient / (np.sqrt(self._square) + 1e-8)
        self.weight -= step[: self.weight.size].reshape(self.weight.shape)
        self.output -= step[self.weight.size :]

    def _before(self, x: Array) -> Array:
        return x @ self.weight[:, :-1].T + self.weight[:, -1]

    def _slopes(self, before: Array) -> Array:
        return np.where(before > 0, 1.0, SLOPE)

    def _pieces(self, real: Array, fake: Array, mix: Array) -> tuple[list[Array], list[Array], Array]:
        """The three sides (.., units), their inputs but for the bias's (.., width), and the gradient of
        `output`, (.., units)."""
        with np.errstate(all="ignore"):
            at_real, at_fake = self._before(real), self._before(fake)
            slope_real, slope_fake = self._slopes(at_real), self._slopes(at_fake)
            slope_mix = self._slopes(mix * at_real + (1 - mix) * at_fake)
            pull = (self.output * slope_mix) @ self.weight[:, :-1]
            length = np.sqrt(np.vecdot(pull, pull)[..., None] + _TINY)
            strength = 2 * PENALTY * (length - 1) / length
            sides = [-self.output * slope_real, self.output * slope_fake, strength * self.output * slope_mix]
            last = slope_fake * at_fake - slope_real * at_real
            last += strength * slope_mix * (pull @ self.weight[:, :-1].T)
        return sides, [real, fake, pull], last

    @staticmethod
    def _norms(sides: list[Array], inputs: list[Array], last: Array) -> tuple[Array, Array]:
        """Of each gradient, from above; and the sum of its pieces' norms. To the inputs of two belongs a 1
        for the bias."""
        with np.errstate(all="ignore"):
            square = np.vecdot(last, last)
            size = np.sqrt(square)
            for j in range(3):
                for k in range(j, 3):
                    product = np.vecdot(sides[j], sides[k]) * (np.vecdot(inputs[j], inputs[k]) + (k < 2))
                    square = square + product * (1 if j == k else 2)
                    if j == k:
                        size = size + np.sqrt(product)
            return np.sqrt(np.maximum(square, 0) + _ROUNDING * size**2), size
