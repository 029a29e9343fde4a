"""A model brought to other single columns."""

from __future__ import annotations

import numpy as np

from synth.mrf import Measurement, fit
from synth.mrf.factor import Impossible
from synth.mrf.raking import rake


def test_what_is_impossible_stays_so_and_columns_become_the_given_ones() -> None:
    sizes = {"a": 2, "b": 3}
    zeros: Impossible = {("a", "b"): np.array([[False, False, True], [False, False, False]])}
    joint = np.array([40.0, 20, 0, 5, 5, 30])
    model = fit(sizes, [Measurement(("a", "b"), joint, 1.0)], impossible=zeros)
    columns = [
        Measurement(("a",), np.array([120.0, 80]), 1.0),
        Measurement(("b",), np.array([90.0, 80, 30]), 1.0),
    ]
    raked = rake(model, columns, zeros)
    assert abs(raked.total - 200) < 1e-6 and raked.marginal(("a", "b"))[2] == 0
    for column in columns:
        assert np.abs(raked.marginal(column.clique) - column.values).max() < 1
