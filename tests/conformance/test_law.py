"""The sequential test of noise: each fault is found, right noise passes, and false alarms are as rare as it says."""

from __future__ import annotations

import numpy as np
import pytest

from runner.conformance import NonconformingError
from runner.conformance.oracle import law
from runner.conformance.oracle.law import MISSING, Suspicions

FACTORS, SIGMA2, MOST = (MISSING, 0.25, 4.0), 100.0, 1000


def tried(rng: np.random.Generator, factor: float) -> bool:
    """Whether noise of so many times the variance passes; draws come one by one until everything is decided."""
    seen = Suspicions()
    seen.add("noise", *FACTORS)
    try:
        for _ in range(MOST):
            draw = np.rint(rng.normal(0, (factor * SIGMA2) ** 0.5, 1)).astype(np.int64)
            seen.see(["noise"], draw, SIGMA2)
            if not seen.undecided("noise"):
                return True
    except NonconformingError:
        return False
    raise AssertionError(f"{MOST} draws decided nothing.")


@pytest.mark.parametrize("factor", FACTORS)
def test_each_fault_is_found(factor: float) -> None:
    rng = np.random.default_rng(1)
    assert not any(tried(rng, factor) for _ in range(100))


def test_right_noise_passes() -> None:
    rng = np.random.default_rng(2)
    assert all(tried(rng, 1.0) for _ in range(500))


def test_false_alarms_are_as_rare_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a stated rate of a tenth, of 500 runs 50 at most are expected to fail; that 80 do has a chance of 1e-5."""
    monkeypatch.setattr(law, "FALSE_ALARM", 0.1)
    rng = np.random.default_rng(3)
    alarms = sum(not tried(rng, 1.0) for _ in range(500))
    assert 0 < alarms < 80
