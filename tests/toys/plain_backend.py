"""A toy backend: everybody sends its counts to the leader in the clear. IT PROTECTS NOTHING; it shows what a backend does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend, DryRun, Observe
from mpc_protocols.functionality import Clique, Event, Guard, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.ideal import IdealOracle
from mpc_protocols.ideal_dry_run import IdealDryRun

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition, VerticalData
    from mpc_protocols.wire import Wire

LIMIT = 1 << 24


class PlainOracle(IdealOracle):
    """The leader's: it asks all others for their counts, and tells computing parties every event and what was opened."""

    def __init__(self, wire: Wire, facts: StudyFacts, own: LocalCounts | None, guard: Guard) -> None:
        self._wire, self._own = wire, own
        self._others = [number for number in range(wire.computing) if number != wire.me]
        super().__init__(facts, self._everybody, _Telling(self, guard))

    def tell(self, peers: Sequence[int], **message: Any) -> None:
        for peer in peers:
            self._wire.send(peer, json.dumps(message).encode())

    def tell_followers(self, **message: Any) -> None:
        self.tell(self._others, **message)

    def measure(self, handles: Sequence[int], sigma2: Fraction) -> list[NDArray[np.int64]]:
        values = super().measure(handles, sigma2)
        self.tell_followers(opened=[cells.tolist() for cells in values])
        return values

    def _everybody(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        peers = [*self._others, *self._wire.contributors]
        self.tell(peers, count=cliques)
        totals = [np.zeros(self.facts.cells(clique), np.int64) for clique in cliques]
        for tables in ([] if self._own is None else [self._own(cliques)], *map(self._received, peers)):
            for table in tables:
                totals = [total + cells for total, cells in zip(totals, table, strict=True)]
        return totals

    def _received(self, peer: int) -> list[list[NDArray[np.int64]]]:
        return [[np.array(cells) for cells in json.loads(bytes(self._wire.receive_up_to(peer, LIMIT)))]]

    def __enter__(self) -> PlainOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.tell([*self._others, *self._wire.contributors], end=True)


class _Telling:
    def __init__(self, oracle: PlainOracle, guard: Guard) -> None:
        self._oracle, self._guard = oracle, guard

    def authorise(self, event: Event, inputs: bytes) -> None:
        self._guard.authorise(event, inputs)
        told = [event.what, str(event.rho), str(event.beta), dict(event.detail)]
        self._oracle.tell_followers(event=told, inputs=inputs.hex())


class Plain(DistributedBackend):
    """Two or three parties that trust one another."""

    name = "plain"
    summary = "parties that tell the leader their counts, to show what a backend does"
    computing = (2, 3)
    by_default = 2
    partitions = ("horizontal",)
    together = "everybody trusts the leader"
    shows = "counts in the clear"
    how = "The leader added up everybody's counts."

    @property
    def claim(self) -> str:
        return "no privacy claim towards the leader"

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return ("The leader sees everybody's counts.",)

    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
    ) -> AbstractContextManager[MarginalOracle]:
        return PlainOracle(wire, facts, data, guard)  # type: ignore[arg-type]

    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
    ) -> list[NDArray[np.int64]]:
        opened: list[NDArray[np.int64]] = []
        leader = self.leader(wire.computing)
        while "end" not in (message := json.loads(bytes(wire.receive_up_to(leader, LIMIT)))):
            if "count" in message:
                cliques = [tuple(clique) for clique in message["count"]]
                tables = (
                    [np.zeros(facts.cells(clique), np.int64) for clique in cliques]
                    if data is None
                    else data(cliques)  # type: ignore[operator]
                )
                wire.send(leader, json.dumps([cells.tolist() for cells in tables]).encode())
            elif "event" in message:
                what, rho, beta, detail = message["event"]
                guard.authorise(
                    Event(what, Fraction(rho), Fraction(beta), detail), bytes.fromhex(message["inputs"])
                )
            else:
                opened += [np.array(cells) for cells in message["opened"]]
        return opened

    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
        class Nothing:
            def authorise(self, event: Event, inputs: bytes) -> None:
                raise AssertionError("a contributor is told no event")

        self.follow(wire, facts, data, Nothing(), lambda *_, **__: None)

    def dry_run(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        computing: int,
        contributing: int,
        split: Partition | None,
    ) -> DryRun:
        return IdealDryRun(facts, counts, computing + contributing)


BACKEND = Plain()
