"""The ideal functionalities: a trusted third party in the clear. THEY PROTECT NOTHING.

Problem: one object that answers a synthesizer's questions with exactly the distribution that the secure
backends implement, for tests, simulations and baselines (`docs/architecture.md` 1). It keeps the same public
state, makes the same plans, charges the same events before it answers, and samples from the same integer
tables with the same references; only the shares are missing: all custodians' counts lie in this process's
memory as they are, and so does the noise.

Who learns what: whoever can read this process learns every count. Randomness comes from the operating system
(`secrets`); another source is for tests and simulations only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import (
    Clique,
    Guard,
    Handle,
    Level,
    LocalCounts,
    MarginalOracle,
    StudyFacts,
)
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.gaussian import sample
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.begun import Begun, BegunDistances, BegunMeasure, BegunSelect, BegunTotal
from mpc_protocols.public.cliques import counts_at_levels
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.public.rounded_answers import RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import MAX_COUNTS, MAX_KEYS

Randomness = Callable[[int], bytes]
"""So many independent uniform bytes."""
Watch = Callable[[Begun, RoundedAnswers | None], None]
"""What is told of every step as soon as it has begun: all public."""


def unwatched(begun: Begun, rounded: RoundedAnswers | None) -> None:
    """Watches nothing."""


class IdealOracle(MarginalOracle):
    """Answers in the clear, in one process: it protects nothing (see the module's docstring)."""

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        guard: Guard,
        randomness: Randomness = secrets.token_bytes,
        dealers: int = 3,
        watch: Watch = unwatched,
        history: History = NO_HISTORY,
    ) -> None:
        """counts: the marginals of all custodians together. dealers: as in `PublicState`, of the backend that
        this one stands for; its transcripts depend on it, its answers do not. history: what an earlier
        attempt at this run has opened.

        Raises `StudyInvalid` if the facts are outside the ranges the mechanisms hold for.
        """
        self.facts = facts
        self._state = PublicState(facts, dealers)
        self._counts = counts
        self._guard = guard
        self._randomness = randomness
        self._watch, self._history = watch, history
        self._shared: dict[Clique, NDArray[np.int64]] = {}
        self._derived: dict[Handle, NDArray[np.int64]] = {}
        self._expected: tuple[Fraction | None, bool] = None, False
        self._counts_ahead: list[tuple[Fraction, int]] = []
        self._keys = 0

    @property
    def state(self) -> PublicState:
        """Transcript, handles and bounds: all that is public."""
        return self._state

    @property
    def row_bound(self) -> int:
        return self._state.row_bound

    @property
    def noisy_total(self) -> float | None:
        return self._state.noisy_total

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        """See `MarginalOracle`. Raises `StudyInvalid` (`PublicState.begin`), `DataRefused` (more rows than
        the cap)."""
        if not cliques:
            return []
        begun = self._state.begin_prepare(cliques, levels)
        self._watch(begun, None)
        facts = self.facts.with_levels(begun.levels)
        counts = counts_at_levels(self._counts, self.facts, begun.levels)
        for clique, cells in zip(begun.fresh, counts(begun.fresh) if begun.fresh else [], strict=True):
            if cells.shape != (facts.cells(clique),) or cells.min() < 0:
                raise DataRefused(
                    f"The counts of {clique} are not {facts.cells(clique)} non-negative numbers."
                )
            if int(cells.sum()) > self.facts.row_cap:
                raise DataRefused(
                    f"The data has more than the declared {self.facts.row_cap} rows; raise max_rows in the study."
                )
            self._shared[clique] = cells.astype(np.int64, copy=False)
        return list(begun.handles)

    def expect(self, sigma2: Fraction, promised: bool = False) -> None:
        self._expected = sigma2, promised

    def expect_counts(self, sigma2: Fraction, number: int) -> None:
        self._counts_ahead.append((sigma2, min(max(number, 0), MAX_COUNTS)))

    def expect_keys(self, number: int) -> None:
        self._keys = min(max(number, 0), MAX_KEYS)

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        """See `MarginalOracle`; errors as `PublicState.begin_select`."""
        expected, self._expected = self._expected, (None, False)
        begun, rounded = self._state.begin_select(
            handles, answers, weights, penalties, epsilon, picks, conflicts, *expected
        )
        self._watch(begun, rounded)
        plan = begun.plan
        for event, inputs in begun.authorisations():
            self._guard.authorise(event, inputs)
        picked: list[int] = self._released(
            begun, lambda: np.array(self._pick(plan, rounded), np.int64)
        ).tolist()
        self._state.learn_selection(begun, picked)
        return picked

    def _pick(self, plan: SelectionPlan, rounded: RoundedAnswers) -> list[int]:
        """The picks in order: each the largest key, the lowest position among equal ones
        (`selection.reference`)."""
        scores, contenders = self._scores(plan, rounded), np.array(plan.contenders)
        largest = max(map(abs, scores)) + (gumbel.HIGH + 1 << plan.a)
        kind = np.int64 if largest < 1 << 63 else object  # integers of any size where a key needs them
        picked: list[int] = []
        while len(picked) < plan.picks and (candidates := plan.candidates(picked)):
            noise = gumbel.invert_all(self._uniform_bytes(gumbel.BITS, len(contenders)))
            dithers = self._uniforms(plan.a, len(contenders))
            keys = np.array(scores, kind) + (noise.astype(kind) << plan.a) + dithers
            left = np.flatnonzero(np.isin(contenders, candidates, assume_unique=True))
            picked.append(int(contenders[left[self._largest(keys[left])]]))
        return picked

    @staticmethod
    def _largest(keys: NDArray[Any]) -> int:
        """The place of the largest key, the first of equals."""
        return int(np.argmax(keys))

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        """See `MarginalOracle`; errors as `PublicState.begin_measure`."""
        begun = self._state.begin_measure(handles, sigma2, self._keys, self._counts_ahead)
        self._keys, self._counts_ahead = 0, []
        self._watch(begun, None)
        self._guard.authorise(begun.plan.event, begun.inputs)

        def counts() -> NDArray[np.int64]:
            noise = [
                sample(of, sum(cells), self._randomness)
                for of, cells in by_sampler(begun.plan.samplers, begun.cells)
            ]
            return np.concatenate([self._marginal(handle) for handle in handles]) + np.concatenate(noise)

        noisy = np.split(self._released(begun, counts), np.cumsum(begun.cells)[:-1])
        self._state.learn_counts(begun, noisy)
        return noisy

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        """See `MarginalOracle`; errors as `PublicState.begin_distances`."""
        begun, rounded = self._state.begin_distances(handles, answers, sigma2)
        self._watch(begun, rounded)
        self._guard.authorise(begun.plan.event, begun.inputs)

        def distances() -> NDArray[np.int64]:
            sums = np.array(self._l1_sums(len(handles), rounded), np.int64)
            return sums + sample(begun.plan.samplers[0], len(handles), self._randomness)

        noisy = self._released(begun, distances)
        self._state.learn_distances(begun, noisy)
        return noisy

    def total(self, sigma2: Fraction) -> int:
        """See `MarginalOracle`; errors as `PublicState.begin_total`."""
        begun = self._state.begin_total(sigma2, self._keys)
        self._keys = 0
        self._watch(begun, None)
        self._guard.authorise(begun.plan.event, begun.inputs)
        [value] = self._released(
            begun, lambda: self._rows() + sample(begun.plan.samplers[0], 1, self._randomness)
        ).tolist()
        self._state.learn_total(begun, value)
        return int(value)

    def _released(
        self,
        begun: BegunSelect | BegunMeasure | BegunDistances | BegunTotal,
        compute: Callable[[], NDArray[np.int64]],
    ) -> NDArray[np.int64]:
        """What a release comes to: what an earlier attempt made of it, else what is computed, on disk before
        it is used."""
        number, inputs = begun.step.number, begun.inputs
        known = self._history.opened(number, inputs)
        if known is not None:
            return known
        if (held := self._history.held(number, inputs)) is not None:
            values: NDArray[np.int64] = np.frombuffer(held, "<i8").astype(np.int64)
        else:
            values = compute()
            self._history.hold(number, inputs, lambda: values.astype("<i8").tobytes())
        self._history.learn(number, inputs, values)
        return values

    def _marginal(self, handle: Handle) -> NDArray[np.int64]:
        if handle not in self._derived:
            derivation = self._state.derivation(handle)
            self._derived[handle] = derivation.apply(self._shared[derivation.source])
        return self._derived[handle]

    def _scores(self, plan: SelectionPlan, rounded: RoundedAnswers) -> list[int]:
        """Of each contender."""
        sums = zip(plan.contenders, self._l1_sums(len(plan.contenders), rounded), strict=True)
        return [plan.weights[q] * distance - plan.biases[q] for q, distance in sums]

    def _l1_sums(self, candidates: int, rounded: RoundedAnswers) -> list[int]:
        """L1(M_q - c_q) of each candidate whose answers these are."""
        sums = np.zeros(candidates, np.int64)
        for group in rounded:
            layout = group.layout
            counts = layout.by_dealer(
                self._marginal(cells.handle)[cells.start : cells.stop] for cells in layout.ranges
            )
            differences = np.abs(counts.astype(np.int64) - group.cells)
            for dealer, place in enumerate(layout.places):
                sums[layout.candidates] += layout.sums(dealer, differences[place], np.int64)
        found: list[int] = sums.tolist()
        return found

    def _rows(self) -> int:
        """The number of rows: the sum of any marginal; of the smallest column's if nothing is prepared yet."""
        if self._shared:
            return int(next(iter(self._shared.values())).sum())
        smallest = min(self.facts.sizes, key=lambda column: self.facts.sizes[column])
        return int(self._counts([(smallest,)])[0].sum())

    def _uniforms(self, bits: int, count: int) -> NDArray[np.int64]:
        """So many independent uniform integers of so many bits, at most 56."""
        width, unused = (bits + 7) // 8, -bits % 8
        drawn = np.frombuffer(self._uniform_bytes(bits, count), np.uint8).reshape(count, width)
        padded = np.zeros((count, 8), np.uint8)
        padded[:, 8 - width :] = drawn
        return padded.view(">i8")[:, 0].astype(np.int64) >> unused

    def _uniform_bytes(self, bits: int, count: int) -> bytes:
        """For so many integers of so many bits, each big-endian in as few bytes as hold it; the last bits are
        surplus."""
        return self._randomness((bits + 7) // 8 * count)
