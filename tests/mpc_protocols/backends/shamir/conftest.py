"""Fixtures of the tests of Shamir shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.trio import Trio


@pytest.fixture(scope="package")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Five computing parties as real processes."""
    made = Trio(tmp_path_factory.mktemp("five"), computing=5)
    yield made
    made.close()
