"""Messages that are a byte too short or too long: which of a run's to change so, and how."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from mpc_protocols.in_memory.memory_wire import Frame
from runner.review.audit.subjects.in_memory.bent_wire import Way


class Ways:
    """A tap that counts the messages of each way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: dict[Way, int] = {}

    def __call__(self, frame: Frame) -> None:
        with self._lock:
            way = frame.sender, frame.receiver
            self.counts[way] = self.counts.get(way, 0) + 1


def misshapen(counts: Mapping[Way, int]) -> list[tuple[Way, int, Callable[[bytes], bytes], str]]:
    """Of each way the first, the last and a message between, turn by turn a byte short or a byte longer; how,
    in words."""
    changes: list[tuple[Way, int, Callable[[bytes], bytes], str]] = []
    for turn, (way, count) in enumerate(sorted(counts.items())):
        for number in sorted({0, count // 2, count - 1} & set(range(count))):
            if (turn + number) % 2:
                changes.append((way, number, _shorter, "a byte short"))
            else:
                changes.append((way, number, lambda payload: payload + b"\0", "a byte longer"))
    return changes


def _shorter(payload: bytes) -> bytes:
    """An empty message cannot be: it gets a byte."""
    return payload[:-1] if payload else b"x"
