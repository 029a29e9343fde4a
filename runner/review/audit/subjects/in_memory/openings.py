"""Openings under watch: whatever the engine of a computing party opens, numbers or the positions of a
selection.

    class Count(Openings):
        def opened(self, party, values, picks): ...
    count = Count()
    with count.watched():
        arena.run(script, tables)

A backend that runs on no engine opens nothing that is seen here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from mpc_protocols.engine.step import ComputingParty

Party = ComputingParty[Any, Any]


class Openings:
    """What is done with an opening; nothing. Called in the thread of the party whose engine opens, of several
    at once."""

    def opens(self, party: Party, picks: int) -> None:
        """It begins to open. picks: how many positions of a selection; 0: numbers."""

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """It has opened these values."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at all openings while the block runs."""
        begin = ComputingParty.__init__

        def began(party: Party, engine: Any, *given: Any, **named: Any) -> None:
            begin(party, engine, *given, **named)
            reveal, largest, picks = engine.reveal, engine.largest, engine.picks

            def revealed(numbers: Any) -> Any:
                self.opens(party, 0)
                found = reveal(numbers)
                self.opened(party, found.tolist(), 0)
                return found

            def picked(keys: Any) -> int:
                self.opens(party, 1)
                found: int = largest(keys)
                self.opened(party, [found], 1)
                return found

            def several(keys: Any, plan: Any) -> list[int]:
                self.opens(party, plan.picks)
                found: list[int] = picks(keys, plan)
                self.opened(party, list(found), plan.picks)
                return found

            engine.reveal, engine.largest, engine.picks = revealed, picked, several

        with mock.patch.object(ComputingParty, "__init__", began):
            yield
