"""One of each database for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.parties.data.sql.databases import DATABASES, Store, open_store

_CAMPAIGN = "duckdb"
"""Speaks PostgreSQL's dialect, and takes the most time to open; its hard cases are always tried
(`test_push_down.py`)."""


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=[pytest.mark.campaign] * (name == _CAMPAIGN)) for name in DATABASES],
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A database to make tables in."""
    return open_store(request.param, tmp_path_factory.mktemp(request.param), request)
