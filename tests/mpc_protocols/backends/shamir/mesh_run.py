"""Helpers of the tests of Shamir shares: run m parties in threads, share values, count what they send."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.sharing.field import Scheme
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.sharing.numbers import Addends, of_planes
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import to_planes
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Wire

T = TypeVar("T")
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Ran(Generic[T]):
    """Results of all parties, what each sent, the rounds and the messages."""

    results: list[T]
    sent: list[int]
    rounds: int
    frames: list[Frame]


def run_mesh(parties: int, body: Callable[[ShamirGates], T], latency_bytes: int = 1 << 16) -> Ran[T]:
    """Run `body` at every party."""
    frames: list[Frame] = []
    network = MemoryNetwork(parties, parties, tap=frames.append)

    def party(wire: Wire) -> T:
        return body(ShamirGates(Mesh(wire, latency_bytes=latency_bytes)))

    results = network.run([party] * parties)
    traffic = [network.traffic(i) for i in range(parties)]
    return Ran(results, [of.bytes_sent for of in traffic], max(of.rounds for of in traffic), frames)


def share_words(words: NDArray[Any], parties: int) -> list[Bits]:
    """Every party's share of words, by polynomials of degree t with random coefficients: secret + c_1 x + ..
    + c_t x^t."""
    scheme = Scheme(0, parties)
    field, planes = scheme.field, scheme.planes
    size = words.dtype.itemsize
    shares = []
    coefficients = [
        [
            np.frombuffer(secrets.token_bytes(size * words.size), words.dtype).reshape(words.shape)
            & words.dtype.type(1 if size == 1 else 2**64 - 1)
            for _ in range(planes)
        ]
        for _ in range(scheme.threshold)
    ]
    for party in range(parties):
        parts = [words.copy(), *(np.zeros_like(words) for _ in range(planes - 1))]
        power = 1
        for degree in range(scheme.threshold):
            power = field.product(power, party + 1)
            for plane in range(planes):
                moved = field.product(power, 1 << plane)
                for target in range(planes):
                    if moved >> target & 1:
                        parts[target] ^= coefficients[degree][plane]
        shares.append(Bits(*parts))
    return shares


def share_numbers(values: NDArray[Any], parties: int) -> list[Addends]:
    """Every party's share of unsigned integers as one term."""
    bits = 8 * values.dtype.itemsize
    shares = share_words(to_planes(values, bits), parties)
    return [of_planes(share, len(values), values.dtype.type, (1 << bits) - 1) for share in shares]


def held_parts(values: NDArray[np.uint32], parties: int) -> list[Addends]:
    """Additive parts among the holders; zeros at the others."""
    holders = Scheme(0, parties).threshold + 1
    parts = [
        np.frombuffer(secrets.token_bytes(4 * len(values)), np.uint32).copy() for _ in range(holders - 1)
    ]
    parts.append(values - np.sum(parts, axis=0, dtype=np.uint32))
    zeros = np.zeros(len(values), np.uint32)
    return [Addends(np.uint32, values.shape, held=parts[i] if i < holders else zeros) for i in range(parties)]
