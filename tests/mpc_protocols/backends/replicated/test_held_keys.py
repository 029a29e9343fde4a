"""What a party keeps of a selection before it is open: to another party that reads its file, without noise nothing."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.engine import ReplicatedEngine
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle
from mpc_protocols.backends.replicated.sharing.ring import Parts
from tests.mpc_protocols.backends.replicated.test_oracle import serve
from tests.worlds.tables import PARTS


def test_no_two_parties_parts_of_a_score_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of 0, so that each score is the exact number of rows and one party has nothing to add.

    A party knows the components of the noise that it holds, hence those of its neighbours' keys: what is left of a key
    on a neighbour's disk is that one's part of the score.
    """
    parts: dict[int, NDArray[Any]] = {}
    keys = ReplicatedEngine.keys

    def noted(engine: ReplicatedEngine, sums: Parts, *given: Any) -> Parts:
        parts[engine.wire.me] = sums.own
        return keys(engine, sums, *given)

    monkeypatch.setattr(ReplicatedEngine, "keys", noted)

    def body(oracle: ReplicatedOracle) -> list[int]:
        handles = oracle.prepare([("a", "d"), ("c",), ("b",)])
        answers = [np.zeros(oracle.state.cells(handle)) for handle in handles]
        return oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1))

    serve(body, PARTS)
    rows = sum(map(len, PARTS))
    assert (parts[0] + parts[1] + parts[2] == rows).all()
    for party, other in combinations(range(3), 2):
        assert not (parts[party] + parts[other] == rows).any()
    assert all(part.all() for part in parts.values())
