"""GF(2^128) in GHASH's representation, and its subfields: the numbers that a proof computes with.

An element is a Python integer with one byte for each of its 128 coefficients (0 or 1): coefficients of a
product of two such integers stay below 256, so one multiplication of long integers gives all of them, and
their parities are the product over GF(2). Addition is XOR. The polynomial is x^128 + x^7 + x^2 + x + 1; the
coefficient of x^0 is the HIGHEST bit of the first byte of a block of 16 bytes (NIST SP 800-38D), which `read`
and `write` know. Vectors are rows of such blocks, uint8 of shape (.., 16).

A subfield GF(2^n), n a power of two that divides 128, is what an element generates whose norm is its
generator (`Subfield`). Nothing here is secret but values; the running time of multiplications does not depend
on them by design, only by what Python's integers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

BITS = 128
BLOCK = 16
"""Bytes of an element as a block."""
Blocks = NDArray[np.uint8]
_ONES = int.from_bytes(b"\x01" * (2 * BITS), "little")
_LOW = (1 << 8 * BITS) - 1
_TAPS = sum(1 << 8 * tap for tap in (0, 1, 2, 7))
_TABULATED = 4
_AT_ONCE = 32
"""Vectors whose products stay in the second-level cache."""
ONE = 1


def multiply(a: int, b: int) -> int:
    """The product of two elements."""
    return _reduced(a * b & _ONES)


def _reduced(value: int) -> int:
    for _ in range(2):  # what the first moves beyond x^127 is moved again
        value = (value & _LOW) + (value >> 8 * BITS) * _TAPS & _ONES
    return value


def read(block: bytes | Blocks) -> int:
    """The element of a block of 16 bytes."""
    return int.from_bytes(np.unpackbits(np.frombuffer(block, np.uint8)).tobytes(), "little")


def write(element: int) -> bytes:
    """The inverse of `read`."""
    return np.packbits(np.frombuffer(element.to_bytes(BITS, "little"), np.uint8)).tobytes()


def read_all(blocks: Blocks) -> list[int]:
    """The elements of blocks (.., 16)."""
    return [read(block) for block in blocks.reshape(-1, BLOCK)]


def write_all(elements: Sequence[int]) -> Blocks:
    """The inverse of `read_all`: (elements, 16)."""
    return np.frombuffer(b"".join(map(write, elements)), np.uint8).reshape(-1, BLOCK)


def dots(coefficients: Sequence[int], vectors: Blocks) -> list[int]:
    """The sums of coefficients times blocks: vectors of shape (number, coefficients, 16)."""
    pieces = (vectors[start : start + _AT_ONCE] for start in range(0, len(vectors), _AT_ONCE))
    return [total for piece in pieces for total in _dots(coefficients, piece)]


def _dots(coefficients: Sequence[int], vectors: Blocks) -> list[int]:
    """Blocks are first added up by the bits of their coefficients, four blocks at a time from a table of
    their sums; the 128 sums are then shifted and added.
    """
    number, count = vectors.shape[:2]
    groups = -(-count // _TABULATED)
    bits = np.zeros((groups * _TABULATED, BITS), np.intp)
    content = b"".join(c.to_bytes(BITS, "little") for c in coefficients)
    bits[:count] = np.frombuffer(content, np.uint8).reshape(count, BITS)
    blocks = np.zeros((groups * _TABULATED, number, 2), np.uint64)
    blocks[:count] = np.ascontiguousarray(vectors).view(np.uint64).swapaxes(0, 1)
    blocks = blocks.reshape(groups, _TABULATED, -1)
    tables = np.zeros((groups, 1 << _TABULATED, blocks.shape[2]), np.uint64)
    picks: NDArray[np.intp] = np.arange(groups).reshape(-1, 1) << _TABULATED
    for b in range(_TABULATED):
        np.bitwise_xor(tables[:, : 1 << b], blocks[:, b : b + 1], out=tables[:, 1 << b : 2 << b])
        picks = picks + (bits[b::_TABULATED] << b)
    sums = np.bitwise_xor.reduce(tables.reshape(-1, blocks.shape[2])[picks], axis=0)
    spread = np.unpackbits(sums.view(np.uint8).reshape(BITS, number, BLOCK), axis=-1)
    shifted = np.zeros((number, BITS, 2 * BITS), np.uint8)
    shifted[..., :BITS] = spread.swapaxes(0, 1)
    # each row one place further than the one before it
    shifted = shifted.reshape(number, -1)[:, : BITS * (2 * BITS - 1)].reshape(number, BITS, -1)
    totals = np.bitwise_xor.reduce(shifted, axis=1)
    return [_reduced(int.from_bytes(total.tobytes(), "little")) for total in totals]


class Subfield:
    """GF(2^degree) inside GF(2^128)."""

    def __init__(self, degree: int) -> None:
        """degree: a power of two below 128."""
        if degree not in (2, 4, 8, 16, 32, 64):
            raise ValueError(f"A subfield's degree is a power of two from 2 to 64, not {degree}.")
        self.degree = degree

    @cached_property
    def powers(self) -> list[int]:
        """1, g, g^2, .. of a generator g of the subfield: a basis over GF(2)."""
        for seed in range(2, 1 << 8):
            element = read(bytes([seed]) + bytes(BLOCK - 1))
            norm, conjugate = element, element
            for _ in range(BITS // self.degree - 1):
                for _ in range(self.degree):
                    conjugate = multiply(conjugate, conjugate)
                norm = multiply(norm, conjugate)
            powers = [ONE]
            for _ in range(self.degree - 1):
                powers.append(multiply(powers[-1], norm))
            if independent(powers):
                return powers
        raise AssertionError("no element of GF(2^128) generates the subfield")

    def element(self, bits: int) -> int:
        """One of its 2^degree elements."""
        value = 0
        for j, power in enumerate(self.powers):
            if bits >> j & 1:
                value ^= power
        return value


@lru_cache(maxsize=8)
def subfield(degree: int) -> Subfield:
    """The subfield of this degree; its basis is found once."""
    return Subfield(degree)


def independent(elements: list[int]) -> bool:
    """Whether elements are linearly independent over GF(2)."""
    return len(_reduced_rows(elements)[0]) == len(elements)


def _reduced_rows(elements: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Rows by their highest bit, and of which elements each is the sum (as a bit set)."""
    rows: dict[int, int] = {}
    made_of: dict[int, int] = {}
    for number, element in enumerate(elements):
        of = 1 << number
        while element and (top := element.bit_length()) in rows:
            element ^= rows[top]
            of ^= made_of[top]
        if element:
            rows[element.bit_length()] = element
            made_of[element.bit_length()] = of
    return rows, made_of


def coordinates(basis: list[int], elements: list[int]) -> NDArray[np.bool_]:
    """The coordinates of elements over a basis of a space that holds them: bool of shape (elements, basis)."""
    rows, made_of = _reduced_rows(basis)
    found = np.zeros((len(elements), len(basis)), np.bool_)
    for number, element in enumerate(elements):
        of = 0
        while element:
            top = element.bit_length()
            of ^= made_of[top]
            element ^= rows[top]
        bits = np.frombuffer(of.to_bytes(-(-len(basis) // 8), "little"), np.uint8)
        found[number] = np.unpackbits(bits, count=len(basis), bitorder="little")
    return found
