"""The sequential test of noise: each fault is found, right noise passes, and false alarms are as rare as it
says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.review.conformance import NonconformingError
from runner.review.conformance.oracle import law
from runner.review.conformance.oracle.law import MISSING, Suspicions

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
    """At a stated rate of a tenth, of 500 runs 50 at most are expected to fail; that 80 do has a chance of
    1e-5."""
    monkeypatch.setattr(law, "FALSE_ALARM", 0.1)
    rng = np.random.default_rng(3)
    alarms = sum(not tried(rng, 1.0) for _ in range(500))
    assert 0 < alarms < 80


SHAPES: dict[str, Callable[[Any], Any]] = {
    "always even": lambda noise: 2 * np.rint(noise / 2),
    "never below 0": np.abs,
    "bounded": lambda noise: 17 * np.tanh(noise / 10),
    "sums up to 0": lambda noise: noise - np.append(np.zeros(len(noise) - 1), noise.sum()),
    "neighbours sum up to 0": lambda noise: np.stack([noise[::2], -noise[::2]], axis=1).ravel(),
    "one draw for all": lambda noise: np.full(len(noise), noise[0]),
}


def shaped(rng: np.random.Generator, change: Callable[[Any], Any]) -> str:
    """What is said of noise of the right size that was changed, six draws at a time; "" of what passes."""
    seen = Suspicions()
    seen.add_shapes("noise", alone=False)
    try:
        for _ in range(MOST):
            draws = change(np.rint(rng.normal(0, SIGMA2**0.5, 6)))
            seen.see(["noise"], np.rint(draws).astype(np.int64), SIGMA2)
            if not seen.undecided("noise"):
                return ""
    except NonconformingError as error:
        return str(error)
    raise AssertionError(f"{MOST} answers decided nothing.")


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_found(shape: str) -> None:
    rng = np.random.default_rng(4)
    assert all(shape in shaped(rng, SHAPES[shape]) for _ in range(50))


def test_right_noise_has_none_of_the_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    assert not any(shaped(rng, lambda noise: noise) for _ in range(300))
    monkeypatch.setattr(law, "FALSE_ALARM", 0.1)
    assert sum(shaped(rng, lambda noise: noise) != "" for _ in range(500)) < 80


def test_a_copy_is_found() -> None:
    rng, right = np.random.default_rng(6), Suspicions()
    right.add_copies("two answers")
    right.see(["two answers"], np.rint(rng.normal(0, 10, 6)).astype(np.int64), SIGMA2)
    assert not right.undecided("two answers")
    copied = Suspicions()
    copied.add_copies("two answers")
    with pytest.raises(NonconformingError, match="the same noise twice: two answers"):
        for _ in range(MOST):
            copied.see(["two answers"], np.tile(np.rint(rng.normal(0, 10, 3)).astype(np.int64), 2), SIGMA2)
