"""A whole training in the clear, and the model that describes its table."""

from __future__ import annotations

import numpy as np
import pytest

from runner.party.course.server_training import InTheClear
from synth.mrf import Model
from synth.research.vertigan.algorithm import ALGORITHM
from synth.research.vertigan.owner import Owner
from synth.research.vertigan.summary import summary
from tests.synth.research.vertigan import worlds


def test_a_table_in_the_domain_comes_out_with_a_model_of_it() -> None:
    pytest.importorskip("torch")
    plan = worlds.plan(synthetic_rows=500).knowing(worlds.OWNERS)
    codes, told = worlds.table(1), []
    owners = {name: Owner(plan, name, codes, worlds.ROWS) for name in plan.owner_names}
    made = ALGORITHM.train(InTheClear(owners), plan, lambda *event, **fields: told.append((event, fields)))
    assert made.table is not None and made.table.shape == (500, 5) and made.rows == 500
    for column, size in enumerate(worlds.DOMAIN.sizes.values()):
        assert made.table[:, column].min() >= 0 and made.table[:, column].max() < size
    assert Model.from_bytes(made.model.to_bytes()).sizes == worlds.DOMAIN.sizes
    trained = [fields for event, fields in told if event == ("fit", "trained")]
    assert trained[-1] == {"round": 3, "rounds": 3}
    assert not made.measurements and not made.selections


def test_the_model_has_the_tables_columns_and_dependences_inside_owners_only() -> None:
    plan, codes = worlds.plan().knowing(worlds.OWNERS), worlds.table(1, 4_000)
    table = np.stack([codes[name].astype(np.int64) for name in worlds.DOMAIN.names], axis=1)
    model = summary(table, plan, 4_000.0)
    for column, name in enumerate(worlds.DOMAIN.names):
        counts = np.bincount(table[:, column], minlength=worlds.DOMAIN.sizes[name])
        assert np.allclose(model.marginal([name]), counts, atol=1 + 0.01 * 4_000)
    joint = model.marginal(["a", "b"]).reshape(3, 2)
    assert np.abs(joint - np.outer(joint.sum(1), joint.sum(0)) / 4_000).max() > 100
    across = model.marginal(["a", "d"]).reshape(3, 2)
    assert np.allclose(across, np.outer(across.sum(1), across.sum(0)) / 4_000, atol=1)
