"""What is public in a run, kept alike by every computing party: transcript, handles, bounds, plans.

Problem: the leading party says what is asked next (`messages`); each party must derive the same plan and the same event from the
same public inputs, and must notice at once if another party saw something else (DESIGN 3, `mechanisms.md` 4). So each keeps a
`PublicState`, driven by the same calls in the same order:

    state.begin(step)                 validates, advances the transcript, returns the hash of all public inputs so far
    state.to_share(step), .prepare(step)                  for a PrepareStep
    state.plan_select(step) / .plan_measure(step) / .plan_total(step)
    ... the guard authorises plan.event; the transcripts are compared; the protocol runs and opens ...
    state.learn_selection(step, position) / .learn_counts(step, arrays) / .learn_total(step, value)

The transcript starts from the setting and the Gumbel table; a step adds its bytes, the integers of its plan and the Gaussian
table it uses, and a release adds what was opened. Its value after `begin` is the `inputs_hash`: noise nonces and the journal's
entry are bound to it.

Row bound: before any release the study's `row_cap`; the first measured batch (or `total`) fixes the tighter bound of
`mechanisms.md` 5 and the noisy total, and both stay: later measurements do not move them.

Everything here is public; no count, share or key enters it except noisy counts that have been released.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Handle, Setting
from mpc_protocols.mechanisms import gumbel, rounding
from mpc_protocols.mechanisms.bounds import CELL_BITS, RowBound
from mpc_protocols.mechanisms.measurement import MeasurePlan, plan_marginals, plan_total
from mpc_protocols.mechanisms.selection import SelectionPlan, plan_selection
from mpc_protocols.public.answers import Answers, Cut, cuts
from mpc_protocols.public.cliques import CliqueRegister, Derivation
from mpc_protocols.public.rounded_answers import RoundedAnswers, sum_bounds
from mpc_protocols.public.steps import (
    MAX_BYTES,
    EndStep,
    MeasureStep,
    PrepareStep,
    SelectStep,
    Step,
    TotalStep,
    parse,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EndStep", "MeasureStep", "PrepareStep", "PublicState", "SelectStep", "Step", "TotalStep", "parse"]


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _check_setting(setting: Setting) -> None:
    for column, size in setting.sizes.items():
        if type(size) is not int or size < 1:
            raise StudyInvalid(f"the column {column!r} has size {size}, it must be a positive integer")
    if setting.adjacency not in ("add-remove", "replace"):
        raise StudyInvalid(f"adjacency is {setting.adjacency!r}, it must be 'add-remove' or 'replace'")
    if setting.unit_rows < 1:
        raise StudyInvalid(f"a privacy unit has {setting.unit_rows} rows, it must have at least one")
    if not 1 <= setting.row_cap < 1 << CELL_BITS - 1:
        raise StudyInvalid(
            f"custodians times max_rows is {setting.row_cap}, it must be at least 1 and below 2^{CELL_BITS - 1}; change max_rows"
        )


class PublicState:
    """The public side of one run at one party. Not thread-safe; one step at a time."""

    def __init__(self, setting: Setting) -> None:
        """Raises `StudyInvalid` if the setting is outside the ranges the mechanisms hold for."""
        _check_setting(setting)
        self.setting = setting
        self._register = CliqueRegister(setting)
        self._bound: RowBound | None = None
        self._current: Step | None = None
        self._plan: MeasurePlan | None = None
        self._planned: tuple[SelectStep, SelectionPlan, tuple[Cut, ...]] | None = (
            None  # of the last selection, asked for again
        )
        self._left = np.empty(
            0, np.int64
        )  # of the sums announced, what is still to come of the current selection's answers
        self._number = 0
        self._ended = False
        self._transcript = hashlib.sha256(
            b"cosynth public transcript\0"
            + _canonical(
                {
                    "sizes": dict(setting.sizes),
                    "adjacency": setting.adjacency,
                    "unit_rows": setting.unit_rows,
                    "row_cap": setting.row_cap,
                    "session": setting.session.hex(),
                    "gumbel": gumbel.SHA256,
                }
            )
        ).digest()

    @property
    def transcript(self) -> bytes:
        """32 bytes: the running hash of all that was public so far."""
        return self._transcript

    @property
    def cliques(self) -> Sequence[Clique]:
        """The clique of every handle."""
        return self._register.cliques

    @property
    def shared(self) -> Sequence[Clique]:
        """The cliques shared so far, in the order in which they were."""
        return self._register.shared

    @property
    def next_number(self) -> int:
        """The number that the next select, measure or total step must carry; the first is 0."""
        return self._number

    @property
    def row_bound(self) -> int:
        """n': at least the number of rows, except with the probability charged to the release that fixed it."""
        return self.setting.row_cap if self._bound is None else self._bound.rows

    @property
    def noisy_total(self) -> float | None:
        """N^ of the first release; None before it. May be negative for a small table."""
        return None if self._bound is None else float(self._bound.estimate)

    def derivation(self, handle: Handle) -> Derivation:
        """From which shared marginal a handle's is derived."""
        return self._register.derivation(handle)

    def cells(self, handle: Handle) -> int:
        """Number of cells of a handle's marginal."""
        return self.setting.cells(self._register.cliques[handle])

    # -- steps ---------------------------------------------------------------------------------------------------------

    def begin(self, step: Step) -> bytes:
        """Validate a step against the run so far, make its plan and advance the transcript; returns the hash of all inputs.

        Raises `ProtocolAborted` for a step out of order or an unknown handle, `StudyInvalid` if the mechanisms refuse it.
        """
        if self._ended or (self._current is not None and not isinstance(self._current, PrepareStep)):
            raise ProtocolAborted(
                "a step began before the one before it was finished, or after the end; stop the run"
            )
        agreed = step.to_bytes()
        if len(agreed) > MAX_BYTES:
            raise StudyInvalid(
                f"a step would take {len(agreed)} bytes, at most {MAX_BYTES} are allowed; ask for fewer marginals"
            )
        plan: MeasurePlan | None = None
        if isinstance(step, SelectStep | MeasureStep | TotalStep):
            if step.number != self._number:
                raise ProtocolAborted(
                    f"step {step.number} came where step {self._number} was due; stop the run"
                )
            if isinstance(step, SelectStep):
                agreed += _canonical(_plan_integers(self.plan_select(step)))
                if len(step.answers_digests) != len(self.cuts(step)):
                    raise ProtocolAborted(
                        f"step {step.number} announces answers of another number of groups; stop the run"
                    )
            else:
                plan = self.plan_measure(step) if isinstance(step, MeasureStep) else self.plan_total(step)
                agreed += plan.sampler.digest
            self._number += 1
        elif isinstance(step, PrepareStep):
            self.to_share(step)  # refuses what cannot be shared before anybody acts on it
        else:
            self._ended = True
        self._current, self._plan = step, plan
        self._advance(b"step", agreed)
        return self._transcript

    def to_share(self, step: PrepareStep) -> list[Clique]:
        """The cliques that must be shared for this step; call it before `prepare`. The others are sums of shared ones.

        Raises `StudyInvalid` for an unknown or repeated column and for a clique of more than 2^24 cells.
        """
        return self._register.to_share(step.cliques)

    def prepare(self, step: PrepareStep) -> list[Handle]:
        """The handles of the step's cliques; a known clique keeps its own. Errors as `to_share`."""
        return self._register.register(step.cliques)

    # -- plans ---------------------------------------------------------------------------------------------------------

    def plan_select(self, step: SelectStep) -> SelectionPlan:
        """Integers and event of a selection. Raises `StudyInvalid` (ring), `ProtocolAborted` (unknown handle)."""
        return self._planned_select(step)[0]

    def cuts(self, step: SelectStep) -> tuple[Cut, ...]:
        """The groups of the candidates kept, and how their cells are dealt. Errors as `plan_select`."""
        return self._planned_select(step)[1]

    def plan_measure(self, step: MeasureStep) -> MeasurePlan:
        """Sampler and event of a batch of marginals. Raises `StudyInvalid` (variance), `ProtocolAborted` (unknown handle)."""
        if step is self._current and isinstance(self._plan, MeasurePlan):
            return self._plan
        self._known(step.handles)
        cliques = [self._register.cliques[handle] for handle in step.handles]
        return plan_marginals(self.setting, cliques, step.sigma2, self.row_bound, first=self._bound is None)

    def plan_total(self, step: TotalStep) -> MeasurePlan:
        """Sampler and event of the number of rows. Raises `StudyInvalid` (variance)."""
        if step is self._current and isinstance(self._plan, MeasurePlan):
            return self._plan
        return plan_total(self.setting, step.sigma2, self.row_bound, first=self._bound is None)

    def select_step(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
    ) -> tuple[SelectStep, RoundedAnswers]:
        """For the leading party: the next selection as a step, and the rounded answers of the candidates kept.

        Candidates that cannot win are not even rounded. Raises `StudyInvalid` as `plan_select`, `ValueError` for answers of a
        wrong length or not finite.
        """
        self._known(handles)
        for handle, answer in zip(handles, answers, strict=True):
            if answer.shape != (self.cells(handle),):
                raise ValueError(
                    f"handle {handle} has {self.cells(handle)} cells, its answer has shape {answer.shape}"
                )
        sums = sum_bounds(handles, answers, self.row_bound)
        plan = self._plan_selection(weights, penalties, epsilon, sums)
        theta = rounding.theta_of(self.setting.session, self._number)
        cut = self._cuts(handles, plan)
        rounded = RoundedAnswers(cut, [answers[q] for q in plan.kept], self.row_bound, theta)
        step = SelectStep(
            self._number,
            tuple(handles),
            tuple(weights),
            tuple(penalties),
            epsilon,
            tuple(sums),
            rounded.digests(),
        )
        self._planned = step, plan, cut
        return step, rounded

    def check_answers(self, step: SelectStep, group: int, answers: Answers) -> None:
        """Check the rounded answers of one group of the candidates kept against the step: ranges, sums, hash. Groups in order.

        A dealer's answers that are known by their part alone are not looked at. Raises `ProtocolAborted`.
        """
        plan, cut = self.plan_select(step), self.cuts(step)[group]
        if group == 0:
            self._left = np.array([step.answer_sums[q] for q in plan.kept])
        fits = answers.cut is cut and int(answers.cells.max(initial=0)) <= plan.row_bound
        if fits:
            parts, left = answers.parts, self._left[cut.candidates]
            fits = (
                all(part.sums.shape == left.shape for part in parts)
                and answers.digest() == step.answers_digests[group]
            )
            fits = fits and all(bool((part.sums >= 0).all() and (part.sums <= left).all()) for part in parts)
        if fits:
            left -= sum(
                part.sums for part in parts
            )  # of a candidate in several groups, they share what was announced
            fits = bool((left >= 0).all())
        if not fits:
            raise ProtocolAborted(
                f"the model's answers of step {step.number} are not those that were announced; stop the run"
            )

    # -- what was opened -----------------------------------------------------------------------------------------------

    def learn_selection(self, step: SelectStep, position: int) -> None:
        """Record the opened position (in the step's handles). Raises `ProtocolAborted` if no kept candidate stands there."""
        if position not in self.plan_select(step).kept:
            raise ProtocolAborted(
                f"the selection of step {step.number} opened to position {position}, which was no candidate"
            )
        self._finish(step)
        self._advance(b"selected", position.to_bytes(8, "big"))

    def learn_counts(self, step: MeasureStep, counts: Sequence[NDArray[np.int64]]) -> None:
        """Record the opened noisy marginals, int64 of shape (cells,) per handle; the first batch fixes the row bound."""
        self._finish(step)
        cells = [self.cells(handle) for handle in step.handles]
        if [array.shape for array in counts] != [(n,) for n in cells]:
            raise ProtocolAborted(
                f"the measurement of step {step.number} opened to arrays of other sizes than its marginals"
            )
        if self._bound is None:
            totals = [int(array.sum(dtype=np.int64)) for array in counts]
            self._bound = RowBound.from_totals(totals, cells, step.sigma2, self.setting.row_cap)
        self._advance(b"counts", rounding.digest(counts))

    def learn_total(self, step: TotalStep, value: int) -> None:
        """Record the opened noisy number of rows; as the first release it fixes the row bound."""
        self._finish(step)
        if self._bound is None:
            self._bound = RowBound.from_totals([value], [1], step.sigma2, self.setting.row_cap)
        self._advance(b"total", value.to_bytes(16, "big", signed=True))

    # -- private -------------------------------------------------------------------------------------------------------

    def _plan_selection(
        self,
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        sums: Sequence[int],
    ) -> SelectionPlan:
        factor = self.setting.unit_rows * (2 if self.setting.adjacency == "replace" else 1)
        return plan_selection(weights, penalties, epsilon, sums, self.row_bound, factor)

    def _planned_select(self, step: SelectStep) -> tuple[SelectionPlan, tuple[Cut, ...]]:
        if self._planned is None or self._planned[0] is not step:
            self._known(step.handles)
            plan = self._plan_selection(step.weights, step.penalties, step.epsilon, step.answer_sums)
            self._planned = step, plan, self._cuts(step.handles, plan)
        return self._planned[1:]

    def _cuts(self, handles: Sequence[Handle], plan: SelectionPlan) -> tuple[Cut, ...]:
        kept = tuple(handles[q] for q in plan.kept)
        return cuts(kept, tuple(map(self.cells, kept)))

    def _known(self, handles: Sequence[Handle]) -> None:
        for handle in handles:
            if not 0 <= handle < len(self._register.cliques):
                raise ProtocolAborted(
                    f"a step names the handle {handle}, which was never prepared; stop the run"
                )

    def _finish(self, step: Step) -> None:
        if step is not self._current:
            raise ProtocolAborted(
                "a result was recorded for a step that is not the current one; stop the run"
            )
        self._current = None

    def _advance(self, label: bytes, content: bytes) -> None:
        header = len(label).to_bytes(1, "big") + label + len(content).to_bytes(8, "big")
        self._transcript = hashlib.sha256(self._transcript + header + content).digest()


def _plan_integers(plan: SelectionPlan) -> list[object]:
    rho = plan.event.rho
    return [
        plan.a, plan.sensitivity, plan.weights, plan.biases, plan.kept, plan.ring_bits, plan.sign_bits, plan.row_bound,
        rho.numerator, rho.denominator,
    ]  # fmt: skip
