"""The engine with proofs on split columns: its answers are the ideal ones, and cost what a dry run says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proved.dry_run import ProvedDryRun
from mpc_protocols.backends.replicated.proved.vertical import columns, planner
from mpc_protocols.backends.replicated.vertical import plan as plans
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.vertical.partition import ideal_counts
from mpc_protocols.wire import Traffic
from tests.mpc_protocols.backends.replicated.proved.vertical.world import world
from tests.mpc_protocols.backends.replicated.vertical.owners import Population
from tests.worlds.tables import SIZES, SMALL


def questions(oracle: Any) -> list[Any]:
    """Two requests, a selection, measurements, the number of rows."""
    handles = oracle.prepare([("a", "c"), ("b",)])
    seen = [x.tolist() for x in oracle.measure(handles, SMALL)]
    wide = oracle.prepare([("b", "d"), ("a", "b", "c"), ("c", "d")])
    answers = [np.full(8, 90.0), np.full(60, 9.0), np.full(10, 60.0)]
    weights = [Fraction(9), Fraction(1), Fraction(2)]
    picked = oracle.select(wide, answers, weights, [Fraction(0)] * 3, Fraction(40))
    return [seen, picked, oracle.measure([wide[picked[0]]], SMALL)[0].tolist(), oracle.total(SMALL)]


@pytest.mark.parametrize(("owners", "population"), [((0, 0, 2, 2), "intersection"), ((1, 3, 2, 3), "union")])
def test_answers_equal_the_ideal_ones_and_are_counted(
    owners: tuple[int, int, int, int], population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run on the same table gives each party's bytes, and the rounds; several ranges and blocks of
    rows."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    monkeypatch.setattr(columns, "MAX_KEPT", 20_000)
    monkeypatch.setattr(planner, "BLOCK_BYTES", 40_000)
    monkeypatch.setattr(planner, "NARROW_ROWS", 500)
    monkeypatch.setattr(plans, "NARROW_ROWS", 500)
    of, traffic = world(owners, population), list[Traffic]()
    assert of.run(questions, traffic=traffic)[1] == of.ideal(questions)
    dry = ProvedDryRun(
        PresumedRun(of.facts, ideal_counts(of.split, of.tables, SIZES), 3, of.parties - 3, of.split)
    )
    questions(dry)
    dry.close()
    assert list(dry.sent) == [each.bytes_sent for each in traffic]
    assert dry.rounds == max(each.rounds for each in traffic)
