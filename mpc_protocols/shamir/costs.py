"""Rounds, messages and bytes of every protocol on Shamir shares, as functions of public sizes.

Each method replays the message pattern of the protocol of its name on a tally with the wire's clocks. Which gates an adder
has follows from the heights of its columns, and those from which bits of a number may be 1 (`numbers`): the same functions give
them to the protocols and to this file. The tests compare with the wire's counters, exactly.

    costs = ShamirCosts(Tally.of(5), computing=5)
    masks = costs.l1_sums(lengths, 18)             what bits the sums' addends have
    costs.tally.rounds, costs.tally.sent

`steps` has whole steps of the oracle. Nothing here is secret: every argument is a size or a public number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.argmax import PAIRS
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import AliasTable, alias_table, schedule
from mpc_protocols.engine.noise.sampling import NOISE_BATCH, batches, joint_tables, noise_adder
from mpc_protocols.engine.tally import Tally
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.shamir.circuits.adders import carry_gates, sum_gates
from mpc_protocols.shamir.circuits.bit_gates import TEST_WORDS, shared_latency
from mpc_protocols.shamir.circuits.l1_distance import SUM_BITS, CandidateWords, lane_heights, layers
from mpc_protocols.shamir.sharing.field import threshold_of
from mpc_protocols.shamir.sharing.mesh import collects, slices
from mpc_protocols.shamir.sharing.numbers import (
    joint_masks,
    layer_mask,
    scaled_masks,
    shifts_of,
    weighted_layers,
)

WORD = 8
"""Bytes of a word of 64 bits."""
Masks = tuple[int, ...]


class ShamirCosts:
    """A tally of what m computing parties send."""

    def __init__(self, tally: Tally, computing: int, latency_bytes: int = LATENCY_BYTES) -> None:
        """latency_bytes: what a round is worth in the run."""
        self.tally = tally
        self.computing = computing
        self.holders = threshold_of(computing) + 1
        self._round = latency_bytes
        self._latency = shared_latency(latency_bytes, computing)

    @property
    def latency_bytes(self) -> int:
        """What a round is worth to the shared code."""
        return self._latency

    def all(self, size: int, senders: int | None = None) -> None:
        """One message of this size from each computing party, or from the first so many, to each other one."""
        parties = range(self.computing)
        self.tally.step([(me, peer, size) for me in parties[:senders] for peer in parties if peer != me])

    def open(self, words: int) -> None:
        """`Mesh.open_parts` of so many words."""
        if not collects(WORD * words, self.computing, self._round):
            self.all(WORD * words)
            return
        sizes = [WORD * (place.stop - place.start) for place in slices(words, self.computing)]
        ways = [(me, peer) for me in range(self.computing) for peer in range(self.computing) if peer != me]
        self.tally.step([(me, peer, sizes[peer]) for me, peer in ways])
        self.tally.step([(me, peer, sizes[me]) for me, peer in ways])

    def and_words(self, rounds: Sequence[int], words: int) -> None:
        """Products of so many planes in each round."""
        for planes in rounds:
            self.open(planes * words)

    def zero_rows(self, rows: int, vectors: int) -> None:
        """`ShamirBitGates.zero_rows`."""
        self.open(TEST_WORDS * rows * vectors)

    # -- numbers -----------------------------------------------------------------------------------------------------------

    def planes_of(self, cells: int, masks: Masks, bits: int, held: bool = False, public: int = 0) -> None:
        """`ShamirGates.planes_of` numbers whose terms have these masks; public: the bits of what is added in public."""
        if held:
            self.all(WORD * bits * words_for(cells), self.holders)
        heights = [
            max(1, sum(mask >> position & 1 for mask in (*masks, public)) + (self.holders if held else 0))
            for position in range(bits)
        ]
        self.and_words(sum_gates(heights, words_for(cells), self._latency), words_for(cells))

    def negative(self, cells: int, public: int) -> None:
        """`ShamirGates.negative` of what holders keep; public: the bits of what is added in public."""
        words = words_for(cells)
        self.all(WORD * 32 * words, self.holders)
        heights = [self.holders + (public >> position & 1) for position in range(32)]
        self.and_words(carry_gates(heights, words, self._latency), words)

    def reveal(self, cells: int, masks: Masks, held: bool = True) -> None:
        """`ShamirEngine.reveal`."""
        self.planes_of(cells, masks, 32, held)
        self.open(32 * words_for(cells))

    def l1_sums(self, lengths: NDArray[np.int64], planes: int) -> Masks:
        """`l1_distance.l1_sums` over candidates of so many compared cells; the masks of what it returns."""
        place = CandidateWords(lengths)
        self.all(WORD * planes * place.size, self.holders)
        self.and_words(sum_gates([self.holders] * planes, place.size, self._latency), place.size)
        heights, bits = self._layers(place.words, planes - 1, 1)
        _, bits = self._layers(lane_heights(heights), bits, words_for(len(lengths)))
        return ((1 << bits) - 1,) * 2 + (1, 1)

    def _layers(self, heights: NDArray[np.int64], planes: int, words: int) -> tuple[NDArray[np.int64], int]:
        for layer in layers(heights, planes):
            self.and_words([layer.carried], len(layer.triples) * words)
            heights, planes = layer.heights, min(layer.planes + 1, SUM_BITS)
        return heights, planes

    # -- noise -------------------------------------------------------------------------------------------------------------

    def draws(self, table: AliasTable, words: int, adder: Adder) -> None:
        """`engine.alias.draw_runs` of tables of one shape, of so many words together."""
        self.and_words(schedule(table, adder), words)

    def gumbel_noise(self, count: int) -> None:
        """`engine.sampling.gumbel_noise`."""
        table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
        adder = noise_adder(table, count, self._latency)
        for cells in batches(count):
            self.draws(table, words_for(cells), adder)

    def gaussian_noise(self, sampler: Sampler, count: int) -> None:
        """`engine.sampling.gaussian_noise`."""
        for _, half in sampler.parts:
            table = alias_table(half.thresholds, gaussian.BITS)
            adder = noise_adder(table, count, self._latency)
            for cells in batches(count):
                self.draws(table, words_for(cells), adder)

    def gaussian_noises(self, samplers: Sequence[tuple[Sampler, int]]) -> None:
        """`engine.sampling.gaussian_noises`: each sampler so many cells."""
        if not _together(samplers):
            for sampler, cells in samplers:
                self.gaussian_noise(sampler, cells)
            return
        for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
            runs = [(of.parts[part][1], cells) for of, cells in samplers if part < len(of.parts)]
            table, words = joint_tables([half for half, _ in runs])[0], sum(words_for(n) for _, n in runs)
            self.draws(table, words, noise_adder(table, 64 * words, self._latency))

    # -- arg max -----------------------------------------------------------------------------------------------------------

    def argmax_rows(self, count: int, masks: Masks, bits: int) -> None:
        """`engine.argmax.argmax_rows` of one row of numbers whose terms have these masks."""
        if count > 1:
            self._losses(1, count, masks, bits)
            self.zero_rows(1, count)

    def peel(self, picks: int, count: int, lists: Sequence[int], masks: Masks, bits: int) -> None:
        """`engine.argmax.peel`: `picks` rows of `count` keys; lists: on how many candidates each pick was made."""
        if count > 1:
            self._losses(picks, count, masks, bits)
            for several in lists:
                if several > 1:
                    self.zero_rows(1, several)

    def _losses(self, rows: int, count: int, masks: Masks, bits: int) -> None:
        constant = -sum(masks) % (1 << bits)
        both = (*masks, *masks, *([] if constant == 1 else [constant]))
        heights = [max(1, sum(mask >> position & 1 for mask in both)) for position in range(bits)]
        pairs = rows * (count * (count - 1) // 2)
        for start in range(0, pairs, PAIRS):
            words = words_for(min(PAIRS, pairs - start))
            self.and_words(carry_gates(heights, words, self._latency), words)


def gumbel_masks(a: int, bits: int) -> Masks:
    """Which bits of `gumbel_noise` on a grid of 2^a may be 1, term by term, but for what is public."""
    index_bits = alias_table(gumbel.THRESHOLDS, gumbel.BITS).index_bits
    return _masks([1 << a + j for j in range(index_bits)] + [1 << j for j in range(a)], bits)


def gaussian_masks(sampler: Sampler) -> Masks:
    """The same of `gaussian_noise`."""
    masks: Masks = ()
    for multiplier, half in sampler.parts:
        digits = alias_table(half.thresholds, gaussian.BITS).index_bits
        masks += _masks([multiplier << j for j in range(digits)] + [-multiplier * ((1 << digits) - 1)], 32)
    return masks


def gaussian_masks_of(samplers: Sequence[tuple[Sampler, int]]) -> Masks:
    """The same of `gaussian_noises`: each sampler so many cells."""
    if not _together(samplers):
        return joint_masks([gaussian_masks(sampler) for sampler, _ in samplers])
    pieces: list[Masks] = [()] * len(samplers)
    for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
        runs = [n for n, (of, _) in enumerate(samplers) if part < len(of.parts)]
        digits = joint_tables([samplers[n][0].parts[part][1] for n in runs])[0].index_bits
        drawn = _masks([1 << j for j in range(digits)] + [1 - (1 << digits)], 32)
        of_runs = [_times(drawn, samplers[n][0].parts[part][0]) for n in runs]
        joint = joint_masks(of_runs)
        if part == 0:
            pieces = [joint] * len(samplers)
            continue
        before = joint_masks(pieces)
        pieces = [before + joint if n in runs else before for n in range(len(samplers))]
    return joint_masks(pieces)


def _times(masks: Masks, factor: int) -> Masks:
    return masks if factor == 1 else scaled_masks(masks, shifts_of(np.array([factor], np.uint32)), 32)


def _masks(weights: Sequence[int], bits: int) -> Masks:
    return tuple(layer_mask(layer) for layer in weighted_layers(weights, bits))


def _together(samplers: Sequence[tuple[Sampler, int]]) -> bool:
    return len(samplers) > 1 and sum(cells for _, cells in samplers) <= NOISE_BATCH
