"""A run's lines in a file or a pipe: one for a phase, one for a batch of measurements; the rest is told with
`-v`.

A batch is what one fit of the model follows. A party that does not lead hears of steps only, and is told each
one's number and the share of epsilon that is gone. Nothing is decided here but what is left out: words are
those of `event_kinds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.party.record.event_kinds import BATCH, EVENTS

MAX_NAMED = 3
"""Marginals of a batch that are named; further ones are counted."""
SILENT = frozenset(key for key, kind in EVENTS.items() if not kind.brief)
"""What every run says and nobody asks about while all is well."""


class Brief:
    """Folds the events of a run to fewer."""

    def __init__(self) -> None:
        self._batch: list[tuple[int, Sequence[str], Mapping[str, int]]] = []
        self._spent: dict[str, Any] = {}
        self._once: set[tuple[str, str]] = set()

    def condense(self, phase: str, name: str, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The events to be told now, instead of this one."""
        if (phase, name) == ("measure", "measured") and "clique" in event:
            self._batch.append((int(event["round"]), event["clique"], event.get("bins", {})))
            self._spent = {key: event[key] for key in ("rho_spent",) if key in event}
            return
        if (phase, name) in SILENT or (phase, name) == ("select", "selected"):
            return
        if (phase, name) == ("fit", "fitted"):
            if self._batch:
                yield self._folded(event)
            return
        if phase not in ("select", "measure", "fit") and self._batch:
            yield self._folded({"party": event["party"], "event": "folded", "phase": "measure"})
        if name in ("shared", "written"):  # once, by whoever is first: it is the same at all parties
            if (phase, name) in self._once:
                return
            self._once.add((phase, name))
        yield event

    def _folded(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        batch, self._batch = self._batch, []
        return {
            **self._spent,
            **event,
            "phase": BATCH.phase,
            "event": BATCH.name,
            "rounds": (batch[0][0], batch[-1][0]),
            "marginals": [(clique, bins) for _, clique, bins in batch[:MAX_NAMED]],
            "more": max(0, len(batch) - MAX_NAMED),
        }
