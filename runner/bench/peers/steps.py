"""The steps that both sides take: which benchmark of ours measures it, what MP-SPDZ's programme is given, what NumPy says.

scores, select: the tables and answers of our own benchmarks (`runner.bench.tables.candidates`), so both sides have the same
numbers. MP-SPDZ's answers are those rounded to whole numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import CosynthError
from runner.bench.parameters import (
    BACKEND,
    BITS,
    CANDIDATES,
    CELLS,
    PARTIES,
    PROOFS,
    TLS,
    Params,
    Value,
    spelled,
)
from runner.bench.peers.protocols import PeerProtocol
from runner.bench.tables import candidates
from runner.bench.tables.inputs import vector

Vector = NDArray[np.int64]
_RING_BITS = 64
_CHAIN, _WIDTH = 50, 16


class PeerStep(ABC):
    """One step. bench: our benchmark of it, and the step of the programme. unlike: what the two sides do differently, a
    sentence. of_all: whether every protocol takes it, else those whose `also` has it. warm: whether ours is taken once before it
    counts."""

    name: str
    unlike: str
    of_all = True
    warm = True

    @property
    def bench(self) -> str:
        return self.name

    @abstractmethod
    def ours(self, protocol: PeerProtocol, sizes: Params) -> Params:
        """Parameters of our benchmark; sizes: cells, candidates and bits."""

    def arguments(self, ours: Params) -> tuple[int, int, int, int]:
        """Cells, candidates, bits and repetitions for the programme."""
        return int(ours[CELLS.name]), int(ours.get(CANDIDATES.name, 1)), int(ours[BITS.name]), 0

    @abstractmethod
    def inputs(self, ours: Params) -> tuple[Vector, Vector]:
        """What P0 holds in secret, and what P1 does, or all know."""

    @abstractmethod
    def expected(self, ours: Params) -> Vector:
        """What is opened of the last repetition, as NumPy computes it, modulo 2^64."""

    @abstractmethod
    def title(self, ours: Params) -> str:
        """The step and its size, for the page."""

    def check(self, protocol: PeerProtocol, ours: Params, results: Sequence[int]) -> None:
        """Raise `CosynthError` unless MP-SPDZ's results are NumPy's."""
        found = np.array([result % (1 << _RING_BITS) for result in results], np.uint64)
        if not self.equal(found.astype(np.int64), ours):
            raise CosynthError(
                f"MP-SPDZ's {protocol.executable} came to another result than NumPy in the step {self.name}; its figures "
                "mean nothing, and none is shown."
            )

    def equal(self, found: Vector, ours: Params) -> bool:
        """Whether these are right."""
        return np.array_equal(found, self.expected(ours))


class _Distances(PeerStep):
    """Sums of distances of candidates from public answers."""

    def ours(self, protocol: PeerProtocol, sizes: Params) -> Params:
        shape: dict[str, Value] = {name: sizes[name] for name in (CELLS.name, BITS.name, CANDIDATES.name)}
        return shape | {
            BACKEND.name: protocol.backend,
            PARTIES.name: protocol.parties,
            PROOFS.name: protocol.proofs,
            TLS.name: True,
        }

    def inputs(self, ours: Params) -> tuple[Vector, Vector]:
        public = np.rint(np.concatenate(candidates.answers(ours))).astype(np.int64)
        return np.concatenate(candidates.tables(ours)).astype(np.int64), public

    def expected(self, ours: Params) -> Vector:
        secret, public = self.inputs(ours)
        sizes = list(candidates.sizes_of(ours).values())
        firsts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        sums: Vector = np.add.reduceat(np.abs(secret - public), firsts)
        return sums

    def title(self, ours: Params) -> str:
        return f"{spelled(ours[CELLS.name])} cells of {ours[BITS.name]} bits in {ours[CANDIDATES.name]} candidates"


class _Scores(_Distances):
    name = "scores"
    unlike = (
        "ours has shared bits of the cells from the selection before, as in all of a run's but the first, and MP-SPDZ's "
        "programme has none to keep; ours works modulo 2^32."
    )


class _Select(_Distances):
    name = "select"
    unlike = (
        "ours adds discrete noise that nobody knows, agrees on the step and sends the answers, all within the time; MP-SPDZ's "
        "programme has no noise, and everybody has the answers before."
    )

    def equal(self, found: Vector, ours: Params) -> bool:
        sums = self.expected(ours)
        return len(found) == 1 and 0 <= found[0] < len(sums) and bool(sums[found[0]] == sums.max())


class _FirstSelect(_Select):
    name, bench = "first-select", "select"
    warm = False
    unlike = (
        "as above, and the first selection of our run: what ours keeps for later ones is made in it, and nothing of ours is "
        "warm, while MP-SPDZ's has been taken once before."
    )


class _Multiply(PeerStep):
    name = "multiply"
    unlike = "nothing is: neither opens anything, the products stay shared."
    of_all = False

    def ours(self, protocol: PeerProtocol, sizes: Params) -> Params:
        return {CELLS.name: sizes[CELLS.name], BITS.name: _RING_BITS, TLS.name: True}

    def inputs(self, ours: Params) -> tuple[Vector, Vector]:
        first, second = (vector(int(ours[CELLS.name]), _RING_BITS, seed) for seed in (1, 2))
        return first, second

    def expected(self, ours: Params) -> Vector:
        x, y = (values.astype(np.uint64) for values in self.inputs(ours))
        return np.array([(x * y * x).sum()], np.uint64).astype(np.int64)

    def title(self, ours: Params) -> str:
        return f"{spelled(ours[CELLS.name])} products of {_RING_BITS} bits"


class _Rounds(PeerStep):
    name = "rounds"
    unlike = "numbers of 32 bits at ours, 64 at MP-SPDZ's: nothing in a message of this size."
    of_all = False

    def ours(self, protocol: PeerProtocol, sizes: Params) -> Params:
        return {"rounds": _CHAIN, "width": _WIDTH, TLS.name: True}

    def arguments(self, ours: Params) -> tuple[int, int, int, int]:
        return _WIDTH, 1, _RING_BITS, int(ours["rounds"])

    def inputs(self, ours: Params) -> tuple[Vector, Vector]:
        values = vector(_WIDTH, 32, 1)
        return values, values

    def expected(self, ours: Params) -> Vector:
        x = self.inputs(ours)[0].astype(np.uint64)
        power = x
        for _ in range(int(ours["rounds"])):
            power = power * x
        return power.astype(np.int64)

    def title(self, ours: Params) -> str:
        return f"{ours['rounds']} rounds of {_WIDTH} products"


STEPS: tuple[PeerStep, ...] = (_Scores(), _Select(), _FirstSelect(), _Multiply(), _Rounds())
