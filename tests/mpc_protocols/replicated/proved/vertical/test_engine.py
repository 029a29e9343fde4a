"""The engine with proofs on split columns: its answers are the ideal ones, and cost what a dry run says."""

from __future__ import annotations

import pytest

from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.partition import ideal_counts
from mpc_protocols.replicated.proved.dry_run import ProvedDryRun
from mpc_protocols.replicated.proved.vertical import planner
from mpc_protocols.replicated.vertical import plan as plans
from mpc_protocols.wire import Traffic
from tests.mpc_protocols.replicated.proved.vertical.world import world
from tests.mpc_protocols.replicated.vertical.owners import Population
from tests.worlds.questions import work
from tests.worlds.tables import SIZES


@pytest.mark.parametrize(
    ("owners", "population"),
    [((0, 0, 2, 2), "intersection"), ((1, 3, 2, 3), "union")],
)
def test_answers_equal_the_ideal_ones_and_are_counted(
    owners: tuple[int, int, int, int], population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run on the same table gives each party's bytes, and the rounds; several ranges and blocks of rows."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    monkeypatch.setattr(planner, "BLOCK_BYTES", 40_000)
    monkeypatch.setattr(planner, "NARROW_ROWS", 500)
    monkeypatch.setattr(plans, "NARROW_ROWS", 500)
    of, traffic = world(owners, population), list[Traffic]()
    assert of.run(work, traffic=traffic)[1] == of.ideal(work)
    dry = ProvedDryRun(of.facts, ideal_counts(of.split, of.tables, SIZES), of.parties - 3, of.split)
    work(dry)
    dry.close()
    assert list(dry.sent) == [each.bytes_sent for each in traffic]
    assert dry.rounds == max(each.rounds for each in traffic)
