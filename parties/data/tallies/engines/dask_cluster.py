"""A table that a Dask cluster counts: `data = { dask = "tls://scheduler:8786", ... }`.

The workers run `task.py` on whole files, or on ranges of rows of large ones, and hand back filled cells only;
these are added here as they come. A worker that dies loses its task, which Dask gives to another one: a part
is added when its result is here, once. A file that is found by two names is refused before anything is
counted; one that changes, by the task that finds it changed, or when all are done.

Threat model. Dask runs what it is sent, and reads what it is sent by unpickling: scheduler, workers and this
process are one custodian's machine room, and whoever holds a certificate of its CA may do anything there. So
TLS at both ends is not optional (`require_encryption`, TLS 1.3). Workers that sample what they run (Dask's
profiler) are refused; a refusal travels as a sentence without a value, so that no log has one.

Cost: at 5 million rows a task, about twice the CPU of one process, part of it for every second that the
cluster's processes wait and watch each other (`docs/howto/large-tables.md` 6); smaller tasks move more
results than they save.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from ssl import TLSVersion
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.process.installation import pip_install
from parties.data.counting.local_marginals import LocalTable
from parties.data.location import Location, locate
from parties.data.tallies.counting import Counting
from parties.data.tallies.engines.task import COUNTED, REFUSED, FoundFile, count_files, find_files, software
from parties.data.tallies.total import Total

if TYPE_CHECKING:
    from parties.data.harmony.recipe import Recipe
    from parties.data.harmony.rules import Dialect
    from parties.data.tallies.places import DaskCluster

TASK_ROWS = 5_000_000
CSV_ROW_BYTES = 40
"""A guess, to make tasks of CSV files."""
CONNECT_S = 30
PROFILER = "distributed.worker.profile.enabled"

log = logging.getLogger("cosynth.custodian.dask")  # below the logger whose lines are private


def count_on_cluster(
    cluster: DaskCluster,
    counting: Counting,
    dialect: Dialect,
    recipe: Recipe | None,
    *,
    allow_empty: bool,
    task_rows: int = TASK_ROWS,
) -> LocalTable:
    """The whole table's counts. dialect, recipe: how each file is read. Raises `DataRefused`; `StudyInvalid`
    without Dask."""
    total, run = Total(counting, cluster.files), secrets.token_hex(8)
    with ExitStack() as stack:
        client = stack.enter_context(connected(cluster))
        found = answer(
            cluster, client.submit(find_files, cluster.files, key=f"cosynth-{run}-files", pure=False)
        )
        if not found:
            raise DataRefused(f"{cluster.files} names no file where the workers of {cluster.scheduler} run.")
        groups = list(file_groups(found, dialect, recipe, task_rows, whole=counting.unit is not None))
        log.info("own data: %d files in %d tasks", len(found), len(groups))
        asked_by = software()
        futures = {
            client.submit(
                count_task, group, counting, asked_by, key=f"cosynth-{run}-{number}", pure=False
            ): group[0].label
            for number, group in enumerate(groups)
        }
        stack.callback(client.cancel, list(futures))
        for future in as_completed(client, list(futures)):
            label, content = futures.pop(future), answer(cluster, future)
            if content[:1] != COUNTED:
                raise DataRefused(content[1:].decode())
            total.add(total.parse(content[1:], label), label)
            future.release()
        again = client.submit(find_files, cluster.files, key=f"cosynth-{run}-again", pure=False)
        if answer(cluster, again) != found:
            raise DataRefused(
                f"{cluster.files} changed while it was counted; run again when nobody writes to it."
            )
    return total.table(allow_empty=allow_empty)


def count_task(files: Sequence[Location], counting: Counting, asked_by: str) -> bytes:
    """`count_files` on a worker that does not watch what it runs."""
    if refused := unwatched(files[0].label):
        return REFUSED + refused.encode()
    return count_files(files, counting, asked_by)


def unwatched(label: str) -> str:
    """The sentence of a worker that samples what it runs; "" of any other."""
    import dask

    if not dask.config.get(PROFILER, True):
        return ""
    return (
        f"{label} is not counted by Dask workers that sample what they run; start them with "
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False."
    )


def file_groups(
    found: Sequence[FoundFile], dialect: Dialect, recipe: Recipe | None, task_rows: int, whole: bool
) -> Iterator[list[Location]]:
    """What one task counts: small files together, a large Parquet file in ranges; with `whole`, each file by
    itself.

    Raises `DataRefused` if a file is found twice, by whatever names.
    """
    seen = dict[object, str]()
    for file in found:
        if first := next((seen[one] for one in file.identities if one in seen), ""):
            raise DataRefused(f"{file.path} and {first} are one file, which would count twice; name it once.")
        seen.update(dict.fromkeys(file.identities, file.path))
    group, size = list[Location](), 0
    for file in found:
        place = replace(locate(file.path), recipe=recipe, state=(file.bytes, file.mtime_ns))
        if place.kind == "csv":
            place = replace(place, dialect=dialect)
        rows = file.bytes // CSV_ROW_BYTES if file.rows is None else file.rows
        if whole:
            yield [place]
            continue
        if file.rows is None or not file.divisible:
            group.append(place)
        else:
            ranges = max(1, rows // task_rows)
            ends = [rows * number // ranges for number in range(ranges + 1)]
            *alone, last = (replace(place, rows=span) for span in pairwise(ends))
            yield from ([one] for one in alone)
            group.append(last)
            rows = ends[-1] - ends[-2]
        size += rows
        if size >= task_rows:
            yield group
            group, size = [], 0
    if group:
        yield group


def as_completed(client: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """Tasks in the order in which they are done."""
    from distributed import as_completed

    yield from as_completed(futures, loop=client.loop)


def connected(cluster: DaskCluster) -> Any:
    """A client of a cluster that has a worker. Raises `DataRefused`; `StudyInvalid` without Dask."""
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError:
        raise StudyInvalid(
            f"data.dask needs Dask, which is not installed; install it with {pip_install(['dask'])}."
        ) from None

    client = None
    with suppress(Exception):  # every transport has its own
        security = Security(
            tls_ca_file=str(cluster.ca),
            tls_client_cert=str(cluster.cert),
            tls_client_key=str(cluster.key),
            tls_min_version=TLSVersion.TLSv1_3,
            require_encryption=True,
        )
        client = Client(cluster.scheduler, security=security, timeout=CONNECT_S, set_as_default=False)
        client.wait_for_workers(1, timeout=CONNECT_S)
        return client
    if client is not None:
        client.close()
        raise DataRefused(f"The Dask scheduler {cluster.scheduler} has no worker; start some, and run again.")
    raise DataRefused(
        f"The Dask scheduler {cluster.scheduler} cannot be reached with the certificates of data.ca, data.cert and data.key; "
        "check these, the address, and that it runs."
    )


def answer(cluster: DaskCluster, future: Any) -> Any:
    """A task's result. Raises `DataRefused`, with nothing of what a library says."""
    try:
        return future.result()
    except Exception as error:
        kind = type(error).__name__
    raise DataRefused(
        f"The Dask cluster {cluster.scheduler} has lost a part of the table with the workers that counted it ({kind}); see "
        "whether they have the memory and reach the files, and run again."
    )
