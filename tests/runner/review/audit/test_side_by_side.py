"""Checks side by side: in the order in which they stand, whatever becomes of one."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from runner.commands.cli import main
from runner.launch import ports
from runner.review.audit import driver
from runner.review.audit.check import Check, Finding, Group, Verdict
from runner.review.audit.side_by_side import side_by_side
from runner.review.audit.subjects.subject import Subject


def _connections() -> list[multiprocessing.connection.Connection]:
    """Those of this process."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, multiprocessing.connection.Connection) and not each.closed
    ]


def told(number: int) -> tuple[int, int]:
    return number, os.getpid()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(jobs: int) -> None:
    found = list(side_by_side([partial(told, number) for number in range(7)], jobs))
    assert [each[0] for each in found if each is not None] == list(range(7))
    processes = {each[1] for each in found if each is not None}
    assert (
        (processes == {os.getpid()}) if jobs == 1 else (len(processes) == 7 and os.getpid() not in processes)
    )


def test_the_first_result_waits_for_no_later_one() -> None:
    """Two of a size at a time; the second ends when the first has been taken."""
    ours, theirs = os.pipe()

    def second() -> bytes:
        return os.read(ours, 1)

    tasks: list[Callable[[], bytes]] = [lambda: b"first", second]
    results = side_by_side(tasks, 2)
    assert next(results) == b"first"
    os.write(theirs, b"2")
    assert list(results) == [b"2"]
    os.close(ours)
    os.close(theirs)


def test_processes_are_gone_when_nobody_asks_on() -> None:
    ours, _theirs = os.pipe()
    tasks: list[Callable[[], object]] = [os.getpid, partial(os.read, ours, 1)]
    results = side_by_side(tasks, 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_a_check_whose_process_dies_is_an_error_and_the_others_go_on() -> None:
    def dies(_: Subject) -> Finding:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def passes(_: Subject) -> Finding:
        return Finding(Verdict.PASS, "Fine.")

    group = Group("X", "", "", tuple(Check(run.__name__, "", "exact", "", run) for run in (dies, passes)))
    nothing: Any = SimpleNamespace()
    first, second = driver.carry_out(nothing, [(group, check) for check in group.checks], jobs=2)
    assert (first.name, first.finding.verdict) == ("X.dies", Verdict.ERROR)
    assert (second.name, second.finding.verdict) == ("X.passes", Verdict.PASS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_check_that_ends_its_process_is_an_error(jobs: int) -> None:
    def leaves(_: Subject) -> Finding:
        raise SystemExit(0)

    group = Group("X", "", "", (Check("leaves", "", "exact", "", leaves),))
    nothing: Any = SimpleNamespace()
    results = list(driver.carry_out(nothing, [(group, group.checks[0])] * 2, jobs=jobs))
    assert [result.finding.verdict for result in results] == [Verdict.ERROR] * 2


class Unreadable:
    """What cannot be read where it is told."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("none",)


def test_what_cannot_be_read_is_no_result() -> None:
    assert next(iter(side_by_side([Unreadable, os.getpid], 2))) is None


def test_a_result_that_is_cut_off_is_none() -> None:
    def cut() -> None:
        [told] = [frame for frame in _connections() if frame.writable]
        os.write(told.fileno(), (1000).to_bytes(4, "big") + b"begun")
        os.kill(os.getpid(), signal.SIGKILL)

    assert next(iter(side_by_side([cut, os.getpid], 2))) is None


def test_a_process_that_is_left_behind_holds_nothing_up() -> None:
    ours, theirs = os.pipe()

    def leaves_another() -> None:
        if not os.fork():
            os.read(ours, 1)  # holds the pipe of the result open
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        assert next(iter(side_by_side([leaves_another, os.getpid], 2))) is None
    finally:
        os.write(theirs, b".")
        os.close(ours)
        os.close(theirs)


def test_more_at_a_time_than_there_are_shares_of_ports() -> None:
    assert list(side_by_side([os.getpgrp, os.getpgrp], 10_000)) == [os.getpgrp()] * 2


def test_two_at_a_time_draw_from_different_ports() -> None:
    tasks = [partial(ports.free_ports, 40)] * 2
    first, second = side_by_side(tasks, 2)
    assert first is not None and second is not None
    assert {port % 2 for port in first} != {port % 2 for port in second}
    assert len({port % 2 for port in first}) == len({port % 2 for port in second}) == 1
    assert ports.share() == (0, 1)
    with pytest.raises(ValueError, match="no share 2 of 2"):
        ports.draw_from(2, 2)


def test_at_least_one_check_runs_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--jobs", "0", "--only", "A.conversion"]) == 2
    assert "at least one check runs at a time" in capsys.readouterr().err
