"""Helpers of the two-party engine's tests: share values, run two parties in threads, count what they send."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.base_ot import BaseTransfers
from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS
from mpc_protocols.backends.pair.transfers.ot_extension import (
    Choosing,
    Offering,
    base_count,
    extension,
)
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import from_bits
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Wire
from tests.worlds.words import random_words

T = TypeVar("T")
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Ran(Generic[T]):
    """Results of both parties; what each sent after the base transfers, and the rounds."""

    results: list[T]
    sent: list[int]
    messages: list[int]
    rounds: int
    frames: list[Frame]


def share_words(words: Words) -> list[Words]:
    """XOR shares."""
    mask = random_words(*words.shape)
    return [mask, words ^ mask]


def share_flags(bits: NDArray[Any]) -> list[Words]:
    """Shares of 0/1 values (.., n) as planes."""
    return share_words(from_bits(bits))


def share_ring(values: NDArray[Any]) -> list[NDArray[Any]]:
    """Additive shares of unsigned values."""
    size = values.dtype.itemsize
    mask = np.frombuffer(secrets.token_bytes(size * values.size), values.dtype).reshape(values.shape)
    return [mask, values - mask]


def _base(levels: int) -> list[BaseTransfers]:
    count = base_count(levels)
    offered = [random_words(count, 2, 2) for _ in range(2)]
    choices = [np.frombuffer(secrets.token_bytes(count), np.uint8) & np.uint8(1) for _ in range(2)]
    chosen = [offered[1 - i][np.arange(count), choices[i]] for i in range(2)]
    return [BaseTransfers(*parts) for parts in zip(offered, choices, chosen, strict=True)]


BASE = {levels: _base(levels) for levels in range(1, 9)}
"""Correct base transfers of both parties, made here: base transfers proper have tests of their own."""


def extended(wire: Wire, levels: int = LEVELS) -> tuple[Link, Choosing, Offering]:
    """A link and both roles of the extension, from BASE."""
    link = Link(wire)
    return link, *extension(link, BASE[levels][wire.me], levels)


def run_pair(body: Callable[[Transfers], T]) -> Ran[T]:
    """Run `body` at both parties after the set-up; counters begin with it."""
    frames: list[Frame] = []
    network = MemoryNetwork(2, 2, tap=frames.append)
    begun: dict[int, tuple[int, int, int]] = {}

    def party(wire: Wire) -> T:
        transfers = Transfers(*extended(wire))
        before = wire.traffic()
        begun[wire.me] = before.bytes_sent, before.messages_sent, before.rounds
        return body(transfers)

    results = network.run([party] * 2)
    traffic = [network.traffic(i) for i in range(2)]
    clock = max(rounds for _, _, rounds in begun.values())
    return Ran(
        results,
        [traffic[i].bytes_sent - begun[i][0] for i in range(2)],
        [traffic[i].messages_sent - begun[i][1] for i in range(2)],
        max(of.rounds for of in traffic) - clock,
        [frame for frame in frames if frame.clock > clock],
    )
