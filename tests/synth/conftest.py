"""What tests of synthesizers share."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

import synth.aim.loop as aim_loop
import synth.mosaic.loop as mosaic_loop
import synth.mst.loop as mst_loop
import synth.mwem.loop as mwem_loop


@pytest.fixture(scope="module")
def whatever_the_noise() -> Iterator[None]:
    """No run falls back to independent columns: for tests of what algorithms ask on tables that are tiny or not there at all."""
    with pytest.MonkeyPatch.context() as patch:
        for loop in (aim_loop, mst_loop, mwem_loop, mosaic_loop):
            patch.setattr(loop, "NOISE_LIMIT", math.inf)
        yield
