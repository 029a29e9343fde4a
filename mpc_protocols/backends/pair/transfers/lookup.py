"""Public functions of two small numbers, one of each party, as shares of the result: one out of 2^m
transfers.

The choosing party has y, the offering one b, both of m bits; wanted are shares of F(y, b), of w bits, with
2^m w <= 32. Of m random transfers (a_i, K_i) the mask of an entry z is

    mask(z) = XOR_i chunk z of K_i[z_i]              z_i: bit i of z; a string has 2^m chunks of w bits

so whoever knows K_i[a_i] knows the mask of a and of no other entry. The choosing party sends e = y ^ a, the
offering one the entries F(z ^ e, b) ^ mask(z) ^ r, of which the other reads that of a. Its own share r = F(e,
b) ^ mask(0) needs no coins, and makes entry 0 zero (`docs/design/pair.md` 1).

Who learns what: nothing; e is masked by a, and each entry but that of a by a chunk of its own that the reader
lacks. Every transfer is used once. Cost: 2 rounds; m bits from the choosing party and 2^m w from the offering
one, besides m transfers in one direction. Threat model: `ot_extension`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.bit_matrix import LANES, cells_of
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand, Shorts
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, from_planes, to_planes, words_for


@dataclass(frozen=True, eq=False)
class PublicTable:
    """F. values: uint8 of shape (2^m, 2^m), below 2^w, by the numbers of the choosing and of the offering
    party. outputs: w."""

    values: NDArray[np.uint8]
    outputs: int

    @property
    def bits(self) -> int:
        """m."""
        return len(self.values).bit_length() - 1

    @property
    def dtype(self) -> UInt:
        """All entries of one cell, in the least whole bytes."""
        size = len(self.values) * self.outputs
        if size > 32:
            raise ValueError(f"A table of {size} bits a cell does not fit 32.")
        return np.uint8 if size <= 8 else np.uint16 if size <= 16 else np.uint32

    @cached_property
    def messages(self) -> Elements:
        """F(z ^ e, b) ^ F(e, b) for all z in their chunks, before the mask: by e 2^m + b."""
        entries = np.arange(len(self.values))
        moved = self.values[entries ^ entries[:, np.newaxis]] ^ self.values[:, np.newaxis]  # (e, z, b)
        chunks = moved.astype(self.dtype) << (entries * self.outputs).astype(self.dtype)[:, np.newaxis]
        joined: Elements = np.bitwise_or.reduce(chunks, axis=1).reshape(-1)
        return joined

    def chunks(self, entries: NDArray[np.bool_]) -> int:
        """A string with ones in the chunks of these entries."""
        ones = (1 << self.outputs) - 1
        return sum(ones << int(entry) * self.outputs for entry in np.flatnonzero(entries))


@dataclass(frozen=True)
class Field:
    """A table and the bits that it is asked with: of each party's element, from bit `start` on. chooser: the
    party with y."""

    table: PublicTable
    start: int
    chooser: int


def lookups_demand(fields: Sequence[Field], words: int) -> Demand:
    """Transfers for `lookups` of so many words of cells."""
    zero, one = (sum(of.table.bits for of in fields if of.chooser == party) for party in (0, 1))
    return Demand(shorts=(zero * words, one * words))


def lookups(transfers: Transfers, fields: Sequence[Field], x: Elements, planes: Words) -> list[Words]:
    """Shares of F(y, b) of every field, for each cell: planes (w, words).

    x: this party's elements (cells,). planes: their bits, from the lowest (`to_planes`). 2 rounds.
    """
    link, cells, words = transfers.link, len(x), words_for(len(x))
    transfers.need(lookups_demand(fields, words))
    mine = [of for of in fields if of.chooser == link.me]
    others = [of for of in fields if of.chooser != link.me]
    chosen = transfers.chosen_shorts(words * bits_of(mine))
    offered = transfers.offered_shorts(words * bits_of(others))
    choices = chosen.choices.reshape(-1, words)
    if mine:
        asked = np.concatenate([planes[of.start : of.start + of.table.bits] for of in mine])
        link.send(link.peer, asked ^ choices)
    link.give_way()
    flips = numbers_of(link.receive(link.peer, (bits_of(others), words), np.uint64), others, cells)
    found: dict[Field, Elements] = {}
    place = 0
    for of, flip in zip(others, flips, strict=True):
        piece = slice(place * words, (place + of.table.bits) * words)
        mask = mask_of_all(of.table, offered.base[:, piece], offered.difference[:, piece])
        found[of] = offer(link, of, x, cells_of(mask, cells), flip)
        place += of.table.bits
    link.give_way()
    place = 0
    for of, choice in zip(mine, numbers_of(choices, mine, cells), strict=True):
        strings = chosen.values[:, place * words : (place + of.table.bits) * words]
        found[of] = read(link, of, cells_of(xor_of_strings(strings, of.table.bits), cells), choice)
        place += of.table.bits
    return [to_planes(found[of].astype(np.uint32), of.table.outputs) for of in fields]


def offer(link: Link, field: Field, x: Elements, masks: Shorts, flips: Elements | None = None) -> Elements:
    """Send the entries of a table for each cell; this party's shares. x: its elements. masks: of all entries.
    flips: e, 0 if none are given."""
    table, mask = field.table, masks.astype(field.table.dtype)
    entries = len(table.values)
    number = (x >> x.dtype.type(field.start) & x.dtype.type(entries - 1)).astype(np.intp)
    if flips is not None:
        number += flips.astype(np.intp) << table.bits
    first = mask & table.dtype((1 << table.outputs) - 1)
    message = table.messages.take(number)
    message ^= mask
    message ^= first * table.dtype(table.chunks(np.ones(entries, np.bool_)) // ((1 << table.outputs) - 1))
    link.send(link.peer, message)
    share: Elements = table.values.reshape(-1).take(number) ^ first
    return share


def read(link: Link, field: Field, masks: Shorts, choices: Elements) -> Elements:
    """Receive the entries of a table for each cell; this party's shares. masks: of entry a, in its chunk.
    choices: a."""
    table = field.table
    entries = masks.astype(table.dtype)
    entries ^= link.receive(link.peer, len(masks), table.dtype)
    entries >>= choices.astype(table.dtype) * table.dtype(table.outputs)
    found: Elements = entries & table.dtype((1 << table.outputs) - 1)
    return found


def mask_of_all(table: PublicTable, base: Shorts, difference: Shorts) -> Shorts:
    """The masks of all entries in their chunks, from both strings of each transfer: (64, m words) to
    (64, words)."""
    words = base.shape[1] // table.bits
    mask = xor_of_strings(base, table.bits)
    for bit in range(table.bits):
        with_bit = table.chunks((np.arange(len(table.values)) >> bit & 1).astype(np.bool_))
        mask ^= difference[:, bit * words : (bit + 1) * words] & np.uint32(with_bit)
    return mask


def xor_of_strings(strings: Shorts, bits: int) -> Shorts:
    """Of the transfers of each cell: (64, bits * words) to (64, words), a copy."""
    joined: Shorts = np.bitwise_xor.reduce(strings.reshape(LANES, bits, -1), axis=1)
    return joined


def numbers_of(planes: Words, fields: Sequence[Field], cells: int) -> list[Elements]:
    """The numbers whose planes stand one field after the other."""
    found: list[Elements] = []
    place = 0
    for of in fields:
        found.append(from_planes(planes[place : place + of.table.bits], cells))
        place += of.table.bits
    return found


def bits_of(fields: Sequence[Field]) -> int:
    return sum(of.table.bits for of in fields)
