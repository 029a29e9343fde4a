"""CrypTen, which few installations have."""

from __future__ import annotations

import pytest

from mpc_protocols.backends.additive.adapter.library import Library, load
from mpc_protocols.backends.additive.backend import BACKEND
from tests.extras import skip_unless_installed


@pytest.fixture(scope="session")
def crypten() -> Library:
    """The library with our functions in place, as every party's process has it."""
    skip_unless_installed(BACKEND)
    return load()
