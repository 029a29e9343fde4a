"""Fixtures of the two-party engine's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.trio import Trio


@pytest.fixture(scope="package")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Two computing parties as real processes."""
    made = Trio(tmp_path_factory.mktemp("two"), computing=2)
    yield made
    made.close()
