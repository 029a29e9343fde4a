"""A table that several processes of this machine count: `workers = n` in a private file.

    Parquet file       each process reads and counts a range of its rows
    anything else      this process reads; each of the others takes a block when it has counted the one before

Each process hands back the counts of its part (`partition.py`), which are added here. A person's rows are
looked at before, in the whole table, by one GROUP BY. Where something does not fit the study, or a process
ends before it is done, one process counts the table again, from the beginning: it says the same sentence
about the same row as it ever would, or finds what there is to count.

Cost: a process and some 200 MB for each worker, and the interpreter's start, 0.4 s of CPU each. A table of
fewer than `MIN_ROWS` rows is counted by this process alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError, DataRefused
from mpc_protocols.functionality import Clique
from mpc_protocols.process.threads import start_thread
from parties.child import start_child
from parties.data.counting.local_marginals import LocalTable, count
from parties.data.counting.scan import Unit, inspect, named
from parties.data.engines.duckdb_engine import numbered
from parties.data.files.arrow import bits
from parties.data.libraries import ipc, pa, parquet
from parties.data.source import Source
from parties.data.tallies.counting import Counting
from parties.data.tallies.partition import HASH, max_bytes
from parties.data.tallies.total import Total

if TYPE_CHECKING:
    from synth.domain import Domain

MIN_ROWS = 1 << 20
MIN_CSV_BYTES = 1 << 25
"""A CSV file of fewer bytes has few rows."""
PROGRAM = (sys.executable, "-P", "-m", "parties.data.tallies.worker_process")

log = logging.getLogger("cosynth.custodian.workers")  # below the logger whose lines are private


def cores() -> int:
    """How many processes this machine runs at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_by_workers(
    source: Source,
    domain: Domain,
    cliques: Sequence[Clique],
    *,
    max_rows: int,
    unit: Unit | None = None,
    allow_empty: bool = False,
    workers: int,
    min_rows: int = MIN_ROWS,
) -> LocalTable:
    """What `count` returns and raises, bit for bit, by so many processes. min_rows: of a table that is worth
    it.

    A table that its database counts is counted by that alone.
    """
    found: LocalTable | None = None
    divided = workers > 1 and not source.location.push_down
    if divided and _large(source, min_rows) and not inspect(source, domain, unit).problems:
        found = _counted(source, domain, cliques, max_rows, unit, workers)
    if found is None or not found.rows:
        return count(source, domain, cliques, max_rows=max_rows, unit=unit, allow_empty=allow_empty)
    return replace(found, ignored=inspect(source, domain, unit).ignored)


def _large(source: Source, min_rows: int) -> bool:
    """Whether a table may have so many rows, as far as its file tells."""
    location = source.location
    if location.path is None or min_rows == 0:
        return True
    if location.kind == "parquet":
        return _parquet_rows(source) >= min_rows
    return location.kind != "csv" or location.path.stat().st_size >= MIN_CSV_BYTES * min_rows // MIN_ROWS


def _parquet_rows(source: Source) -> int:
    """0 of a file that cannot be read."""
    assert source.location.path is not None
    try:
        return int(parquet.read_metadata(source.location.path).num_rows)
    except (OSError, pa.ArrowInvalid):
        return 0


def _counted(
    source: Source, domain: Domain, cliques: Sequence[Clique], max_rows: int, unit: Unit | None, workers: int
) -> LocalTable | None:
    """None: something does not fit, or a process has failed."""
    if unit is not None:
        above, absent = source.units(*unit)
        if above or (absent and not source.leaves_out):
            return None
    counting = Counting(bytes(HASH), "", domain, cliques, max_rows)
    total = Total(counting, source.label)
    job = {"domain": domain.to_spec(), "cliques": [list(clique) for clique in cliques], "max_rows": max_rows}
    location = source.location
    direct = location.kind == "parquet" and location.recipe is None and location.rows is None
    direct = direct and not numbered(source.columns)
    with ExitStack() as stack:
        children = [stack.enter_context(_Worker()) for _ in range(workers)]
        if direct:
            rows = _parquet_rows(source)
            for number, child in enumerate(children):
                share = [rows * number // workers, rows * (number + 1) // workers]
                child.send({**job, "path": str(location.path), "rows": share})
        else:
            for child in children:
                child.send(job)
            try:
                _deal(children, _rows(source, domain, unit))
            except CosynthError:  # a row before the one that cannot be read may be what is refused
                return None
        contents = [child.result(max_bytes(total.layout)) for child in children]
    source.check_unchanged()
    if unit is not None and source.outgrown(*unit):
        return None
    try:
        for number, content in enumerate(contents):
            part = total.parse(content, source.label)
            which = hashlib.sha256(bytes([number])).digest()
            total.add(replace(part, place=which, partition=which), source.label)
        return total.table(allow_empty=True)
    except DataRefused:
        return None


def _rows(source: Source, domain: Domain, unit: Unit | None) -> Iterator[pa.RecordBatch]:
    """The blocks of the table, without the rows that are left out for want of an identifier."""
    names = list(domain.names)
    if unit is None or not source.leaves_out:
        yield from source.batches(names)
        return
    unnamed = 0
    for batch in source.batches(list(dict.fromkeys([*names, unit[0]]))):
        kept = named(batch.column(unit[0]))
        unnamed += int(len(kept) - kept.sum())
        yield batch.filter(bits(kept)).select(names)
    log.info("own data: rows left out by the filter %d, without an identifier %d", source.left_out, unnamed)


def _deal(children: Sequence[_Worker], blocks: Iterator[pa.RecordBatch]) -> None:
    """Each block to the child that is ready first. Raises what reading raises."""
    dealt: queue.Queue[pa.RecordBatch | None] = queue.Queue(1)
    feeders = [start_thread(child.feed, dealt) for child in children]
    try:
        for block in blocks:
            _put_block(dealt, block, feeders)
    finally:
        for _ in feeders:
            _put_block(dealt, None, feeders)
    for feeder in feeders:
        feeder.join()


def _put_block(
    dealt: queue.Queue[pa.RecordBatch | None],
    block: pa.RecordBatch | None,
    feeders: Sequence[threading.Thread],
) -> None:
    """Wait for room as long as anybody makes some."""
    while any(feeder.is_alive() for feeder in feeders):
        with suppress(queue.Full):
            dealt.put(block, timeout=1)
            return


class _Worker:
    """A process that counts; killed at the latest when the context ends. It ends by itself when this process
    is gone."""

    def __enter__(self) -> _Worker:
        self._process = start_child(PROGRAM)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what is left to be written nobody reads
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def send(self, job: dict[str, Any]) -> None:
        text = json.dumps(job).encode()
        self._write(len(text).to_bytes(4, "little") + text)

    def feed(self, blocks: queue.Queue[pa.RecordBatch | None]) -> None:
        """Take blocks until there are none. A child that cannot be given one is killed, and they are taken
        all the same."""
        writer = block = None
        try:
            while (block := blocks.get()) is not None:
                if writer is None:
                    writer = ipc.new_stream(pa.PythonFile(self._process.stdin, "w"), block.schema)
                writer.write_batch(block)
            if writer is not None:
                writer.close()
            assert self._process.stdin is not None
            self._process.stdin.close()
        except Exception:  # Arrow has its own for a block of another type; its result will be missing
            self._process.kill()
            while block is not None:
                block = blocks.get()

    def result(self, most: int) -> bytes:
        """What the child hands back; nothing of one that has failed, or has found what does not fit."""
        assert self._process.stdout is not None
        return self._process.stdout.read(most + 1)

    def _write(self, content: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has gone: its result will be missing
            self._process.stdin.write(content)
            self._process.stdin.flush()
