"""Linked tables that a Dask cluster unfolds and counts: `data = { dask = ..., url = { patients = ..., visits =
... } }`.

Nobody has to cut the tables by persons: the workers do (`linked_task.py`), and each bucket of persons is
unfolded where its rows have come together. No row comes here, only filled cells; these are added as those of
any parts, whose ranges of persons must not overlap. The draws are those of the custodian's own key: the same
persons' rows as one process unfolds, bit for bit, in whatever files they lie and however many buckets there
are.

Threat model and refusals: those of `dask_cluster.py`. Rows go between workers, over the cluster's TLS, and
wait in their memory, which Dask may spill to a worker's local directory.

Cost: every row is read, sorted and sent once, or twice where it belongs to a row of a person's.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import DataRefused
from parties.data.linked.unfold import Unfolding
from parties.data.tallies.engines import linked_task
from parties.data.tallies.engines.dask_cluster import (
    CSV_ROW_BYTES,
    TASK_ROWS,
    answer,
    as_completed,
    connected,
    file_groups,
    unwatched,
)
from parties.data.tallies.engines.linked_task import Cut, Pieces, Verdict, check_alike, log_unfolded
from parties.data.tallies.engines.task import COUNTED, REFUSED, FoundFile, find_files, software
from parties.data.tallies.total import Total

if TYPE_CHECKING:
    import pyarrow as pa

    from parties.data.counting.local_marginals import LocalTable
    from parties.data.harmony.rules import Dialect
    from parties.data.location import Location
    from parties.data.tallies.counting import Counting
    from parties.data.tallies.places import DaskCluster
    from synth.linked.tables import LinkedTables

BUCKET_ROWS = 1_000_000
"""Of all tables together: a row costs some hundreds of bytes while its bucket is unfolded."""

log = logging.getLogger("cosynth.custodian.dask")  # below the logger whose lines are private


def unfold_on_cluster(
    cluster: DaskCluster,
    counting: Counting,
    linked: LinkedTables,
    key: bytes,
    dialect: Dialect,
    *,
    allow_empty: bool,
    task_rows: int = TASK_ROWS,
    bucket_rows: int = BUCKET_ROWS,
) -> LocalTable:
    """The unfolded table's counts. key: of the draws. dialect: how each file is read. Raises `DataRefused`;
    `StudyInvalid` without Dask."""
    total = Total(counting, cluster.files)
    with ExitStack() as stack:
        client = stack.enter_context(connected(cluster))
        graph = _Graph(client, cluster, secrets.token_hex(8))
        stack.callback(graph.cancel)
        found = graph.find("files")
        tasks = {
            name: list(file_groups(files, dialect, None, task_rows, whole=False))
            for name, files in found.items()
        }
        rows = sum(
            one.bytes // CSV_ROW_BYTES if one.rows is None else one.rows
            for each in found.values()
            for one in each
        )
        cut = Cut(counting, linked, dict(cluster.tables), 1 + rows // bucket_rows, key, software())
        log.info("own data: %d files, persons in %d buckets", sum(map(len, found.values())), cut.buckets)
        pieces, schemas = graph.sort(tasks, cut)
        state = hashlib.sha256(repr(sorted(found.items())).encode("utf-8", "surrogateescape")).digest()
        told: list[Unfolding] = []
        for number, (content, own) in graph.count(pieces, schemas, state, cut):
            if content[:1] != COUNTED:
                raise DataRefused(content[1:].decode())
            label = f"{cluster.files}, persons' bucket {number}"
            total.add(total.parse(content[1:], label), label)
            told += own
        if graph.find("again") != found:
            raise DataRefused(
                f"{cluster.files} or what belongs to it changed while it was counted; run again when nobody writes to it."
            )
    log_unfolded(log, told)
    return total.table(allow_empty=allow_empty)


class _Graph:
    """The tasks of one run, which have names that nobody has used. run: a prefix of them."""

    def __init__(self, client: Any, cluster: DaskCluster, run: str) -> None:
        self._client, self._cluster, self._run = client, cluster, run
        self._futures: list[Any] = []
        self._submitted = 0

    def cancel(self) -> None:
        """Let the workers forget all of it."""
        self._client.cancel(self._futures)

    def find(self, name: str) -> dict[str, list[FoundFile]]:
        """The files of each table. Raises `DataRefused` for a table without."""
        asked = {
            table: self._submit(f"{name}-{table}", find_files, pattern)
            for table, pattern in self._cluster.tables.items()
        }
        found = {table: answer(self._cluster, future) for table, future in asked.items()}
        for table, files in found.items():
            if not files:
                raise DataRefused(
                    f"{self._cluster.tables[table]} names no file where the workers of {self._cluster.scheduler} run."
                )
        return found

    def sort(
        self, tasks: Mapping[str, Sequence[Sequence[Location]]], cut: Cut
    ) -> tuple[dict[str, list[Any]], dict[str, pa.Schema | None]]:
        """Of each table the futures of its `Pieces`, by persons, and its columns. Raises `DataRefused`."""
        made = {
            name: [self._submit(name, scatter, files, name, cut) for files in each]
            for name, each in tasks.items()
        }
        schemas = {name: check_alike(self._cluster.tables[name], self._verdicts(made[name])) for name in made}
        for owner in cut.linked.children:
            for child in owner.children:
                keys, rows = made[owner.name], made[child.name]
                made[child.name] = [
                    self._submit(
                        child.name, route,
                        self._pieces(keys, number, "owners"), self._pieces(rows, number), child.name, cut,
                    )
                    for number in range(cut.buckets)
                ]  # fmt: skip
                check_alike(self._cluster.tables[child.name], self._verdicts(made[child.name]))
        return made, schemas

    def count(
        self,
        made: Mapping[str, Sequence[Any]],
        schemas: Mapping[str, pa.Schema | None],
        state: bytes,
        cut: Cut,
    ) -> Any:
        """Each bucket's number, and what `count_bucket` found of it, as they come."""
        waiting = {}
        for number in range(cut.buckets):
            tables = {name: self._pieces(pieces, number) for name, pieces in made.items()}
            waiting[self._submit("count", count_bucket, number, tables, schemas, state, cut)] = number
        # whatever a bucket still needs its task holds: rows of buckets that are counted need not stay
        for future in self._futures:
            if future not in waiting:
                future.release()
        self._futures = list(waiting)
        for future in as_completed(self._client, list(waiting)):
            yield waiting.pop(future), answer(self._cluster, future)
            future.release()

    def _pieces(self, made: Sequence[Any], number: int, kind: str = "rows") -> list[Any]:
        return [self._submit("piece", linked_task.piece, one, number, kind) for one in made]

    def _verdicts(self, made: Sequence[Any]) -> list[Verdict]:
        asked = [self._submit("verdict", linked_task.verdict, one) for one in made]
        return [answer(self._cluster, one) for one in asked]

    def _submit(self, name: str, run: Callable[..., object], *given: object) -> Any:
        key = f"cosynth-{self._run}-{name}-{self._submitted}"
        self._submitted += 1
        future = self._client.submit(run, *given, key=key, pure=False)
        self._futures.append(future)
        return future


def scatter(files: Sequence[Location], name: str, cut: Cut) -> Pieces:
    """`linked_task.scatter` on a worker that does not watch what it runs; so are the others."""
    return (
        Pieces(refused) if (refused := unwatched(cut.labels[name])) else linked_task.scatter(files, name, cut)
    )


def route(owners: Sequence[pa.Table | str], rows: Sequence[pa.Table | str], name: str, cut: Cut) -> Pieces:
    """See `scatter`."""
    return (
        Pieces(refused)
        if (refused := unwatched(cut.labels[name]))
        else linked_task.route(owners, rows, name, cut)
    )


def count_bucket(
    number: int,
    tables: Mapping[str, Sequence[pa.Table | str]],
    schemas: Mapping[str, pa.Schema | None],
    state: bytes,
    cut: Cut,
) -> tuple[bytes, list[Unfolding]]:
    """See `scatter`."""
    if refused := unwatched(cut.labels[cut.linked.parent]):
        return REFUSED + refused.encode(), []
    return linked_task.count_bucket(number, tables, schemas, state, cut)
