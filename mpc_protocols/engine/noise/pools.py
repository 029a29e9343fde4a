"""Where a run's noise comes from: two pools, what is made for one release, and what is made while something
else is computed.

The noise of a selection's keys and of a measurement's counts is made in one of three ways, alike at all
parties:

    keys     taken from the pool; where that runs out, made beside the scores, which take fewer rounds; where selections are
             expected (`MarginalOracle.expect_keys`), values are drawn beside the noise of the counts before them, and get
             the grid of the first selection beside its scores
    counts   taken from the pool; made where they are needed, if nobody said before what would be measured
    ahead    beside a selection, what the measurement of its picks will take (`MarginalOracle.expect`); where products are proved,
             also after a measurement, while the leader computes by itself

What a making is bound to, and what pools promise: `pool`. Threat model: the backend's; nothing is opened
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mpc_protocols.engine.bitwise.bits import B
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.interface import Engine, Gates, N
from mpc_protocols.engine.interleave import interleave
from mpc_protocols.engine.noise.pool import (
    GAUSSIAN_ROWS,
    GUMBEL_ROWS,
    NoisePool,
)
from mpc_protocols.engine.noise.sampling import (
    dithered,
    gaussian_adder,
    gaussian_noise,
    gaussian_noises,
    gumbel_adder,
    gumbel_noise,
    gumbel_values,
)
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.begun import BegunMeasure, BegunSelect

R = TypeVar("R")
Release = Callable[[int, str, bytes], bytes]
"""What noise is bound to: of a step's number, a mechanism and the hash of all public inputs."""


def ring_of(plan: SelectionPlan) -> UInt:
    """In which the keys of a selection are added up."""
    return np.uint32 if plan.ring_bits == 32 else np.uint64


@dataclass
class Rows:
    """How much of either noise a party has made so far."""

    gumbel: int = 0
    gaussian: int = 0


class NoisePools(Generic[B, N]):
    """The noise of one computing party's run."""

    def __init__(self, engine: Engine[B, N], release: Release, latency_bytes: int, ahead: bool) -> None:
        """latency_bytes: what a round is worth. ahead: whether noise is made ahead."""
        self._engine, self._release = engine, release
        gumbel_bytes, gaussian_bytes = engine.noise_bytes
        self._gumbel = self._pool(latency_bytes, GUMBEL_ROWS, gumbel_bytes) if ahead else NoisePool[N](0)
        self._gaussian = (
            self._pool(latency_bytes, GAUSSIAN_ROWS, gaussian_bytes) if ahead else NoisePool[N](0)
        )
        self._unmeasured: BegunSelect | None = None
        """Where products are proved: the last selection that took noise and since which nothing was measured."""
        self._values: tuple[list[B], int] | None = None
        """Bits of Gumbel values that have no grid yet, and how many."""
        self.rows = Rows()

    @staticmethod
    def _pool(latency_bytes: int, rows: int, row_bytes: int) -> NoisePool[N]:
        return NoisePool[N].at(latency_bytes, rows, row_bytes)

    # -- keys
    # ----------------------------------------------------------------------------------------------------------------

    def key_shortfall(self, plan: SelectionPlan) -> int:
        """Rows that the keys of a selection lack."""
        return self._gumbel.shortfall(*_kind_and_count(plan))

    def has_values(self, plan: SelectionPlan) -> bool:
        """Whether what the keys of a selection lack is drawn and lacks but their grid."""
        return self._values is not None and self._values[1] >= _kind_and_count(plan)[1]

    def key_form(self, rows: int) -> str:
        """How the noise of keys comes about, of which so many rows are lacking, for observers."""
        return gumbel_adder(rows, self._engine.gates.latency_bytes) if rows else "ahead"

    def of_keys(self, begun: BegunSelect, scores: Callable[[], N]) -> tuple[N, N]:
        """The scores, and the noise of the contenders' keys, those of each pick after those of the one
        before.

        Noise that has to be made takes more rounds than the scores: what measuring the picks will take is
        made meanwhile.
        """
        plan, gates = begun.plan, self._engine.gates
        kind, count = _kind_and_count(plan)
        if self._gumbel.shortfall(kind, count) and self.has_values(plan):
            computed = scores()
            while self._values is not None:  # until what runs beside has given them the grid
                gates.turn()
            return computed, self._gumbel.take(kind, count, None)
        lacking, fresh = self._gumbel.shortfall(kind, count), None
        if lacking:
            self._values = None
            release = self._release(begun.step.number, "select", begun.inputs)

            def scores_first() -> N:
                computed = scores()
                self._fill_expected(begun, self._make_expected(begun, gates))
                return computed

            computed, fresh = interleave(
                gates, scores_first, self._engine.beside, lambda: self._make_gumbel(plan, lacking, release)
            )
        else:
            computed = scores()
        self._unmeasured = begun if self._engine.proves else None
        return computed, self._gumbel.take(kind, count, fresh)

    # -- counts
    # --------------------------------------------------------------------------------------------------------------

    def has_counts(self, samplers: Sequence[tuple[Sampler, Sequence[int]]]) -> bool:
        """Whether the noise of these counts is there. samplers: of consecutive numbers, each with the lengths
        of its runs."""
        return len(samplers) == 1 and not self._gaussian.shortfall(samplers[0][0].digest, sum(samplers[0][1]))

    def of_counts(
        self,
        samplers: Sequence[tuple[Sampler, Sequence[int]]],
        number: int,
        mechanism: str,
        inputs: bytes,
        keys: int = 0,
    ) -> tuple[N, str]:
        """Of all numbers of a release, and how it came about. keys: of selections to come, which are drawn in the
        same rounds where this noise has to be made."""
        rows = 0 if self._engine.proves else min(keys, self._gumbel.most)
        if not rows or self.has_counts(samplers):
            return self._of_counts(samplers, number, mechanism, inputs)
        beside, release = self._engine.beside, self._release(number, "keys ahead", inputs)
        self.rows.gumbel += rows
        made, values = interleave(
            self._engine.gates,
            lambda: self._of_counts(samplers, number, mechanism, inputs),
            beside,
            lambda: gumbel_values(beside, beside.release_bits(release), rows),
        )
        self._values = values, rows
        return made

    def _of_counts(
        self, samplers: Sequence[tuple[Sampler, Sequence[int]]], number: int, mechanism: str, inputs: bytes
    ) -> tuple[N, str]:
        gates, release = self._engine.gates, self._release(number, mechanism, inputs)
        cells = sum(sum(lengths) for _, lengths in samplers)
        if len(samplers) > 1:  # of different kinds: made for this release, all in the same rounds
            counts = [(sampler, sum(lengths)) for sampler, lengths in samplers]
            self.rows.gaussian += cells
            return gaussian_noises(gates, gates.release_bits(release), counts, np.uint32), "fresh"
        [(sampler, _)] = samplers
        lacking = self._gaussian.shortfall(sampler.digest, cells)
        fresh = self._make_gaussian(sampler, lacking, release, gates) if lacking else None
        noise = self._gaussian.take(sampler.digest, cells, fresh)
        return noise, gaussian_adder(sampler, lacking, gates.latency_bytes) if lacking else "ahead"

    # -- ahead
    # ---------------------------------------------------------------------------------------------------------------

    def beside(self, begun: BegunSelect, compute: Callable[[], R]) -> R:
        """A selection whose keys have their noise, or values of it; in the same rounds, their grid, and the noise that
        measuring its picks will take."""
        lacking = self._gumbel.shortfall(*_kind_and_count(begun.plan))
        if not lacking and not self._expected_shortfall(begun):
            return compute()
        gates, beside = self._engine.gates, self._engine.beside

        def made() -> N | None:
            if lacking:
                self._give_grid(begun)
            return self._make_expected(begun, beside)

        result, fresh = interleave(gates, compute, beside, made)
        self._fill_expected(begun, fresh)
        return result

    def _give_grid(self, begun: BegunSelect) -> None:
        """Make the values that were drawn ahead the noise of this selection, and of others like it."""
        assert self._values is not None
        (values, rows), plan, beside = self._values, begun.plan, self._engine.beside
        source = beside.release_bits(self._release(begun.step.number, "grid", begun.inputs))
        self._gumbel.start(
            _kind_and_count(plan)[0], dithered(beside, source, values, rows, plan.a, ring_of(plan))
        )
        self._values = None

    @property
    def is_due(self) -> bool:
        """Whether there is noise to be made after a measurement, alike at all parties."""
        return self._unmeasured is not None

    def make_due(self, begun: BegunMeasure) -> None:
        """Make and prove the noise that the next selection like the last one will take, and the measurement
        after it.

        Runs after a measurement, at the leader while it computes by itself, for which the others wait.
        Nothing is opened. Where no products are proved, noise is made when it is needed.
        """
        if self._unmeasured is None:
            return
        selected, self._unmeasured = self._unmeasured, None
        number, inputs, beside = begun.step.number, begun.inputs, self._engine.beside
        kind, count = _kind_and_count(selected.plan)
        if lacking := self._gumbel.lacking(kind, count):
            fresh = self._make_gumbel(selected.plan, lacking, self._release(number, "select ahead", inputs))
            self._gumbel.fill(kind, count, fresh, beside.concatenate)
        if selected.expected is not None and (lacking := self._expected_shortfall(selected)):
            release = self._release(number, "measure ahead", inputs)
            self._fill_expected(selected, self._make_gaussian(selected.expected[0], lacking, release, beside))
        self._engine.settle()

    def _expected_shortfall(self, begun: BegunSelect) -> int:
        """Rows that the measurement of what is picked will lack, where it is known which."""
        sampler, most = begun.expected or (None, 0)
        return 0 if sampler is None else self._gaussian.lacking(sampler.digest, most)

    def _make_expected(self, begun: BegunSelect, gates: Gates[B, N]) -> N | None:
        lacking = self._expected_shortfall(begun)
        if begun.expected is None or not lacking:
            return None
        release = self._release(begun.step.number, "expected", begun.inputs)
        return self._make_gaussian(begun.expected[0], lacking, release, gates)

    def _fill_expected(self, begun: BegunSelect, fresh: N | None) -> None:
        if begun.expected is not None and fresh is not None:
            sampler, most = begun.expected
            self._gaussian.fill(sampler.digest, most, fresh, self._engine.beside.concatenate)

    def _make_gumbel(self, plan: SelectionPlan, rows: int, release: bytes) -> N:
        beside = self._engine.beside
        self.rows.gumbel += rows
        return gumbel_noise(beside, beside.release_bits(release), rows, plan.a, ring_of(plan))

    def _make_gaussian(self, sampler: Sampler, rows: int, release: bytes, gates: Gates[B, N]) -> N:
        self.rows.gaussian += rows
        noise = gaussian_noise(gates, gates.release_bits(release), sampler, rows, np.uint32)
        return self._engine.for_counts(gates, noise)


def _kind_and_count(plan: SelectionPlan) -> tuple[tuple[int, int], int]:
    """The kind of noise that a selection takes (`NoisePool`), and how much of it."""
    return (plan.a, plan.ring_bits), plan.picks * len(plan.contenders)
