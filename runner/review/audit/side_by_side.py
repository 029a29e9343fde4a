"""Checks side by side: each in a process of its own, as many at a time as asked for, their results in the
order of the checks.

A process is a copy (fork) of the one that audits, so that a subject is prepared once and nothing but what was
found travels back. Deployments of two checks at the same time listen on different ports
(`runner.launch.ports.draw_from`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, TypeVar, cast

from runner.launch import ports

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

T = TypeVar("T")
_LOOK_S = 1.0
"""How often it is asked whether a process that has told nothing is still there."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(tasks: Sequence[Callable[[], T]], jobs: int) -> Iterator[T | None]:
    """What each task gives, in order; None of one whose process ended without a result. jobs: how many at a
    time, at least 1.

    With one job, with one task, or where processes cannot be copied, all run here, one after the other.
    """
    if min(jobs, len(tasks)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from (task() for task in tasks)
        return
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[ForkProcess, int, int]] = {}
    jobs = min(jobs, len(tasks), ports.MAX_SHARES)
    slots, results, ahead = set(range(jobs)), dict[int, T | None](), iter(range(len(tasks)))
    try:
        for wanted in range(len(tasks)):
            while wanted not in results:
                while slots and (number := next(ahead, None)) is not None:
                    slot = slots.pop()
                    ours, theirs = context.Pipe(duplex=False)
                    sys.stdout.flush()
                    sys.stderr.flush()
                    process = context.Process(target=_send_result, args=(tasks[number], theirs, slot, jobs))
                    process.start()
                    theirs.close()  # so that the end of the process shows here
                    running[ours] = process, number, slot
                for ended in _ended(running):
                    process, number, slot = running.pop(ended)
                    results[number] = _result(ended)
                    ended.close()
                    process.join()
                    slots.add(slot)
            yield results.pop(wanted)
    finally:
        for process, _, _ in running.values():
            process.terminate()
        for process, _, _ in running.values():
            process.join()


def _ended(running: Mapping[Connection, tuple[ForkProcess, int, int]]) -> list[Connection]:
    """Whose task has told its result, or whose process has ended: one that it has left behind may hold its
    end open."""
    while not (
        ended := wait(list(running), _LOOK_S)
        or [ours for ours, (process, _, _) in running.items() if not process.is_alive()]
    ):
        pass
    return cast("list[Connection]", ended)


def _result(ours: Connection) -> Any:
    """What a task has told; None if nothing whole can be read, whatever was begun."""
    try:
        return ours.recv() if ours.poll() else None
    except Exception:  # cut off, or of what this process cannot read
        return None


def _send_result(task: Callable[[], T], told: Connection, slot: int, jobs: int) -> None:
    ports.draw_from(slot, jobs)
    told.send(task())
