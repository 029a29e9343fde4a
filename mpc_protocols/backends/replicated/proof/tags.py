"""What binds the right verifier to what the prover knows: a tag on the columns that it hides, without
computing them.

A and B are rows over GF(2) that the prover could compute from x, y, D, E; the right verifier sends its part
of them to the left one. The prover's tag is a GMAC, under a one-time key that the right verifier does not
know, of functionals of the rows of all blocks together, under another. Folding and multiplying by t add up
rows as the public matrices say, so the functional of a row of A is the same sum of functionals: the prover
folds these, 16 bytes a row, and not the columns.

Statement. If A or B is changed, the tag fits with probability below (S / 128 + 2 + 132) / 2^128, S the bits
of a row: some row differs, its functional with the probability of `functional`, and the GMAC of 64 different
blocks then does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.basis import plus_times
from mpc_protocols.backends.replicated.proof.bit_products.folding import Fold, folded, segment
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional, message_tag, pieces
from mpc_protocols.backends.replicated.proof.field import BLOCK
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import derive

Pairs = list[tuple[Words, Words]]
"""Two arrays (rows, entries, words) of every block."""


class Tagger:
    """Tags of hidden columns under one key."""

    def __init__(self, key: bytes, rows: int) -> None:
        """key: 16 bytes used for nothing else. rows: of every array."""
        self._rows = rows
        self._of_rows, self._of_all = derive(key, b"rows"), derive(key, b"all")

    def known(self, hidden: Pairs) -> bytes:
        """Of columns as they are."""
        return self._tag(self._functionals(hidden, 1))

    def predicted(self, pairs: Pairs, whole: Pairs, masks: Pairs, fold: Fold) -> bytes:
        """Of the columns that pairs, which are folded, and whole ones, which are not, give with their masks."""
        rows = folded(self._functionals(pairs, 1 << len(fold.matrices)), fold.matrices)
        rows = rows ^ self._functionals(whole, 1, len(pairs))
        return self._tag(plus_times(rows, fold.times_factor, self._functionals(masks, 1)))

    def _functionals(self, pairs: Pairs, segments: int, first: int = 0) -> Words:
        """Sums over all arrays of functionals of their rows, by segment: (rows, 1, 2 segments). first: number
        of a block."""
        total = np.zeros((self._rows, 1, 2 * segments), np.uint64)
        for number, pair in enumerate(pairs, first):
            for side, array in enumerate(pair):
                total ^= self._of_array(array, segments, (number * 2 + side).to_bytes(8, "big"))
        return total

    def _of_array(self, array: Words, segments: int, name: bytes) -> Words:
        rows, entries, words = array.shape
        found = np.zeros((rows, 1, 2 * segments), np.uint64)
        seed = derive(self._of_rows, b"block", name)
        for place, piece in enumerate(pieces(words // segments, entries)):
            functional = Functional(seed, place, (piece.stop - piece.start) * entries)
            for number in range(segments):
                part = np.ascontiguousarray(segment(array, number, segments)[..., piece])
                found[:, 0, 2 * number : 2 * number + 2] ^= functional.of(part.reshape(rows, -1)).view(
                    np.uint64
                )
        return found

    def _tag(self, rows: Words) -> bytes:
        tag = message_tag(self._of_all, [rows])
        assert len(tag) == BLOCK
        return tag


def hidden_columns(pairs: Pairs, whole: Pairs, masks: Sequence[tuple[Words, Words]], fold: Fold) -> Pairs:
    """Pairs at the fold's point, and whole ones as they are, plus t times their masks."""
    columns = [*((folded(x, fold.matrices), folded(y, fold.matrices)) for x, y in pairs), *whole]
    return [
        (plus_times(x, fold.times_factor, d), plus_times(y, fold.times_factor, e))
        for (x, y), (d, e) in zip(columns, masks, strict=True)
    ]
