"""Fixtures for all tests: long-lived party processes (see `tests.trio`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres, available, binaries
from tests.trio import Trio


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    if reason := available():
        pytest.skip(reason)
    folder = binaries()
    assert folder is not None
    server = Postgres(folder)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three computing parties."""
    made = Trio(tmp_path_factory.mktemp("trio"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def trio_and_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three computing parties (wire numbers 0, 1, 2) and two contributors (3, 4)."""
    made = Trio(tmp_path_factory.mktemp("trio_and_two"), contributors=2)
    yield made
    made.close()
