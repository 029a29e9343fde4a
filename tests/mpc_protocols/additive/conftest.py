"""CrypTen, which few installations have."""

from __future__ import annotations

from typing import Any

import pytest

from mpc_protocols.additive.library import load


@pytest.fixture(scope="session")
def crypten() -> Any:
    """The library with our functions in place, as every party's process has it."""
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    return load()
