"""What the two parties cannot compute alone: the operations that take a correlation from the dealer.

One implementation is for parties 0 and 1 (`crypten_operations`), one for the dealer (`dealer`), who runs the
same shared code on zeros: the sizes of everything that it must deal are those of what the others compute,
without a request and without a second list of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

from mpc_protocols.backends.additive.link import Link
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.parts.gates import Terms

BITS_AT_ONCE = 1 << 21
"""Bits that become integers in one message."""


class Operations(Protocol):
    """One party's end. Shares of bits are words under XOR, of numbers elements under addition; the dealer's
    are zeros."""

    link: Link

    def and_words(self, x: Words, y: Words) -> Words:
        """Shares of x AND y, broadcast. 1 round; 1 bit of x and one of y from each party, one of the result
        from the dealer."""

    def masked(self, y: Words) -> Bits:
        """Shared words opened under a mask: the form in which `and_sums` takes its second operands. 1 round,
        the size of y."""

    def uniform(self, shape: tuple[int, ...]) -> Bits:
        """Words that nobody knows, as `masked` gives them: the mask, which the dealer knows, XOR a stream
        that parties 0 and 1 have in common. No message."""

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Words:
        """See `engine.interface.BitGates`. 1 round for each run of terms; x from each party, the sums from
        the dealer."""

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        """Shares of each bit as an integer: planes (p, words) to (p, cells). 1 round for each BITS_AT_ONCE; 1
        bit from each party and an element from the dealer a bit."""

    def products(self, x: Elements, y: Elements) -> Elements:
        """Shares of x * y, of like shapes. 1 round; an element for each of x and y from each party, one from
        the dealer."""


def planes_at_once(planes: int, cells: int) -> list[int]:
    """Planes of each message of `Operations.integers`."""
    step = max(1, BITS_AT_ONCE // max(1, cells))
    return [min(step, planes - start) for start in range(0, planes, step)]


def by_words(terms: Terms) -> Iterator[tuple[slice, Terms]]:
    """Runs of terms at the same words: the words, and the terms."""
    return groupby(terms, key=lambda term: term[0][1])
