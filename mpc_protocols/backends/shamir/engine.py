"""One computing party of the engine on Shamir shares (`engine.interface.Engine`): m = 3 to 9 parties, t =
ceil(m/2) - 1.

    counts        additive modulo 2^32 among the holders, parties 0..t (`held_marginals`; owners' columns: `vertical.source`); the
                  leader is one of them
    distances     c subtracted from the leader's part, cells with c = 0 by local sums, others by `l1_distance` or `two_holders`
    noise         the shared draws over `gates`, on a fork of the mesh when made beside the scores
    keys          weights times sums by shifted addends, added up to one number each (two holders: local); all pairs compared,
                  opened by `zero_rows`
    release       the holders' counts and the noise are added, on shared bits if t > 1; the sum is opened, never a count

Who learns what: all computing parties the releases, the model's answers, and sizes. Threat model:
semi-honest, no more than t of the m computing parties work together, with any recipients and contributors
(`docs/design/shamir.md` 1). Assumption: AES (`engine.prg`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits import two_holders
from mpc_protocols.backends.shamir.circuits.gates import ShamirGates, holders, split_of
from mpc_protocols.backends.shamir.circuits.l1_distance import CandidateWords, l1_sums, score_adder
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.sharing.numbers import Addends, concatenate, unpacked
from mpc_protocols.backends.shamir.vertical.source import VerticalMarginals
from mpc_protocols.engine.bitwise.adders import adder_for
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, from_planes, words_for
from mpc_protocols.engine.inputs.held_marginals import HeldMarginals
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.part_engine import PartEngine, PartL1Sums
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

ADDING_ROUNDS = 7
"""That adding keys up takes: an input, and a tree over 32 planes."""


class ShamirL1Sums(PartL1Sums[ShamirGates, Addends, tuple[Addends, ...]]):
    """See `engine.interface.L1Sums`."""

    def _distances(self, differences: Elements, lengths: NDArray[np.int64]) -> tuple[Addends, ...]:
        if two_holders.serve(self._gates):
            words = words_for(len(differences))
            self._forms[adder_for(self._planes - 1, words, self._gates.latency_bytes)] = None
            held = two_holders.distance_sums(self._gates, differences, lengths, self._planes)
            return (Addends(np.uint32, held.shape, held=held),)
        words = CandidateWords(lengths).size
        self._forms[score_adder(self._planes, words, self._gates.latency_bytes)] = None
        return l1_sums(self._gates, differences, lengths, self._planes)

    def _total(self, sums: Elements, distances: Sequence[tuple[slice, tuple[Addends, ...]]]) -> Addends:
        count = len(sums)
        total = Addends(np.uint32, (count,))
        for place, addends in distances:
            before, after = (Addends(np.uint32, (of,)) for of in (place.start, count - place.stop))
            for addend in addends:
                total = total + concatenate([before, addend, after])
        total = total + Addends(np.uint32, (count,), held=sums)
        return total if self._ring is np.uint32 else self._wide(total)

    def _wide(self, sums: Addends) -> Addends:
        """The sums, which are below 2^32, modulo 2^64."""
        if two_holders.serve(self._gates):
            assert sums.held is not None
            return Addends(np.uint64, sums.shape, held=two_holders.widened(self._gates, sums.held))
        narrow = self._gates.added_up(sums)
        terms = tuple(tuple(part.astype(np.uint64) for part in parts) for parts in narrow.terms)
        return Addends(np.uint64, narrow.shape, terms, narrow.masks)


class ShamirEngine(PartEngine[ShamirGates, Addends]):
    """Shares, arithmetic and openings of one computing party."""

    sums = ShamirL1Sums

    def __init__(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None) -> None:
        """data: this party's own: its counts or None if it only computes; `VerticalData` where columns are
        split.

        Raises `StudyInvalid` (number of parties, or a leader that is no holder, from whose part c would not
        be subtracted), `DataRefused` (vertical rows that do not fit).
        """
        self.wire, self._leader, self._session = wire, facts.leader, facts.session
        mesh = Mesh(wire)
        if facts.leader not in holders(mesh.scheme.threshold):
            raise StudyInvalid(
                f"Party {facts.leader} cannot lead: on Shamir shares one of the first {mesh.scheme.threshold + 1} parties does."
            )
        self.gates = ShamirGates(mesh)
        self.beside = ShamirGates(mesh.fork("noise"))
        self._marginals: AdditiveMarginals = _source(self.gates, facts, data)

    def numbers(self, shares: Elements) -> Addends:
        return Addends(np.uint32, shares.shape, held=shares)

    def keys(self, sums: Addends, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> Addends:
        """weight * sum - bias of each candidate. Local where the holders keep the sums, else added up on
        shared bits."""
        modulus = 1 << 8 * np.dtype(ring).itemsize
        offsets = np.array([-bias % modulus for bias in biases], ring)
        keys = sums.scaled(weights).plus(offsets)
        return self.gates.added_up(keys) if keys.terms else keys

    def pack(self, numbers: Addends) -> bytes:
        return numbers.packed()

    def unpack(self, packed: bytes) -> Addends:
        return unpacked(packed)

    def largest(self, keys: Addends) -> int:
        if len(keys) == 1:
            return 0
        return int(argmax_rows(self.gates, self._compared(keys.reshape(1, -1)))[0])

    def picks(self, keys: Addends, plan: SelectionPlan) -> list[int]:
        return super().picks(self._compared(keys) if keys.shape[1] > 1 else keys, plan)

    def _compared(self, keys: Addends) -> Addends:
        """Keys of shape (rows, n) as their comparisons take them: added up, or as they are where that is
        cheaper."""
        rows, count = keys.shape
        bits, words = 8 * np.dtype(keys.ring).itemsize, words_for(rows * count * (count - 1) // 2)
        addends = 2 * len(keys.terms) + len(holders(self.gates.mesh.scheme.threshold))
        if 8 * words * bits * addends < ADDING_ROUNDS * self.gates.latency_bytes:
            return keys
        return self.gates.added_up(keys.reshape(rows * count)).reshape(rows, count)

    def reveal(self, numbers: Addends) -> NDArray[np.int64]:
        """The numbers, to all computing parties. 1 round, after those of the adders where they are no parts
        of two holders."""
        if two_holders.serve(self.gates) and numbers.held is not None and not numbers.terms:
            parts = two_holders.reveal(self.gates, numbers.held)
            total = parts if numbers.public is None else parts + numbers.public
            return total.view(np.int32).astype(np.int64)
        opened = self.gates.reveal_bits(self.gates.planes_of(numbers))
        return from_planes(opened, len(numbers)).view(np.int32).astype(np.int64)


def _source(
    gates: ShamirGates, facts: StudyFacts, data: LocalCounts | VerticalData | None
) -> AdditiveMarginals:
    """Where the parts come from: horizontal data needs nothing of what owners' columns do."""
    if isinstance(data, VerticalData):
        return VerticalMarginals(gates, facts, data)
    return HeldMarginals(gates.mesh.wire, facts, data, split_of(gates.mesh.wire))
