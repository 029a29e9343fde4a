"""Signs and carries of integers that two parties share additively: small tables, then an AND or two for each.

Of x = x_0 + x_1 mod 2^K party 0 knows a = x_0 and party 1 b = x_1. The carry into plane k - 1 comes from
fields of a few bits, each of which is one public table of what one party knows and what the other knows
(`transfers.lookup`):

    generate   field of a + field of b is 2^m or more                  propagate   it is 2^m - 1
    carry'     = generate ^ (propagate & carry)                        sign = a ^ b ^ carry in plane k - 1

The lowest field has 5 bits, as it needs no propagate, the others 4 or 3: their entries fill 32 bits. Parties
take turns in choosing. `ripple`: an AND and a round for each field but the lowest. `tree`: neighbours merge,
up to three times the ANDs in ceil(log2(fields)) rounds. k needs to be only bitlength(max |x|) + 1; the caller
asserts that bound from public numbers, a value beyond it gets a wrong sign silently.

Nothing is opened. Cost of 17 planes (ripple): 17 transfers in one direction, 16 bytes of tables and 3 ANDs a
cell, 5 rounds. Threat model: `transfers.lookup`, `gmw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mpc_protocols.backends.pair.circuits.gmw import and_bits, and_pairs
from mpc_protocols.backends.pair.transfers.lookup import Field, PublicTable, lookups, lookups_demand
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, in_words, to_planes, words_for

AND_BYTES = message_bytes(1) + 16
"""Bytes of a word of ANDs: a transfer each way and two opened bits."""
BYTE_WORTH = 3
"""What a byte of ANDs is worth, which costs computing, too: 216 bytes take ten microseconds where 64 bytes
travel in one."""
ADDERS: tuple[Adder, ...] = ("ripple", "tree")

CHUNK = 1 << 18
"""Cells that are computed with at a time, a multiple of 64: bounds the memory at some 250 bytes a cell of a
chunk."""

_LOWEST, _OTHERS = 5, 4  # most bits of a field


@lru_cache
def _table(bits: int, outputs: int) -> PublicTable:
    """generate, and propagate above it, of two fields; outputs: 1 or 2 of them."""
    number = np.arange(1 << bits)
    total = number + number[:, np.newaxis]
    values = (total >> bits) | (total == (1 << bits) - 1) * (2 * (outputs - 1))
    return PublicTable(values.astype(np.uint8), outputs)


@lru_cache
def carry_fields(planes: int) -> tuple[Field, ...]:
    """The fields of a carry out of so many planes, lowest first."""
    lowest = min(planes, _LOWEST)
    rest = planes - lowest
    count = -(-rest // _OTHERS)
    widths = [lowest, *(rest // count + (number < rest % count) for number in range(count))]
    starts = np.cumsum([0, *widths])
    return tuple(
        Field(_table(width, 1 if number == 0 else 2), int(start), number % 2)
        for number, (width, start) in enumerate(zip(widths, starts, strict=False))
    )


def merges(fields: int, adder: Adder) -> list[int]:
    """AND planes of each round after the lookups."""
    return [1] * (fields - 1) if adder == "ripple" else merge_schedule(fields)


def signs_cost(planes: int, words: int, latency_bytes: int, adder: Adder | None = None) -> float:
    """Rounds * latency_bytes + bytes' worth for signs of so many planes; of the cheaper adder, if none is
    named."""
    if adder is None:
        return min(signs_cost(planes, words, latency_bytes, of) for of in ADDERS)
    fields = carry_fields(planes - 1)
    merged = merges(len(fields), adder)
    tables = 64 * sum(np.dtype(of.table.dtype).itemsize for of in fields)
    asked = (message_bytes(1) + 8) * (planes - 1)
    sent = ((asked + tables) / 2 + sum(merged) * AND_BYTES) * words
    return (2 + len(merged)) * latency_bytes + BYTE_WORTH * sent


def score_adder(planes: int, words: int, latency_bytes: int) -> Adder:
    """The adder that costs least for signs of so many planes, alike at both parties."""
    return min(ADDERS, key=lambda adder: signs_cost(planes, words, latency_bytes, adder))


def chunks(cells: int) -> list[int]:
    """Cells of each chunk of so many."""
    return [min(CHUNK, cells - start) for start in range(0, cells, CHUNK)]


def carry_pieces(cells: int) -> list[int]:
    """Cells of each piece of `carry`: all, or padded ones that fill whole words."""
    return [cells] if cells <= CHUNK else chunks(64 * words_for(cells))


def carry_demand(planes: int, words: int, adder: Adder) -> Demand:
    """Transfers for `carry` of one piece."""
    return lookups_demand(carry_fields(planes), words) + joined_demand(planes, words, adder)


def joined_demand(planes: int, words: int, adder: Adder) -> Demand:
    """Transfers for `joined_fields` of the fields of so many planes."""
    gates = sum(merges(len(carry_fields(planes)), adder)) * words
    return Demand(bits=(gates, gates))


def carry(transfers: Transfers, x: Elements, planes: Words, adder: Adder) -> Words:
    """The carry of a + b out of the lowest planes of a at party 0, of b at party 1: a plane of shape
    (words,).

    x: this party's elements. planes: their lowest bit planes, one or more. More than CHUNK cells go piece by
    piece, a round more for each round.
    """
    pieces = carry_pieces(len(x))
    if len(pieces) == 1:
        return _carry(transfers, x, planes, adder)
    rows, found, start = in_words(x), [], 0
    for cells in pieces:
        piece = slice(start, start + cells // 64)
        elements = rows[:, 2 * piece.start : 2 * piece.stop].reshape(-1)
        found.append(_carry(transfers, elements, planes[:, piece], adder))
        start = piece.stop
    return np.concatenate(found)


def _carry(transfers: Transfers, x: Elements, planes: Words, adder: Adder) -> Words:
    transfers.reserve(carry_demand(len(planes), planes.shape[1], adder))
    return joined_fields(transfers, lookups(transfers, carry_fields(len(planes)), x, planes), adder)


def joined_fields(transfers: Transfers, found: Sequence[Words], adder: Adder) -> Words:
    """The carry out of fields, (words,). found: of each, from the lowest, what its table says: (outputs, words)."""
    generate = np.stack([of[0] for of in found])
    propagate = np.stack([of[-1] for of in found])  # the lowest is never used
    return (
        _ripple(transfers, generate, propagate)
        if adder == "ripple"
        else _tree(transfers, generate, propagate)
    )


def signs(transfers: Transfers, x: Elements, planes: int, adder: Adder) -> Words:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,); planes >=
    2."""
    mine = to_planes(x, planes)
    negative: Words = mine[planes - 1] ^ carry(transfers, x, mine[: planes - 1], adder)
    return negative


def _ripple(transfers: Transfers, generate: Words, propagate: Words) -> Words:
    found: Words = generate[0]
    for own, passes in zip(generate[1:], propagate[1:], strict=True):
        found = own ^ and_bits(transfers, passes, found)
    return found


def _tree(transfers: Transfers, generate: Words, propagate: Words) -> Words:
    """(g, p) of neighbours merge to (g_high ^ p_high g_low, p_high p_low); the lowest pair needs no p."""
    while len(generate) > 1:
        pairs = len(generate) // 2
        high, low = slice(1, 2 * pairs, 2), slice(0, 2 * pairs, 2)
        upper = propagate[high]
        carried, both = and_pairs(transfers, [(upper, generate[low]), (upper[1:], propagate[low][1:])])
        generate = np.concatenate((generate[high] ^ carried, generate[2 * pairs :]))
        propagate = np.concatenate((upper[:1], both, propagate[2 * pairs :]))
    top: Words = generate[0]
    return top
