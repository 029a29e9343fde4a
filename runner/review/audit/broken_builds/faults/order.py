"""Faults of what comes before what: records and openings, crashes and resumptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from mpc_protocols.engine.step import ComputingParty
from parties.budget.run_state import RunState
from runner.review.audit.broken_builds.faults.mutation import Mutation


@contextmanager
def _late_records() -> Iterator[None]:
    """What a release spends goes on record when it has been opened."""
    authorise = ComputingParty._authorise
    step = {name: getattr(ComputingParty, name) for name in ("select", "measure", "distances", "total")}

    def late(self: Any, events: Any, exchange: Any = None) -> None:
        self.late = [*getattr(self, "late", []), *events]
        authorise(self, [], exchange)

    def written(name: str) -> Any:
        def run(self: Any, *given: Any) -> Any:
            found = step[name](self, *given)
            authorise(self, self.late)
            self.late = []
            return found

        return run

    with mock.patch.multiple(ComputingParty, _authorise=late, **{name: written(name) for name in step}):
        yield


@contextmanager
def _redrawn() -> Iterator[None]:
    """A run that is resumed computes what was opened already once more."""
    with mock.patch.multiple(RunState, opened=lambda *given: None, held=lambda *given: None):
        yield


MUTATIONS = (
    Mutation("M25", "a record that is written after the opening", ("C.order",), _late_records),
    Mutation("M26", "a resumed run that draws its noise again", ("C.resume",), _redrawn),
)
