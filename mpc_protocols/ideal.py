"""The ideal functionality: a trusted third party in the clear. IT PROTECTS NOTHING.

Problem: one object that answers a synthesizer's questions with exactly the law that the secure backends implement, for tests,
simulations and baselines (DESIGN 1: real/ideal is the architecture). It keeps the same public state, makes the same plans,
charges the same events before it answers, and samples from the same integer tables with the same references; only the shares
are missing: all custodians' counts lie in this process's memory as they are, and so does the noise.

Who learns what: whoever can read this process learns every count. Randomness comes from the operating system (`secrets`);
another source is for tests and simulations only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, Guard, Handle, LocalCounts, MarginalOracle, Setting
from mpc_protocols.mechanisms import gaussian, gumbel, selection
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.public.state import MeasureStep, PrepareStep, PublicState, TotalStep


class IdealOracle(MarginalOracle):
    """Answers in the clear, in one process: it protects nothing (see the module's docstring)."""

    def __init__(
        self,
        setting: Setting,
        counts: LocalCounts,
        guard: Guard,
        randomness: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """counts: the marginals of all custodians together. randomness: so many independent uniform bytes.

        Raises `StudyInvalid` if the setting is outside the ranges the mechanisms hold for.
        """
        self.setting = setting
        self._state = PublicState(setting)
        self._counts = counts
        self._guard = guard
        self._randomness = randomness
        self._shared: dict[Clique, NDArray[np.int64]] = {}
        self._derived: dict[Handle, NDArray[np.int64]] = {}

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

    def prepare(self, cliques: Sequence[Clique]) -> list[Handle]:
        """See `MarginalOracle`. Raises `StudyInvalid` (`PublicState.to_share`), `DataRefused` (more rows than the cap)."""
        if not cliques:
            return []
        step = PrepareStep(tuple(cliques))
        self._state.begin(step)
        fresh = self._state.to_share(step)
        for clique, cells in zip(fresh, self._counts(fresh) if fresh else [], strict=True):
            if cells.shape != (self.setting.cells(clique),) or cells.min() < 0:
                raise DataRefused(
                    f"The counts of {clique} are not {self.setting.cells(clique)} non-negative numbers"
                )
            if int(cells.sum()) > self.setting.row_cap:
                raise DataRefused(
                    f"The data has more than the declared {self.setting.row_cap} rows; raise max_rows in the study"
                )
            self._shared[clique] = cells.astype(np.int64, copy=False)
        return self._state.prepare(step)

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
    ) -> int:
        """See `MarginalOracle`; errors as `PublicState.select_step`."""
        step, rounded = self._state.select_step(handles, answers, weights, penalties, epsilon)
        inputs = self._state.begin(step)
        plan = self._state.plan_select(step)
        self._guard.authorise(plan.event, inputs)
        distances = [0] * len(plan.kept)
        for group in rounded:
            for q, span, cells in zip(
                group.cut.owners, group.cut.spans, group.cut.of_spans(group.cells), strict=True
            ):
                distances[q] += int(np.abs(self._marginal(span.handle)[span.start : span.stop] - cells).sum())
        scores = [
            plan.weights[q] * distance - plan.biases[q]
            for q, distance in zip(plan.kept, distances, strict=True)
        ]
        uniforms = [self._uniform(gumbel.BITS) for _ in scores]
        dithers = [self._uniform(plan.a) for _ in scores]
        position = plan.kept[selection.reference(scores, uniforms, dithers, plan.a)]
        self._state.learn_selection(step, position)
        return position

    def measure(self, handles: Sequence[Handle], sigma2: Fraction) -> list[NDArray[np.int64]]:
        """See `MarginalOracle`; errors as `PublicState.plan_measure`."""
        step = MeasureStep(self._state.next_number, tuple(handles), sigma2)
        inputs = self._state.begin(step)
        plan = self._state.plan_measure(step)
        self._guard.authorise(plan.event, inputs)
        cells = [self._state.cells(handle) for handle in handles]
        noise = np.split(sample(plan.sampler, sum(cells), self._randomness), np.cumsum(cells)[:-1])
        noisy = [self._marginal(handle) + part for handle, part in zip(handles, noise, strict=True)]
        self._state.learn_counts(step, noisy)
        return noisy

    def total(self, sigma2: Fraction) -> int:
        """See `MarginalOracle`; errors as `PublicState.plan_total`."""
        step = TotalStep(self._state.next_number, sigma2)
        inputs = self._state.begin(step)
        plan = self._state.plan_total(step)
        self._guard.authorise(plan.event, inputs)
        value = self._rows() + int(sample(plan.sampler, 1, self._randomness)[0])
        self._state.learn_total(step, value)
        return value

    def _marginal(self, handle: Handle) -> NDArray[np.int64]:
        if handle not in self._derived:
            derivation = self._state.derivation(handle)
            self._derived[handle] = derivation.apply(self._shared[derivation.source])
        return self._derived[handle]

    def _rows(self) -> int:
        """The number of rows: the sum of any marginal; of the smallest column's if nothing is prepared yet."""
        if self._shared:
            return int(next(iter(self._shared.values())).sum())
        smallest = min(self.setting.sizes, key=lambda column: self.setting.sizes[column])
        return int(self._counts([(smallest,)])[0].sum())

    def _uniform(self, bits: int) -> int:
        return int.from_bytes(self._randomness((bits + 7) // 8), "big") >> -bits % 8


def sample(
    of: Sampler, n: int, randomness: Callable[[int], bytes] = secrets.token_bytes
) -> NDArray[np.int64]:
    """n independent draws of a Gaussian sampler, int64 of shape (n,); exactly the law of its tables."""
    parts = len(of.parts)
    uniforms = np.frombuffer(randomness(8 * parts * n), dtype=np.uint64).reshape(parts, n)
    bits = np.frombuffer(randomness((parts * n + 7) // 8), dtype=np.uint8)
    return gaussian.reference_array(of, uniforms, np.unpackbits(bits, count=parts * n).reshape(parts, n))
