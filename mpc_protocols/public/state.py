"""What is public in a run, kept alike by every computing party: transcript, handles, bounds, plans.

Problem: the leading party says what is asked next (`steps`); each party must derive the same plan and the
same event from the same public inputs, and must notice at once if another party saw something else
(`docs/design/engine.md` 5, `docs/design/mechanisms.md` 4). So each keeps a `PublicState`, driven by the same
calls in the same order:

    begun = state.begin(step)         validates, plans, advances the transcript; returns all that follows from the step
    ... the guard authorises the events of begun.plan; the transcripts are compared; the protocol runs and opens ...
    state.learn_selection(begun, positions) / .learn_counts(begun, arrays) ...

The leading party begins a step before it announces it (`begin_select` and its like build the step), so that
what is refused is refused before anybody is told.

A step adds its bytes, the integers of its plan and the Gaussian tables it uses to the `transcript`, a release
what was opened.

Row bound: before any release the study's `row_cap`; the first measured batch (or `total`) fixes the tighter
bound of `docs/design/mechanisms.md` 5 and the noisy total, and both stay: later measurements do not move
them.

Everything here is public; no count, share or key enters it except noisy counts that have been released.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, overload

import numpy as np

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Handle, Level, StudyFacts
from mpc_protocols.mechanisms import rounding
from mpc_protocols.mechanisms.bounds import CELL_BITS, RowBound
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.mechanisms.measurement import plan_distances, plan_marginals, plan_total
from mpc_protocols.mechanisms.selection import SelectionPlan, plan_selection
from mpc_protocols.public.answers import DealerLayout, layouts
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunEnd,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.cliques import CliqueRegister, Derivation
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers, sum_bounds
from mpc_protocols.public.steps import (
    MAX_BYTES,
    DistanceStep,
    EndStep,
    MeasureStep,
    PrepareStep,
    SelectStep,
    Step,
    TotalStep,
)
from mpc_protocols.public.transcript import Transcript, canonical

if TYPE_CHECKING:
    from numpy.typing import NDArray


MAX_VARIANCES = 2048
"""Different variances of one measurement, each with a table of its own: more than a model may have columns."""


def _check_facts(facts: StudyFacts) -> None:
    for column, size in facts.sizes.items():
        if type(size) is not int or size < 1:
            raise StudyInvalid(f"The column {column!r} has size {size}, it must be a positive integer.")
    if facts.adjacency not in ("add-remove", "replace"):
        raise StudyInvalid(f"Adjacency is {facts.adjacency!r}, it must be 'add-remove' or 'replace'.")
    if facts.unit_rows < 1:
        raise StudyInvalid(f"A privacy unit has {facts.unit_rows} rows, it must have at least one.")
    if not 1 <= facts.row_cap < 1 << CELL_BITS - 1:
        raise StudyInvalid(
            f"Custodians times max_rows is {facts.row_cap}, it must be at least 1 and below 2^{CELL_BITS - 1}; change max_rows."
        )


class PublicState:
    """The public side of one run at one party. Not thread-safe; one step at a time."""

    def __init__(self, facts: StudyFacts, dealers: int) -> None:
        """dealers: into how many parts the cells of answers are cut (`answers`); a property of the backend.

        Raises `StudyInvalid` if the facts are outside the ranges the mechanisms hold for.
        """
        _check_facts(facts)
        self.facts = facts
        self.dealers = dealers
        self._register = CliqueRegister(facts)
        self._bound: RowBound | None = None
        self._open: bytes | None = None
        """The inputs of the release whose result is still to be learnt."""
        self.promised: MeasureStep | None = None
        """What the last selection promised, and nothing else may come next."""
        self._number = 0
        self._ended = False
        self._transcript = Transcript(facts)

    @property
    def transcript(self) -> bytes:
        """32 bytes: the running hash of all that was public so far."""
        return self._transcript.value

    @property
    def cliques(self) -> Sequence[Clique]:
        """The clique of every handle."""
        return self._register.cliques

    @property
    def shared(self) -> Sequence[Clique]:
        """The cliques shared so far, in the order in which they were."""
        return self._register.shared

    @property
    def row_bound(self) -> int:
        """n': at least the number of rows, except with the probability charged to the release that fixed it."""
        return self.facts.row_cap if self._bound is None else self._bound.rows

    @property
    def noisy_total(self) -> float | None:
        """N^ of the first release; None before it. May be negative for a small table."""
        return None if self._bound is None else float(self._bound.estimate)

    def derivation(self, handle: Handle) -> Derivation:
        """From which shared marginal a handle's is derived."""
        return self._register.derivation(handle)

    def cells(self, handle: Handle) -> int:
        """Number of cells of a handle's marginal."""
        return self._register.cells[handle]

    # -- the leading party builds a step and begins it
    # -----------------------------------------------------------------

    def begin_prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> BegunPrepare:
        """Make marginals available; levels that are known already are not announced again. Errors as `begin`."""
        return self.begin(PrepareStep(tuple(cliques), tuple(self._register.unknown(levels))))

    def begin_select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
        expected: Fraction | None = None,
        promised: bool = False,
    ) -> tuple[BegunSelect, RoundedAnswers]:
        """The next selection, and the rounded answers of its contenders; the other candidates are not even
        rounded.

        Raises as `begin`, `ValueError` for answers of a wrong length or not finite, or arguments that do not
        fit together.
        """
        self._check_answers(handles, answers)
        sums = sum_bounds(handles, answers, self.row_bound)
        apart = _by_first(len(handles), conflicts)
        plan = self._plan_selection(weights, penalties, epsilon, sums, picks, apart)
        groups = self._groups([handles[q] for q in plan.contenders])
        rounded = self._rounded(groups, [answers[q] for q in plan.contenders])
        step = SelectStep(
            self._number,
            tuple(handles),
            tuple(weights),
            tuple(penalties),
            epsilon,
            tuple(sums),
            rounded.digests(),
            picks,
            apart,
            expected,
            promised,
        )
        return self._begin_select(step, plan, groups), rounded

    def begin_measure(
        self,
        handles: Sequence[Handle],
        sigma2: Fraction | Sequence[Fraction],
        keys: int = 0,
        expected: Sequence[tuple[Fraction, int]] = (),
    ) -> BegunMeasure:
        """The next measurement. Raises as `begin`, `ValueError` for another number of variances than handles."""
        if not isinstance(sigma2, Fraction):
            if len(sigma2) != len(handles):
                raise ValueError(f"{len(sigma2)} variances do not belong to {len(handles)} marginals.")
            sigma2 = sigma2[0] if len(set(sigma2)) == 1 else tuple(sigma2)
        if self.promised is not None:  # it was promised without
            keys, expected = 0, ()
        return self.begin(MeasureStep(self._number, tuple(handles), sigma2, keys, tuple(expected)))

    def begin_distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> tuple[BegunDistances, RoundedAnswers]:
        """The next distances, and the rounded answers. Raises as `begin_select`."""
        self._check_answers(handles, answers)
        sums = sum_bounds(handles, answers, self.row_bound)
        rounded = self._rounded(self._groups(handles), answers)
        step = DistanceStep(self._number, tuple(handles), sigma2, tuple(sums), rounded.digests())
        return self.begin(step), rounded

    def begin_total(self, sigma2: Fraction, keys: int = 0) -> BegunTotal:
        """The number of rows. Raises as `begin`."""
        return self.begin(TotalStep(self._number, sigma2, keys))

    def begin_end(self) -> BegunEnd:
        """The end of the run. Raises as `begin`."""
        return self.begin(EndStep())

    # -- steps
    # ---------------------------------------------------------------------------------------------------------

    @overload
    def begin(self, step: PrepareStep) -> BegunPrepare: ...
    @overload
    def begin(self, step: SelectStep) -> BegunSelect: ...
    @overload
    def begin(self, step: MeasureStep) -> BegunMeasure: ...
    @overload
    def begin(self, step: DistanceStep) -> BegunDistances: ...
    @overload
    def begin(self, step: TotalStep) -> BegunTotal: ...
    @overload
    def begin(self, step: EndStep) -> BegunEnd: ...
    @overload
    def begin(self, step: Step) -> Begun: ...

    def begin(self, step: Step) -> Begun:
        """Validate a step against the run so far, plan it and advance the transcript; returns all that
        follows from it.

        Raises `ProtocolAborted` for a step out of order or an unknown handle, `StudyInvalid` if the
        mechanisms refuse it, or if its marginals cannot be shared: an unknown or repeated column, more than
        2^24 cells, a level that does not fit.
        """
        if isinstance(step, PrepareStep):
            self._check_order(step)
            known = self._register.declare(step.levels)
            try:
                fresh = self._register.to_share(step.cliques)
            except StudyInvalid:
                self._register.forget(known)
                raise
            handles = self._register.register(step.cliques, fresh)
            levels = self._register.levels_of(fresh)
            return BegunPrepare(
                step, self._transcript.add(b"step", step.to_bytes()), tuple(handles), tuple(fresh), levels
            )
        if isinstance(step, SelectStep):
            self._check_handles(step.handles)
            plan = self._plan_selection(
                step.weights, step.penalties, step.epsilon, step.answer_sums, step.picks, step.conflicts
            )
            return self._begin_select(step, plan, self._groups([step.handles[q] for q in plan.contenders]))
        if isinstance(step, MeasureStep):
            self._check_handles(step.handles)
            if (different := len(set(step.variances))) > MAX_VARIANCES:
                raise StudyInvalid(
                    f"A measurement would have {different} different variances, at most {MAX_VARIANCES} are allowed; use fewer."
                )
            batch = plan_marginals(
                self._register.facts,
                [self.cliques[handle] for handle in step.handles],
                step.variances,
                self.row_bound,
                first=self._bound is None,
            )
            promised = self.promised is not None
            expected = tuple((sampler(sigma2), counts) for sigma2, counts in step.expected)
            inputs = self._begin_release(step, batch.digest + b"".join(noise.digest for noise, _ in expected))
            self.promised = None
            cells = tuple(map(self.cells, step.handles))
            return BegunMeasure(step, inputs, batch, cells, promised, expected)
        if isinstance(step, DistanceStep):
            return self._begin_distances(step)
        if isinstance(step, TotalStep):
            rows = plan_total(self.facts, step.sigma2, self.row_bound, first=self._bound is None)
            return BegunTotal(step, self._begin_release(step, rows.digest), rows)
        self._check_order(step)
        self._ended = True
        return BegunEnd(step, self._transcript.add(b"step", step.to_bytes()))

    # -- what was opened
    # -----------------------------------------------------------------------------------------------

    def learn_selection(self, begun: BegunSelect, positions: Sequence[int]) -> None:
        """Record the opened positions (in the step's handles), in order.

        Raises `ProtocolAborted` if one of them was no candidate of its pick, or if picks are lacking.
        """
        self._finish(begun)
        for number, position in enumerate(positions):
            if position not in begun.plan.candidates(positions[:number]):
                raise ProtocolAborted(
                    f"The selection of step {begun.step.number} opened to position {position}, which was no candidate."
                )
            self._transcript.add(b"selected", position.to_bytes(8, "big"))
        if len(positions) != begun.step.picks and begun.plan.candidates(positions):
            raise ProtocolAborted(
                f"The selection of step {begun.step.number} opened to {len(positions)} positions, "
                f"{begun.step.picks} were due."
            )
        if begun.step.promised:
            assert begun.step.expected is not None
            handles = tuple(begun.step.handles[position] for position in positions)
            self.promised = MeasureStep(self._number, handles, begun.step.expected)

    def learn_counts(self, begun: BegunMeasure, counts: Sequence[NDArray[np.int64]]) -> None:
        """Record the opened noisy marginals, int64 of shape (cells,) per handle; the first batch fixes the
        row bound."""
        self._finish(begun)
        if [array.shape for array in counts] != [(n,) for n in begun.cells]:
            raise ProtocolAborted(
                f"The measurement of step {begun.step.number} opened to arrays of other sizes than its marginals."
            )
        if self._bound is None:
            totals = [int(array.sum(dtype="int64")) for array in counts]
            self._bound = RowBound.from_totals(totals, begun.cells, begun.step.variances, self.facts.row_cap)
        self._transcript.add(b"counts", rounding.digest(counts))

    def learn_distances(self, begun: BegunDistances, values: NDArray[np.int64]) -> None:
        """Record the opened noisy distances, int64 of shape (handles,)."""
        self._finish(begun)
        if values.shape != (len(begun.step.handles),):
            raise ProtocolAborted(
                f"The distances of step {begun.step.number} opened to another number of values than its marginals."
            )
        self._transcript.add(b"distances", rounding.digest([values]))

    def learn_total(self, begun: BegunTotal, value: int) -> None:
        """Record the opened noisy number of rows; as the first release it fixes the row bound."""
        self._finish(begun)
        if self._bound is None:
            self._bound = RowBound.from_totals([value], [1], [begun.step.sigma2], self.facts.row_cap)
        self._transcript.add(b"total", value.to_bytes(16, "big", signed=True))

    def leave_out(self, contributor: int) -> None:
        """Record that a contributor's counts are no longer in any marginal (`engine.inputs.check`)."""
        self._transcript.add(b"left out", contributor.to_bytes(8, "big"))

    # -- private
    # -------------------------------------------------------------------------------------------------------

    def _begin_select(
        self, step: SelectStep, plan: SelectionPlan, groups: tuple[DealerLayout, ...]
    ) -> BegunSelect:
        announced = self._announced(
            step, groups, [step.answer_sums[q] for q in plan.contenders], plan.row_bound
        )
        expected, table = None, b""
        if step.expected is not None:
            noise = sampler(step.expected)
            cells = sorted((self.cells(step.handles[q]) for q in plan.contenders), reverse=True)
            expected, table = (noise, sum(cells[: plan.picks])), noise.digest
        inputs = self._begin_release(step, canonical(_plan_integers(plan)) + table)
        return BegunSelect(step, inputs, plan, announced, expected)

    def _begin_distances(self, step: DistanceStep) -> BegunDistances:
        self._check_handles(step.handles)
        if self._bound is None:
            raise StudyInvalid("Distances can be asked for only when a noisy total is known; measure before.")
        cliques = [self.cliques[handle] for handle in step.handles]
        plan = plan_distances(self.facts, cliques, step.answer_sums, step.sigma2, self.row_bound)
        groups = self._groups(step.handles)
        announced = self._announced(step, groups, step.answer_sums, self.row_bound)
        return BegunDistances(step, self._begin_release(step, plan.digest), plan, announced)

    def _announced(
        self,
        step: SelectStep | DistanceStep,
        groups: tuple[DealerLayout, ...],
        sums: Sequence[int],
        row_bound: int,
    ) -> AnnouncedAnswers:
        if len(step.answers_digests) != len(groups):
            raise ProtocolAborted(
                f"Step {step.number} announces answers of another number of groups; stop the run."
            )
        return AnnouncedAnswers(step.number, groups, tuple(sums), step.answers_digests, row_bound)

    def _check_order(self, step: Step) -> None:
        if self._ended or self._open is not None:
            raise ProtocolAborted(
                "A step began before the one before it was finished, or after the end; stop the run."
            )
        if self.promised is not None and step != self.promised:
            raise ProtocolAborted(
                "A step came in place of the measurement that the selection before it had promised; stop the run."
            )
        if len(step.to_bytes()) > MAX_BYTES:
            raise StudyInvalid(
                f"A step would take {len(step.to_bytes())} bytes, at most {MAX_BYTES} are allowed; ask for fewer marginals."
            )

    def _begin_release(self, step: SelectStep | MeasureStep | DistanceStep | TotalStep, plan: bytes) -> bytes:
        """plan: what of the step's plan is agreed upon besides the step."""
        self._check_order(step)
        if step.number != self._number:
            raise ProtocolAborted(f"Step {step.number} came where step {self._number} was due; stop the run.")
        self._number += 1
        self._open = self._transcript.add(b"step", step.to_bytes() + plan)
        return self._open

    def _plan_selection(
        self,
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        sums: Sequence[int],
        picks: int,
        conflicts: Sequence[Sequence[int]],
    ) -> SelectionPlan:
        factor = self.facts.unit_rows * (2 if self.facts.adjacency == "replace" else 1)
        return plan_selection(weights, penalties, epsilon, sums, self.row_bound, factor, picks, conflicts)

    def _groups(self, handles: Sequence[Handle]) -> tuple[DealerLayout, ...]:
        return layouts(tuple(handles), tuple(map(self._register.cells.__getitem__, handles)), self.dealers)

    def _rounded(
        self, groups: tuple[DealerLayout, ...], answers: Sequence[NDArray[np.float64]]
    ) -> RoundedAnswers:
        theta = rounding.theta_of(self.facts.session, self._number)
        return RoundedAnswers(groups, answers, self.row_bound, theta)

    def _check_answers(self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]]) -> None:
        self._check_handles(handles)
        due = self._register.cells
        for handle, answer in zip(handles, answers, strict=True):
            if answer.shape != (due[handle],):
                raise ValueError(
                    f"Handle {handle} has {due[handle]} cells, its answer has shape {answer.shape}."
                )

    def _check_handles(self, handles: Sequence[Handle]) -> None:
        known = range(len(self._register.cliques))
        for handle in handles:
            if handle not in known:
                raise ProtocolAborted(
                    f"A step names the handle {handle}, which was never prepared; stop the run."
                )

    def _finish(self, begun: BegunSelect | BegunMeasure | BegunDistances | BegunTotal) -> None:
        if begun.inputs != self._open:
            raise ProtocolAborted(
                "A result was recorded for a step that is not the current one; stop the run."
            )
        self._open = None


def _by_first(n: int, conflicts: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """For each candidate the later ones that it is in conflict with, ascending. Raises `ValueError` unless p
    < q in each pair."""
    return _listed(n, tuple(conflicts)) if conflicts else ()


@lru_cache(maxsize=2)  # the next selection has often the same candidates
def _listed(n: int, conflicts: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    """As `_by_first`, of one conflict or more."""
    p, q = np.fromiter(chain.from_iterable(conflicts), np.int64, 2 * len(conflicts)).reshape(-1, 2).T
    if not bool(((p >= 0) & (p < q) & (q < n)).all()):
        wrong = next((p, q) for p, q in conflicts if not 0 <= p < q < n)
        raise ValueError(f"A conflict is a pair of positions in ascending order, not {wrong}.")
    p, q = np.divmod(np.unique(p * n + q), n)
    ends = np.searchsorted(p, np.arange(1, n)).tolist()
    later = q.tolist()
    return tuple(tuple(later[start:stop]) for start, stop in pairwise((0, *ends, len(later))))


def _plan_integers(plan: SelectionPlan) -> list[object]:
    rho = plan.event.rho
    return [
        plan.a, plan.sensitivity, plan.weights, plan.biases, plan.contenders, plan.ring_bits, plan.sign_bits, plan.row_bound,
        rho.numerator, rho.denominator,
    ]  # fmt: skip
