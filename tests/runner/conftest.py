"""Fixtures for the tests of `runner`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from parties.data.engines import duckdb_engine
from runner.launch import children
from tests.forks import forked


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


@pytest.fixture(scope="session", autouse=True)
def modules_of_tests_are_forked() -> Iterator[None]:
    """A party's process that is to run `python -m` of a module of tests is forked as `runner` itself is: each
    would else import everything."""
    start = children._start

    def begin(
        program: Sequence[str],
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
    ) -> int:
        if program[1] == "-m":
            return forked([program[2], *arguments], environment, Path.cwd(), streams).pid
        return start(program, arguments, environment, streams)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(children, "_start", begin)
        yield
