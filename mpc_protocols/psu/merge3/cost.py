"""Rounds and bytes of `merge3`, exactly, as a function of public sizes; replayed on `engine.tally.Tally`."""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.tally import Tally
from mpc_protocols.psu.functionality import Context
from mpc_protocols.psu.merge3.lists import BLOCK, SEED_BYTES, masked_component
from mpc_protocols.psu.merge3.protocol import COUNT_BYTES, DIGEST_BYTES, holders
from mpc_protocols.replicated.costs import WORD, opening
from mpc_protocols.replicated.sorting.costs import merge, mix, repeats, spread
from mpc_protocols.replicated.step_costs import agreement


def merge3_cost(context: Context, sizes: Sequence[int], union: int, columns: int = 1) -> Tally:
    """Everything that the parties send. sizes: of the owners' lists, dummies included. columns: of the key."""
    numbers = [owner.number for owner in context.owners]
    outside = [number for number in numbers if number >= 3]
    tally = Tally.of(max(3, *(number + 1 for number in numbers)))
    total, longest = sum(sizes), max(sizes)
    announced = COUNT_BYTES + columns
    tally.step([(number, peer, announced) for number in numbers for peer in range(3) if peer != number])
    agreement(tally)
    _inputs(tally, numbers, outside, sizes)
    merge(tally, sizes)
    repeats(tally, total)
    spread(tally, total, max(2, len(sizes)))
    mix(tally, total, 1, first=1)
    _openings(tally, total)
    agreement(tally)
    mix(tally, total, 2)
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
                for transfer in _returns(number, outside, 2 * WORD * _block(size, start))
            ]
        )
        tally.arrive([(receiver, clock) for receiver, clock in travelling if receiver < 3])
    tally.arrive(travelling)
    return tally


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


def _returns(number: int, outside: Sequence[int], size: int) -> list[tuple[int, int, int]]:
    if number < 3:
        return [((number + 1) % 3, number, size)]
    return [(sender, number, size) for sender in holders(outside.index(number))[:2]]


def _openings(tally: Tally, words: int) -> None:
    for size in _blocks(words):
        opening(tally, size // WORD, WORD)


def _blocks(words: int) -> list[int]:
    """Bytes of each message of a list of words."""
    return [WORD * _block(words, start) for start in range(0, words, BLOCK)]


def _block(words: int, start: int) -> int:
    return max(0, min(BLOCK, words - start))
