"""Rounds and bytes of `merge3`, exactly, as a function of public sizes; replayed on `engine.tally.Tally`."""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.costs import WORD, agreement, opening
from mpc_protocols.backends.replicated.merge3.delivery import holders
from mpc_protocols.backends.replicated.merge3.lists import BLOCK, SEED_BYTES, masked_component
from mpc_protocols.backends.replicated.merge3.order import passes
from mpc_protocols.backends.replicated.merge3.public import COUNT_BYTES, DIGEST_BYTES, largest_group
from mpc_protocols.backends.replicated.merge3.tags import ROW_BYTES, third_party
from mpc_protocols.backends.replicated.proof.costs import coin_steps
from mpc_protocols.backends.replicated.sorting.costs import (
    GateTally,
    ProvedGateTally,
    comparisons,
    merge,
    mix,
    mix_proved,
    repeats,
    shuffle_proof,
    spread,
)
from mpc_protocols.backends.replicated.sorting.grouping import BATCH
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.tally import Tally
from mpc_protocols.psu.functionality import AlignmentSpec, Context


def merge3_cost(
    context: Context, spec: AlignmentSpec, sizes: Sequence[int], union: int, columns: int = 1
) -> tuple[Tally, int]:
    """Everything that the parties send, and the ANDs that they prove. sizes: of the owners' lists, dummies
    included. columns: of the key."""
    numbers = [owner.number for owner in context.owners]
    outside = [number for number in numbers if number >= 3]
    tally = Tally.of(max(3, *(number + 1 for number in numbers)))
    total, longest = sum(sizes), max(sizes)
    announced = COUNT_BYTES + columns
    if spec.malicious:
        for transfers in coin_steps():
            tally.step(transfers)
        tally.step([(peer, number, DIGEST_BYTES) for number in outside for peer in range(3)])
    tally.step([(number, peer, announced) for number in numbers for peer in range(3) if peer != number])
    agreement(tally)
    third = third_party(spec, context)
    if third is not None:
        _by_tags(tally, numbers, third, sizes)
        return tally, 0
    _inputs(tally, numbers, outside, sizes)
    proved = spec.malicious
    gates = ProvedGateTally(tally) if proved else GateTally(tally)
    if proved:
        _order(gates, sizes, spec.adjacency == "add-remove")
    merge(gates, sizes)
    repeats(gates, total)
    spread(gates, total, largest_group(spec, len(sizes)))
    for shuffled, first in ((1, 1), (2, 0)):
        (mix_proved if proved else mix)(tally, total, shuffled, first)
    if proved:
        gates.verify()
        shuffle_proof(tally, 2 * 3 * total)
        opening(tally, len(sizes))
    _openings(tally, total)
    agreement(tally)
    _openings(tally, -(-total // 8))
    teller = []
    for index, number in enumerate(outside):
        teller += [(peer, number, DIGEST_BYTES) for peer in range(3)]
        sender = holders(index)[2]
        teller += [(sender, number, size) for size in (COUNT_BYTES * (1 + len(sizes)), *_blocks(union))]
    travelling = tally.leave(teller)
    for start in range(0, longest, BLOCK):
        travelling += tally.leave(
            [
                transfer
                for number, size in zip(numbers, sizes, strict=True)
                for transfer in _returns(number, outside, 2 * WORD * _block(size, start), proved)
            ]
        )
        tally.arrive([(receiver, clock) for receiver, clock in travelling if receiver < 3])
    tally.arrive(travelling)
    return tally, gates.gates.products if isinstance(gates, ProvedGateTally) else 0


def _by_tags(tally: Tally, owners: Sequence[int], third: int, sizes: Sequence[int]) -> None:
    """`tags.TagParty`, from its `ask` and `answer` on."""
    tags = _blocks(sum(sizes))
    travelling = tally.leave([(owner, third, size) for size in tags for owner in owners])
    for start in range(0, max(sizes), BLOCK):
        tally.step(
            [
                (owner, owners[1 - side], ROW_BYTES * _block(sizes[1 - side], start))
                for side, owner in enumerate(owners)
            ]
        )
    tally.arrive(travelling)
    rows = [ROW_BYTES * size // WORD for size in tags]
    tally.step([(third, owner, size) for size in (COUNT_BYTES, *rows) for owner in owners])
    agreement(tally)


def _order(gates: GateTally, sizes: Sequence[int], twice: bool) -> None:
    """`order.in_order`."""
    width = 1
    for size in sizes:
        words = 0
        for distance, _ in passes(size, twice):
            for start in range(distance, size, BATCH):
                words += words_for(min(BATCH, size - start))
                comparisons(gates, 64 * words_for(min(BATCH, size - start)))
        width = max(width, words)
    while width > 1:
        gates.and_words(len(sizes) * (width // 2))
        width -= width // 2


def _inputs(tally: Tally, numbers: Sequence[int], outside: Sequence[int], sizes: Sequence[int]) -> None:
    """`lists.Input` and `lists.send_list`: a contributor sends everything without waiting."""
    lists = dict(zip(numbers, sizes, strict=True))
    transfers = []
    for index, number in enumerate(outside):
        masked = masked_component(index)
        transfers += [
            (number, peer, SEED_BYTES)
            for peer in range(3)
            for component in (peer, (peer + 1) % 3)
            if component != masked
        ]
        transfers += [
            (number, peer, size) for size in _blocks(lists[number]) for peer in (masked, (masked - 1) % 3)
        ]
    travelling = tally.leave(transfers)
    for start in range(0, max(sizes), BLOCK):
        tally.step([(p, (p + 1) % 3, WORD * _block(lists[p], start)) for p in range(3) if p in lists])
    tally.arrive(travelling)
    tally.step(
        [(p, peer, DIGEST_BYTES) for _ in outside for p in range(3) for peer in ((p - 1) % 3, (p + 1) % 3)]
    )


def _returns(number: int, outside: Sequence[int], size: int, proved: bool) -> list[tuple[int, int, int]]:
    """`delivery.hand_over` of a block."""
    hashed = DIGEST_BYTES * (proved and size > 0)
    if number < 3:
        return [((number + 1) % 3, number, size), ((number + 2) % 3, number, hashed)]
    if proved:
        return [(sender, number, sent) for sender in range(3) for sent in (size, hashed)]
    return [(sender, number, size) for sender in holders(outside.index(number))[:2]]


def _openings(tally: Tally, words: int) -> None:
    for size in _blocks(words):
        opening(tally, size // WORD)


def _blocks(words: int) -> list[int]:
    """Bytes of each message of a list of words."""
    return [WORD * _block(words, start) for start in range(0, words, BLOCK)]


def _block(words: int, start: int) -> int:
    return max(0, min(BLOCK, words - start))
