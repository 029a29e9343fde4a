"""Secret draws from a public table by the alias method (Walker 1977): one lookup and ONE comparison per draw.

A table of n - 1 sorted thresholds over L uniform bits gives value k to m_k = t_k - t_{k-1} of the 2^L uniform
numbers (`mechanisms.gumbel`, `mechanisms.gaussian`). The same masses in 2^t columns of capacity C = 2^(L-t),
two values in each:

    i = U >> (L - t),  y = U mod C:      k = i if y < threshold_i else alias_i           sum of what k gets: exactly m_k

The distribution of k is that of the table, integer for integer (`docs/design/mechanisms.md` 1.5): a draw from
U equals the mechanisms' integer references on `AliasTable.table_order` of U, bit for bit.

On shares: the t index bits become two one-hot vectors of 2^(t/2) entries; each bit of (threshold_i, i ^
alias_i) is a bilinear form of both with public coefficients, a GF(2) dot product that costs one bit on the
wire whatever the table's size. The local work, 2^t (L + bits) / 8 words of XOR per 64 cells, is by the method
of the Four Russians.

    ANDs per cell    2 (2^(t/2) - t/2 - 1) + L + (L - t) [ripple, L - t rounds; tree: about 3 (L - t), 1 + ceil(log2(L - t))] + t
    rounds           ceil(log2(t/2)) + 1 + comparison + 1

Everything secret stays shared; sizes, rounds and messages depend on the table and the number of cells only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.adders import Adder, merge_planes, merge_schedule
from mpc_protocols.engine.bitwise.bits import B, on_parts, stack
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.interface import BitGates

_GROUP = 8  # one-hot planes whose 2^8 sums are tabulated together
LOOKUP_WORDS = 128
"""Words of the planes tabulated at a time; each term of a lookup is of so many at most."""
_PICKED = 1 << 16  # words picked at a time: with the sums they stay in the second-level cache


@dataclass(frozen=True)
class AliasTable:
    """Columns of a draw: `index_bits` of U name one, the `rest_bits` below them are compared with its
    threshold.

    thresholds: below 2^rest_bits. aliases: the value from the threshold on; its own number where it fills a
    whole column.
    """

    index_bits: int
    rest_bits: int
    thresholds: tuple[int, ...]
    aliases: tuple[int, ...]

    @property
    def low_bits(self) -> int:
        """Index bits of the inner one-hot vector; the others belong to the outer one."""
        return self.index_bits - self.index_bits // 2

    @property
    def outputs(self) -> int:
        """Bits that are looked up: a threshold, and the difference of index and alias."""
        return self.rest_bits + self.index_bits

    def table_order(self, uniform: int) -> int:
        """The bijection of the statement: the number that the table of sorted thresholds takes to the same
        value."""
        column, rest = divmod(uniform, 1 << self.rest_bits)
        own, other = self._starts[column]
        threshold = self.thresholds[column]
        return own + rest if rest < threshold else other + rest - threshold

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """Where, among the numbers sorted by value and then by column, the two parts of each column begin."""
        sizes = [[0] * len(self.thresholds) for _ in range(2)]
        for column, (threshold, alias) in enumerate(zip(self.thresholds, self.aliases, strict=True)):
            sizes[0][column] += threshold
            sizes[1][alias] += (1 << self.rest_bits) - threshold
        ends = [0]
        for own, other in zip(*sizes, strict=True):
            ends.append(ends[-1] + own + other)
        starts = []
        for column, (threshold, alias) in enumerate(zip(self.thresholds, self.aliases, strict=True)):
            own, ends[column] = ends[column], ends[column] + threshold
            other, ends[alias] = ends[alias], ends[alias] + (1 << self.rest_bits) - threshold
            starts.append((own, other))
        return starts

    @cached_property
    def output_bits(self) -> NDArray[np.uint8]:
        """What is looked up in each column, outer * inner entries + entry: (outer entries, inner entries,
        outputs)."""
        width = self.rest_bits // 8 + 1
        raw = b"".join(threshold.to_bytes(width, "little") for threshold in self.thresholds)
        bits = np.unpackbits(
            np.frombuffer(raw, np.uint8).reshape(-1, width), axis=1, count=self.rest_bits, bitorder="little"
        )
        change = np.arange(len(self.aliases)) ^ np.array(self.aliases)
        changed = ((change[:, np.newaxis] >> np.arange(self.index_bits)) & 1).astype(np.uint8)
        return np.concatenate((bits, changed), axis=1).reshape(-1, 1 << self.low_bits, self.outputs)

    @cached_property
    def selectors(self) -> NDArray[np.intp]:
        """Which tabulated sum of each group of inner planes gives an output bit: (groups, outputs * outer
        entries)."""
        inner = 1 << self.low_bits
        group = min(_GROUP, inner)
        # (outer, groups, group, outputs) -> numbers of sums (groups, outputs, outer)
        flags = self.output_bits.reshape(-1, inner // group, group, self.outputs)
        chosen = np.packbits(flags, axis=2, bitorder="little")[:, :, 0].transpose(1, 2, 0)
        numbers = chosen + (np.arange(inner // group) << group)[:, np.newaxis, np.newaxis]
        return np.ascontiguousarray(numbers.reshape(inner // group, -1), np.intp)

    @cached_property
    def column_selectors(self) -> NDArray[np.intp]:
        """The same where the planes of all columns are grouped: (groups, outputs)."""
        groups, outer = len(self.selectors), 1 << self.index_bits - self.low_bits
        of_row = self.selectors.reshape(groups, self.outputs, outer).transpose(2, 0, 1)
        group = min(_GROUP, 1 << self.low_bits)
        numbers = of_row + ((np.arange(outer) * groups) << group)[:, np.newaxis, np.newaxis]
        return np.ascontiguousarray(numbers.reshape(-1, self.outputs))


Runs = Sequence[tuple[AliasTable, int]]
"""Tables of one shape, each with the number of words of draws from it."""
LookUp = Callable[[B, B, Runs], B]
"""(inner, outer, runs) to (outputs, words): gates that have an attribute `look_up` look up in their own way."""
Ready = Callable[[AliasTable, int, Adder], None]
"""Of a table's shape, words of draws and the adder: gates that have an attribute `ready_for_draws` make their masks for
all rounds of a draw before it begins."""


def index_bits_of(thresholds: Sequence[int]) -> int:
    """Of a table of so many values for itself."""
    return max(2, len(thresholds).bit_length())


@lru_cache(maxsize=256)
def alias_table(thresholds: tuple[int, ...], bits: int, index_bits: int = 2) -> AliasTable:
    """The columns of a table of non-decreasing thresholds below 2^bits; the same integers at every party.

    index_bits: at least so many, for a table that is drawn from together with a larger one.
    """
    index_bits = max(index_bits, index_bits_of(thresholds))
    capacity = 1 << bits - index_bits
    masses = [high - low for low, high in zip((0, *thresholds), (*thresholds, 1 << bits), strict=True)]
    masses += [0] * ((1 << index_bits) - len(masses))
    cuts, aliases = [0] * len(masses), list(range(len(masses)))
    small = [k for k, mass in enumerate(masses) if mass < capacity]
    large = [k for k, mass in enumerate(masses) if mass >= capacity]
    while small:  # what is missing in one column is taken from a value that has more than a column
        column, giver = small.pop(), large.pop()
        cuts[column], aliases[column] = masses[column], giver
        masses[giver] -= capacity - masses[column]
        (small if masses[giver] < capacity else large).append(giver)
    return AliasTable(index_bits, bits - index_bits, tuple(cuts), tuple(aliases))


def draw_ands(table: AliasTable, adder: Adder) -> int:
    """ANDs a cell of a draw: of both one-hot vectors, and of the comparison. The lookup is a sum of products besides, and
    so is the choice that ends it."""
    high = table.index_bits - table.low_bits
    one_hot = sum((1 << bits) - bits - 1 for bits in (table.low_bits, high))
    return one_hot + table.rest_bits + sum(merge_schedule(table.rest_bits) if adder == "tree" else [-1, 1])


def draw(gates: BitGates[B], uniform: B, table: AliasTable, adder: Adder) -> B:
    """Bits of one value per cell, lowest first: shape (index_bits, words).

    uniform: planes of U, lowest first, shape (rest_bits + index_bits, words).
    """
    return draw_runs(gates, uniform, [(table, uniform.shape[1])], adder)


def draw_runs(gates: BitGates[B], uniform: B, runs: Runs, adder: Adder) -> B:
    """`draw` from several tables of one shape in the same rounds: each for the next so many words."""
    table = runs[0][0]
    if any((other.index_bits, other.rest_bits) != (table.index_bits, table.rest_bits) for other, _ in runs):
        raise ValueError("Tables that are drawn from together need as many index bits and other bits.")
    if len(uniform) != table.outputs:
        raise ValueError(f"A draw takes {table.outputs} uniform bits, got {len(uniform)}.")
    ready: Ready | None = getattr(gates, "ready_for_draws", None)
    if ready is not None:
        ready(table, uniform.shape[1], adder)
    rest, index = uniform[: table.rest_bits], uniform[table.rest_bits :]
    inner, outer = one_hots(gates, [index[: table.low_bits], index[table.low_bits :]])
    own: LookUp[B] | None = getattr(gates, "look_up", None)
    looked_up = own(inner, outer, runs) if own else _lookup(gates, inner, outer, runs)
    change = looked_up[table.rest_bits :]
    own_value = _less(gates, rest, looked_up[: table.rest_bits], adder)
    return index ^ change ^ gates.and_bits(own_value[np.newaxis], change)


def one_hots(gates: BitGates[B], numbers: Sequence[B]) -> list[B]:
    """One-hot vectors of several shared numbers, planes lowest first: (bits, words) to (2^bits, words), in
    the same rounds."""
    vectors = [_rows(on_parts(_bit_by_bit, gates.complement(number), number)) for number in numbers]
    while any(len(vector) > 1 for vector in vectors):
        pairs = [pair for vector in vectors for pair in zip(vector[::2], vector[1::2], strict=False)]
        runs: list[list[tuple[B, B]]] = [
            list(run) for _, run in groupby(pairs, key=lambda pair: tuple(map(len, pair)))
        ]
        factors = [(stack([low for low, _ in run]), stack([high for _, high in run])) for run in runs]
        products = gates.and_pairs([_outer_factors(low, high) for low, high in factors])
        merged = iter(
            [
                vector
                for (low, high), product in zip(factors, products, strict=True)
                for vector in _rows(_outer(low, high, product))
            ]
        )
        vectors = [
            [*(next(merged) for _ in range(len(vector) // 2)), *vector[len(vector) // 2 * 2 :]]
            for vector in vectors
        ]
    return [vector[0] for vector in vectors]


def _rows(several: B) -> list[B]:
    return [several[j] for j in range(len(several))]


def _bit_by_bit(inverted: Words, bits: Words) -> Words:
    """The one-hot vector of each bit: (bits, 2, words)."""
    return np.stack((inverted, bits), axis=1)


@lru_cache(maxsize=64)
def _entries(high: int, low: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The entries of two one-hot vectors, but the first, of which products are taken: row by row. Kept: nobody may write
    into it."""
    rows, columns = np.divmod(np.arange((high - 1) * (low - 1)), low - 1)
    entries = rows + 1, columns + 1
    for places in entries:
        places.flags.writeable = False
    return entries


def _outer_factors(low: B, high: B) -> tuple[B, B]:
    """Of several pairs of one-hot vectors, (pairs, entries, words) each: the factors of what `_outer` takes, one pair
    after the other."""
    rows, columns = _entries(high.shape[1], low.shape[1])
    words = low.shape[2]
    return high[:, rows].reshape(-1, words), low[:, columns].reshape(-1, words)


def _outer(low: B, high: B, products: B) -> B:
    """All products of two one-hot vectors from those of their entries but the first: rows and columns sum to
    the factors. Of several pairs, as in `_outer_factors`."""

    def component(low: Words, high: Words, products: Words) -> Words:
        pairs, entries, words = high.shape
        grid = np.empty_like(low, shape=(pairs, entries, *low.shape[1:]))
        grid[:, 1:, 1:] = products.reshape(pairs, entries - 1, -1, words)
        grid[:, 1:, 0] = high[:, 1:] ^ np.bitwise_xor.reduce(grid[:, 1:, 1:], axis=2)
        grid[:, 0] = low ^ np.bitwise_xor.reduce(grid[:, 1:], axis=1)
        return grid.reshape(pairs, -1, words)

    return on_parts(component, low, high, products)


def _lookup(gates: BitGates[B], inner: B, outer: B, runs: Runs) -> B:
    """XOR_{h, l} outer_h & inner_l & table bit (h, l), for every output bit: (outputs, words). 1 round."""
    shape = (runs[0][0].outputs, sum(words for _, words in runs))
    return gates.and_sums(shape, lookup_terms(gates.factor(inner), outer, runs))


def lookup_terms(factor: B, outer: B, runs: Runs) -> Iterator[tuple[tuple[slice, slice], B, Iterator[Words]]]:
    """What a lookup adds up, as `BitGates.and_sums` takes it: places of the result, outer entries, and part
    by part of the factor the sums of inner entries that they are multiplied by."""
    entries, outputs = len(outer), runs[0][0].outputs
    ends = list(accumulate(words for _, words in runs))
    places = (
        (table, start, min(start + LOOKUP_WORDS, end))
        for (table, words), end in zip(runs, ends, strict=True)
        for start in range(end - words, end, LOOKUP_WORDS)
    )
    for table, start, stop in places:
        piece = slice(start, stop)
        width = piece.stop - piece.start
        sums, outer_piece = on_parts(_sums, factor[:, piece]), outer[:, piece]
        step = max(1, _PICKED // (entries * width))
        for first in range(0, outputs, step):
            chosen = table.selectors[:, first * entries : (first + step) * entries]
            parts = (_picked(part, chosen).reshape(-1, entries, width) for part in sums.parts)
            yield (slice(first, first + step), piece), outer_piece, parts


def multiplied_out(gates: BitGates[B], inner: B, outer: B, runs: Runs) -> B:
    """As a lookup, where each statement costs more than what it sends, as when few are proved: the one-hot
    vector of all columns, after which every output bit is a local sum. 2^t products a draw in place of
    outputs * 2^(t/2). 1 round."""
    low, high = inner[np.newaxis], outer[np.newaxis]
    [products] = gates.and_pairs([_outer_factors(low, high)])
    vector = _outer(low, high, products)[0]
    group = min(_GROUP, len(inner))
    groups = len(vector) // group
    step = max(1, (1 << 19) // (groups << _GROUP))

    def component(planes: Words) -> Words:
        found = np.empty((runs[0][0].outputs, planes.shape[1]), np.uint64)
        end = 0
        for table, words in runs:
            start, end = end, end + words
            for first in range(start, end, step):
                piece = slice(first, min(first + step, end))
                found[:, piece] = _picked(_sums(planes[:, piece], group), table.column_selectors)
        return found

    return on_parts(component, vector)


def _sums(planes: Words, most: int = _GROUP) -> Words:
    """All 2^g XORs of each group of g planes, `most` or fewer: (groups * 2^g, words)."""
    group = min(most, len(planes))
    sums = np.zeros_like(planes, shape=(len(planes) // group, 1 << group, planes.shape[1]))
    grouped = planes.reshape(len(planes) // group, group, -1)
    for b in range(group):
        np.bitwise_xor(sums[:, : 1 << b], grouped[:, b : b + 1], out=sums[:, 1 << b : 2 << b])
    return sums.reshape(-1, planes.shape[1])


def _picked(sums: Words, chosen: NDArray[np.intp]) -> Words:
    """XOR over the groups of the sums chosen: (rows, words)."""
    picked: Words = sums.take(chosen[0], axis=0)
    for row in chosen[1:]:
        picked ^= sums.take(row, axis=0)
    return picked


def _less(gates: BitGates[B], rest: B, thresholds: B, adder: Adder) -> B:
    """[rest < threshold], planes lowest first: (bits, words) to (words,)."""
    inverted = gates.complement(rest)
    differs = inverted ^ thresholds
    if adder == "tree":
        return merge_planes(gates, gates.and_bits(inverted, thresholds), differs)
    less = gates.and_bits(inverted[0], thresholds[0])
    for j in range(1, len(rest)):
        less = thresholds[j] ^ gates.and_bits(differs[j], thresholds[j] ^ less)
    return less
