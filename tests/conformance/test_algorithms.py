"""Every registered algorithm that makes a table, and the toy, does what an algorithm promises."""

from __future__ import annotations

import pytest

from runner.review.conformance import Check, check_algorithm, check_arriving
from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from synth.algorithms.aim.arriving import AimWhileArriving
from synth.algorithms.aim.config import AimConfig
from synth.algorithms.flaim.config import FlaimConfig
from synth.training import Training
from tests.toys import uniform_algorithm

MAKE_TABLES = [algorithm for algorithm in ALGORITHMS if not isinstance(algorithm, Training)]
CHECKS = [
    check
    for algorithm in (*MAKE_TABLES, uniform_algorithm.ALGORITHM)
    if not isinstance(algorithm, TrainedAlgorithm)
    and algorithm.cohorts(algorithm.config()) is None  # those ask no oracle
    for check in check_algorithm(algorithm)
]
CHECKS += check_algorithm(ALGORITHMS["flaim"], FlaimConfig(variant="one-shot"))
CHECKS += check_arriving(AimWhileArriving(rounds=3, again=True), AimConfig(rounds=3))


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_algorithm(check: Check) -> None:
    check()
