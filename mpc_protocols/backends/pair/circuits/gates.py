"""Two parties' arithmetic (`engine.parts.gates`), by oblivious transfers.

One bit ANDed with up to 128 planes (a lookup in a table, a choice between two numbers) is one transfer of a
string, not an AND for each plane; sums, signs and the zero test have protocols of their own (`conversion`,
`sign`, `zero_test`).

Threat model, assumptions and costs: `gmw`, `correlated`, `zero_test`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits import conversion, gmw
from mpc_protocols.backends.pair.circuits.gmw import string_sums_demand
from mpc_protocols.backends.pair.circuits.kept_cells import KeptCells
from mpc_protocols.backends.pair.circuits.sign import AND_BYTES, BYTE_WORTH, score_adder, signs
from mpc_protocols.backends.pair.circuits.zero_test import zero_cells
from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, from_bits, words_for
from mpc_protocols.engine.noise.alias import AliasTable, draw_ands
from mpc_protocols.engine.parts.gates import PartGates, Terms


class PairGates(PartGates):
    """The gates of one party over one link."""

    and_bytes = BYTE_WORTH * AND_BYTES
    faster = frozenset(
        {"and_bits", "and_pairs", "and_sums", "zero_rows", "weighted_sum", "negative", "widened"}
    )

    def __init__(self, transfers: Transfers, secret: bytes) -> None:
        """secret: see `PartGates`; the same for all gates of a run."""
        super().__init__(secret)
        self.transfers = transfers
        self.kept = KeptCells(transfers)
        """Cells whose distances were computed before."""

    @property
    def link(self) -> Link:
        return self.transfers.link

    # -- what the general gates rest on
    # --------------------------------------------------------------------------------------

    def and_words(self, x: Words, y: Words) -> Words:
        return gmw.and_bits(self.transfers, x, y)

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        return np.stack(
            [conversion.weighted_sum(self.transfers, plane[np.newaxis], (1,), cells, ring) for plane in bits]
        )

    def bits_times(self, bits: Words, x: Elements) -> Elements:
        return conversion.masked_numbers(self.transfers, bits, x)

    def ready_for_draws(self, table: AliasTable, words: int, adder: Adder) -> None:
        """Make the transfers for draws of noise from tables of a shape, and for the sum of the bits that they give with a sign
        (`engine.noise.alias`): 1 round in place of one before each of theirs."""
        ands, outer = draw_ands(table, adder) * words, 1 << table.index_bits - table.low_bits
        strings = string_sums_demand(outer, words) + string_sums_demand(1, words)
        summed = conversion.weighted_sum_demand(table.index_bits + 1, 64 * words)
        self.transfers.reserve(Demand(bits=(ands, ands)) + strings + summed)

    # -- faster ones
    # ---------------------------------------------------------------------------------------------------------

    def and_bits(self, x: Bits, y: Bits) -> Bits:
        """See `engine.interface.BitGates`; one plane with several is one transfer of a string."""
        (left,), (right,) = x.parts, y.parts
        if left.ndim == 2 and len(left) == 1 < len(right) <= gmw.MAX_WIDTH and right.ndim == 2:
            return Bits(gmw.string_sums(self.transfers, left, right[np.newaxis]))
        return Bits(gmw.and_bits(self.transfers, left, right))

    def and_pairs(self, pairs: Sequence[tuple[Bits, Bits]]) -> list[Bits]:
        products = gmw.and_pairs(self.transfers, [(x.parts[0], y.parts[0]) for x, y in pairs])
        return [Bits(product) for product in products]

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Bits:
        """See `engine.interface.BitGates`; a round for each run of terms at the same words, as strings of all
        their planes."""
        total = np.zeros(shape, np.uint64)
        for words, x, strings in _by_words(shape[0], terms):
            total[:, words] ^= gmw.string_sums(self.transfers, x, strings)
        return Bits(total)

    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, Bits]]) -> NDArray[np.bool_]:
        """See `engine.interface.BitGates`; 2 rounds or more (`zero_test`)."""
        vectors = np.concatenate([bits.parts[0] for _, bits in rows], axis=1)
        cells = shape[0] * shape[1]
        planes = from_bits(np.moveaxis(vectors, 2, 0).reshape(-1, cells))
        return zero_cells(self.transfers, planes, cells).reshape(shape)

    def weighted_sum(self, bits: Bits, weights: Sequence[int], cells: int, ring: UInt) -> Elements:
        return conversion.weighted_sum(self.transfers, bits.parts[0], weights, cells, ring)

    def negative(self, x: Elements) -> Bits:
        planes = 8 * x.itemsize
        adder = score_adder(planes, words_for(len(x)), self.link.latency_bytes)
        return Bits(signs(self.transfers, x, planes, adder))

    def widened(self, x: Elements) -> Elements:
        return conversion.lift(self.transfers, x)


def _by_words(planes: int, terms: Terms) -> Iterable[tuple[slice, Words, Words]]:
    """Runs of terms at the same words put together: the words, x (terms, words), and strings (terms, planes,
    words)."""
    place: slice | None = None
    x: Words = np.empty(0, np.uint64)
    strings: Words = x
    for (rows, words), bits, (factor,) in terms:
        if words != place:
            if place is not None:
                yield place, x, strings
            place, (x,) = words, bits.parts
            strings = np.zeros((len(x), planes, x.shape[1]), np.uint64)
        strings[:, rows] = factor.swapaxes(0, 1)
    if place is not None:
        yield place, x, strings
