"""One of the processes that count a table (`workers.py`): a job on its standard input, the counts on its
standard output.

The job: 4 bytes of length and JSON. Where it names no file, record batches follow, as an Arrow stream. The
counts are those of a part (`partition.py`), or nothing where something does not fit the study. When the
standard input ends too soon, the process that wanted the counts is gone: nobody is left to count for.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyarrow import ipc

from mpc_protocols.errors import CosynthError
from mpc_protocols.process.threads import start_thread
from parties.core_dumps import forbid_core_dumps
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.scratch import remove_spills
from parties.data.tallies.blocks import Blocks
from parties.data.tallies.counting import Counting, count_partition
from parties.data.tallies.partition import HASH, PartitionCounts
from synth.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

_ANYWHERE = (bytes(HASH), bytes(HASH))
"""What stands for the place of the part: whoever adds the parts knows which they are."""


def main() -> None:
    """Do the job."""
    forbid_core_dumps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    given = sys.stdin.buffer
    job = json.loads(given.read(int.from_bytes(given.read(4), "little")))
    try:
        counts = _counted(job, given)
    except CosynthError:
        return
    sys.stdout.buffer.write(counts.to_bytes())
    sys.stdout.buffer.flush()


def _counted(job: dict[str, Any], given: IO[bytes]) -> PartitionCounts:
    domain = Domain.from_spec(job["domain"])
    counting = Counting(
        bytes(HASH), "", domain, [tuple(clique) for clique in job["cliques"]], job["max_rows"]
    )
    if "path" not in job:
        return count_partition(Blocks("The table", domain.names, _received(given)), counting, _ANYWHERE)
    start_thread(_watch, given.fileno())
    first, end = job["rows"]
    with open_source(Location("parquet", "The table", "", Path(job["path"]), rows=(first, end))) as source:
        return count_partition(source, counting, _ANYWHERE)


def _received(given: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """None if there is no block for this process."""
    if given.peek(1):  # type: ignore[attr-defined]
        yield from ipc.open_stream(given)


def _watch(given: int) -> None:
    """End the process when its standard input does. By the descriptor: a thread would hold a file object's
    lock at the end."""
    while os.read(given, 1):
        pass
    remove_spills()
    os._exit(1)


if __name__ == "__main__":
    main()
