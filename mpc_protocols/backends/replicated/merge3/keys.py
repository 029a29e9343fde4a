"""An owner's identifiers as 64-bit words that can be merged, and back (`merge3`).

    key     keyed BLAKE2b of the identifier under the run's salt, cut to 64 bits less those of a label; the list is sorted by it
    word    the key over the owner's label (zero here: the computing parties set it), in the bit order of `replicated.comparison`

Everything here is local to the owner. The salt is public, so keys are no secret in themselves: they travel as
shares only.

False merges: two different identifiers of a run share a key with probability at most N^2 / 2^(65 - label
bits), N entries in all (two owners: N^2 / 2^64, 10^-8 at 4 * 10^5). Then two persons share a row; each person
is still in one row only. BLAKE2b is modelled as a random function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sorting.comparison import index_reversed
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.groups.hashing import names

_BLOCK = 1 << 14  # entries hashed at a time


@dataclass(frozen=True)
class Keys:
    """An owner's list in the order of its keys. words: (n,) as they are shared. order: (n,) the entry of
    each."""

    words: Words
    order: NDArray[np.int64]

    @property
    def distinct(self) -> int:
        """Different keys."""
        return len(np.unique(self.words))

    def recognised(self, received: Words, union: Words, owners: int) -> NDArray[np.int64]:
        """The row of each of the owner's entries. received: (2, n), words and names in any order.

        Raises `ProtocolAborted` unless the words are the owner's own and the names in the union.
        """
        shift = np.uint64(label_bits(owners))
        plain = index_reversed(received[0]) >> shift << shift
        order = np.argsort(plain, kind="stable")
        found = received[1][order]
        places = np.minimum(np.searchsorted(union, found), max(0, len(union) - 1))
        if not np.array_equal(plain[order], index_reversed(self.words)) or not np.array_equal(
            union[places], found
        ):
            raise ProtocolAborted(
                "The computing parties did not return this party's own records; start the run again."
            )
        rows = np.empty(len(found), np.int64)
        rows[self.order] = places
        return rows


def label_bits(owners: int) -> int:
    """Bits of a word that name its owner."""
    return (owners - 1).bit_length()


def false_merges(entries: int, owners: int) -> Fraction:
    """Bound on the probability that two different identifiers of a run share a key; entries: of all lists
    together."""
    return min(Fraction(1), Fraction(entries**2, 2 ** (65 - label_bits(owners))))


def keys_of(entries: Sequence[bytes], sid: bytes, owners: int) -> Keys:
    """The keys of a list, sorted; entries that occur twice (`dummies`) give equal keys."""
    hashed = np.empty(len(entries), np.uint64)
    for start in range(0, len(entries), _BLOCK):
        hashed[start : start + _BLOCK] = names(sid, b"psu merge3 key", entries[start : start + _BLOCK]).view(
            "<u8"
        )[::2]
    shift = np.uint64(label_bits(owners))
    plain = hashed >> shift << shift
    order = np.argsort(plain, kind="stable")
    return Keys(index_reversed(plain[order]), order.astype(np.int64, copy=False))
