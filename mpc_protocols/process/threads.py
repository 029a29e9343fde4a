"""Threads of a party: each begins, or the party ends. And what one of them computes beside another (`Aside`).

Where memory is out, a new thread may die before it says that it is there. The library would wait for that
without end, and so would all other parties, as this one's heartbeats go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")

START_S = 20.0
"""Until a thread that does not begin is given up."""
_WAITS = 20
"""Into which that time is cut: of a pause of the whole process, in which no thread could begin, one of them
ends and no more."""


class _Begun(threading.Event):
    """Whether a thread has begun."""

    def wait(self, timeout: float | None = None) -> bool:
        for _ in range(_WAITS):
            if super().wait((START_S if timeout is None else timeout) / _WAITS):
                return True
        raise MemoryError


def start_thread(body: Callable[..., object], *given: object, name: str | None = None) -> threading.Thread:
    """Start a daemon thread that runs `body(*given)`. Raises `MemoryError` if it does not begin."""
    thread: Any = threading.Thread(target=body, args=given, name=name, daemon=True)
    thread._started = _Begun()
    thread.start()
    return thread  # type: ignore[no-any-return]


class Aside(Generic[T]):
    """What a thread of its own computes or does while this one goes on, until `join`.

    As a context: at its end the thread has ended, too, and what it has raised is raised unless something else is.
    """

    def __init__(self, run: Callable[[], T]) -> None:
        """Raises `MemoryError` if the thread does not begin."""
        self._run = run
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = start_thread(self._body, name=f"{threading.current_thread().name}-aside")

    def _body(self) -> None:
        try:
            self._result.append(self._run())
        except BaseException as error:  # raised again in the thread that joins
            self._error = error

    def join(self) -> T:
        """Wait for its end; what it has computed, also if asked again. Raises what it has raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.join()
        if error is None:
            self.join()
