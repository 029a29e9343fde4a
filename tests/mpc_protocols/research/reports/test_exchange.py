"""The exchange of reports: who gets what, what it costs, what comes first, and its ideal counterpart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import BudgetRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Event, Guard, MarginalOracle, Reporter, Reports, StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.research.reports import common_key
from mpc_protocols.research.reports.cost import cost
from mpc_protocols.research.reports.exchange import ReportExchange
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder

ROWS = 50
COLUMNS = {"a": 0, "b": 2, "c": 3}
SIZES = {"a": 3, "b": 4, "c": 2}
OWNERS = (0, 2, 3)
"""The first computes, the second too, the third does not; party 1 leads and owns nothing."""
FACTS = StudyFacts(SIZES, "replace", 1, 1000, bytes(32))
EVENTS = (
    Event("own model", Fraction(1, 8), Fraction(0), {"columns": ["a"]}),
    Event("codes", Fraction(1, 4), Fraction(0)),
)


class Codes(Reporter):
    """Reports are the codes in the clear and the owners' key, for tests; and how many rows the own oracle
    counts, noisily."""

    def __init__(self, keyed: bool = False, limit: int = 10_000) -> None:
        self.keyed, self._limit = keyed, limit
        self.totals = list[int]()

    @property
    def events(self) -> Sequence[Event]:
        return EVENTS

    def limit(self, columns: Sequence[str], rows: int) -> int:
        return self._limit

    def length(self, columns: Sequence[str], rows: int) -> int:
        return rows * len(columns) + (common_key.BYTES if self.keyed else 0)

    def report(
        self, codes: Mapping[str, Any], own_oracle: Callable[[Guard], MarginalOracle], key: bytes
    ) -> bytes:
        oracle = own_oracle(Recorder())
        assert set(oracle.facts.sizes) == set(codes) and oracle.facts.adjacency == "replace"
        self.totals.append(oracle.total(Fraction(1, 64)))
        return key + b"".join(column.astype(np.uint8).tobytes() for column in codes.values())


def tables() -> dict[int, OwnRows]:
    rng = np.random.default_rng(1)
    return {
        owner: OwnRows(
            rng.permutation(ROWS).astype(np.int64),
            {
                name: rng.integers(0, SIZES[name], ROWS).astype(np.uint16)
                for name, of in COLUMNS.items()
                if of == owner
            },
        )
        for owner in OWNERS
    }


def carried_out(
    reporter: Reporter,
    owners: Sequence[int] = OWNERS,
    guards: Mapping[int, Guard] | None = None,
    own: Mapping[int, OwnRows] | None = None,
    frames: list[Frame] | None = None,
) -> tuple[Reports, list[Frame], MemoryNetwork]:
    split = Partition(tuple(owners), COLUMNS, "intersection", {}, ROWS)
    held, exchange = own or tables(), ReportExchange(reporter)
    frames, lock = [] if frames is None else frames, threading.Lock()

    def tap(frame: Frame) -> None:
        with lock:
            frames.append(frame)

    def party(wire: Wire) -> Reports | None:
        data, guard = VerticalData(split, held.get(wire.me)), (guards or {}).get(wire.me) or Recorder()
        if wire.me == FACTS.leader:
            with exchange.lead(wire, FACTS, data, guard) as reports:
                return reports
        if wire.me < wire.computing:
            assert exchange.follow(wire, FACTS, data, guard) == []
        else:
            exchange.contribute(wire, FACTS, data)
        return None

    network = MemoryNetwork(4, 3, tap=tap)
    reports = network.run([party] * 4)[FACTS.leader]
    assert reports is not None
    return reports, frames, network


def expected() -> dict[int, bytes]:
    """Codes in the order of the common rows."""
    found = {}
    for owner, table in tables().items():
        parts = [codes[np.argsort(table.rows)].astype(np.uint8).tobytes() for codes in table.codes.values()]
        found[owner] = b"".join(parts)
    return found


def test_the_leader_gets_every_report_and_nobody_else_any() -> None:
    reporter = Codes()
    reports, frames, _ = carried_out(reporter)
    assert reports.rows == ROWS and reports.columns == (("a",), ("b",), ("c",))
    assert reports.payloads == tuple(expected()[owner] for owner in OWNERS)
    assert reporter.totals == [ROWS] * 3
    assert {frame.receiver for frame in frames if frame.payload} == {FACTS.leader}


@pytest.mark.parametrize("keyed", [False, True])
def test_bytes_and_rounds_are_those_that_plan_tells(keyed: bool) -> None:
    _, frames, network = carried_out(Codes(keyed))
    told = cost(Codes(keyed), Partition(OWNERS, COLUMNS, "intersection", {}, ROWS), FACTS.leader)
    sent = {owner: sum(len(frame.payload) for frame in frames if frame.sender == owner) for owner in OWNERS}
    assert sent == told.sent
    assert max(network.traffic(number).rounds for number in range(4)) == told.rounds


def test_the_ideal_counterpart_gives_the_same_reports_and_charges_the_same() -> None:
    guard = Recorder()
    split = Partition(OWNERS, COLUMNS, "intersection", {}, ROWS)
    reports = ReportExchange(Codes()).clear(FACTS, split, tables(), guard)
    assert reports == carried_out(Codes())[0]
    assert tuple(guard.events) == EVENTS


def test_every_computing_party_has_the_events_on_record() -> None:
    guards = {number: Recorder() for number in range(3)}
    carried_out(Codes(), guards=guards)
    assert all(tuple(guard.events) == EVENTS for guard in guards.values())


@pytest.mark.parametrize("refuses", [0, 1, 2])
def test_no_report_leaves_when_a_computing_party_refuses(refuses: int) -> None:
    frames = list[Frame]()
    with pytest.raises(BudgetRefused):
        carried_out(Codes(), guards={refuses: Recorder(refuse_from=1)}, frames=frames)
    assert (
        not any(frame.payload for frame in frames) and len(frames) < 5
    )  # 2 to the leader, 3 to owners when all are ready


def test_owners_share_a_key_that_the_leader_does_not_see() -> None:
    reports, frames, _ = carried_out(Codes(keyed=True))
    keys = {payload[: common_key.BYTES] for payload in reports.payloads}
    assert len(keys) == 1 and keys.isdisjoint(frame.payload for frame in frames)
    drawing = [frame for frame in frames if len(frame.payload) == common_key.BYTES]
    assert len(drawing) == 2 * 3 * 2 and not {FACTS.leader} & {frame.receiver for frame in drawing}


def test_another_run_has_another_key() -> None:
    first, second = (carried_out(Codes(keyed=True))[0].payloads[0] for _ in range(2))
    assert first[: common_key.BYTES] != second[: common_key.BYTES]


def test_an_opening_that_does_not_fit_its_commitment_ends_the_run() -> None:
    def party(wire: Wire) -> bytes:
        if wire.me == 0:  # commits to one thing and opens another
            for value in (bytes(32), bytes(range(32))):
                for peer in (1, 2):
                    wire.send(peer, value)
            return b""
        return common_key.common_key(wire, (0, 1, 2))

    with pytest.raises(ProtocolAborted, match="Party 0 opened its commitment"):
        MemoryNetwork(3, 3).run([party] * 3)


def test_two_owners_without_a_connection_draw_no_key() -> None:
    common_key.check_links((0, 1, 3), 3)
    with pytest.raises(StudyInvalid, match="no connection"):
        common_key.check_links((0, 3, 4), 3)


def test_a_report_longer_than_its_columns_allow_ends_the_run() -> None:
    with pytest.raises(ProtocolAborted, match="at most 7 are allowed"):
        carried_out(Codes(limit=7))


def test_rows_that_an_owner_lacks_cannot_be_reported() -> None:
    held = tables()
    short = held[2]
    held[2] = OwnRows(short.rows[1:], {name: codes[1:] for name, codes in short.codes.items()})
    with pytest.raises(StudyInvalid, match="row-order"):
        carried_out(Codes(), own=held)


def test_rows_of_several_custodians_are_not_reported() -> None:
    with pytest.raises(StudyInvalid, match="vertical"):
        ReportExchange(Codes()).contribute(None, FACTS, None)  # type: ignore[arg-type]
