"""Rounds, messages and bytes of every protocol of the two-party engine, as functions of public sizes.

Each method replays the message pattern of the protocol of its name on a tally with the wire's logical clocks, and keeps the same
supplies of transfers, so that what is made ahead counts where it is made. The tests compare with the wire's counters, exactly.

    costs = PairCosts(Tally.of(2))       two parties that compute, then contributors
    costs.start()
    costs.l1_sums(50_000, 18, "ripple")
    costs.tally.rounds, costs.tally.sent

`steps` has whole steps of the oracle.

Nothing here is secret: every argument is a size that the protocol's messages show anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.argmax import PAIRS
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import LOOKUP_WORDS, AliasTable, alias_table, one_hot_schedule
from mpc_protocols.engine.noise.sampling import NOISE_BATCH, batches, joint_tables, noise_adder
from mpc_protocols.engine.tally import Tally
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.pair.circuits.argmax import GROUP, in_groups
from mpc_protocols.pair.circuits.conversion import lift_demand
from mpc_protocols.pair.circuits.gates import shared_latency
from mpc_protocols.pair.circuits.gmw import string_pieces, string_sums_demand
from mpc_protocols.pair.circuits.l1_distance import l1_demand
from mpc_protocols.pair.circuits.sign import (
    carry_demand,
    carry_fields,
    carry_pieces,
    chunks,
    merges,
    score_adder,
)
from mpc_protocols.pair.circuits.zero_test import zero_demand, zero_pieces
from mpc_protocols.pair.transfers.correlated import products_demand
from mpc_protocols.pair.transfers.lookup import Field, lookups_demand
from mpc_protocols.pair.transfers.ot_extension import base_count, message_bytes, pieces
from mpc_protocols.pair.transfers.random_ot import BATCH
from mpc_protocols.pair.transfers.transfer_pool import Demand, PoolLevel, pool_levels
from mpc_protocols.pair.vertical.contingency import TableShape, table_chunks, table_demand

WORD = 8
"""Bytes of a word of 64 bits."""


class PairCosts:
    """A tally of what two parties send, with the transfers that they have left."""

    def __init__(self, tally: Tally, latency_bytes: int = LATENCY_BYTES) -> None:
        """latency_bytes: what a round is worth in the run."""
        self.tally = tally
        self.latency_bytes = latency_bytes
        self._levels = [pool_levels() for _ in range(2)]

    def both(self, *sizes: int) -> None:
        """Messages of these sizes from each party to the other, all sent before any is received."""
        self.tally.step([(me, 1 - me, size) for size in sizes for me in (0, 1)])

    def start(self) -> None:
        """`Transfers.start`: points, blinded points, sums of the trees."""
        self.both(32)
        self.both(32 * base_count())
        self.both(32 * base_count())

    def reserve(self, demand: Demand) -> None:
        """`Transfers.reserve`."""
        self._make(demand, PoolLevel.shortfall)

    def take(self, demand: Demand) -> None:
        """`Transfers.need`, and what is then taken."""
        self._make(demand, PoolLevel.refill)
        for chooser, levels in enumerate(self._levels):
            for of, words in zip(levels, demand.of(chooser), strict=True):
                of.take(words)

    def _make(self, demand: Demand, question: Callable[[PoolLevel, int], int]) -> None:
        made = [
            [question(of, count) for of, count in zip(levels, demand.of(chooser), strict=True)]
            for chooser, levels in enumerate(self._levels)
        ]
        words = [sum(of) for of in made]
        for start in range(0, max(words), BATCH):
            self.tally.step(
                [
                    (me, 1 - me, message_bytes(piece))
                    for me in (0, 1)
                    for piece in pieces(max(0, min(BATCH, words[me] - start)))
                ]
            )
        for levels, counts in zip(self._levels, made, strict=True):
            for of, count in zip(levels, counts, strict=True):
                of.words_left += count

    # -- bits ------------------------------------------------------------------------------------------------------------

    def opening(self, size: int) -> None:
        """`gmw.open_bits`, or of ring elements: so many bytes each."""
        self.both(size)

    def and_words(self, words: int) -> None:
        """`gmw.and_bits` and `gmw.and_pairs`, of so many words in all."""
        self.take(Demand(bits=(words, words)))
        self.both(2 * WORD * words)

    def string_sums(self, terms: int, width: int, words: int) -> None:
        """`gmw.string_sums`."""
        for piece in string_pieces(terms, words):
            self.take(string_sums_demand(terms, piece))
            self.both(WORD * terms * piece * (1 + width))

    def zero_cells(self, planes: int, cells: int) -> None:
        """`zero_test.zero_cells`."""
        words = words_for(cells)
        self.reserve(zero_demand(planes, words))
        for count in zero_pieces(planes, words):
            self.take(zero_demand(count, words))
            self.both(WORD * count * words)
        self.both(2 * WORD * cells)

    # -- integers --------------------------------------------------------------------------------------------------------

    def products(self, rows: tuple[int, int], cells: int, element: int = 4) -> None:
        """`correlated.products`: party i brings rows[i] planes of bits."""
        self.take(products_demand(rows, cells))
        words = words_for(cells)
        self.tally.step(
            [
                message
                for me in (0, 1)
                for message in (
                    (me, 1 - me, WORD * rows[me] * words),
                    (me, 1 - me, element * rows[1 - me] * cells),
                )
            ]
        )

    def weighted_sum(self, planes: int, cells: int, element: int = 4) -> None:
        """`conversion.weighted_sum`."""
        self.products((planes - planes // 2, planes // 2), cells, element)

    def lookups(self, fields: Sequence[Field], cells: int) -> None:
        """`lookup.lookups`."""
        words = words_for(cells)
        self.take(lookups_demand(fields, words))
        asked = [sum(of.table.bits for of in fields if of.chooser == me) for me in (0, 1)]
        self.tally.step([(me, 1 - me, WORD * words * asked[me]) for me in (0, 1)])
        self.tally.step(
            [(1 - of.chooser, of.chooser, cells * np.dtype(of.table.dtype).itemsize) for of in fields]
        )

    def carry(self, planes: int, cells: int, adder: Adder) -> None:
        """`sign.carry` out of so many planes; with one plane more, `sign.signs`."""
        fields = carry_fields(planes)
        for piece in carry_pieces(cells):
            words = words_for(piece)
            self.reserve(carry_demand(planes, words, adder))
            self.lookups(fields, piece)
            for gates in merges(len(fields), adder):
                self.and_words(gates * words)

    def lift(self, cells: int, narrow: int = 4, wide: int = 8, adder: Adder = "tree") -> None:
        """`conversion.lift` from elements of `narrow` bytes to `wide` ones."""
        for size in chunks(cells):
            self.reserve(lift_demand(8 * narrow, size, adder))
            self.carry(8 * narrow, size, adder)
            self.weighted_sum(1, size, wide)

    def l1_sums(self, cells: int, planes: int, adder: Adder) -> None:
        """`l1_distance.l1_sums`."""
        for size in chunks(cells):
            self.reserve(l1_demand(size, planes, adder))
            self.carry(planes - 1, size, adder)
            self.products((1, 1), size)

    # -- tables ----------------------------------------------------------------------------------------------------------

    def table(self, shape: TableShape) -> None:
        """`contingency.of_paths` and `of_vectors`."""
        owner, other = shape.owner, 1 - shape.owner
        for size in table_chunks(shape):
            demand = table_demand(shape, size)
            self.reserve(demand)
            self.take(demand)
            self.tally.step([(owner, other, WORD * shape.levels * words_for(size))])
            self.tally.step(
                [(other, owner, 32 * shape.levels * size), (other, owner, shape.row_bytes * size)]
            )

    # -- noise and arg max -------------------------------------------------------------------------------------------------

    def draws(self, table: AliasTable, runs: Sequence[int], adder: Adder) -> None:
        """`engine.alias.draw_runs` of tables of one shape: the words of each run."""
        words, rest = sum(runs), table.rest_bits
        halves = (table.low_bits, table.index_bits - table.low_bits)
        for gates in one_hot_schedule(halves):
            self.and_words(gates * words)
        for length in runs:
            for start in range(0, length, LOOKUP_WORDS):
                self.string_sums(1 << halves[1], table.outputs, min(LOOKUP_WORDS, length - start))
        for gates in [1] * rest if adder == "ripple" else [rest, *merge_schedule(rest)]:
            self.and_words(gates * words)
        self.string_sums(1, table.index_bits, words)

    def gumbel_noise(self, count: int, a: int, element: int = 4) -> None:
        """`engine.sampling.gumbel_noise`."""
        table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
        adder = noise_adder(table, count, shared_latency(self.latency_bytes))
        for cells in batches(count):
            self.draws(table, [words_for(cells)], adder)
            self.weighted_sum(table.index_bits + a, cells, element)

    def gaussian_noise(self, sampler: Sampler, count: int, element: int = 4) -> None:
        """`engine.sampling.gaussian_noise`."""
        for _, half in sampler.parts:
            table = alias_table(half.thresholds, gaussian.BITS)
            adder = noise_adder(table, count, shared_latency(self.latency_bytes))
            for cells in batches(count):
                self.draws(table, [words_for(cells)], adder)
                self.weighted_sum(table.index_bits + 1, cells, element)

    def gaussian_noises(self, samplers: Sequence[tuple[Sampler, int]], element: int = 4) -> None:
        """`engine.sampling.gaussian_noises`: each sampler so many cells."""
        if len(samplers) == 1 or sum(cells for _, cells in samplers) > NOISE_BATCH:
            for sampler, cells in samplers:
                self.gaussian_noise(sampler, cells, element)
            return
        for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
            runs = [(of.parts[part][1], cells) for of, cells in samplers if part < len(of.parts)]
            table, lengths = joint_tables([half for half, _ in runs])[0], [words_for(n) for _, n in runs]
            words = sum(lengths)
            adder = noise_adder(table, 64 * words, shared_latency(self.latency_bytes))
            self.draws(table, lengths, adder)
            self.weighted_sum(table.index_bits + 1, 64 * words, element)

    def argmax(self, count: int, element: int = 4) -> None:
        """`argmax.argmax`, the opening included."""
        if not in_groups(count, element, self.latency_bytes):
            self.argmax_rows(1, count, element)
            return
        groups = -(-count // GROUP)
        words = words_for(groups * GROUP)
        self._losses(groups, GROUP, element)
        standing = GROUP - 1
        while standing > 1:
            self.and_words(standing // 2 * words)
            standing -= standing // 2
        self.products((1, 1), groups * GROUP, element)
        self.argmax_rows(1, groups, element)
        self.both(1)

    def argmax_rows(self, rows: int, count: int, element: int = 4) -> None:
        """`engine.argmax.argmax_rows`, the opening included."""
        if count > 1:
            self._losses(rows, count, element)
            self.zero_cells(count - 1, rows * count)

    def peel(self, picks: int, count: int, lists: Sequence[int], element: int = 4) -> None:
        """`engine.argmax.peel`: `picks` rows of `count` keys; lists: on how many candidates each pick was made."""
        if count > 1:
            self._losses(picks, count, element)
        for several in lists:
            if several > 1:
                self.zero_cells(several - 1, several)

    def _losses(self, rows: int, count: int, element: int) -> None:
        pairs = rows * (count * (count - 1) // 2)
        for start in range(0, pairs, PAIRS):
            batch = min(PAIRS, pairs - start)
            adder = score_adder(8 * element, words_for(batch), self.latency_bytes)
            self.carry(8 * element - 1, batch, adder)
