"""A leading party that asks an owner for more than the others hear of: what it then does to the owner's
columns is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proved.vertical import planner
from mpc_protocols.functionality import Level
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.vertical.partition import OwnRows
from tests.mpc_protocols.backends.replicated.proof.cheating import outcomes
from tests.mpc_protocols.backends.replicated.proved.vertical.world import World, world
from tests.worlds.tables import SMALL

OF_C, OF_D = Level("c2", "c", (0, 0, 1, 1, 1)), Level("d2", "d", (0, 1))
TURNED = Level("c2", "c", (1, 1, 0, 0, 0))
TABLES = [("b", "c2"), ("b", "d2"), ("a", "c2", "d2")]


def alike() -> World:
    """The owner of c and d does not compute, and its two columns say the same at two values each."""
    of = world((0, 0, 3, 3), "union", rows=40)
    own = of.tables[3]
    low = np.array(OF_C.bins, np.uint8)[own.codes["c"]]
    return World(of.split, {**of.tables, 3: OwnRows(own.rows, {"c": own.codes["c"], "d": low})})


def asked(levels: tuple[Level, ...]) -> Any:
    """A leader that names levels to the contributor alone, in a request in which that one has no part."""

    def body(oracle: Any) -> Any:
        oracle.prepare([("a", "c")])
        if levels:
            oracle._party.wire.send(3, PrepareStep((("a",),), levels).to_bytes())
        handles = oracle.prepare(TABLES, (OF_C, OF_D))
        return [values.tolist() for values in oracle.measure(handles, SMALL)]

    return body


@pytest.mark.parametrize("levels", [(OF_D, OF_C), (TURNED,)], ids=["order", "bins"])
def test_columns_change_neither_places_nor_meaning(levels: tuple[Level, ...]) -> None:
    """Else its levels stand in another order, and whether its columns are alike decides whether the run
    stops."""
    for of in (world((0, 0, 3, 3), "union", rows=40), alike()):
        found = of.run(asked(levels), 1, lambda number, peer, payload: None)
        for honest in (0, 2):
            assert str(found[honest]).startswith("Party 3 was asked for other marginals than"), found


def test_an_owner_that_was_told_another_split_is_found() -> None:
    of = world((0, 0, 3, 3), "union", rows=40)
    other = World(replace(of.split, missing={**of.split.missing, "a": 0}), of.tables)
    network = MemoryNetwork(4, 3, session_id=of.facts.session)
    found = outcomes(lambda wire: (other if wire.me == 3 else of).party(wire, asked(())), network=network)
    assert all(str(said).startswith("Party 3 was asked for other marginals than") for said in found[:3]), (
        found
    )


def test_levels_that_all_know_serve() -> None:
    of = alike()
    found = of.run(asked(()))
    assert found[0] == found[2] and isinstance(found[1], list)


def test_tables_that_are_too_wide_are_the_leaders_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """An honest one has refused such a study before it asked."""
    monkeypatch.setattr(planner, "MAX_WIDTH", 4)

    def body(oracle: Any) -> Any:
        oracle._party.wire.send(3, PrepareStep((("c",),), ()).to_bytes())

    said = world((0, 0, 3, 3), "union", rows=4).run(body)[3]
    assert said.startswith("The leading party asked for what the study does not allow"), said
