"""One of each database for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.parties.data.sql.databases import DATABASES, Store, open_store


@pytest.fixture(scope="session", params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A database to make tables in."""
    return open_store(request.param, tmp_path_factory.mktemp(request.param), request)
