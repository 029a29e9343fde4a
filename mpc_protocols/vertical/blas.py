"""A^T B modulo 2^16 and 2^32, exactly, by float64 matrix products of limbs (`docs/design/engine.md` 2.7).

NumPy multiplies integer matrices element by element; BLAS is 10 to 30 times faster but knows floats. A
float64 holds every integer up to 2^53, so the operands are cut into centred limbs whose products, summed over
a block of rows, stay within that:

    2^16    1 product     16 x 16 bits: 2^15 * 2^15 a row
    2^32    2 products    a (32 bits, signed) with the low 16 bits of b: 2^31 * 2^15 a row, so 2^7 rows a block; and the low 16
                          bits of a with the high 16 of b (above, everything is a multiple of 2^32)

If b's entries are known to be small (public bound `b_bits`; one-hot columns: 1), its high limb is left out:
one product modulo 2^32. Rows are taken in blocks, so conversion buffers stay small. Limbs are centred by
adding half a limb's range at every limb before the cut and taking it off after.

Purely local; the running time depends on sizes and on `b_bits` only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.blank import Blank, blank

_EXACT = 53
"""Integers up to 2^53 are exact in float64."""
_ROWS = 4096
"""Rows converted at a time, at most."""


@dataclass(frozen=True)
class _Limb:
    """Bits [shift, shift + width) of an operand as integers.

    offset: None for all there is: a whole signed element, or a small one that is never negative (`small`).
    Else what is added before the cut, half a limb's range here and at every limb below; the limb is then in
    [-2^(width-1), 2^(width-1)).
    """

    shift: int
    width: int
    offset: int | None = None
    small: bool = False

    @property
    def magnitude(self) -> int:
        """lg of a bound on the limb's absolute value."""
        return self.width if self.small else self.width - 1


_LOW, _HIGH = _Limb(0, 16, 1 << 15), _Limb(16, 16, (1 << 15) + (1 << 31))
"""Of 32 bits."""


def _plan(bits: int, b_bits: int) -> list[tuple[_Limb, _Limb]]:
    """Pairs of limbs of a and b whose products, weighted by 2^(both shifts), sum to a b modulo 2^bits."""
    whole, small = _Limb(0, bits), _Limb(0, b_bits, small=True)
    if bits == 16:
        return [(whole, small if b_bits < 16 else whole)]
    return [(whole, small)] if b_bits <= 16 else [(whole, _LOW), (_LOW, _HIGH)]


def _cut(values: Elements, limb: _Limb) -> NDArray[np.float64]:
    """One limb of ring elements as floats."""
    signed = np.dtype(f"i{values.dtype.itemsize}")
    if limb.offset is None:
        return (values if limb.small else values.view(signed)).astype(np.float64)
    dtype = values.dtype.type
    cut = values + dtype(limb.offset)
    cut >>= dtype(limb.shift)
    cut &= dtype((1 << limb.width) - 1)
    floats: NDArray[np.float64] = cut.view(signed).astype(np.float64)
    floats -= 1 << limb.width - 1
    return floats


def transposed_product(a: Elements, b: Elements, b_bits: int | None = None) -> Elements:
    """a^T b modulo 2^K: shapes (n, u) and (n, v) of one dtype (uint16, uint32) to (u, v).

    b_bits: every entry of b is below 2^b_bits, if that is less than K; not checked.
    """
    bits = 8 * a.dtype.itemsize
    if a.dtype != b.dtype or bits not in (16, 32) or a.ndim != 2 or b.ndim != 2 or len(a) != len(b):
        raise ValueError(
            f"A^T b takes two matrices of one ring and as many rows, got {a.dtype}{a.shape} and {b.dtype}{b.shape}."
        )
    if isinstance(a, Blank) or isinstance(b, Blank):
        return blank((a.shape[1], b.shape[1]), a.dtype)
    total = np.zeros((a.shape[1], b.shape[1]), np.uint64)
    pairs = _plan(bits, bits if b_bits is None else min(b_bits, bits))
    for start in range(0, len(a), _ROWS):
        piece = slice(start, start + _ROWS)
        cuts: dict[tuple[int, _Limb], NDArray[np.float64]] = {}
        for first, second in pairs:
            for which, (matrix, limb) in enumerate(((a, first), (b, second))):
                if (which, limb) not in cuts:
                    cuts[which, limb] = _cut(matrix[piece], limb)
            left, right = cuts[0, first], cuts[1, second]
            rows = 1 << min(_EXACT - first.magnitude - second.magnitude, 20)
            for row in range(0, len(left), rows):
                part = (left[row : row + rows].T @ right[row : row + rows]).astype(np.int64).view(np.uint64)
                part <<= np.uint64(first.shift + second.shift)
                total += part
    return total.astype(a.dtype)
