"""What all parties of a run do at once, through the leader: assemble, hand out the release, gather and hand
out the counters.

Each is a stream of its own. Who learns what: everybody the same; what a peer sends is judged before it is
used (`run_json`, `results.release`). Contributors have links with computing parties only, so everything goes
by way of the leader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import ProtocolAborted
from runner.party.record.run_json import counters_of, parsed
from runner.study import Study, VerticalStudy

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire

MEETING_ROUNDS = 2
COUNTERS_LIMIT = 8 << 20
"""Bytes of one party's counters, or of what the leader makes of them; the times of its events are most of it."""


class Collective:
    """One party's end of it."""

    def __init__(self, wire: Wire, study: Study) -> None:
        self._wire, self._study, self._leader = wire, study, study.leader_number
        self._others = [number for number in range(len(study.parties)) if number != self._leader]

    @property
    def leads(self) -> bool:
        """Whether this party is the leader."""
        return self._wire.me == self._leader

    def assemble(self, complete: Callable[[], None]) -> None:
        """Wait until every party has its counts and its budget: what one of them refuses must not cost the
        others any.

        complete: called as soon as this party knows that all are there; at the leader before the others do.
        Before it nothing leaves a party.
        """
        self.meet("assembly", complete)

    def meet(self, name: str, complete: Callable[[], None] = lambda: None) -> None:
        """Wait until every party has come to the point that `name` stands for. Raises `PeerLost`.

        MEETING_ROUNDS of empty messages: to the leader, and back. complete: called as soon as this party
        knows that all are there; at the leader before the others do.
        """
        stream = self._wire.fork(name)
        if not self.leads:
            stream.send(self._leader, b"")
            stream.receive(self._leader, 0)
            complete()
            return
        for number in self._others:
            stream.receive(number, 0)
        complete()
        for number in self._others:
            stream.send(number, b"")

    def hand_out(self, release: bytes) -> None:
        """The leader's part of the release: the same bytes to everybody."""
        stream = self._wire.fork("release")
        for number in self._others:
            stream.send(number, release)

    def receive_release(self, size_limit: int) -> memoryview:
        """Everybody else's part of it."""
        return self._wire.fork("release").receive_up_to(self._leader, size_limit)

    def gather(self, name: str, own: bytes, limit: int) -> dict[str, bytes]:
        """What every party says, to all, by way of the leader. name: of the exchange. limit: bytes of one
        party's.

        Raises `ProtocolAborted` for what the leader cannot have gathered.
        """
        stream = self._wire.fork(name)
        names = [party.name for party in self._study.numbered]
        if self.leads:
            said = {names[self._leader]: own}
            for number in self._others:
                said[names[number]] = bytes(stream.receive_up_to(number, limit))
            payload = json.dumps({party: text.hex() for party, text in said.items()}).encode()
            for number in self._others:
                stream.send(number, payload)
            return said
        stream.send(self._leader, own)
        told = parsed(
            stream.receive_up_to(self._leader, (2 * limit + 1024) * len(names)), names[self._leader]
        )
        try:
            said = {party: bytes.fromhex(told[party]) for party in names}
        except (KeyError, ValueError, TypeError):
            said = {}
        if not said or len(told) != len(said) or any(len(text) > limit for text in said.values()):
            raise ProtocolAborted(
                f"Party {names[self._leader]} handed out {name} that cannot be read; do not use the results."
            )
        return said

    def counters(
        self, own: dict[str, Any], shared: Callable[[list[dict[str, Any]]], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Everybody's counters, gathered and handed out by the leader, so that all reports are the same.

        own: this party's. shared: what the leader makes of everybody's, in the study's order. Raises
        `ProtocolAborted`.
        """
        stream = self._wire.fork("counters")
        names = [party.name for party in self._study.numbered]
        if not self.leads:
            stream.send(self._leader, json.dumps(own).encode())
            return parsed(stream.receive_up_to(self._leader, COUNTERS_LIMIT), names[self._leader])
        parties = {names[self._leader]: own}
        for number in self._others:
            name = names[number]
            parties[name] = counters_of(parsed(stream.receive_up_to(number, COUNTERS_LIMIT), name), name)
        if isinstance(
            self._study, VerticalStudy
        ):  # a contributor's clock jumps over the rounds that are withheld
            for party in parties.values():
                party["rounds"] = min(party["rounds"], own["rounds"])
        result = shared([parties[party.name] for party in self._study.parties])
        payload = json.dumps(result).encode()
        for number in self._others:
            stream.send(number, payload)
        return result
