"""The marginals of split columns over any engine of parts (`engine.parts.gates`): the general way, of any
owners.

    inputs      one-hot columns as XOR-shared bits, 64 rows to a word. An owner that holds parts has its columns as its part, the
                other holders 0: no message. Any other owner sends seeds, and its columns XOR the streams, as it sends counts
    rows        products of columns are ANDs of words; a membership's complement is a NOT
    tables      every left ANDed with every right, bits to integers, added up over the rows: local

What it takes is `and_words` and `integers` of the algebra. A backend with a protocol of its own for tables of
two owners' columns sends far less; it is held against the same counts (`runner.review.conformance`).

Who learns what: nothing; u and which cliques are shared are public. Threat model: the backend's. Assumption:
AES-CTR (`prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np

from mpc_protocols.engine import oracle
from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, from_bits, words_for
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.inputs.held_marginals import HeldMarginals, Split
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.parts.gates import PartGates
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, derive
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.vertical.block_plan import BlockPlan, block_planner
from mpc_protocols.vertical.block_sums import BlockSums
from mpc_protocols.vertical.partition import MAX_ROWS, Partition, VerticalData
from mpc_protocols.vertical.population import AdditivePopulation, OutsideOwner
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.schedule import Schedule
from mpc_protocols.vertical.tables import Joint
from mpc_protocols.wire import Wire

BLOCK_BITS: Final = 1 << 22
"""Bits of products that become integers at a time, about: 16 MiB."""


def schedule_of(partition: Partition, facts: StudyFacts, computing: int) -> Schedule[BlockPlan]:
    """The schedule of a run of so many computing parties."""
    return Schedule(partition, facts, computing, make_plan)


def estimate(plan: BlockPlan, computing: int) -> int:
    """ANDs of a row, which all become integers but those of factors: for comparing plans."""
    return sum(plan.multiplied()) + 32 * _row_bits(plan)


def _row_bits(plan: BlockPlan) -> int:
    return max(1, sum(prod(plan.shape(group)) for group in plan.groups))


make_plan = block_planner(MAX_ROWS, estimate, lambda plan: BLOCK_BITS // _row_bits(plan))
"""The plan of some tables, all rows in one range."""


def marginals_of(
    gates: PartGates, facts: StudyFacts, data: LocalCounts | VerticalData | None, split: Split
) -> AdditiveMarginals:
    """Everybody's data in parts, of any partition. data: this party's own, None if it only computes."""
    if isinstance(data, VerticalData):
        return PartTables(gates, facts, data, split)
    return HeldMarginals(gates.link.wire, facts, data, split)


def contribute(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData, split: Split) -> None:
    """A custodian that does not compute: send its counts or columns when asked (`engine.oracle.contribute`).
    Blocks."""
    if isinstance(data, VerticalData):
        oracle.contribute(wire, facts, OutsideColumns(wire, facts, data, split).send)
    else:
        oracle.contribute(wire, facts, partial(split.send, wire, facts, data))


class PartTables(AdditivePopulation):
    """One computing party's parts of the population's marginals; zeros at a party that holds none."""

    def __init__(self, gates: PartGates, facts: StudyFacts, data: VerticalData, split: Split) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        wire = gates.link.wire
        super().__init__(wire, facts, data, schedule_of(data.partition, facts, wire.computing))
        self._gates, self._split = gates, split

    def _counted(self, counts: LocalCounts | None) -> HeldMarginals:
        return HeldMarginals(self._wire, self._schedule.facts, counts, self._split)

    def _cells(self, plan: BlockPlan) -> Elements:
        run = _BitTables(self._gates, plan, self._rows, self._split)
        [blocks] = plan.row_ranges()
        return run.parts(blocks)


class OutsideColumns(OutsideOwner[BlockPlan]):
    """An owner that does not compute splits its columns as it splits counts."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: VerticalData, split: Split) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(wire, facts, data, schedule_of(data.partition, facts, wire.computing))
        self._split = split

    def _send_histograms(self, cliques: Sequence[Clique]) -> None:
        self._split.send(self._wire, self._schedule.facts, self._counts, cliques, ())

    def _send_columns(self, plan: BlockPlan) -> None:
        if self._wire.me in plan.inputs():
            sent = _SentColumns(self._wire, self._split)
            for start, stop in plan.row_ranges()[0]:
                sent.send(_words(self._rows, plan.joints(self._wire.me), start, stop))


class _BitTables(BlockSums[Words]):
    """M: planes of columns, (columns, words of rows)."""

    def __init__(self, gates: PartGates, plan: BlockPlan, rows: CodedRows | None, split: Split) -> None:
        super().__init__(plan, np.uint32)
        self._gates, self._rows = gates, rows
        wire = gates.link.wire
        outside = [owner for owner in plan.inputs() if owner not in gates.link.holders]
        self._sent = _SentColumns(wire, split) if wire.me in outside else None
        self._streams = {
            owner: _stream(wire, bytes(wire.receive(owner, SEED_BYTES)))
            for owner in outside
            if gates.link.holds and wire.me in split.seeds_to(owner)
        }
        self._split, self._outside, self._number = split, outside, 0

    def _inputs(self, start: int, stop: int) -> dict[Joint, Words]:
        """1 round where an owner holds no parts."""
        plan, link, joints = self._plan, self._gates.link, dict[Joint, Words]()
        self._number += 1
        for owner in plan.inputs():
            shape = (plan.input_width(owner), words_for(stop - start))
            planes = np.zeros(shape, np.uint64)
            if owner == link.me:
                assert self._rows is not None
                own = _words(self._rows, plan.joints(owner), start, stop)
                if self._sent is None:
                    planes = own
                else:
                    self._sent.send(own)
            elif owner in self._streams:
                planes = self._streams[owner].draw(shape, np.uint64, self._number)
            elif owner in self._outside and link.me == self._split.masked_to(owner):
                planes = receive_array(link.wire, owner, shape, np.uint64)
            first = 0
            for joint in plan.joints(owner):
                part = Joint(owner, joint)
                joints[part] = planes[first : first + plan.width(part)]
                first += plan.width(part)
        return joints

    def _complement(self, member: Words) -> Words:
        return ~member if self._gates.link.adds_public else member

    def _multiply(self, pairs: Sequence[tuple[Words, Words]]) -> list[Words]:
        """A round for each pair."""
        return [self._all_pairs(left, right) for left, right in pairs]

    def _product(self, lefts: Sequence[Words], rights: Sequence[Words], rows: int) -> Elements:
        left, right = np.concatenate(lefts), np.concatenate(rights)
        return self._counts(self._all_pairs(left, right), rows).reshape(len(left), len(right))

    def _held_rows(self, nobody: Words, rows: int) -> Elements:
        counts = self._counts(nobody, rows)
        return np.uint32(rows) - counts if self._gates.link.adds_public else np.negative(counts)

    def _all_pairs(self, left: Words, right: Words) -> Words:
        """Every column of one ANDed with every column of the other. 1 round."""
        shape = (len(left), len(right), left.shape[1])
        wide = (np.broadcast_to(of, shape).reshape(-1, shape[2]) for of in (left[:, np.newaxis], right))
        return self._gates.and_words(*wide)

    def _counts(self, planes: Words, rows: int) -> Elements:
        """How many of so many rows have a 1 in each plane, shared."""
        total: Elements = self._gates.integers(planes, rows, np.uint32).sum(axis=1, dtype=np.uint32)
        return total


class _SentColumns:
    """An owner's columns on their way to the holders: fresh seeds, then each block XOR the streams."""

    def __init__(self, wire: Wire, split: Split) -> None:
        self._wire, self._to, self._number = wire, split.masked_to(wire.me), 0
        self._streams = []
        for peer in split.seeds_to(wire.me):
            seed = secrets.token_bytes(SEED_BYTES)
            wire.send(peer, seed)
            self._streams.append(_stream(wire, seed))

    def send(self, planes: Words) -> None:
        self._number += 1
        for stream in self._streams:
            planes = planes ^ stream.draw(planes.shape, np.uint64, self._number)
        send_array(self._wire, self._to, planes)


def _words(rows: CodedRows, joints: Sequence[Clique], start: int, stop: int) -> Words:
    """An owner's columns of these rows: (columns, words)."""
    return from_bits(np.ascontiguousarray(rows.one_hot(start, stop, joints, np.uint8).T))


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, b"columns", wire.session_id))
