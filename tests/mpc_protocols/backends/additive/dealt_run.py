"""Helpers of these tests: share values, run two parties and the dealer in threads, count and see what they
send."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.dealing.dealer import DealerOperations
from mpc_protocols.backends.additive.dealing.operations import Operations
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.engine.bitwise.bitslice import from_bits
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Traffic, Wire
from tests.worlds.words import random_words

T = TypeVar("T")
Words = NDArray[np.uint64]
DEALER = 2


@dataclass(frozen=True)
class Ran(Generic[T]):
    """Results, traffic and messages of parties 0 and 1 and the dealer."""

    results: list[T]
    traffic: list[Traffic]
    frames: list[Frame]

    @property
    def rounds(self) -> int:
        return max(of.rounds for of in self.traffic)


def run_three(
    body: Callable[[AdditiveGates], T],
    latency_bytes: int = 1 << 16,
    network: MemoryNetwork | None = None,
    operations: Callable[[Link], Operations] = CrypTenOperations,
) -> Ran[T]:
    """Run `body` over the gates of each party, whose secrets of random bits are fixed. operations: at parties
    0 and 1."""
    frames: list[Frame] = []
    network = network or MemoryNetwork(3, 3)
    network.tap = frames.append

    def party(wire: Wire) -> T:
        link = Link(wire, latency_bytes=latency_bytes)
        own = DealerOperations(link) if link.deals else operations(link)
        return body(AdditiveGates(own, bytes([7 + link.me]) * 32))

    results = network.run([party] * 3)
    return Ran(results, [network.traffic(i) for i in range(3)], frames)


def share_words(words: Words) -> list[Words]:
    """XOR shares of parties 0 and 1; zeros for the dealer."""
    mask = random_words(*words.shape)
    return [mask, words ^ mask, np.zeros_like(words)]


def share_flags(bits: NDArray[Any]) -> list[Words]:
    """Shares of 0/1 values (.., n) as planes."""
    return share_words(from_bits(bits))


def share_ring(values: NDArray[Any]) -> list[NDArray[Any]]:
    """Additive shares of unsigned values; zeros for the dealer."""
    size = values.dtype.itemsize
    mask = np.frombuffer(secrets.token_bytes(size * values.size), values.dtype).reshape(values.shape)
    return [mask, values - mask, np.zeros_like(values)]
