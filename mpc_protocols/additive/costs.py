"""Rounds, messages and bytes of every protocol of two parties and a dealer, as functions of public sizes.

Each method replays the message pattern of the protocol of its name on a tally with the wire's logical clocks. The tests compare
with the wire's counters, exactly.

    costs = AdditiveCosts(Tally.of(3))      two parties and the dealer, then contributors
    costs.l1_sums(50_000, 18)
    costs.tally.rounds, costs.tally.sent

`steps` has whole steps of the oracle. Nothing here is secret: every argument is a size that the messages show anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.additive.circuits.gates import TEST_WORDS, shared_latency, zero_pieces
from mpc_protocols.additive.circuits.sign import score_adder
from mpc_protocols.additive.dealing.operations import planes_at_once
from mpc_protocols.additive.engine import chunks
from mpc_protocols.additive.link import DEALER
from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.argmax import PAIRS
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import LOOKUP_WORDS, AliasTable, alias_table, one_hot_schedule
from mpc_protocols.engine.noise.sampling import NOISE_BATCH, batches, joint_tables, noise_adder
from mpc_protocols.engine.tally import Tally
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import Sampler

WORD = 8
"""Bytes of a word of 64 bits."""


class AdditiveCosts:
    """A tally of what the three computing parties send."""

    def __init__(self, tally: Tally, latency_bytes: int = LATENCY_BYTES) -> None:
        """latency_bytes: what a round is worth in the run."""
        self.tally = tally
        self._latency = shared_latency(latency_bytes)

    def all(self, size: int) -> None:
        """One message of this size from each computing party to each other one."""
        parties = range(DEALER + 1)
        self.tally.step([(me, peer, size) for me in parties for peer in parties if peer != me])

    def exchange(self, size: int, dealt: int = 0) -> None:
        """`link.Link.exchange`, so many bytes from each of the two, with what the dealer sends party 0."""
        self.tally.step([(0, 1, size), (1, 0, size), (DEALER, 0, dealt)])

    def tell(self, size: int) -> None:
        """`link.Link.tell`."""
        self.tally.step([(0, DEALER, size)])

    # -- operations --------------------------------------------------------------------------------------------------------

    def and_words(self, words: int, right: int | None = None) -> None:
        """`Operations.and_words`: so many words of the result; right: of both operands, where they are broadcast."""
        self.exchange(WORD * (2 * words if right is None else right), WORD * words)

    def masked(self, words: int) -> None:
        """`Operations.masked`."""
        self.exchange(WORD * words)

    def and_sums(self, left: int, sums: int) -> None:
        """`Operations.and_sums`, one run of terms: words of x, and of the sums."""
        self.exchange(WORD * left, WORD * sums)

    def integers(self, planes: int, cells: int, element: int) -> None:
        """`Operations.integers`."""
        for piece in planes_at_once(planes, cells):
            self.exchange(-(-piece * cells // 8), element * piece * cells)

    def products(self, cells: int, element: int) -> None:
        """`Operations.products`."""
        self.exchange(2 * element * cells, element * cells)

    def zero_rows(self, planes: int, cells: int) -> None:
        """`AdditiveGates.zero_rows` of so many vectors of so many bits."""
        words = words_for(cells)
        for piece in zero_pieces(planes, words):
            self.and_sums(piece * words, TEST_WORDS * words)
        self.exchange(WORD * TEST_WORDS * words)
        self.tell(WORD * words)

    # -- integers ----------------------------------------------------------------------------------------------------------

    def carry(self, planes: int, words: int, adder: Adder) -> None:
        """`sign.carry` out of so many planes."""
        for gates in [1] * planes if adder == "ripple" else [planes, *merge_schedule(planes)]:
            self.and_words(gates * words)

    def signs(self, cells: int, planes: int) -> None:
        """`sign.signs`."""
        words = words_for(cells)
        self.carry(planes - 1, words, score_adder(planes, words, self._latency))

    def l1_sums(self, cells: int, planes: int) -> None:
        """The absolute values of a group of candidates (`AdditiveGates.absolute`)."""
        for size in chunks(cells):
            self.signs(size, planes)
            self.integers(1, size, 4)
            self.products(size, 4)

    def widened(self, cells: int, element: int = 4) -> None:
        """`AdditiveGates.widened` of elements of so many bytes."""
        self.signs(cells, 8 * element + 1)
        self.integers(1, cells, 2 * element)

    def reveal(self, cells: int) -> None:
        """`AdditiveEngine.reveal` of elements of 32 bits."""
        self.exchange(4 * cells)
        self.tell(4 * cells)

    # -- noise and arg max -------------------------------------------------------------------------------------------------

    def draws(self, table: AliasTable, runs: Sequence[int], adder: Adder) -> None:
        """`engine.alias.draw_runs` of tables of one shape: the words of each run."""
        words, rest = sum(runs), table.rest_bits
        halves = (table.low_bits, table.index_bits - table.low_bits)
        for gates in one_hot_schedule(halves):
            self.and_words(gates * words)
        self.masked(words << halves[0])
        for length in runs:
            for start in range(0, length, LOOKUP_WORDS):
                width = min(LOOKUP_WORDS, length - start)
                self.and_sums(width << halves[1], table.outputs * width)
        for gates in [1] * rest if adder == "ripple" else [rest, *merge_schedule(rest)]:
            self.and_words(gates * words)
        self.and_words(table.index_bits * words, (1 + table.index_bits) * words)

    def gumbel_noise(self, count: int, a: int, element: int = 4) -> None:
        """`engine.sampling.gumbel_noise`."""
        table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
        adder = noise_adder(table, count, self._latency)
        for cells in batches(count):
            self.draws(table, [words_for(cells)], adder)
            self.integers(table.index_bits + a, cells, element)

    def gaussian_noise(self, sampler: Sampler, count: int) -> None:
        """`engine.sampling.gaussian_noise`."""
        for _, half in sampler.parts:
            table = alias_table(half.thresholds, gaussian.BITS)
            adder = noise_adder(table, count, self._latency)
            for cells in batches(count):
                self.draws(table, [words_for(cells)], adder)
                self.integers(table.index_bits + 1, cells, 4)

    def gaussian_noises(self, samplers: Sequence[tuple[Sampler, int]]) -> None:
        """`engine.sampling.gaussian_noises`: each sampler so many cells."""
        if len(samplers) == 1 or sum(cells for _, cells in samplers) > NOISE_BATCH:
            for sampler, cells in samplers:
                self.gaussian_noise(sampler, cells)
            return
        for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
            runs = [(of.parts[part][1], cells) for of, cells in samplers if part < len(of.parts)]
            table, lengths = joint_tables([half for half, _ in runs])[0], [words_for(n) for _, n in runs]
            cells = 64 * sum(lengths)
            self.draws(table, lengths, noise_adder(table, cells, self._latency))
            self.integers(table.index_bits + 1, cells, 4)

    def argmax_rows(self, count: int, element: int = 4) -> None:
        """`engine.argmax.argmax_rows` of one row, the opening included."""
        if count > 1:
            self._losses(1, count, element)
            self.zero_rows(count - 1, count)

    def peel(self, picks: int, count: int, lists: Sequence[int], element: int = 4) -> None:
        """`engine.argmax.peel`: `picks` rows of `count` keys; lists: on how many candidates each pick was made."""
        if count > 1:
            self._losses(picks, count, element)
        for several in lists:
            if several > 1:
                self.zero_rows(several - 1, several)

    def _losses(self, rows: int, count: int, element: int) -> None:
        pairs = rows * (count * (count - 1) // 2)
        for start in range(0, pairs, PAIRS):
            self.signs(min(PAIRS, pairs - start), 8 * element)
