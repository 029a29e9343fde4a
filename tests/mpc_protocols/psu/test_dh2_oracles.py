"""What a deviating owner of dh2 could read from when a message comes, from where a run ends, or from a guess
that fits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.psu.dh2.matching import Matching
from mpc_protocols.psu.dh2.owner import COMMITMENT_BYTES, Owner
from mpc_protocols.psu.groups.hashing import Names
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.two_owners import exchange
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.deviating import MINE, SEMI_HONEST, THEIRS, UNION, Outcome, attack, deviating
from tests.mpc_protocols.psu.owners import CONTEXT, TRAPS, ids, run

SIDES = pytest.mark.parametrize("side", [0, 1], ids=["answering", "asking"])


# When messages come.


class InFileOrder(Owner):
    """Enters its list unshuffled: it knows which of its records a block holds (as does who remembers its own
    shuffle)."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.own_list = self.own_list[np.argsort(self.order)]
        self.order = np.arange(len(self.order))
        self.opened_positions = np.arange(self.size, self.size + self.traps)


class Watched(Owner):
    """Remembers what it had computed before each message."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.schedule: list[tuple[int, ...]] = []
        self.watched: Any = self.exchange
        send = self.exchange.send

        def timed(payload: bytes | memoryview) -> None:
            self.schedule.append((len(payload), *astuple(self.group.operations)))
            send(payload)

        self.watched.send = timed  # type: ignore[method-assign]


@SIDES
def test_the_time_of_a_block_does_not_tell_which_records_are_common(
    side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An element for a common record takes one exponentiation, for another one more. If a block were computed
    when it is due, its delay would tell how many records of that block are common: for a last block of one
    record, whether that one is."""
    monkeypatch.setattr(exchange, "BLOCK", 8)
    n, k = 33, 5
    entries = ids(range(n))
    schedules = []
    for shared in (
        entries[:k],
        entries[-k:],
    ):  # in the first block; the last block of a single record among them
        honest: list[Watched] = []

        def follow(wire: Wire, shared: list[bytes] = shared, honest: list[Watched] = honest) -> None:
            mine = [*shared, *ids(range(1000, 1000 + n - k))]
            honest.append(Watched(wire, mine, SEMI_HONEST, CONTEXT, Ristretto255(threads=1), traps=TRAPS))
            honest[0].run()

        def deviate(wire: Wire) -> None:
            InFileOrder(wire, entries, SEMI_HONEST, CONTEXT, Ristretto255(threads=1), traps=TRAPS).run()

        run(SEMI_HONEST, *((deviate, follow) if side == 0 else (follow, deviate)))
        assert honest[0].common[:k].all() == (shared[0] == entries[0])
        schedules.append(honest[0].schedule)
    assert schedules[0] == schedules[1]


# Where a run ends.


class PowerOfTheirKey(Owner):
    """Waits for the other's key of names, g^alpha, and announces (g^alpha)^c as its own, whose exponent it
    does not know; waits for the names as well, and returns that of a record of its choice, W^c. If that is
    not common, W = g^r, the other holds N(W^(c alpha)) twice: as the name of one of its own records and as
    that of this one. If it is common, once."""

    target: bytes

    def exchange_lists(self) -> None:
        own: Any = self.exchange
        own.announce = self.announce_late
        self.scale = self.group.random_exponents(1)[0]
        super().exchange_lists()

    def announce_late(self, count: int, extra: bytes, expected: int) -> tuple[int, bytes]:
        raw = bytes(self.exchange.receive(exchange.COUNT_BYTES + expected))
        theirs = raw[exchange.COUNT_BYTES :]
        width = self.group.element_bytes
        key = theirs[COMMITMENT_BYTES + width : COMMITMENT_BYTES + 2 * width]
        self.public[1] = self.group.power(self.group.parse(key), self.scale).tobytes()
        self.exchange.send(
            count.to_bytes(exchange.COUNT_BYTES, "big") + extra[:COMMITMENT_BYTES] + b"".join(self.public)
        )
        return int.from_bytes(raw[: exchange.COUNT_BYTES], "big"), theirs

    def exchange_names(self) -> None:
        came = self.group.parse(self.exchange.receive(self.size * self.group.element_bytes))
        number = MINE.index(self.target)
        at = int(np.flatnonzero(self.order[self.order < self.size] == number)[0])
        back = self.group.generate(self.group.random_exponents(self.their_size))
        back[0] = self.group.power(came[at : at + 1], self.scale)
        self.exchange.send(back.tobytes())

    def finish(self) -> Any:
        self.compared = 0
        with suppress(ProtocolAborted, PeerLost):
            for _ in range(2):
                self.exchange.swap(self.group.generate(self.group.random_exponents(1)).tobytes())
                self.compared += 1


@SIDES
def test_where_a_run_ends_does_not_tell_whether_a_record_is_common(side: int) -> None:
    """The other notices in either case; it must do so in the same flight, with the same words, and show only
    fresh messages."""
    ends = []
    for target in (next(x for x in MINE if x in THEIRS), next(x for x in MINE if x not in THEIRS)):
        done = attack(type("Chosen", (PowerOfTheirKey,), {"target": target}), side)
        assert done.result is None
        ends.append(
            (
                done.said,
                done.deviating.compared,
                [(frame.receiver, len(frame.payload)) for frame in done.frames if frame.receiver == side],
            )
        )
    assert ends[0] == ends[1]
    assert "did not arrive at the same union" in ends[0][0] and ends[0][1] == 2


# A guess that fits.


class ClaimsOneMore(Matching):
    """Claims one entry of O that it did not find."""

    def compare(self, entries: Names) -> tuple[np.ndarray, np.ndarray]:
        own: Any = super()
        common, bits = own.compare(entries)
        bits[np.flatnonzero(~bits)[0]] = True
        return common, bits


class GuessesWhich(deviating(ClaimsOneMore)):  # type: ignore[misc]
    """The other now takes one record for common that is not. Leaves the name of its guess out of its own
    table."""

    right: bool

    def exchange_names(self) -> None:
        super().exchange_names()
        listed = self.order[self.order < self.size]
        taken = [int(i) for i in np.flatnonzero(self.honest.common) if MINE[listed[i]] not in THEIRS]
        assert len(taken) == 1
        another = next(i for i in range(self.size) if MINE[listed[i]] not in THEIRS and i != taken[0])
        names = np.concatenate(self.other_names)  # type: ignore[has-type]
        self.own_names[taken[0] if self.right else another] = names[0]
        self.other_names = [names[1:]]


@pytest.mark.parametrize("right", [True, False])
def test_one_guess_which_record_is_not_common(right: bool) -> None:
    """The asking owner alone can have it so; one of N - K records, and any other is noticed."""
    done: Outcome = attack(type("Guessing", (GuessesWhich,), {"right": right}), 1)
    if right:
        assert done.said == "" and done.result is not None and done.result.n_rows == UNION - 1
    else:
        assert "did not arrive at the same union" in done.said
