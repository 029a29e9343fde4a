"""What tests of synthesizers share."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def whatever_the_noise() -> Iterator[None]:
    """No run falls back to independent columns: for tests of what algorithms ask on tables that are tiny or
    not there at all."""
    with pytest.MonkeyPatch.context() as patch:
        for algorithm in ("aim", "mosaic", "mst", "mwem"):
            patch.setattr(f"synth.algorithms.{algorithm}.loop.NOISE_LIMIT", math.inf)
        yield
