"""Rounds and bytes of every protocol of the engine, as functions of public sizes.

`plan` predicts a run with these, and the tests assert them against the wire's counters, exactly. Each function replays the
message pattern of its protocol on a `Tally`, which keeps one logical clock per computing party just as the wire does: what
travels in the same step is one round, and the rounds of a run are the longest chain of messages, not a sum.

    tally = Tally.of(parties=5)                 three that compute, two contributors
    agree_on_delay(tally)
    prepare(tally, step=120, request=120, blocks=[50_000])
    tally.rounds, tally.sent                    the longest chain; payload bytes sent by each party

Nothing here is secret: every argument is a size that the protocol's messages show anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpc_protocols.engine.adders import Adder, merge_schedule
from mpc_protocols.engine.alias import AliasTable, alias_table, schedule
from mpc_protocols.engine.argmax import PAIRS
from mpc_protocols.engine.bitslice import piece_lengths, words_for
from mpc_protocols.engine.latency import LAPS, LATENCY_BYTES
from mpc_protocols.engine.sampling import BATCH, batches, joint_tables, noise_adder
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.replicated.gates import GROUP, in_groups
from mpc_protocols.replicated.inputs.contribution import SEED_BYTES
from mpc_protocols.replicated.scores import masked_sign
from mpc_protocols.replicated.scores.l1_distance import score_adder
from mpc_protocols.replicated.scores.masked_sign import bit_rows
from mpc_protocols.replicated.sharing.bit_gates import TEST_WORDS
from mpc_protocols.replicated.sharing.copies import DIGEST_BYTES

WORD = 8
"""Bytes of a word of 64 bits."""
AGREEMENT = 32
"""Bytes of a public transcript's hash."""


@dataclass
class Tally:
    """Clocks, bytes and messages of the parties: three that compute, then the contributors."""

    clocks: list[int]
    sent: list[int]
    messages: list[int]

    @classmethod
    def of(cls, parties: int = 3) -> Tally:
        """A tally of nothing yet."""
        return cls([0] * parties, [0] * parties, [0] * parties)

    @property
    def rounds(self) -> int:
        """The longest chain of messages so far."""
        return max(self.clocks)

    def step(self, transfers: Sequence[tuple[int, int, int]]) -> None:
        """Messages (sender, receiver, bytes) that are all sent before any of them is received; empty ones do not travel."""
        self.arrive(self.leave(transfers))

    def leave(self, transfers: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
        """The sending half of a step; returns receivers and the rounds in which the messages travel."""
        for sender, _, size in transfers:
            self.sent[sender] += size
            self.messages[sender] += size > 0
        return [(receiver, self.clocks[sender] + 1) for sender, receiver, size in transfers if size]

    def arrive(self, travelling: Sequence[tuple[int, int]]) -> None:
        """The receiving half of a step."""
        for receiver, clock in travelling:
            self.clocks[receiver] = max(self.clocks[receiver], clock)

    def pass_left(self, size: int) -> None:
        """A multiplication: every party sends to the one on its left."""
        self.step([(i, (i - 1) % 3, size) for i in range(3)])

    def pass_right(self, size: int) -> None:
        """An input of all three: every party sends to the one on its right."""
        self.step([(i, (i + 1) % 3, size) for i in range(3)])


class _Script(Tally):
    """Notes the steps of a protocol instead of taking them."""

    def __init__(self, parties: int) -> None:
        super().__init__([0] * parties, [0] * parties, [0] * parties)
        self.steps: list[Sequence[tuple[int, int, int]]] = []

    def step(self, transfers: Sequence[tuple[int, int, int]]) -> None:
        self.steps.append(transfers)


def interleave(tally: Tally, first: Callable[[Tally], None], second: Callable[[Tally], None]) -> None:
    """`interleave.interleave`: two protocols take turns between the sends and the receives of their steps."""
    scripts = []
    for protocol in (first, second):
        script = _Script(len(tally.clocks))
        protocol(script)
        scripts.append(script.steps)
    travelling: list[list[tuple[int, int]]] = [[], []]
    for number in range(max(map(len, scripts)) + 1):
        for which, steps in enumerate(scripts):
            if number <= len(steps):
                tally.arrive(travelling[which])
                travelling[which] = tally.leave(steps[number]) if number < len(steps) else []


def sharing(tally: Tally, cells: int, element: int = 4) -> None:
    """Input of all three parties at once (`ring.share_own`)."""
    tally.pass_right(cells * element)


def opening(tally: Tally, cells: int, element: int = 4) -> None:
    """`ring.open_ring`, and `boolean.open_bits` with element = WORD: a component to the right, the other's hash to the left."""
    tally.step(
        [
            transfer
            for i in range(3)
            for transfer in ((i, (i + 1) % 3, cells * element), (i, (i - 1) % 3, DIGEST_BYTES * (cells > 0)))
        ]
    )


def products(tally: Tally, results: int, element: int = 4) -> None:
    """`ring.multiply`, `ring.dot`, `ring.reshare`; `boolean.and_bits` with element = WORD."""
    tally.pass_left(results * element)


def carries(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.carry` out of the low `planes` planes."""
    words = words_for(cells)
    gates = [1] * planes if adder == "ripple" else [planes, *merge_schedule(planes)]
    for gate in gates:
        products(tally, gate * words, WORD)


def signs(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.signs`."""
    tally.step([(0, 1, planes * words_for(cells) * WORD)])
    carries(tally, cells, planes - 1, adder)


def share_bits(tally: Tally, parts: Sequence[int], planes: int) -> None:
    """`masked_sign.share_bits` of so many cells of each dealer."""
    tally.step(
        [(t, (t + 1) % 3, bit_rows(planes) * words_for(cells) * WORD) for t, cells in enumerate(parts)]
    )


def l1_distances(tally: Tally, parts: Sequence[int], planes: int, adder: Adder, element: int = 4) -> None:
    """`l1_distance.add_l1_sums` of so many cells of each dealer; the sums are `products` when they are reshared."""
    if not any(parts):
        return
    words = [words_for(cells) * WORD for cells in parts]
    columns = [(t, (t + 1) % 3, 2 * length * element) for t in range(3) for length in piece_lengths(parts[t])]
    schedule = masked_sign.steps(planes, adder)
    for number, (exchanged, dealt) in enumerate(schedule):
        tally.step(
            [(t, (t + 1) % 3, dealt * words[t] + exchanged * words[t - 1]) for t in range(3)]
            + [(t, (t - 1) % 3, exchanged * words[(t + 1) % 3]) for t in range(3)]
            + (columns if number == len(schedule) - 1 else [])
        )


def weighted_sum(tally: Tally, bits: int, cells: int, element: int = 4) -> None:
    """`conversion.weighted_sum`."""
    tally.step([(0, 1, bits * cells * element)])
    products(tally, cells, element)


def lift(tally: Tally, cells: int, narrow: int = 4, wide: int = 8) -> None:
    """`conversion.lift` from elements of `narrow` bytes to `wide` ones."""
    tally.step([(0, 1, 8 * narrow * words_for(cells) * WORD)])
    carries(tally, cells, 8 * narrow, "tree")
    tally.step([(0, 1, cells * wide)])
    weighted_sum(tally, 1, cells, wide)


def draws(tally: Tally, table: AliasTable, words: int, adder: Adder) -> None:
    """`alias.draw`."""
    for gates in schedule(table, adder):
        products(tally, gates * words, WORD)


def gumbel_noise(
    tally: Tally, candidates: int, a: int, element: int = 4, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`sampling.gumbel_noise`."""
    table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
    adder = noise_adder(table, candidates, latency_bytes)
    for cells in batches(candidates):
        draws(tally, table, words_for(cells), adder)
        weighted_sum(tally, table.index_bits + a, cells, element)


def gaussian_noise(
    tally: Tally, sampler: Sampler, cells: int, element: int = 4, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`sampling.gaussian_noise`."""
    for _, half in sampler.parts:
        table = alias_table(half.thresholds, gaussian.BITS)
        adder = noise_adder(table, cells, latency_bytes)
        for size in batches(cells):
            draws(tally, table, words_for(size), adder)
            weighted_sum(tally, table.index_bits + 1, size, element)


def gaussian_noises(
    tally: Tally,
    samplers: Sequence[tuple[Sampler, int]],
    element: int = 4,
    latency_bytes: int = LATENCY_BYTES,
) -> None:
    """`sampling.gaussian_noises`: each sampler so many cells."""
    if len(samplers) == 1 or sum(cells for _, cells in samplers) > BATCH:
        for sampler, cells in samplers:
            gaussian_noise(tally, sampler, cells, element, latency_bytes)
        return
    for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
        runs = [(of.parts[part][1], cells) for of, cells in samplers if part < len(of.parts)]
        table, words = joint_tables([half for half, _ in runs])[0], sum(words_for(n) for _, n in runs)
        draws(tally, table, words, noise_adder(table, 64 * words, latency_bytes))
        weighted_sum(tally, table.index_bits + 1, 64 * words, element)


def argmax(tally: Tally, candidates: int, element: int = 4, latency_bytes: int = LATENCY_BYTES) -> None:
    """`argmax.argmax`, the opening included."""
    if not in_groups(candidates, element, latency_bytes):
        argmax_rows(tally, 1, candidates, element)
        return
    groups = -(-candidates // GROUP)
    _comparisons(tally, groups * GROUP * (GROUP - 1) // 2, element)
    opponents = GROUP - 1
    while opponents > 1:
        products(tally, opponents // 2 * words_for(groups * GROUP), WORD)
        opponents -= opponents // 2
    weighted_sum(tally, 1, groups * GROUP, element)
    products(tally, groups, element)
    argmax_rows(tally, 1, groups, element)
    opening(tally, 1, element)


def argmax_rows(tally: Tally, rows: int, candidates: int, element: int = 4) -> None:
    """`argmax.argmax_rows`, the opening included."""
    if candidates == 1:
        return
    _comparisons(tally, rows * candidates * (candidates - 1) // 2, element)
    zero_rows(tally, rows * candidates)


def peel(tally: Tally, picks: int, candidates: int, lists: Sequence[int], element: int = 4) -> None:
    """`argmax.peel`: of `picks` rows of keys of `candidates`; lists: on how many candidates each pick was made."""
    if candidates > 1:
        _comparisons(tally, picks * candidates * (candidates - 1) // 2, element)
    for several in lists:
        if several > 1:
            zero_rows(tally, several)


def zero_rows(tally: Tally, rows: int) -> None:
    """`bit_gates.zero_rows`: the masked parts go straight to both others."""
    size = rows * TEST_WORDS * WORD
    tally.step([(i, j, size) for i in range(3) for j in ((i - 1) % 3, (i + 1) % 3)])


def _comparisons(tally: Tally, pairs: int, element: int) -> None:
    for start in range(0, pairs, PAIRS):
        signs(tally, min(PAIRS, pairs - start), 8 * element, "tree")


# -- steps of the oracle ---------------------------------------------------------------------------------------------------


def agree_on_delay(tally: Tally) -> None:
    """The beginning of a run: `latency.agree_on_delay`."""
    for _ in range(LAPS):
        for hop in ((1, 0, 1), (0, 2, 1), (2, 1, 1)):
            tally.step([hop])
    tally.step([(1, 0, 4), (1, 2, 4)])


def announce(tally: Tally, step: int, extra: Sequence[tuple[int, int, int]] = ()) -> None:
    """P1 sends a step of so many bytes to P0 and P2, with what goes along."""
    tally.step([(1, 0, step), (1, 2, step), *extra])


def agreement(tally: Tally) -> None:
    """The hash that every computing party sends to both others before it computes."""
    tally.step([(i, j, AGREEMENT) for i in range(3) for j in range(3) if i != j])


def prepare(tally: Tally, step: int, request: int, blocks: Sequence[int]) -> None:
    """`ReplicatedOracle.prepare` of `blocks` (cells per message; empty: nothing new), encoded in `step` bytes.

    Contributors (the tally's parties beyond 3) are told in `request` bytes and send a seed and 4 bytes a cell.
    """
    announce(tally, step, [(1, q, request) for q in range(3, len(tally.clocks))] if blocks else [])
    agreement(tally)
    if blocks:
        counts(tally, blocks)


def counts(tally: Tally, blocks: Sequence[int]) -> None:
    """Everybody's counts (`SharedMarginals`), in messages of so many cells; contributors owe nobody else an answer."""
    for q in range(3, len(tally.clocks)):
        tally.step([(q, q % 3, SEED_BYTES)])
        for cells in blocks:
            tally.step([(q, (q + 1) % 3, 4 * cells)])
    for cells in blocks:
        sharing(tally, cells)


@dataclass(frozen=True)
class Group:
    """A group of a selection. answers: bytes of its answers encoded for each follower (`answer_codec.encode`). compared, shared:
    cells of each dealer with an answer other than 0, and those whose bits travel for it (`bit_cache.CacheModel`)."""

    answers: Sequence[int]
    compared: Sequence[int]
    shared: Sequence[int]


def select(
    tally: Tally,
    step: int,
    groups: Sequence[Group],
    candidates: int,
    a: int,
    planes: int,
    ring_bits: int = 32,
    latency_bytes: int = LATENCY_BYTES,
    generated: int | None = None,
    lists: Sequence[int] = (),
) -> None:
    """`ReplicatedOracle.select`: `candidates` kept.

    generated: rows of noise that are generated for it and ahead (`PoolModel.take`); None: its own. a, planes, ring_bits: of the
    plan. lists: of several picks, on how many candidates each was made; the rounds are those of the scores, 8 and one for each
    further list of more than one.
    """
    element = ring_bits // 8
    if candidates == 1:
        announce(tally, step)
        agreement(tally)
        return
    announce(tally, step, _to_followers(groups[0].answers))
    agreement(tally)

    def scores(script: Tally) -> None:
        l1_sums(script, groups, candidates, planes, latency_bytes)
        if ring_bits == 64:
            lift(script, candidates)

    picks = max(1, len(lists))
    generated = picks * candidates if generated is None else generated
    if generated:
        interleave(tally, scores, lambda script: gumbel_noise(script, generated, a, element, latency_bytes))
    else:
        scores(tally)
    if lists:
        peel(tally, picks, candidates, lists, element)
    else:
        argmax(tally, candidates, element, latency_bytes)


def l1_sums(
    tally: Tally, groups: Sequence[Group], candidates: int, planes: int, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`ReplicatedL1Sums.compute`: the answers of the first group are there."""
    for number, group in enumerate(groups):
        if number:
            tally.step(_to_followers(group.answers))
        if any(group.shared):
            share_bits(tally, group.shared, planes)
        l1_distances(tally, group.compared, planes, score_adder(group.compared, planes, latency_bytes))
    products(tally, candidates)


def distances(
    tally: Tally,
    step: int,
    groups: Sequence[Group],
    sampler: Sampler,
    candidates: int,
    planes: int,
    latency_bytes: int = LATENCY_BYTES,
    generated: int | None = None,
) -> None:
    """`ReplicatedOracle.distances`; arguments as for `select` and `measure`."""
    announce(tally, step, _to_followers(groups[0].answers))
    agreement(tally)
    l1_sums(tally, groups, candidates, planes, latency_bytes)
    if generated != 0:
        gaussian_noise(tally, sampler, generated or candidates, 4, latency_bytes)
    opening(tally, candidates)


def _to_followers(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    return [(1, peer, size) for peer, size in zip((0, 2), sizes, strict=True)]


def measure(
    tally: Tally,
    step: int,
    sampler: Sampler,
    cells: int,
    latency_bytes: int = LATENCY_BYTES,
    generated: int | None = None,
) -> None:
    """`ReplicatedOracle.measure` of `cells` in all, or `total` (one cell) once something is shared; generated: as in `select`."""
    announce(tally, step)
    agreement(tally)
    if generated != 0:
        gaussian_noise(tally, sampler, generated or cells, 4, latency_bytes)
    opening(tally, cells)


def measure_several(
    tally: Tally, step: int, samplers: Sequence[tuple[Sampler, int]], latency_bytes: int = LATENCY_BYTES
) -> None:
    """`ReplicatedOracle.measure` with different variances: the cells of each sampler, in order."""
    announce(tally, step)
    agreement(tally)
    gaussian_noises(tally, samplers, 4, latency_bytes)
    opening(tally, sum(cells for _, cells in samplers))


def end(tally: Tally, step: int) -> None:
    """`ReplicatedOracle.close`."""
    announce(tally, step, [(1, q, step) for q in range(3, len(tally.clocks))])
    agreement(tally)
