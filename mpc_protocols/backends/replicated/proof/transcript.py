"""What one computing party keeps of the products of a batch until they are proved.

A product is proved by the party that sent its message, i, to the two others, who both are honest if i is not.
For a gate z = x y of the engine (`docs/design/engine.md` 2.2), with everything over bits and sums XOR,

    (x_i + x_{i+1}) (y_i + y_{i+1})  =  [z_i + F(k_i)]  +  [x_{i+1} y_{i+1} + F(k_{i+1})]
     X = left + right, Y too              left's share of W   right's share of W

the left verifier i-1 holds x_i, y_i, F(k_i) and the message z_i, the right one i+1 holds x_{i+1}, y_{i+1},
F(k_{i+1}), and the prover knows all of it. So X Y = W where the verifiers hold XOR shares of X, Y and W,
which is all that a proof needs (`products`). Sums of products that travel as one message are one statement
with several entries: sum_e X_e Y_e = W.

A lookup sends, for every draw and output bit, a bilinear form of two vectors of bits whose public
coefficients are a table. With the form in place of the product that is a statement, too, kept as the vectors
(`lookups`).

Every party is the prover of its own messages, the left verifier of its right neighbour's and the right
verifier of its left neighbour's. Arrays are copied when they are noted: nothing that a protocol overwrites
later changes a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.form import ProofSizes
from mpc_protocols.backends.replicated.proof.matrix_products.statement import Statement
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.engine.bitwise.bitslice import Words


class Rows(NamedTuple):
    """Statements of one number of entries, cut into rows: x, y (rows, entries, words), w (rows, words)."""

    x: Words
    y: Words
    w: Words


class Lookup(NamedTuple):
    """Of draws, 64 a word: sum_hl x_h y_l table[h, l, b] = w_b for every output b.

    x: (outer entries, words), a power of two of them. y: (inner entries, words). w: (outputs, words), empty
    at the prover. table: bits (outer entries, inner entries, outputs).
    """

    x: Words
    y: Words
    w: Words
    table: NDArray[np.uint8]

    @property
    def outer_bits(self) -> int:
        """Variables of the outer index."""
        return len(self.x).bit_length() - 1


@dataclass
class Statements:
    """One party's part of the statements of one prover: the prover's X and Y, a verifier's shares.

    noted: products, by their number of entries.
    """

    noted: dict[int, list[tuple[Words, Words, Words]]] = field(default_factory=dict)
    lookups: list[Lookup] = field(default_factory=list)

    def note(self, x: Words, y: Words, w: Words) -> None:
        """x, y: (entries, words), not copied. w: (words,); at the prover it may be empty."""
        self.noted.setdefault(len(x), []).append((x, y, w))

    def sizes(self) -> ProofSizes:
        """Of products and lookups."""
        sizes = ProofSizes()
        for entries, noted in self.noted.items():
            sizes.gates[entries] += sum(x.shape[1] for x, _, _ in noted)
        sizes.lookups.extend((of.outer_bits, of.x.shape[1]) for of in self.lookups)
        return sizes

    def rows(self, count: int, segments: int = 1) -> list[Rows]:
        """Blocks of products cut into `count` rows of segments of whole words, the last ones filled up with
        zeros."""
        blocks = []
        for entries, words in sorted(self.sizes().gates.items()):
            width = segments * -(-words // (count * segments))
            x, y = (np.zeros((entries, count * width), np.uint64) for _ in range(2))
            w = np.zeros(count * width, np.uint64)
            start = 0
            for of_x, of_y, of_w in self.noted[entries]:
                stop = start + of_x.shape[1]
                x[:, start:stop], y[:, start:stop] = of_x, of_y
                w[start : start + len(of_w)] = of_w
                start = stop
            grid = (entries, count, width)
            blocks.append(
                Rows(
                    np.ascontiguousarray(x.reshape(grid).swapaxes(0, 1)),
                    np.ascontiguousarray(y.reshape(grid).swapaxes(0, 1)),
                    w.reshape(count, width),
                )
            )
        return blocks


@dataclass
class Transcript:
    """One party's statements in its three roles, and how many products they hold (alike at all parties for
    gates).

    matrices: products of matrices over rings, each in all three roles.
    """

    proving: Statements = field(default_factory=Statements)
    left: Statements = field(default_factory=Statements)
    right: Statements = field(default_factory=Statements)
    gates: int = 0
    matrices: list[Statement] = field(default_factory=list)

    def sizes(self) -> ProofSizes:
        """Of the largest of the three proofs, alike at all parties: each is in one role of each party."""
        of_roles = [role.sizes() for role in (self.proving, self.left, self.right)]
        return reduce(ProofSizes.largest, of_roles)

    def product(self, x: BitShare, y: BitShare, own_mask: Words, next_mask: Words, received: Words) -> None:
        """Note gates: x, y (entries, words), summed over entries; masks and the message received: (words,)."""
        self.proving.note(x.own ^ x.next, y.own ^ y.next, received[:0])
        self.left.note(x.next.copy(), y.next.copy(), received ^ next_mask)
        both = x.own & y.own
        mine = both[0] if len(both) == 1 else np.bitwise_xor.reduce(both, axis=0)
        self.right.note(x.own.copy(), y.own.copy(), mine ^ own_mask)
        self.gates += 64 * x.own.size

    def lookup(
        self,
        outer: BitShare,
        inner: BitShare,
        table: NDArray[np.uint8],
        own_mask: Words,
        next_mask: Words,
        received: Words,
        mine: Words,
    ) -> None:
        """Note a lookup: vectors (entries, words), masks and message (outputs, words); mine: of this party's
        own components."""
        self.proving.lookups.append(
            Lookup(outer.own ^ outer.next, inner.own ^ inner.next, received[:, :0], table)
        )
        self.left.lookups.append(Lookup(outer.next.copy(), inner.next.copy(), received ^ next_mask, table))
        self.right.lookups.append(Lookup(outer.own.copy(), inner.own.copy(), mine ^ own_mask, table))
        self.gates += kept_as_products(len(outer), len(inner), outer.shape[1])


def kept_as_products(outer: int, inner: int, words: int) -> int:
    """Of how many products a lookup takes the memory, about: a byte of each draw for each entry of the
    vectors."""
    return 64 * (outer + inner) * words


def merged(transcripts: Sequence[Transcript]) -> Transcript:
    """One transcript of several, in this order."""
    together = Transcript()
    for transcript in transcripts:
        for role in ("proving", "left", "right"):
            into: Statements = getattr(together, role)
            for entries, noted in getattr(transcript, role).noted.items():
                into.noted.setdefault(entries, []).extend(noted)
            into.lookups.extend(getattr(transcript, role).lookups)
        together.gates += transcript.gates
        together.matrices += transcript.matrices
    return together
