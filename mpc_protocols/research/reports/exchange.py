"""The exchange of reports over a run's wires, and its ideal counterpart.

    owners -> owners                 a common key, if the reports need one (`common_key`)
    every computing party            puts all events on record
    computing parties -> leader      that they are
    leader -> owners                 that they are, everywhere
    owner -> leader                  its report

So nothing leaves an owner before what it costs is on record at every computing party. Who learns what: the
leader every report, the others none. The parts stand where a backend's stand
(`mpc_protocols.backend.DistributedBackend`): `lead`, `follow`, `contribute`; `clear` is the functionality, in
one process, and PROTECTS NOTHING.

Threat model: what a report protects, it protects from everybody, the leader included, by its own noise; there
is no secret sharing here and no backend's assumption. Messages travel over the session's links. What a peer
sends is bounded by the study; who reads a report judges it. Cost: 3 rounds, and 2 with a key; a report is as
long as `Reporter.limit` says, or shorter.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import (
    Clique,
    Event,
    Guard,
    LocalCounts,
    MarginalOracle,
    Reporter,
    Reports,
    StudyFacts,
)
from mpc_protocols.research.reports.common_key import BYTES, check_links, common_key
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.vertical.partition import Codes

STREAM = "reports"
KEY_STREAM = "owners' key"


class ReportExchange:
    """Every party's part of it, for the reports that a `Reporter` makes."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    @contextmanager
    def lead(
        self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None, guard: Guard
    ) -> Iterator[Reports]:
        """The leader's: all reports. Raises `BudgetRefused`, `DataRefused`, `StudyInvalid`, `PeerLost`,
        `ProtocolAborted`."""
        split = _vertical(data)
        stream, key = wire.fork(STREAM), self._key(wire, split.partition)
        self._authorise(guard, facts)
        for peer in range(wire.computing):
            if peer != wire.me:
                stream.receive(peer, 0)
        partition, payloads = split.partition, []
        for owner in partition.owners:
            if owner != wire.me:
                stream.send(owner, b"")
        for owner in partition.owners:
            if owner == wire.me:
                payloads.append(self._report(split, wire.me, facts, key))
            else:
                limit = self._reporter.limit(partition.of(owner), partition.rows)
                payloads.append(bytes(stream.receive_up_to(owner, limit)))
        yield _collected(partition, payloads)

    def follow(
        self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None, guard: Guard
    ) -> list[NDArray[np.int64]]:
        """Every other computing party's: what it opens, which is nothing. Errors as `lead`'s."""
        split = _vertical(data)
        stream, key = wire.fork(STREAM), self._key(wire, split.partition)
        self._authorise(guard, facts)
        stream.send(facts.leader, b"")
        self._send(stream, split, facts, key)
        return []

    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None) -> None:
        """An owner's that does not compute; its ledger holds the run's whole reservation. Errors as `lead`'s."""
        split = _vertical(data)
        self._send(wire.fork(STREAM), split, facts, self._key(wire, split.partition))

    def clear(
        self, facts: StudyFacts, partition: Partition, tables: Mapping[int, OwnRows], guard: Guard
    ) -> Reports:
        """All owners' reports in one process, which sees all tables: it protects nothing."""
        key = secrets.token_bytes(BYTES) if self._reporter.keyed else b""
        self._authorise(guard, facts)
        reports = [
            self._report(VerticalData(partition, tables[owner]), owner, facts, key)
            for owner in partition.owners
        ]
        return _collected(partition, reports)

    def _key(self, wire: Wire, partition: Partition) -> bytes:
        """The owners' key, at an owner; empty elsewhere."""
        if not self._reporter.keyed:
            return b""
        check_links(partition.owners, wire.computing)
        return common_key(wire.fork(KEY_STREAM), partition.owners) if wire.me in partition.owners else b""

    def _authorise(self, guard: Guard, facts: StudyFacts) -> None:
        for number, event in enumerate(self._reporter.events, start=1):
            guard.authorise(event, _inputs(event, number, facts.session))

    def _send(self, stream: Wire, split: VerticalData, facts: StudyFacts, key: bytes) -> None:
        if split.own is not None:
            stream.receive(facts.leader, 0)
            stream.send(facts.leader, self._report(split, stream.me, facts, key))

    def _report(self, split: VerticalData, owner: int, facts: StudyFacts, key: bytes) -> bytes:
        own, partition = split.own, split.partition
        assert own is not None
        own.check(partition, owner, facts.sizes)
        if len(own.rows) != partition.rows:
            raise StudyInvalid(
                "Reports are about rows that all owners hold, and this alignment leaves an owner without some of them; use "
                '[alignment] method = "row-order".'
            )
        ordered: dict[str, Codes] = {}
        for column in partition.of(owner):
            ordered[column] = np.empty_like(own.codes[column])
            ordered[column][own.rows] = own.codes[column]

        def own_oracle(guard: Guard) -> MarginalOracle:
            sizes = {column: facts.sizes[column] for column in ordered}
            own_facts = replace(
                facts, sizes=sizes, row_cap=max(1, partition.rows), session=secrets.token_bytes(BYTES)
            )
            return IdealOracle(own_facts, _counts(ordered, sizes), guard)

        return self._reporter.report(ordered, own_oracle, key)


def _counts(codes: Mapping[str, Codes], sizes: Mapping[str, int]) -> LocalCounts:
    """The marginals of one table in the clear, for its owner alone."""

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        found = []
        for clique in cliques:
            shape = tuple(sizes[name] for name in clique)
            cells = np.ravel_multi_index(tuple(codes[name].astype(np.intp) for name in clique), shape)
            found.append(np.bincount(cells, minlength=math.prod(shape)).astype(np.int64))
        return found

    return counts


def _vertical(data: LocalCounts | VerticalData | None) -> VerticalData:
    if not isinstance(data, VerticalData):
        raise StudyInvalid('Reports are made by owners of columns: use [study] partition = "vertical".')
    return data


def _collected(partition: Partition, payloads: Sequence[bytes]) -> Reports:
    columns = tuple(tuple(partition.of(owner)) for owner in partition.owners)
    return Reports(partition.rows, columns, tuple(payloads))


def _inputs(event: Event, number: int, session: bytes) -> bytes:
    """The hash of all public inputs of a report: the run, the event's number and what it says."""
    said = json.dumps([event.what, str(event.rho), str(event.beta), dict(event.detail)], sort_keys=True)
    return hashlib.sha256(session + number.to_bytes(4, "big") + said.encode()).digest()
