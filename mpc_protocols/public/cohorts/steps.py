"""What the leading party sends of a cohort's questions: to the others that compute, and to the clients that
are asked.

A line of JSON with sorted keys, and after it the question's content. `parse` accepts the canonical encoding
of a valid step alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import POPULAR, REVEAL, SUM, Asking, Clique, Event, Guard, Question
from mpc_protocols.public.cohorts.public import event_form, planned_sum
from mpc_protocols.public.rationals import rational

MAX_BYTES: Final = 1 << 26
"""Of one step: a model's archive and its head."""
DIGEST_BYTES: Final = 32
END = "end"


class CohortStep(Asking):
    """One question to clients, with what it charges and its bytes."""

    @property
    def charge(self) -> Event:
        """What it charges, as all that take part in it derive alike. Raises `StudyInvalid`."""
        if self.kind != SUM:
            return self.event
        return planned_sum(self.question, self.clients, self.sigma2, self.cliques).event

    @property
    def digest(self) -> bytes:
        """SHA-256 of it: what a client answers to."""
        return hashlib.sha256(self.to_bytes()).digest()

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        head = {
            "kind": self.kind,
            "length": self.question.length,
            "bound": self.question.bound,
            "sensitivity2": self.question.sensitivity2,
            "clients": list(self.clients),
            "asked": self.asked,
            "sigma2": str(self.sigma2),
            "cliques": [list(clique) for clique in self.cliques],
            "least": self.least,
            "among": None if self.among is None else list(self.among),
            "event": event_form(self.event),
        }
        return (
            json.dumps(head, sort_keys=True, separators=(",", ":")).encode() + b"\n" + self.question.content
        )


class StepGuard(Guard, Protocol):
    """The guard of a party that obeys: it sees what the leader asks before anything leaves or is opened."""

    def admit(self, step: Asking) -> None:
        """Compare a step with what the study has for its question, noise, event and clients.

        Raises `ProtocolAborted` for a step that is not the study's; then nothing leaves.
        """


def parse(payload: bytes) -> CohortStep:
    """The inverse of `CohortStep.to_bytes`. Raises `ProtocolAborted` for anything else."""
    head, _, content = payload.partition(b"\n")
    try:
        found = _step(json.loads(head), content)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        found = None
    if found is None or found.to_bytes() != payload:
        raise ProtocolAborted(
            "The leading party sent something that is no question to clients; stop the run."
        )
    return found


def _step(head: Mapping[str, Any], content: bytes) -> CohortStep:
    what, rho, beta, detail = head["event"]
    if head["kind"] not in (SUM, POPULAR, REVEAL, END) or not isinstance(detail, dict):
        raise ValueError("A kind of question was expected.")
    return CohortStep(
        head["kind"],
        Question(content, int(head["length"]), int(head["bound"]), int(head["sensitivity2"])),
        _numbers(head["clients"]) or (),
        bool(head["asked"]),
        rational(head["sigma2"]),
        tuple(_clique(names) for names in head["cliques"]),
        int(head["least"]),
        _numbers(head["among"]),
        Event(str(what), rational(rho), rational(beta), detail),
    )


def _clique(names: Any) -> Clique:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("A list of names was expected.")
    return tuple(names)


def _numbers(values: Any) -> tuple[int, ...] | None:
    if values is None:
        return None
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError("Numbers were expected.")
    return tuple(values)
