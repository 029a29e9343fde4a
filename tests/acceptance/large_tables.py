"""Adult, resampled to millions of rows: what counting costs one process, several, and a Dask cluster; all
counts compared.

    python -m tests.acceptance.large_tables --adult adult.csv --domain adult-domain.json [--rows 20000000] [--workers 2] [--dask]

The workload is the one of the utility benchmarks: 64 triples of columns. CPU seconds are the user's and the
system's, of children too; memory is the largest resident set of a process. Wall times mean something on a
quiet machine only. With --dask: in an environment with Dask (`make engines`), workers of one thread over TLS,
profiler off, files of 5 million rows; scheduler and client are this process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from parties.data.counting.local_marginals import LocalTable, count
from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.data.tallies.workers import count_by_workers
from synth.domain import Domain
from synth.workload import of_degree

FILES = 4
BLOCK = 1_000_000


def resampled(adult: Path, rows: int, folder: Path, files: int, seed: int = 1) -> None:
    """Rows of the survey, drawn with replacement, as 16-bit codes: the same ones in one file and in several."""
    table = pa.csv.read_csv(adult)
    schema = pa.schema([(name, pa.int16()) for name in table.column_names])
    columns = {name: table[name].to_numpy().astype(np.int16) for name in table.column_names}
    rng = np.random.default_rng(seed)
    for number in range(files):
        with pq.ParquetWriter(folder / f"part{number:02d}.parquet", schema) as out:
            for begin in range(0, rows // files, BLOCK):
                drawn = rng.integers(0, table.num_rows, min(BLOCK, rows // files - begin))
                block = {name: column[drawn] for name, column in columns.items()}
                out.write_table(pa.table(block, schema=schema), row_group_size=1 << 17)


def cpu() -> float:
    """Of this process and of its children that have ended, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cpu_of(pids: list[int]) -> float:
    """Of processes that run (Linux)."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / ticks


def peak_of(pid: int) -> int:
    """The largest resident set of a process that runs, in MB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2]
    return int(status.split()[0]) // 1024


def measured(
    what: str, rows: int, counted: Callable[[], LocalTable], more: Callable[[], float] = float
) -> LocalTable:
    """Print a line. more: CPU seconds of processes that run on."""
    before, began = cpu() + more(), time.perf_counter()
    local = counted()
    wall, spent = time.perf_counter() - began, cpu() + more() - before
    peaks = [
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    print(
        f"{what:24s} wall {wall:6.2f} s   CPU {spent:6.2f} s, {rows / spent / 1e6:.2f} M rows/CPU s   "
        f"memory {peaks[0]:.0f} MB, children {peaks[1]:.0f} MB",
        flush=True,
    )
    return local


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adult", type=Path, required=True)
    parser.add_argument("--domain", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dask", action="store_true")
    given = parser.parse_args()
    domain = Domain.from_spec({"file": json.loads(given.domain.read_text())})
    cliques = of_degree(domain, 3, 64, 123)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        # in a process of its own, whose memory is not this one's
        made = f"from tests.acceptance.large_tables import *; resampled(Path({str(given.adult)!r}), {given.rows}, "
        for files, where in ((1, folder / "one"), (FILES, folder / "many")):
            where.mkdir()
            subprocess.run([sys.executable, "-c", f"{made}Path({str(where)!r}), {files})"], check=True)

        def one() -> LocalTable:
            with open_source(locate(folder / "one" / "part00.parquet")) as source:
                return count(source, domain, cliques, max_rows=given.rows)

        def several() -> LocalTable:
            with open_source(locate(folder / "one" / "part00.parquet")) as source:
                return count_by_workers(source, domain, cliques, max_rows=given.rows, workers=given.workers)

        single = measured("one process", given.rows, one)
        equal = [measured(f"{given.workers} processes", given.rows, several)]
        if given.dask:
            from parties.data.harmony.rules import RFC
            from parties.data.tallies.counting import Counting
            from parties.data.tallies.engines.dask_cluster import count_on_cluster
            from tests.worlds.dask_over_tls import dask_over_tls

            counting = Counting(bytes(32), "large", domain, cliques, given.rows)
            with dask_over_tls(folder / "many", given.workers) as (place, cluster):
                pids = [nanny.pid for nanny in cluster.workers.values()]
                for time_of in ("first", "again"):  # the first time, workers import what they need
                    local = measured(
                        f"Dask, {given.workers} workers, {time_of}",
                        given.rows,
                        lambda: count_on_cluster(place, counting, RFC, None, allow_empty=False),
                        lambda: cpu_of(pids),
                    )
                    equal.append(local)
                print("largest memory of its workers:", *(f"{peak_of(pid)} MB" for pid in pids))
        for other in equal:
            pairs = zip(single.counts(cliques), other.counts(cliques), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs)
    print("counts are equal, cell by cell")


if __name__ == "__main__":
    main()
