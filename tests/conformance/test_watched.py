"""The watched oracle of the suites is the oracle: what that refuses, an algorithm meets there too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.in_memory.presumed import AllowAll
from runner.review.conformance.algorithm.watched import Watched

FACTS = StudyFacts({"a": 2, "b": 3, "c": 4}, "add-remove", 1, 1000, bytes(32), 0)


@pytest.mark.parametrize("kept", [True, False])
def test_a_promised_measurement_is_the_next_question(kept: bool) -> None:
    oracle = Watched(
        IdealOracle(FACTS, lambda cliques: [np.zeros(FACTS.cells(c), np.int64) for c in cliques], AllowAll())
    )
    handles = oracle.prepare([("a", "b"), ("b", "c")])
    oracle.total(Fraction(4))
    oracle.expect(Fraction(4), promised=True)
    [position] = oracle.select(
        handles, [np.zeros(6), np.zeros(12)], [Fraction(1)] * 2, [Fraction(0)] * 2, Fraction(1)
    )
    if kept:
        assert len(oracle.measure([handles[position]], Fraction(4))) == 1
    else:
        with pytest.raises(ProtocolAborted, match="in place of the measurement"):
            oracle.total(Fraction(4))
