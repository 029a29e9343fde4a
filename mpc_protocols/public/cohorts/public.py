"""What is public of a cohort's questions, the same in every version: checks, events, and the hash that binds
them.

Every question extends a transcript (its content, who is asked, the event), and so does everything that is
opened. A guard is shown the transcript before anything is opened. What the hash takes in has a fixed length,
or its length before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Clique, Event, Guard, Question
from mpc_protocols.mechanisms import bounds
from mpc_protocols.mechanisms.measurement import MeasurePlan, plan_sum


class CohortState:
    """The transcript, and which clients answered the question that is compared."""

    def __init__(self, session: bytes, guard: Guard) -> None:
        self._transcript = hashlib.sha256(b"cosynth public cohorts\0" + session).digest()
        self._guard = guard
        self._compared: tuple[bytes, frozenset[int]] = (b"", frozenset())

    @property
    def transcript(self) -> bytes:
        """Hash of all that is public so far."""
        return self._transcript

    def answered(self, question: Question) -> bool:
        """Whether this is the question that was compared last, so that clients' answers are kept."""
        return self._compared[0] == question.content and bool(self._compared[1])

    def begin_sum(
        self,
        known: Sequence[int],
        question: Question,
        clients: Sequence[int],
        sigma2: Fraction,
        cliques: Sequence[Clique] = (),
    ) -> MeasurePlan:
        """Check, bind and charge a noisy sum."""
        _check(known, clients)
        plan = planned_sum(question, clients, sigma2, cliques)
        self._begin(question, clients, plan.event, plan.digest)
        return plan

    def begin_reveal(
        self, known: Sequence[int], question: Question, clients: Sequence[int], event: Event
    ) -> None:
        """Check, bind and charge an exact sum."""
        _check(known, clients)
        bounds.check_measurement(question.bound * len(clients), 0)
        self._begin(question, clients, event)

    def begin_popular(
        self,
        known: Sequence[int],
        question: Question,
        clients: Sequence[int],
        least: int,
        event: Event,
        among: Sequence[int] | None,
    ) -> tuple[bool, tuple[int, ...]]:
        """Check, bind and charge a comparison: (whether clients are to be asked, positions to compare)."""
        _check(known, clients)
        positions = tuple(range(question.length)) if among is None else tuple(among)
        if (
            least < 1
            or list(positions) != sorted({*positions})
            or not set(positions) <= set(range(question.length))
        ):
            raise StudyInvalid("A comparison needs a least number of clients, and positions of its question.")
        answered = self._compared[1]
        extra = least.to_bytes(8, "big") + b"".join(p.to_bytes(8, "big") for p in positions)
        if self.answered(question):
            if not set(clients) <= answered:
                raise StudyInvalid("Only clients that have answered a question can be compared again.")
            self._bind(question, clients, event, extra)
            return False, positions
        self._begin(question, clients, event, extra)
        self._compared = question.content, frozenset(clients)
        return True, positions

    def opened(self, values: NDArray[np.int64]) -> None:
        """Extend the transcript by what was opened."""
        self._transcript = hashlib.sha256(self._transcript + values.astype("<i8").tobytes()).digest()

    def _begin(self, question: Question, clients: Sequence[int], event: Event, extra: bytes = b"") -> None:
        self._bind(question, clients, event, extra)
        self._guard.authorise(event, self._transcript)

    def _bind(self, question: Question, clients: Sequence[int], event: Event, extra: bytes) -> None:
        hashed = hashlib.sha256(self._transcript)
        for content in (question.content, event_bytes(event), extra):
            hashed.update(len(content).to_bytes(8, "big") + content)
        for number in (question.length, question.bound, question.sensitivity2, len(clients), *clients):
            hashed.update(number.to_bytes(8, "big"))
        self._transcript = hashed.digest()


def planned_sum(
    question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique]
) -> MeasurePlan:
    """Public facts of a noisy sum over a cohort; its event charges all of it, and names the marginals if
    there are any."""
    plan = plan_sum(question, clients, sigma2)
    named = {"cliques": [list(clique) for clique in cliques]} if cliques else {}
    detail = {**plan.event.detail, "charged": list(clients), **named}
    return replace(plan, event=replace(plan.event, detail=detail))


def event_form(event: Event) -> list[object]:
    """JSON-able: what it is, rho, beta, detail."""
    return [event.what, str(event.rho), str(event.beta), dict(event.detail)]


def event_bytes(event: Event) -> bytes:
    """Its one encoding."""
    return json.dumps(event_form(event), sort_keys=True, separators=(",", ":")).encode()


def checked(question: Question, vector: NDArray[np.int64], client: int) -> NDArray[np.int64]:
    """A client's own answer, if it has the form of one. Raises `DataRefused`."""
    if vector.shape != (question.length,) or int(np.abs(vector).max()) > question.bound:
        raise DataRefused(
            f"Client {client} must answer with {question.length} integers of at most {question.bound} in magnitude."
        )
    return vector.astype(np.int64, copy=False)


def _check(known: Sequence[int], clients: Sequence[int]) -> None:
    if not clients or len(set(clients)) != len(clients) or not set(clients) <= set(known):
        raise StudyInvalid("A cohort needs clients of the study, each of them once.")
