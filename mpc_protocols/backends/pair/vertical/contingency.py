"""A contingency table of two owners' columns, in shares, without a third party: one punctured PRF per record.

Problem: for each record r of a common table one owner (of paths) has a category a_r among `leaves`, the other
(of vectors) a vector y_r of ring elements, here one-hot vectors of its own categories side by side; wanted
are additive shares of

    T[i] = sum of y_r over the records with a_r = i          shape (leaves, width), modulo 2^16 or 2^32

by distributed point functions from trees (Gilboa and Ishai 2014; `ggm`; `docs/design/pair.md` 3), one
transfer a level. Records that an owner does not hold have a category of their own (for the owner of paths: a
leaf like any other) or the zero vector.

Who learns what: nothing. A tree is used for one record. Public: records, leaves, width. The owner of paths
indexes its own memory by its own categories. Threat model: semi-honest, `ot_extension`; assumptions as there,
expansions by `fixed_key` with a key of their own.

Cost for a record, L = ceil(log2 leaves): 32 L bytes and `width` elements from the owner of vectors, 4 L from
that of paths; leaves * width elements of AES at both. Rounds: 2 for each chunk of records.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.bit_matrix import cells_of
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks, PublicPermutation
from mpc_protocols.backends.pair.transfers.ggm import Trees, levels_of
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, from_bits, to_bits, words_for

CHUNK = 1 << 16
"""Most records whose transfers are made at a time."""
VECTOR_BYTES = 1 << 26
"""Most bytes of the vectors of a chunk."""
_EXPANDED = 1 << 18  # bytes of one leaf's expansions: they stay in the second-level cache
_GROWN = 1 << 22  # bytes of the leaves of the trees that are worked on together


@dataclass(frozen=True)
class TableShape:
    """Public sizes. owner: the party with the paths. leaves: its categories, at least 2. width: elements of a
    vector."""

    owner: int
    records: int
    leaves: int
    width: int
    dtype: UInt

    @property
    def row_bytes(self) -> int:
        """Bytes of a vector."""
        return self.width * np.dtype(self.dtype).itemsize

    @property
    def levels(self) -> int:
        """Levels of a tree."""
        return levels_of(self.leaves)


@dataclass(frozen=True, repr=False)
class Column:
    """One-hot vectors of one categorical variable. codes: (records,) in [0, size], where `size` stands for
    the zero vector."""

    codes: NDArray[Any]
    size: int


def table_chunks(shape: TableShape) -> list[int]:
    """Records of each chunk."""
    step = max(1, min(CHUNK, VECTOR_BYTES // shape.row_bytes))
    return [min(step, shape.records - start) for start in range(0, shape.records, step)]


def table_demand(shape: TableShape, records: int) -> Demand:
    """Transfers for a chunk of so many records."""
    words = shape.levels * words_for(records)
    return Demand(rows=(words, 0) if shape.owner == 0 else (0, words))


def of_paths(transfers: Transfers, shape: TableShape, categories: NDArray[np.intp]) -> Elements:
    """At the owner of paths: its share of T. categories: (records,), below `leaves`."""
    link, table = transfers.link, np.zeros((shape.leaves, shape.width), shape.dtype)
    start = 0
    for size in table_chunks(shape):
        paths = categories[start : start + size]
        start += size
        trees, expansion = _public(transfers, shape)
        sides = 1 ^ (paths >> np.arange(shape.levels)[::-1, np.newaxis]) & 1
        wanted = from_bits(sides)
        transfers.reserve(table_demand(shape, size))
        chosen = transfers.chosen_rows(wanted.size)
        link.send(link.peer, wanted ^ chosen.choices.reshape(wanted.shape))
        link.turn()
        offered = link.receive(link.peer, (shape.levels, 2, size, 2), np.uint64)
        sent = link.receive(link.peer, (size, shape.width), shape.dtype)
        keys = _strings(chosen.values, shape.levels, size)
        away = np.take_along_axis(offered, sides[:, np.newaxis, :, np.newaxis], axis=1)[:, 0] ^ keys
        for piece in _blocks(shape, size):
            own = paths[piece]
            leaves = trees.puncture(own, contiguous(away[:, piece]))
            rest = sent[piece].copy()
            for leaf, seeds in enumerate(leaves):
                expanded = expansion.of(seeds)
                expanded[own == leaf] = 0
                rest -= expanded
                table[leaf] += _column_sums(expanded)
            _add_by_category(table, rest, own)
    return table


def of_vectors(transfers: Transfers, shape: TableShape, columns: Sequence[Column]) -> Elements:
    """At the owner of vectors: its share of T. columns: side by side they are the vectors, `width` in all."""
    if sum(column.size for column in columns) != shape.width:
        raise ValueError(f"The columns do not make vectors of {shape.width} elements.")
    link, table = transfers.link, np.zeros((shape.leaves, shape.width), shape.dtype)
    start = 0
    for size in table_chunks(shape):
        trees, expansion = _public(transfers, shape)
        seeds = np.frombuffer(secrets.token_bytes(16 * size), np.uint64).reshape(size, 2)
        sums = np.empty((shape.levels, 2, size, 2), np.uint64)
        sent = np.zeros((size, shape.width), shape.dtype)
        _add_vectors(sent, columns, slice(start, start + size))
        start += size
        for piece in _blocks(shape, size):
            leaves, sums[:, :, piece] = trees.grow(seeds[piece])
            for leaf, of_leaf in enumerate(leaves):
                expanded = expansion.of(of_leaf)
                sent[piece] += expanded
                table[leaf] -= _column_sums(expanded)
        link.turn()
        words = words_for(size)
        transfers.reserve(table_demand(shape, size))
        offered = transfers.offered_rows(shape.levels * words)
        flips = to_bits(link.receive(link.peer, (shape.levels, words), np.uint64), size, np.uint64)
        base, difference = (_strings(rows, shape.levels, size) for rows in (offered.base, offered.difference))
        base ^= difference & np.negative(flips)[..., np.newaxis]  # the string of side 0
        sums[:, 0] ^= base
        sums[:, 1] ^= base
        sums[:, 1] ^= difference
        link.send(link.peer, sums)
        link.send(link.peer, sent)
    return table


def _public(transfers: Transfers, shape: TableShape) -> tuple[Trees, _Expansion]:
    """Doubling and expansion of a chunk, under public keys that no other chunk has."""
    context = transfers.operation(b"contingency")
    return Trees(transfers.link.context(b"doubling", context), shape.leaves), _Expansion(
        transfers.link.context(b"expansion", context), shape
    )


class _Expansion:
    """PRG(s) = H(s ^ 1), H(s ^ 2), ..: the number of the block in the upper word, as many as a vector takes."""

    def __init__(self, key: bytes, shape: TableShape) -> None:
        self._permutation = PublicPermutation(key)
        self._shape = shape
        self._counters = np.arange(1, -(-shape.row_bytes // 16) + 1, dtype=np.uint64) << np.uint64(32)

    def of(self, seeds: Blocks) -> Elements:
        """(records, 2) words to (records, width) elements, in fresh memory."""
        blocks = np.empty((len(seeds), len(self._counters), 2), np.uint64)
        blocks[..., 0] = seeds[:, :1]
        np.bitwise_xor(seeds[:, 1:], self._counters, out=blocks[..., 1])
        expanded = self._permutation.hash(blocks).view(self._shape.dtype).reshape(len(seeds), -1)
        return expanded[:, : self._shape.width]


def _blocks(shape: TableShape, records: int) -> Iterator[slice]:
    """Records whose trees are worked on together."""
    step = max(1, min(_EXPANDED // max(16, shape.row_bytes), _GROWN // (16 * shape.leaves)))
    return (slice(start, min(start + step, records)) for start in range(0, records, step))


def _strings(rows: Blocks, levels: int, records: int) -> Blocks:
    """Strings of the transfers of each level, record by record: (levels, records, 2)."""
    words = words_for(records)
    return np.stack(
        [cells_of(rows[:, level * words : (level + 1) * words], records) for level in range(levels)]
    )


def _column_sums(expanded: Elements) -> Elements:
    """Sums over records, without widening; several records at a time where a vector is short."""
    records, width = expanded.shape
    together = max(1, 256 // width)
    whole = records - records % together
    dtype = expanded.dtype
    if expanded.flags.c_contiguous and together > 1 and whole:
        wide = expanded[:whole].reshape(-1, together * width).sum(axis=0, dtype=dtype)
        total: Elements = wide.reshape(together, width).sum(axis=0, dtype=dtype)
        total += expanded[whole:].sum(axis=0, dtype=dtype)
        return total
    total = expanded.sum(axis=0, dtype=dtype)
    return total


def _add_by_category(table: Elements, rows: Elements, categories: NDArray[np.intp]) -> None:
    """table[categories[r]] += rows[r]."""
    order = np.argsort(categories, kind="stable")
    found, starts = np.unique(categories[order], return_index=True)
    table[found] += np.add.reduceat(rows[order], starts, axis=0, dtype=table.dtype.type)


def _add_vectors(sent: Elements, columns: Sequence[Column], piece: slice) -> None:
    """Add the one-hot vectors of some records."""
    offset = 0
    for column in columns:
        codes = column.codes[piece].astype(np.intp)
        held = np.flatnonzero(codes < column.size)
        sent[held, offset + codes[held]] += sent.dtype.type(1)
        offset += column.size
