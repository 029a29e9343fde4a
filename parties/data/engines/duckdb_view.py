"""A view of a DuckDB database, which may be somebody else's: computed in a process of its own, for so long
and in so much memory.

Problem: a view without an end would hold a run up for ever, and one that asks for 2 GB a row takes the memory
of the machine before DuckDB looks at an interruption. What holds for every view is a process that the kernel
ends (`duckdb_view_process.py`): after `VIEW_S` seconds of computing, at `MAX_MEMORY` (where the system limits
it, as Linux does), and when the process that asks is gone. A table whose values are stored is read without a
limit, by the process that asks.

Requests and answers are JSON, and Arrow's own bytes for rows.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from parties.child import start_child
from parties.data.engines.duckdb_engine import DuckDB, attached, full_name, is_stored
from parties.data.libraries import ipc

if TYPE_CHECKING:
    import pyarrow as pa

VIEW_S = 1800.0
"""How long a view may be computed, in all requests of one opening together. What its reader does with the
rows meanwhile does not count."""
MAX_MEMORY = 4 << 30
"""Bytes that its process may hold."""
PROGRAM = (sys.executable, "-P", "-m", "parties.data.engines.duckdb_view_process")


class Endless(Exception):
    """A view was computed for longer than `VIEW_S`. Says no more."""


class Exhausted(Exception):
    """The process that computed a view is gone. Says no more."""


class ViewFault(Exception):
    """DuckDB has refused what was asked. kind: the name of its exception, whose text quotes records."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def open_database(path: Path, table: str, spill: str) -> DuckDB | View:
    """A table or view (`people`, or `schema.people`), read-only. spill: a folder for what a query cannot keep
    in memory."""
    connection, catalog = attached(path, spill)
    try:
        is_table = is_stored(connection, full_name(catalog, table))
    finally:
        connection.close()
    return DuckDB.database(path, table, spill) if is_table else View(path, table, spill)


class View:
    """See `duckdb_engine.Engine`, and `DuckDB`, whose methods of the same names it has. Raises `Endless`,
    `Exhausted` and `ViewFault`."""

    ordered = True

    def __init__(self, path: Path, table: str, spill: str) -> None:
        self._left_s = VIEW_S
        self._process = start_child(PROGRAM)
        self.fields: tuple[str, ...]
        try:
            self.table, fields = self._answer("opened", str(path), table, spill)[0]
            self.fields = tuple(fields)
        except BaseException:
            self.close()
            raise

    def stream(self, fields: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """See `Engine`."""
        self._answer("stream", list(fields), rows)
        return self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while arrow := self._answer("batch")[1]:
            yield ipc.open_stream(arrow).read_next_batch()

    def units(self, field: str, bound: int) -> tuple[bool, bool]:
        """See `Engine`."""
        above, absent = self._answer("units", field, bound)[0]
        return above, absent

    def schema(self) -> pa.Schema:
        """See `DuckDB`."""
        return ipc.open_stream(self._answer("schema")[1]).schema

    def query(self, sql: str, values: Sequence[Any], most: int) -> list[tuple[Any, ...]]:
        """See `DuckDB`."""
        return [tuple(row) for row in self._answer("query", sql, list(values), most)[0]]

    def close(self) -> None:
        """See `Engine`."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what is left to be written nobody reads
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def _answer(self, request: str, *arguments: Any) -> tuple[Any, bytes]:
        """What the process makes of a request, and Arrow's bytes of it."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None and taken is not None
        if self._left_s <= 0:
            raise Endless
        try:
            send(given, (self._left_s, request, arguments))
            (spent_s, fault, answer), arrow = receive(taken)
        except (OSError, ValueError, EOFError):
            self._process.kill()  # one that lives, and answers what is none; how another one ended stays as it is
            if self._process.wait() == -signal.SIGALRM:
                self._left_s = 0.0
                raise Endless from None
            raise Exhausted from None
        self._left_s -= spent_s
        if fault is not None:
            raise ViewFault(fault)
        return answer, arrow


def send(pipe: IO[bytes], content: object, arrow: bytes = b"") -> None:
    """Write a request or an answer. arrow: what is no JSON of it."""
    text = json.dumps(content, default=_json_form).encode()
    pipe.write(len(text).to_bytes(8, "little") + len(arrow).to_bytes(8, "little") + text)
    pipe.write(arrow)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Any, bytes]:
    """What `send` wrote. Raises `EOFError` or `ValueError` for what is cut off."""
    head = pipe.read(16)
    text, arrow = (int.from_bytes(part, "little") for part in (head[:8], head[8:]))
    if max(text, arrow) > MAX_MEMORY:
        raise ValueError("An answer is larger than what a process holds.")
    content, more = pipe.read(text), pipe.read(arrow)
    if (len(head), len(content), len(more)) != (16, text, arrow):
        raise EOFError
    return json.loads(content, object_hook=_meant), more


def _json_form(value: object) -> object:
    if isinstance(value, Decimal | date):  # a datetime is a date
        return {type(value).__name__: str(value)}
    return str(value)


def _meant(form: dict[str, str]) -> object:
    [(kind, text)] = form.items()
    if kind == "Decimal":
        return Decimal(text)
    return datetime.fromisoformat(text) if kind == "datetime" else date.fromisoformat(text)
