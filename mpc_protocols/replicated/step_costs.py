"""Rounds and bytes of each step of the oracle on replicated shares, as functions of public sizes: `plan` predicts with them.

    tally = Tally.of(parties=5)                 three that compute, two contributors
    agree_on_delay(tally)
    prepare(tally, step=120, request=120, blocks=[50_000])
    tally.rounds, tally.sent                    the longest chain; payload bytes sent by each party

The tests assert them against the wire's counters, exactly. Nothing here is secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.engine.bitwise.adders import adder_for
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES, count_delay
from mpc_protocols.engine.tally import AGREEMENT, Tally, in_turns
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.replicated.costs import (
    argmax,
    gaussian_noise,
    gaussian_noises,
    gumbel_noise,
    l1_distances,
    lift,
    opening,
    pick_several,
    products,
    share_bits,
    sharing,
    signs,
    zero_rows,
)
from mpc_protocols.replicated.gates import PickSizes
from mpc_protocols.replicated.scores.l1_distance import score_adder


def agree_on_delay(tally: Tally) -> None:
    """The beginning of a run: `latency.agree_on_delay`."""
    count_delay(tally, computing=3, leader=1)


def announce(tally: Tally, step: int, extra: Sequence[tuple[int, int, int]] = ()) -> None:
    """P1 sends a step of so many bytes to P0 and P2, with what goes along."""
    tally.step([(1, 0, step), (1, 2, step), *extra])


def agreement(tally: Tally) -> None:
    """The hash that every computing party sends to both others before it computes, and again before it opens."""
    tally.step([(i, j, AGREEMENT) for i in range(3) for j in range(3) if i != j])


def prepare(tally: Tally, step: int, request: int, blocks: Sequence[int], apart: int = 0) -> None:
    """`ReplicatedOracle.prepare` of `blocks` (cells per message; empty: nothing new), encoded in `step` bytes.

    Contributors (the tally's parties beyond 3) are told in `request` bytes and send a seed and 4 bytes a cell. apart: as for
    `counts`.
    """
    announce(tally, step, [(1, q, request) for q in range(3, len(tally.clocks))] if blocks else [])
    agreement(tally)
    if blocks:
        counts(tally, blocks, apart)


def counts(tally: Tally, blocks: Sequence[int], apart: int = 0) -> None:
    """Everybody's counts (`SharedMarginals`), in messages of so many cells; contributors owe nobody else an answer. apart: whose
    counts are shared for themselves."""
    for q in range(3, len(tally.clocks)):
        tally.step([(q, q % 3, SEED_BYTES)])
        for cells in blocks:
            tally.step([(q, (q + 1) % 3, 4 * cells)])
    for cells in blocks:
        sharing(tally, cells * (1 + apart))


def input_check(tally: Tally, check: CheckSizes) -> None:
    """`InputCheck.inconsistent`."""
    agreement(tally)
    tally.step([(i, j, COIN_BYTES) for i in range(3) for j in range(3) if i != j])
    for numbers, _ in check.batches:
        signs(tally, numbers, 32, adder_for(31, words_for(numbers), LATENCY_BYTES))
    zero_rows(tally, check.contributors)


@dataclass(frozen=True)
class Group:
    """A group of a selection. answers: bytes of its answers encoded for each follower (`answer_codec.encode`). compared_cells,
    newly_shared_cells: of each dealer, those with an answer other than 0 and those whose bits travel (`bit_cache.CacheModel`)."""

    answers: Sequence[int]
    compared_cells: Sequence[int]
    newly_shared_cells: Sequence[int]


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
    sizes: PickSizes | None = None,
    expected: tuple[Sampler, int] | None = None,
) -> None:
    """`ReplicatedOracle.select`: `candidates` kept.

    generated: rows of noise that are generated for it and ahead (`PoolModel.take`); None: its own. a, planes, ring_bits: of the
    plan. sizes: of several picks; the rounds are those of the scores, one to agree that all hold the result, and those of
    `costs.pick_several`. expected: a sampler, and how many rows of its noise are made beside the picks.
    """
    element = ring_bits // 8
    if candidates == 1:
        announce(tally, step)
        agreement(tally)
        agreement(tally)
        return
    announce(tally, step, _to_followers(groups[0].answers))
    agreement(tally)

    def scores(script: Tally) -> None:
        l1_sums(script, groups, candidates, planes, latency_bytes)
        if ring_bits == 64:
            lift(script, candidates)

    picks = len(sizes.lists) if sizes else 1
    generated = picks * candidates if generated is None else generated
    if generated:
        in_turns(tally, scores, lambda script: gumbel_noise(script, generated, a, element, latency_bytes))
    else:
        scores(tally)
    agreement(tally)

    def opened(script: Tally) -> None:
        if sizes:
            pick_several(script, candidates, sizes, element, latency_bytes)
        else:
            argmax(script, candidates, element, latency_bytes)

    if expected and expected[1]:
        sampler, rows = expected
        in_turns(tally, opened, lambda script: gaussian_noise(script, sampler, rows, 4, latency_bytes))
    else:
        opened(tally)


def l1_sums(
    tally: Tally, groups: Sequence[Group], candidates: int, planes: int, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`ReplicatedL1Sums.compute`: the answers of the first group are there."""
    for number, group in enumerate(groups):
        if number:
            tally.step(_to_followers(group.answers))
        if any(group.newly_shared_cells):
            share_bits(tally, group.newly_shared_cells, planes)
        l1_distances(
            tally, group.compared_cells, planes, score_adder(group.compared_cells, planes, latency_bytes)
        )
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
    agreement(tally)
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
    if generated != 0:
        agreement(tally)
        gaussian_noise(tally, sampler, generated or cells, 4, latency_bytes)
    agreement(tally)
    opening(tally, cells)


def measure_several(
    tally: Tally, step: int, samplers: Sequence[tuple[Sampler, int]], latency_bytes: int = LATENCY_BYTES
) -> None:
    """`ReplicatedOracle.measure` with different variances: the cells of each sampler, in order."""
    announce(tally, step)
    agreement(tally)
    gaussian_noises(tally, samplers, 4, latency_bytes)
    agreement(tally)
    opening(tally, sum(cells for _, cells in samplers))


def end(tally: Tally, step: int) -> None:
    """`ReplicatedOracle.close`."""
    announce(tally, step, [(1, q, step) for q in range(3, len(tally.clocks))])
    agreement(tally)
