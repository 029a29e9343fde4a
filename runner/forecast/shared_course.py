"""The public part of a dry run, made once for several backends: what is asked, answered and reported, played
to another oracle.

Problem: `plan --compare` would choose, fit and draw the same for each backend, which takes longer than
counting what most send. The oracles of dry runs answer about one presumed table with one seed: who asks two
of them the same, with the same public facts but for who leads, is answered the same. So what the first was
asked is asked of the next as well, without a synthesizer; if one answers differently all the same (a backend
of others may), its dry run is made by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe, StudyFacts
    from runner.results.release import Release
    from synth.plan import Plan
    from synth.synthesis import Synthesis

QUESTIONS = frozenset(
    {"prepare", "expect", "expect_keys", "expect_counts", "select", "measure", "distances", "total"}
)
MAX_KEPT_CELLS = 1 << 25
"""Of all answers of a model that are kept: 256 MiB."""


@dataclass(frozen=True)
class Key:
    """What decides the answers. facts: whoever leads. rows: of the presumed table, and the most that are
    drawn."""

    facts: StudyFacts
    plan: Plan
    rows: tuple[int, int]

    @classmethod
    def of(cls, facts: StudyFacts, plan: Plan, rows: tuple[int, int]) -> Key:
        """Of a dry run's facts."""
        return cls(replace(facts, leader=0, inputs=None), plan, rows)


@dataclass(frozen=True)
class Conclusion:
    """What came of a course. choosing_s, drawing_s: CPU seconds of the synthesizer, and of its rows."""

    synthesis: Synthesis
    release: Release
    choosing_s: float
    drawing_s: float


@dataclass
class SharedCourse:
    """A course of questions, answers and reports, in order; empty until one is recorded."""

    _key: Key | None = None
    _steps: list[Callable[[Any, Observe], bool]] = field(default_factory=list)
    _conclusion: Conclusion | None = None
    _cells: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been recorded, not even in part."""
        return self._key is None and not self._steps

    def recorded(self, oracle: MarginalOracle, observe: Observe) -> tuple[MarginalOracle, Observe]:
        """The oracle and the observer of a synthesizer whose course is recorded; `keep` ends that. For an
        empty one."""

        def record(phase: str, event: str, **fields: object) -> None:
            def report(_: object, observer: Observe) -> bool:
                observer(phase, event, **fields)
                return True

            self._note(report)
            observe(phase, event, **fields)

        return _Recorded(oracle, self._ask), record  # type: ignore[return-value]

    def keep(self, key: Key, conclusion: Conclusion) -> None:
        """The course that has just been recorded is that of this key."""
        if self._cells <= MAX_KEPT_CELLS:
            self._key, self._conclusion = key, conclusion

    def knows(self, key: Key) -> bool:
        """Whether a course of this key has been kept."""
        return self._conclusion is not None and self._key == key

    def played(self, oracle: MarginalOracle, observe: Observe) -> Conclusion | None:
        """Ask the oracle all that was asked, and report what was reported; None if it answers anything else."""
        return self._conclusion if all(step(oracle, observe) for step in self._steps) else None

    def _ask(
        self, oracle: MarginalOracle, name: str, given: Sequence[Any], named: Mapping[str, Any]
    ) -> object:
        answer = getattr(oracle, name)(*given, **named)
        if name in ("select", "distances"):  # with the model's answers
            self._cells += sum(map(len, given[1]))
        self._note(lambda other, _: _same(getattr(other, name)(*given, **named), answer))
        return answer

    def _note(self, step: Callable[[Any, Observe], bool]) -> None:
        if self._cells > MAX_KEPT_CELLS:
            self._steps.clear()
        else:
            self._steps.append(step)


class _Recorded:
    """An oracle whose questions are noted."""

    def __init__(self, oracle: MarginalOracle, ask: Callable[..., object]) -> None:
        self._oracle, self._ask = oracle, ask

    def __getattr__(self, name: str) -> Any:
        if name not in QUESTIONS:
            return getattr(self._oracle, name)
        return lambda *given, **named: self._ask(self._oracle, name, given, named)


def _same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else one == other  # type: ignore[arg-type]
