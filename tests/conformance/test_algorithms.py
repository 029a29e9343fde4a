"""Every registered algorithm, and the toy, does what an algorithm promises."""

from __future__ import annotations

import pytest

from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from tests.conformance import Check, check_algorithm
from tests.toys import uniform_algorithm

CHECKS = [
    check
    for algorithm in (*ALGORITHMS, uniform_algorithm.ALGORITHM)
    if not isinstance(algorithm, TrainedAlgorithm)  # those ask no oracle
    for check in check_algorithm(algorithm)
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_algorithm(check: Check) -> None:
    check()
