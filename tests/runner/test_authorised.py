"""Before an owner of columns sends anything of a training, every computing party has on record what it costs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mpc_protocols.errors import BudgetRefused, PeerLost
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.party.collective import Collective

NAMES = ("north", "south", "west", "far")
OWNERS = ("north", "far")


def party(record: Callable[[], None], went_on: set[str]) -> Callable[[Wire], None]:
    """Put on record, wait, go on. South leads, west owns nothing, far only contributes."""

    def take_part(wire: Wire) -> None:
        name = NAMES[wire.me]
        study: Any = SimpleNamespace(leader_number=1, parties=NAMES)
        record()
        Collective(wire, study).meet("authorised")
        went_on.add(name)

    return take_part


def test_all_go_on_when_all_have_it_on_record() -> None:
    went_on = set[str]()
    network = MemoryNetwork(4)
    network.run([party(lambda: None, went_on)] * 4)
    assert went_on == set(NAMES)


@pytest.mark.parametrize("refuses", [1, 2])
def test_no_owner_sends_what_another_computing_party_does_not_authorise(refuses: int) -> None:
    """The leader, or one that owns nothing."""

    def refuse() -> None:
        raise BudgetRefused("The disk is full.")

    went_on = set[str]()
    parts = [party(refuse if at == refuses else (lambda: None), went_on) for at in range(4)]
    with pytest.raises((BudgetRefused, PeerLost)):
        MemoryNetwork(4).run(parts)
    assert not went_on & set(OWNERS)
