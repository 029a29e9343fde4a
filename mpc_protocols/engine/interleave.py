"""Two protocols in the same rounds: what one waits for, the other overlaps (`docs/design/engine.md` 2.8).

The noise of a selection does not depend on data, so its rounds can be those of the scores. Two protocols run
as two threads of which only ONE runs at a time; the other goes on when the running one has sent its messages
of a step and would wait:

    first sends 1 | second sends 1 | first receives 1, sends 2 | second receives 1, sends 2 | ...

All three parties switch at the same points (`Turns.turn`, called by every party between the sends and the
receives of every step), so the order of all events is one sequence that all follow: no race, no deadlock that
a sequential program would not have, and rounds and bytes stay functions of public sizes. The rounds of both
together are the longer of the two. A second processor core is not used on purpose: kernels of three parties
fill the machine in a simulation, and on a machine of one's own the time of a round is the network's.

Each protocol has streams of its own, over its own fork of the wire, with masks of its own (`prg`). Threat
model: what is sent is what either would send alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from mpc_protocols.engine.interface import Turns
from mpc_protocols.process.threads import start_thread

A = TypeVar("A")
B = TypeVar("B")


def alone() -> None:
    """Nothing happens: the turn of a protocol beside which nothing runs, and what is sent besides where
    nothing is."""


class _StoppedError(Exception):
    """The other protocol failed: this one ends where it stands."""


class _Second(Generic[B]):
    """The second protocol's thread and the baton."""

    def __init__(self, run: Callable[[], B]) -> None:
        self._run = run
        self._to_first, self._to_second = (
            threading.Lock(),
            threading.Lock(),
        )  # as semaphores of one: a third of their cost
        self._to_first.acquire()
        self._to_second.acquire()
        self._finished = self._stopped = self._alone = False
        self._error: BaseException | None = None
        self._result: list[B] = []
        self._thread = start_thread(self._body, name=f"{threading.current_thread().name}-beside")

    def _body(self) -> None:
        self._to_second.acquire()
        try:
            if not self._stopped:
                self._result.append(self._run())
        except _StoppedError:
            pass
        except BaseException as error:  # raised again in the first protocol's thread
            self._error = error
        finally:
            self._finished = True
            self._to_first.release()

    def turn_of_first(self) -> None:
        """In the first protocol: let the second run to its next turn or its end."""
        if not self._finished:
            self._to_second.release()
            self._to_first.acquire()
        if self._error is not None:
            raise self._error

    def turn_of_second(self) -> None:
        """In the second protocol: give way until the first has come to its next turn or its end."""
        if self._alone:
            return
        self._to_first.release()
        self._to_second.acquire()
        if self._stopped:
            raise _StoppedError

    def end(self) -> B:
        """After the first protocol: run the second to its end; its result."""
        self._alone = True
        self.turn_of_first()
        self._thread.join()
        return self._result[0]

    def stop(self) -> None:
        """The first protocol failed."""
        self._stopped = True
        self._to_second.release()
        self._thread.join()


class Underway(Generic[B]):
    """A protocol that takes turns beside several others, one after the other: where none of them gives way, it stands.

    underway = Underway(second, run)
    underway.turn()                     it sends its first messages
    with underway.beside(first): ...    it goes on at the turns of the block
    result = underway.end()             the rest of it, if something is left
    """

    def __init__(self, second: Turns, run: Callable[[], B]) -> None:
        """second: over whose streams it runs, which nothing else uses until `end`."""
        self._turns, self._second, self._ended = second, _Second(run), False
        second.turn = self._second.turn_of_second

    def __del__(self) -> None:
        if not self._ended:  # what was beside it has failed
            self._second.stop()

    def turn(self) -> None:
        """Let it run to its next turn or its end. Raises what it raises."""
        self._second.turn_of_first()

    @contextmanager
    def beside(self, first: Turns) -> Iterator[None]:
        """It takes turns with what the block computes."""
        before = first.turn

        def turn() -> None:
            before()
            self.turn()

        first.turn = turn
        try:
            yield
        finally:
            first.turn = before

    def end(self) -> B:
        """Run the rest of it; its result."""
        self._ended = True
        try:
            return self._second.end()
        finally:
            self._turns.turn = alone


def interleave(
    first: Turns, run_first: Callable[[], A], second: Turns, run_second: Callable[[], B]
) -> tuple[A, B]:
    """Results of two protocols that take turns; each uses its own streams only. Raises what either raises,
    first come.

    What is due at the first exchange of the first protocol (`agreement`) is done at that of both, also where the
    first one exchanges nothing.
    """
    other, before = _Second(run_second), first.turn

    def turn() -> None:
        before()
        other.turn_of_first()

    first.turn, second.turn = turn, other.turn_of_second
    try:
        result = run_first()
        other.turn_of_first()  # sends first what it has to, if the first protocol has sent nothing
        before()
        return result, other.end()
    except BaseException:
        other.stop()
        raise
    finally:
        first.turn, second.turn = before, alone
