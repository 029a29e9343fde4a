"""PyTorch, for the tests that train."""

from __future__ import annotations

import pytest


@pytest.fixture
def torch() -> None:
    """Skips where PyTorch is not installed."""
    pytest.importorskip("torch")
