"""A finished run once more, from its own files: the same questions, each answered by what was released then.

The public part of a run is a function of the study and of what was opened. So its models, of which only the
last one is released, can be had again without anybody's rows; nothing is spent. It takes as long as the run's
fits. Whatever does not fit (a question that was not asked then, another last model) ends it: then the files
are of another version, of another machine's rounding, or altered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import CosynthError, UsageError
from mpc_protocols.functionality import Guard
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.public.begun import BegunMeasure, BegunSelect, BegunTotal
from mpc_protocols.public.history import NoHistory
from runner.party.synthesis import facts_of, synthesize
from runner.results.finished_run import agreed_study
from runner.results.outdir import RUN
from runner.review.verification.planned import owned_of, planned
from synth.inference.unmeasured import Pick
from synth.synthesis import without_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Event, Handle, Level, Observe
    from mpc_protocols.public.begun import Begun
    from mpc_protocols.public.rounded_answers import RoundedAnswers
    from runner.results.finished_run import FinishedRun
    from synth.synthesis import Measured

MAX_S = 120.0
"""Seconds after which a run is not carried out any further."""
SAME = 1e-4
"""Of the rows: by how much a single column or a measured marginal of the last model may be off the released
one."""


class WatchedOracle(IdealOracle):
    """Keeps what was selected. picks: in order."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{**named, "watch": self._begins})
        self.picks: list[Pick] = []
        self.levels: dict[str, Level] = {}
        self.begun: Begun | None = None

    def _begins(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        self.begun = begun

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        """See `MarginalOracle`."""
        self.levels |= {level.name: level for level in levels}
        return super().prepare(cliques, levels)

    def select(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], *given: Any, **named: Any
    ) -> list[int]:
        """See `MarginalOracle`."""
        picked = super().select(handles, answers, *given, **named)
        assert isinstance(self.begun, BegunSelect)
        plan, cliques = self.begun.plan, [self.state.cliques[handle] for handle in handles]
        grid = float(1 << plan.a)
        for at, position in enumerate(picked):
            offered = {
                cliques[q]: (answers[q].copy(), plan.weights[q], plan.biases[q])
                for q in plan.candidates(picked[:at])
            }
            scale = grid / float(gumbel.GAMMA)
            self.picks.append(Pick(len(self.picks) + 1, cliques[position], offered, scale, 2 * grid))
        return picked


class _Told(NoHistory, Guard):
    """What a run has released, in order, and the guard that admits only what it was charged. Raises
    `UsageError` for anything else."""

    def __init__(self, run: FinishedRun, measurements: Sequence[Measured], total: int) -> None:
        facts = run.facts
        self.oracle: WatchedOracle | None = None
        self._events = [(str(event["what"]), float(event["rho"])) for event in facts["privacy"]["events"]]
        self._measured, self._total, self._spent = list(measurements), total, 0
        bins = facts.get("resolutions") or [{}] * len(facts["selected"])
        self._selected = list(zip(map(tuple, facts["selected"]), bins, strict=True))
        if len(self._selected) != sum(what == "select" for what, _ in self._events):
            raise UsageError("A selection had nothing left to pick.")

    def authorise(self, event: Event, inputs: bytes) -> None:
        """As `Guard`."""
        what, rho = self._events[self._spent] if self._spent < len(self._events) else ("", 0.0)
        if event.what != what or abs(float(event.rho) - rho) > 1e-9 * rho:
            raise UsageError("This was not asked.")
        self._spent += 1

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64]:
        """As `History`."""
        oracle = self.oracle
        assert oracle is not None
        if isinstance(oracle.begun, BegunMeasure):
            handles = oracle.begun.step.handles
            taken, self._measured = self._measured[: len(handles)], self._measured[len(handles) :]
            if [m.clique for m in taken] != [oracle.state.cliques[handle] for handle in handles]:
                raise UsageError("Other marginals were measured.")
            return np.concatenate([m.values for m in taken])
        if isinstance(oracle.begun, BegunSelect):
            step = oracle.begun.step
            picks, self._selected = self._selected[: step.picks], self._selected[step.picks :]
            cliques = [oracle.state.cliques[handle] for handle in step.handles]
            levels = oracle.levels
            names = [
                (
                    without_levels(clique, levels.values()),
                    {levels[name].column: levels[name].size for name in clique if name in levels},
                )
                for clique in cliques
            ]
            return np.array([names.index(pick) for pick in picks], np.int64)
        if isinstance(oracle.begun, BegunTotal):
            return np.array([self._total], np.int64)
        raise UsageError("What was asked is not among what is released.")


def fit_s(run: FinishedRun) -> float:
    """Seconds that a run's fits took its leader, as run.json says; infinite if it does not."""
    try:
        phases = {phase["name"]: phase["wall_s"] for phase in run.facts["phases"]}
        took = float(phases["fit"])
    except (KeyError, TypeError, ValueError):
        return math.inf
    return took if took >= 0 else math.inf


def _until(end: float) -> Observe:
    """Of a run, where the files' own word on how long it takes may be wrong: it does not go on after that."""

    def observe(phase: str, event: str, **fields: object) -> None:
        if monotonic() > end:
            raise UsageError("The run takes longer than it did.")

    return observe


def picks_of(run: FinishedRun, measurements: Sequence[Measured]) -> list[Pick] | None:
    """The picks of a run's selections; None if they do not follow from its files, of which measurements are
    those."""
    try:
        study = agreed_study(run.facts, Path(RUN))
        if study.domain != run.domain:
            return None
        plan = planned(study, run.facts, None, owned_of(study, run.facts))
        if plan is None or "prior" in run.facts:
            return None
        told = _Told(run, measurements, round(float(run.facts["privacy"]["noisy_total"])))
        facts = facts_of(study, len(study.parties), bytes(32))
        oracle = WatchedOracle(
            facts, lambda cliques: [np.zeros(facts.cells(c), np.int64) for c in cliques], told, history=told
        )
        told.oracle = oracle
        last = synthesize(study, plan, oracle, _until(monotonic() + MAX_S)).model
    except (CosynthError, KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
        return None
    for clique in {*((name,) for name in run.domain.names), *(m.columns for m in measurements)}:
        if np.abs(last.marginal(clique) - run.model.marginal(clique)).sum() > SAME * run.model.total:
            return None
    return oracle.picks
