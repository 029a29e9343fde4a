"""Fixtures for the tests of `runner`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parties.data.engines import duckdb_engine


@pytest.fixture(scope="session", autouse=True)
def one_duckdb_reads_all_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In this process, each over a connection of its own, as where many files are one table: making a DuckDB
    costs as much as all else that a small run does with its tables. Tests of `parties.data`, and the processes
    of runs, make their own."""
    shared = duckdb_engine.Shared(str(tmp_path_factory.mktemp("spill")))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb_engine, "_own_connection", lambda spill, other: (other or shared).cursor())
        yield
    shared.close()
