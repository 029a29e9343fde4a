"""What a run over an engine costs, derived from its own code: all parties run their steps in memory, on blank
arrays.

The synthesizer is the real one; its oracle answers in the clear on a presumed table (`ideal`, the same
distribution). Beside it every computing party's engine and steps (`engine.step`) and every contributor's code
run over a wire in memory, on arrays that have shapes and nothing in them (`engine.blank`): rounds, bytes and
messages are the wire's counters, and no formula of a message is written twice. What is opened is blank; which
candidates win is what the ideal oracle has drawn.

CPU seconds are not derived: `Seconds` are measured, and multiplied by what a party has computed.

No private data, nothing released, nothing charged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.argmax import check_size
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.by_shape import Messages
from mpc_protocols.engine.latency import agree_on_delay
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll, PresumedRun
from mpc_protocols.in_memory.tallied_dry_run import Learned, TalliedDryRun
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.process.threads import start_thread
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import MAX_BYTES, EndStep, PrepareStep
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.public.rounded_answers import RoundedAnswers

PATIENCE_S = 600.0
"""Until parties that wait for each other are given up: an error of this module, not of a network."""


@dataclass(frozen=True)
class Seconds:
    """CPU seconds of a party, measured: to begin, for a sign of a cell, and for a row of either noise."""

    start: float = 0.0
    sign: float = 0.0
    gumbel: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True)
class Inputs:
    """What a run shares at once. facts, split: with the levels that the cliques name. number: of the run's
    sharings, from 1."""

    levels: Sequence[Level]

    facts: StudyFacts
    split: Partition | None
    contributing: int
    cliques: Sequence[Clique]
    number: int


def no_seconds(inputs: Inputs) -> float:
    """Of inputs that take hardly any time."""
    return 0.0


def nothing_beside(engine: Any) -> int:
    """Of an engine that takes little memory beside the cells that it holds."""
    return 0


Shown = int | Sequence[int]
"""A winner that is opened: of every row, or of each row its own."""


def shown_at_once(gates: Any, plan: SelectionPlan, picked: Sequence[int]) -> list[Shown]:
    """What a selection opens in which every pick is opened on its list: the place of each that was not the
    only one left."""
    lists = [plan.candidates(picked[:number]) for number in range(len(picked))] if plan.picks > 1 else []
    return [left.index(pick) for left, pick in zip(lists, picked, strict=False) if len(left) > 1]


@dataclass(frozen=True)
class BlankParts:
    """A backend's parts, over which a run is derived. roles, contribute: as in a run, with blank masks.
    seconds, inputs: CPU seconds, measured. repeats: whether shapes alone decide what a protocol sends
    (`engine.by_shape`). opened: what a selection opens, given what it picks, in order. beside_bytes: the most memory that an
    engine has taken so far beside the cells that it holds, if that is much."""

    roles: Roles[Any, Any]
    contribute: Callable[[Wire, StudyFacts, Any], None]
    seconds: Seconds
    inputs: Callable[[Inputs], float] = no_seconds
    repeats: bool = True
    opened: Callable[[Any, SelectionPlan, Sequence[int]], list[Shown]] = shown_at_once
    beside_bytes: Callable[[Any], int] = nothing_beside


class EngineDryRun(TalliedDryRun):
    """The ideal oracle, and all parties of a run."""

    def __init__(self, run: PresumedRun, parts: BlankParts) -> None:
        """Raises what the engine does."""
        facts, counts, computing, contributing, split, delay_us = run
        self._network = BlankNetwork(
            computing + contributing, computing, session_id=facts.session, patience_s=PATIENCE_S
        )
        self._parts, self._split, self._contributing = parts, split, contributing
        self._sharings, self._cells, self._input_seconds, self._counting_s = 0, 0, 0.0, 0.0
        self._engines: dict[int, ComputingParty[Any, Any]] = {}
        self._opened: dict[int, list[Shown]] = {}
        wires = map(self._network.wire, range(computing, computing + contributing))
        self._contributors = [
            start_thread(
                _contribute,
                self._network,
                wire,
                partial(parts.contribute, wire, facts, self._data(facts, wire.me)),
            )
            for wire in wires
        ]
        self._leader = facts.leader
        self._followers = [party for party in range(computing) if party != facts.leader]

        def begin(party: int) -> None:
            wire = self._network.wire(party)
            engine = parts.roles.engine(wire, facts, self._data(facts, party))
            agree_on_delay(wire, facts.leader)
            self._engines[party] = ComputingParty(engine, facts, AllowAll(), None, delay=delay_us)
            gates: Any = engine.gates
            gates.messages, cast(Any, engine.beside).messages = (Messages(parts.repeats) for _ in range(2))
            gates.zero_rows = partial(self._winning, party, gates.zero_rows)

        self._together(begin)
        super().__init__(facts, counts, self._network.tally(), self._engines[self._leader].engine.dealers)
        for party in self._engines.values():
            party.state = cast(Any, Learned(self._ideal.state))

    def __del__(self) -> None:
        self._network.end(self._leader, None)  # contributors that wait for a request end

    @property
    def input_checks(self) -> tuple[int, int]:
        checks = [party.input_check for party in self._engines.values() if party.input_check is not None]
        return max((check.rounds for check in checks), default=0), sum(check.bytes_sent for check in checks)

    @property
    def seconds(self) -> float:
        of, party = self._parts.seconds, self._engines[self._leader]
        checked = 0 if party.input_check is None else party.input_check.signs
        rows = party.noise.rows
        return (
            of.start
            + of.sign * (party.signs + checked)
            + of.gumbel * rows.gumbel
            + of.noise * rows.gaussian
            + self._input_seconds
        )

    @property
    def shared_cells(self) -> int:
        return self._cells

    @property
    def beside_bytes(self) -> int:
        return max(self._parts.beside_bytes(party.engine) for party in self._engines.values())

    @property
    def counting_s(self) -> float:
        return self._counting_s

    def close(self) -> None:
        end = EndStep().to_bytes()
        self._announce(end, end)

        def finish(party: int) -> None:
            ending = self._receive_step(party)
            ending.noise.finish()
            ending.engine.announce(bytes(32))()

        self._together(finish)
        for thread in self._contributors:
            thread.join()
        self._count_all()

    # -- steps
    # ---------------------------------------------------------------------------------------------------------------

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        leading, request = self._engines[self._leader], b""
        if isinstance(begun, BegunPrepare) and begun.fresh:
            request = PrepareStep(begun.fresh, begun.levels).to_bytes()
        elif isinstance(begun, BegunTotal) and leading.shares_rows_first(begun):
            request = PrepareStep((leading.smallest(),), ()).to_bytes()
        announced = not (isinstance(begun, BegunMeasure) and begun.promised)
        if announced:
            self._announce(begun.step.to_bytes(), request)
        if isinstance(begun, BegunPrepare):
            self._share(begun.fresh, begun.levels)
        elif request:
            self._share([leading.smallest()], ())

        def step(party: int) -> None:
            if isinstance(begun, BegunDistances) and party == self._leader:
                leading.distances(begun, rounded)
            else:
                (self._receive_step(party) if announced else self._engines[party]).run(begun)

        self._together(step)
        self._count_all()

    def _count_select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        check_size(begun.plan, self._engines[self._leader].engine.picks_in_groups)
        shown = self._parts.opened(self._engines[self._leader].engine.gates, begun.plan, picked)
        self._opened = {party: list(shown) for party in self._engines}
        self._announce(begun.step.to_bytes(), b"")
        self._together(
            lambda party: self._receive_step(party).select(begun, rounded if party == self._leader else None)
        )
        self._count_all()

    def _data(self, facts: StudyFacts, party: int) -> LocalCounts | VerticalData:
        """Blank counts; of split columns no row at all, for what is sent follows from the rows of the common
        table."""
        if self._split is None:
            return partial(_blank_counts, facts)
        if party not in self._split.owners:
            return VerticalData(self._split, None)
        codes = {column: np.empty(0, np.uint8) for column in self._split.of(party)}
        return VerticalData(self._split, OwnRows(np.empty(0, np.int64), codes))

    def _share(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        if not cliques:
            return
        self._sharings += 1
        split = None if self._split is None else self._split.with_levels(levels)
        facts = self.facts.with_levels(levels)
        self._cells += sum(map(facts.cells, cliques))
        inputs = Inputs(levels, facts, split, self._contributing, cliques, self._sharings)
        self._input_seconds += self._parts.inputs(inputs)

    def _announce(self, step: bytes, request: bytes) -> None:
        """The leader sends a step to all others that compute, and a request, if there is one, to
        contributors."""
        wire = self._engines[self._leader].wire
        for peer in self._followers:
            wire.send(peer, step)
        for peer in wire.contributors if request else ():
            wire.send(peer, request)

    def _receive_step(self, party: int) -> ComputingParty[Any, Any]:
        """A party that has received the step that is announced."""
        if party != self._leader:
            self._engines[party].wire.receive_up_to(self._leader, MAX_BYTES)
        return self._engines[party]

    def _winning(
        self, party: int, zero_rows: Callable[..., NDArray[np.bool_]], shape: tuple[int, int], rows: Any
    ) -> NDArray[np.bool_]:
        """What `zero_rows` opens: the winner of a pick; the first of each row where no winner is told."""
        zero_rows(shape, rows)
        shown, found = self._opened.get(party), np.zeros(shape, np.bool_)
        found[np.arange(shape[0]), shown.pop(0) if shown else 0] = True
        return found

    def _together(self, run: Callable[[int], object]) -> None:
        """Run a part of every computing party, each in a thread of its own; the leader's in this one."""
        failures: list[BaseException] = []
        began = time.process_time()

        def body(party: int) -> None:
            try:
                run(party)
            except BaseException as error:
                failures.append(error)
                self._network.end(party, error)

        threads = [start_thread(body, party, name=f"dry-run-{party}") for party in self._followers]
        body(self._leader)
        for thread in threads:
            thread.join()
        self._counting_s += time.process_time() - began
        if failures:
            raise failures[0]

    def _count_all(self) -> None:
        self.tally = self._network.tally()


def _blank_counts(facts: StudyFacts, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
    """A custodian's counts, blank."""
    return [blank(facts.cells(clique), np.int64) for clique in cliques]


def _contribute(network: MemoryNetwork, wire: Wire, run: Callable[[], None]) -> None:
    """A contributor, until the run ends or nobody goes on with it."""
    try:
        run()
    except BaseException as error:
        network.end(wire.me, error)
