"""Base transfers: who gets which key, what travels, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.base_ot import BaseTransfers, base_transfers
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import MemoryNetwork, run_parties
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.wire import Wire
from tests.trio import Trio

COUNT = 24
GROUP = Ristretto255(threads=1)
IDENTITY = bytes(32)
NO_POINT = bytes([255] * 32)


def both(wire: Wire) -> BaseTransfers:
    return base_transfers(Link(wire), COUNT)


def check(parties: list[BaseTransfers]) -> None:
    for me in range(2):
        mine, others = parties[me], parties[1 - me]
        place = np.arange(COUNT)
        np.testing.assert_array_equal(mine.chosen, others.offered[place, mine.choices])
        assert not (mine.chosen == others.offered[place, 1 - mine.choices]).any()
        assert set(np.unique(mine.choices)) <= {0, 1}


def test_the_chooser_gets_the_key_it_chose_and_not_the_other() -> None:
    network = MemoryNetwork(2, 2)
    check(network.run([both] * 2))
    for number in range(2):
        traffic = network.traffic(number)
        assert (traffic.rounds, traffic.messages_sent, traffic.bytes_sent) == (2, 2, 32 * (1 + COUNT))


def job(wire: Wire) -> list[object]:
    found = base_transfers(Link(wire), COUNT)
    return [found.offered, found.choices, found.chosen]


def test_two_processes_agree_on_the_keys(two: Trio) -> None:
    check([BaseTransfers(*parts) for parts in two.run(job)])


def test_keys_are_fresh_in_each_run_and_direction() -> None:
    session = bytes(32)
    seen = set()
    for _ in range(2):
        for found in run_parties([both] * 2, 2, session_id=session):
            seen |= {row.tobytes() for row in found.offered.reshape(-1, 2)}
    assert len(seen) == 2 * 2 * 2 * COUNT


def test_nothing_of_the_keys_is_printed() -> None:
    found = run_parties([both] * 2, 2)[0]
    assert repr(found) == f"BaseTransfers of {COUNT} keys each way"


@pytest.mark.parametrize("bad", [IDENTITY, NO_POINT, bytes(31), bytes(33), b""])
def test_a_first_message_that_is_no_point_aborts(bad: bytes) -> None:
    def sender(wire: Wire) -> None:
        wire.send(1, bad)

    with pytest.raises(ProtocolAborted):
        run_parties([sender, both], 2)


@pytest.mark.parametrize("bad", [IDENTITY, NO_POINT])
def test_a_choice_that_is_no_point_aborts(bad: bytes) -> None:
    def sender(wire: Wire) -> None:
        points = GROUP.generate(list(range(1, COUNT + 1))).tobytes()
        wire.send(1, points[:32])
        wire.send(1, points[: 32 * (COUNT - 1)] + bad)

    with pytest.raises(ProtocolAborted, match="point"):
        run_parties([sender, both], 2)


def test_a_choice_that_would_cancel_the_senders_point_aborts() -> None:
    def sender(wire: Wire) -> None:
        points = GROUP.generate(list(range(1, COUNT + 1))).tobytes()
        wire.send(1, points[:32])
        own = bytes(wire.receive(1, 32))
        wire.send(1, points[: 32 * (COUNT - 1)] + own)

    with pytest.raises(ProtocolAborted, match="point"):
        run_parties([sender, both], 2)


def test_too_few_choices_abort() -> None:
    def sender(wire: Wire) -> None:
        points = GROUP.generate(list(range(1, COUNT + 1))).tobytes()
        wire.send(1, points[:32])
        wire.send(1, points[: 32 * (COUNT - 1)])

    with pytest.raises(ProtocolAborted, match="bytes"):
        run_parties([sender, both], 2)


def test_three_parties_are_refused() -> None:
    with pytest.raises(StudyInvalid, match="exactly two"):
        run_parties([both] * 3, 3)
