"""The process that computes a view (`duckdb_view.py`): requests on its standard input, answers on its
standard output.

A request: (seconds, what, arguments). An answer: (seconds spent, the name of DuckDB's exception or None, the
answer). Before each the kernel's timer is set; it ends this process whatever DuckDB does meanwhile. When the
standard input ends, the process that asked is gone, and this one ends too.
"""

from __future__ import annotations

import os
import queue
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from mpc_protocols.process.threads import start_thread
from parties.core_dumps import forbid_core_dumps
from parties.data.engines.duckdb_engine import DuckDB
from parties.data.engines.duckdb_view import MAX_MEMORY, receive, send

Request = tuple[float, str, list[Any]]


class Answers:
    """What is answered about one view; the methods are the requests."""

    def __init__(self) -> None:
        self._engine: DuckDB
        self._reader: Iterator[pa.RecordBatch] = iter(())

    def opened(self, path: str, table: str, spill: str) -> tuple[str, tuple[str, ...]]:
        """What FROM names, and the columns' names."""
        self._engine = DuckDB.database(Path(path), table, spill)
        return self._engine.table, self._engine.fields

    def stream(self, fields: Sequence[str], rows: int) -> None:
        """Begin to read; `batch` gives what there is."""
        self._reader = self._engine.stream(fields, rows)

    def batch(self) -> bytes:
        """The next rows; nothing after the last."""
        batch = next(self._reader, None)
        return b"" if batch is None else _stream(batch.schema, batch)

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `DuckDB`."""
        return self._engine.units(field, bound)

    def schema(self) -> bytes:
        """See `DuckDB`."""
        return _stream(self._engine.schema())

    def query(self, sql: str, values: Sequence[Any], most: int) -> list[tuple[Any, ...]]:
        """See `DuckDB`."""
        return self._engine.query(sql, values, most)


def main() -> None:
    """Answer until nobody asks any more."""
    forbid_core_dumps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    _limit_memory()
    import duckdb  # noqa: F401 - which is no part of the view's time
    import pyarrow  # noqa: F401

    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    start_thread(_read, requests)
    answers = Answers()
    while True:
        seconds, request, arguments = requests.get()
        began = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        fault, answer = None, None
        try:
            answer = getattr(answers, request)(*arguments)
        except MemoryError:
            fault = "OutOfMemoryException"
        except Exception as error:  # DuckDB's own, whose text quotes records
            fault = type(error).__name__
        signal.setitimer(signal.ITIMER_REAL, 0)
        arrow = answer if isinstance(answer, bytes) else b""
        told = None if isinstance(answer, bytes) else answer
        send(sys.stdout.buffer, (time.monotonic() - began, fault, told), arrow)


def _stream(schema: pa.Schema, *batches: pa.RecordBatch) -> bytes:
    """As Arrow writes them."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _limit_memory() -> None:
    """And where memory runs out all the same, this is the process to be ended, not the one that asks."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MAX_MEMORY if hard == resource.RLIM_INFINITY else min(hard, MAX_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with suppress(OSError):  # of Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


def _read(requests: queue.SimpleQueue[Request]) -> None:
    """Take requests, also while one is worked at: then it is known that nobody waits for it any more."""
    try:
        while True:
            requests.put(tuple(receive(sys.stdin.buffer)[0]))
    except Exception:
        os._exit(1)


if __name__ == "__main__":
    main()
