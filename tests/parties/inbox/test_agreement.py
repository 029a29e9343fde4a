"""The agreed list is what all three hold; a list that differs from the one announced ends the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from parties.inbox.agreement import agree, confirm, grown, looks, standing
from parties.inbox.store import AgreedList

NAMES = ("north", "south", "west")
ALL = {bytes([number]) * 32: f"c{number}" for number in range(6)}


def held(*numbers: int) -> dict[bytes, str]:
    return {name: of for name, of in ALL.items() if name[0] in numbers}


def agreed(*lists: Mapping[bytes, str]) -> list[AgreedList]:
    def party(wire: Wire) -> AgreedList:
        return agree(wire, lists[wire.me], len(ALL), NAMES)

    network = MemoryNetwork(3, 3)
    found = network.run([party] * 3)
    assert network.wire(0).traffic().rounds == 2
    return found


def test_the_list_is_the_intersection_and_the_same_at_all_three() -> None:
    found = agreed(held(0, 1, 2, 3), held(1, 2, 3, 4), held(5, 3, 1))
    assert {one.hash for one in found} == {AgreedList(held(1, 3)).hash}
    assert found[0].contributors == ("c1", "c3")


@pytest.mark.parametrize("own", [held(), held(2)])
def test_an_inbox_may_be_empty(own: Mapping[bytes, str]) -> None:
    assert [one.entries for one in agreed(own, held(2), held(2, 3))] == [own] * 3


def on_parts(body: Callable[[Wire], object]) -> tuple[list[object], int]:
    network = MemoryNetwork(3, 3)
    return network.run([body] * 3), network.wire(0).traffic().rounds


def test_the_list_that_one_party_has_fixed_stands() -> None:
    list_ = AgreedList(held(1, 2)).hash
    for fixed in ([None, None, None], [list_, None, None], [None, list_, list_]):
        found, rounds = on_parts(lambda wire, fixed=fixed: standing(wire, fixed[wire.me], NAMES))  # type: ignore[misc]
        assert found == [next((one for one in fixed if one), None)] * 3 and rounds == 1
    with pytest.raises(BudgetRefused, match="Parties north, west have fixed different lists"):
        on_parts(lambda wire: standing(wire, [list_, None, AgreedList(held(1)).hash][wire.me], NAMES))


def test_a_list_is_fixed_only_if_all_three_are_about_to() -> None:
    lists = [AgreedList(held(1, 2)), AgreedList(held(1))]
    assert on_parts(lambda wire: confirm(wire, lists[0], NAMES)) == ([None] * 3, 1)
    with pytest.raises(ProtocolAborted, match="about to fix another list"):
        on_parts(lambda wire: confirm(wire, lists[wire.me == 2], NAMES))


def test_lists_of_other_bundles_have_other_hashes() -> None:
    lists = [held(), held(0), held(1), held(0, 1), held(0, 1, 2)]
    assert len({AgreedList(one).hash for one in lists}) == len(lists)


def _announces(announced: bytes, sent: bytes) -> Callable[[Wire], None]:
    def party(wire: Wire) -> None:
        for payload in (announced, sent):
            for peer in (0, 1):
                wire.send(peer, payload)
        for size in (32, 32 * len(ALL)):
            for peer in (0, 1):
                wire.receive_up_to(peer, size)

    return party


FIRST, SECOND = sorted(held(0, 1))


@pytest.mark.parametrize(
    ("announced", "sent"),
    [
        (FIRST, SECOND),  # chosen after it has seen the others' hashes
        (SECOND + FIRST, SECOND + FIRST),
        (FIRST + FIRST, FIRST + FIRST),
        (FIRST[:31], FIRST[:31]),
        (b"".join(sorted(ALL)) + b"\xff" * 32, b"".join(sorted(ALL)) + b"\xff" * 32),
    ],
)
def test_a_list_that_is_none_or_another_than_announced_ends_the_run(announced: bytes, sent: bytes) -> None:
    def honest(wire: Wire) -> AgreedList:
        return agree(wire, held(0, 1), len(ALL), NAMES)

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(3, 3).run([honest, honest, _announces(binding(b"inbox", announced), sent)])


def test_a_later_list_has_nobody_more_or_the_minimum_at_least() -> None:
    before = AgreedList(held(0, 1))
    for newcomers, there in (
        ((), False),
        ((2,), False),
        ((2, 3), False),
        ((2, 3, 4), True),
        ((2, 3, 4, 5), True),
    ):
        common = AgreedList(held(0, 1, *newcomers))
        assert grown(before, common, 3) == (common if there else before)


def test_who_looks_learns_whether_all_are_ready_and_whether_something_is_new() -> None:
    marks = [bytes([number]) * 32 for number in (7, 8, 9)]
    assert on_parts(lambda wire: looks(wire, marks[wire.me])) == ([tuple(marks)] * 3, 1)
    assert on_parts(lambda wire: looks(wire, marks[wire.me] if wire.me else None)) == ([None] * 3, 1)
