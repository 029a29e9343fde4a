"""Groups of prime order in which the decisional Diffie-Hellman problem is hard: what the protocols need of
one.

Elements travel and are stored in one canonical encoding of fixed length, as rows of a (n, element_bytes)
array of bytes; equal elements have equal encodings. Written multiplicatively: `power` is scalar
multiplication on a curve.

Exponentiations dominate every protocol here, so each group counts its operations; tests assert the counts
against the protocols' cost functions. Exponents are secret integers in 1 .. order - 1; elements may come from
a peer and are checked by every operation that takes them: a wrong length, a non-canonical encoding, something
outside the group or the identity raises `InvalidElement`, which names no value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.randomness import Entropy, system

Elements = NDArray[np.uint8]
"""(n, element_bytes), C-contiguous: n encoded elements."""


class InvalidElement(ValueError):
    """Something that is no canonical encoding of a group element other than the identity."""


@dataclass
class Operations:
    """Counts of operations: exponentiations, those of the generator, products of two elements, hashes to the
    group."""

    powers: int = 0
    generated: int = 0
    products: int = 0
    hashes: int = 0


class Group(ABC):
    """A cyclic group of prime order with a hash into it."""

    name: str
    order: int
    element_bytes: int
    generator: bytes

    def __init__(self) -> None:
        self.operations = Operations()

    @abstractmethod
    def hash_many(self, entries: Sequence[bytes], sid: bytes) -> Elements:
        """Each entry as a group element whose logarithm nobody knows; `sid` (32 bytes) goes into the domain."""

    @abstractmethod
    def power(self, elements: Elements, exponent: int) -> Elements:
        """Every element to the same exponent. Raises `InvalidElement`."""

    @abstractmethod
    def power_each(self, elements: Elements, exponents: Sequence[int]) -> Elements:
        """Every element to its own exponent. Raises `InvalidElement`."""

    @abstractmethod
    def generate(self, exponents: Sequence[int]) -> Elements:
        """The generator to each exponent: a third of the price of `power_each` where the group has tables of
        it."""

    @abstractmethod
    def product(self, elements: Elements) -> Elements:
        """(1, element_bytes): the product of n >= 1 elements; the identity is allowed as an input here and
        may be the result."""

    @abstractmethod
    def check(self, elements: Elements) -> None:
        """Raises `InvalidElement` unless every row is a canonical encoding of an element other than the
        identity."""

    def random_exponents(self, count: int, entropy: Entropy = system) -> list[int]:
        """Uniform exponents in 1 .. order - 1, within 2^-120: integers with 128 surplus bits, reduced."""
        size = -(-(self.order.bit_length() + 128) // 8)
        drawn = entropy(size * count)
        top = self.order - 1
        return [int.from_bytes(drawn[i : i + size], "little") % top + 1 for i in range(0, size * count, size)]

    def inverses(self, exponents: Sequence[int]) -> list[int]:
        """1 / e modulo the order for each of them, none zero: one inversion for all (Montgomery's trick)."""
        order = self.order
        before = []
        running = 1
        for e in exponents:
            before.append(running)
            running = running * e % order
        running = pow(running, -1, order)
        out = [0] * len(before)
        for i in range(len(before) - 1, -1, -1):
            out[i] = running * before[i] % order
            running = running * exponents[i] % order
        return out

    def rows(self, count: int) -> Elements:
        """Room for `count` elements."""
        return np.empty((count, self.element_bytes), np.uint8)

    def parse(self, raw: bytes | bytearray | memoryview) -> Elements:
        """Encoded elements as rows, not copied. Raises `InvalidElement` if the length is no multiple of an
        element's."""
        if len(raw) % self.element_bytes:
            raise InvalidElement("bytes that are no whole number of elements")
        return np.frombuffer(raw, np.uint8).reshape(-1, self.element_bytes)


def concatenated(elements: Elements) -> memoryview:
    """The rows as one piece of memory, for the wire and for hashes."""
    return np.ascontiguousarray(elements).reshape(-1).data


def has_duplicates(rows: NDArray[np.uint8]) -> bool:
    """Whether two rows are equal. Sorts 8-byte prefixes; whole rows only where prefixes meet."""
    if len(rows) < 2:
        return False
    prefixes = np.ascontiguousarray(rows[:, :8]).view("<u8").reshape(-1)
    order = np.argsort(prefixes)
    met = np.flatnonzero(prefixes[order[1:]] == prefixes[order[:-1]])
    suspects = np.unique(np.concatenate([order[met], order[met + 1]]))
    whole = {rows[i].tobytes() for i in suspects}
    return len(whole) < len(suspects)
