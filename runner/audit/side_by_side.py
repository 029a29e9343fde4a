"""Checks side by side: each in a process of its own, as many at a time as asked for, their results in the order of the checks.

A process is a copy (fork) of the one that audits, so that a subject is prepared once and nothing but what was found travels
back. Deployments of two checks at the same time listen on different ports (`runner.launch.ports.draw_from`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, TypeVar, cast

from runner.launch import ports

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

T = TypeVar("T")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(tasks: Sequence[Callable[[], T]], jobs: int) -> Iterator[T | None]:
    """What each task gives, in order; None of one whose process ended without a result. jobs: how many at a time, at least 1.

    With one job, with one task, or where processes cannot be copied, all run here, one after the other.
    """
    if min(jobs, len(tasks)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from (task() for task in tasks)
        return
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[ForkProcess, int, int]] = {}
    slots, results, ahead = set(range(jobs)), dict[int, T | None](), iter(range(len(tasks)))
    try:
        for wanted in range(len(tasks)):
            while wanted not in results:
                while slots and (number := next(ahead, None)) is not None:
                    slot = slots.pop()
                    ours, theirs = context.Pipe(duplex=False)
                    sys.stdout.flush()
                    sys.stderr.flush()
                    process = context.Process(target=_told, args=(tasks[number], theirs, slot, jobs))
                    process.start()
                    theirs.close()  # so that the end of the process shows here
                    running[ours] = process, number, slot
                for ended in cast("list[Connection]", wait(list(running))):
                    process, number, slot = running.pop(ended)
                    try:
                        results[number] = ended.recv()
                    except EOFError:
                        results[number] = None
                    ended.close()
                    process.join()
                    slots.add(slot)
            yield results.pop(wanted)
    finally:
        for process, _, _ in running.values():
            process.terminate()
        for process, _, _ in running.values():
            process.join()


def _told(task: Callable[[], T], told: Connection, slot: int, jobs: int) -> None:
    ports.draw_from(slot, jobs)
    told.send(task())
