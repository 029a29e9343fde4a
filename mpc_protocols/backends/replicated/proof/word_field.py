"""GF(2^64) on machine words: long inner products, and many products with one element.

An element is a word of 64 bits, bit j the coefficient of x^j modulo x^64 + x^4 + x^3 + x + 1; a sum is an
XOR. `field` holds a field of the same size as a part of GF(2^128), in coordinates that a challenge chooses;
here elements stand as they travel.

    inner    the planes of one operand AND those of the other, 64 times 64 words for 64 products: 70 ns a product
    times    a table for each byte of the operand: 60 ns a product

Secret as the elements are; local. Table look-ups depend on the element that is multiplied, which is seen by
who runs on the same machine only.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Words, to_planes
from mpc_protocols.engine.blank import Blank

BITS = 64
_LOW = (1 << BITS) - 1
_TAPS = (0, 1, 3, 4)
_PIECE = 1 << 15
"""Products whose planes are held at a time."""


def inner(x: Words, y: Words) -> int:
    """The sum of x[k] y[k], of shape (n,) each; 0 if one is blank."""
    if isinstance(x, Blank) or isinstance(y, Blank):
        return 0
    sums = np.zeros((BITS, BITS), np.uint64)
    for start in range(0, len(x), _PIECE):
        left, right = (to_planes(operand[start : start + _PIECE], BITS) for operand in (x, y))
        both = np.empty_like(right)
        for i in range(BITS):
            sums[i] ^= np.bitwise_xor.reduce(np.bitwise_and(right, left[i], out=both), axis=1)
    odd = np.bitwise_count(sums) & np.uint8(1)  # of the products of bit i of x and bit j of y
    total = 0
    for i, j in np.argwhere(odd).tolist():
        total ^= 1 << i + j
    return _reduced(total)


def product(a: int, b: int) -> int:
    """The product of two elements."""
    return _reduced(reduce(int.__xor__, (a << j for j in range(BITS) if b >> j & 1), 0))


def times(element: int, words: Words) -> Words:
    """element times each word: shape (n,)."""
    if isinstance(words, Blank):
        return words
    powers = [element]
    for _ in range(BITS - 1):
        powers.append(_reduced(powers[-1] << 1))
    found = np.zeros(len(words), np.uint64)
    for place, of_byte in enumerate(np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8).T):
        table = np.zeros(1, np.uint64)
        for power in powers[8 * place : 8 * place + 8]:
            table = np.concatenate([table, table ^ np.uint64(power)])
        found ^= table[of_byte]
    return found


def _reduced(value: int) -> int:
    while high := value >> BITS:
        value &= _LOW
        for tap in _TAPS:
            value ^= high << tap
    return value
