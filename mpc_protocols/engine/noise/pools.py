"""Where a run's noise comes from: two pools, what is made for one release, and what is made while something
else is computed.

The noise of a selection's keys and of a measurement's counts is made in one of three ways, alike at all
parties:

    keys     taken from the pool; where that runs out, made beside the scores, which take fewer rounds; where selections are
             expected (`MarginalOracle.expect_keys`), values are drawn beside the noise of the counts before them, and get
             the grid of the first selection beside its scores
    counts   taken from the pool; made where they are needed, if nobody said before what would be measured
    ahead    beside a selection, what the measurement of its picks will take (`MarginalOracle.expect`); begun with the last rounds
             of the measurement before it, or drawn with the noise of that one, where it is said so early
             (`MarginalOracle.expect_counts`), since the making takes more rounds than a selection; where products are proved,
             also after a measurement, while the leader computes by itself

What a making is bound to, and what pools promise: `pool`. Threat model: the backend's; nothing is opened
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from mpc_protocols.engine.bitwise.bits import B
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.interface import Engine, Gates, N
from mpc_protocols.engine.interleave import Underway, alone, interleave
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
from mpc_protocols.public.begun import BegunDistances, BegunMeasure, BegunSelect, BegunTotal

R = TypeVar("R")
SPARE = 4
"""Of the counts that are told before a measurement, such a part is drawn ahead of it besides: most batches take no more of
what they may, so that one making serves several."""
Runs = Sequence[tuple[Sampler, int]]
"""So many draws of each, one after the other."""
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


@dataclass(frozen=True)
class Lacking(Generic[N]):
    """Rows of a kind that are made ahead of a measurement, and the pool that they are for. is_likeliest: whether that is the
    run's, and not one for this measurement alone."""

    pool: NoisePool[N]
    sampler: Sampler
    rows: int
    is_likeliest: bool = False


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
        self._underway: tuple[Underway[N], Sequence[Lacking[N]]] | None = None
        """Noise that a measurement began."""
        self._others: dict[bytes, NoisePool[N]] = {}
        """Of the next measurement, should it have another noise than the likeliest."""
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
            self.finish()  # which has the streams that this noise takes
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
        if len(samplers) != 1:
            return False
        [(sampler, lengths)] = samplers
        return not self._pool_of(sampler).shortfall(sampler.digest, sum(lengths))

    def of_counts(
        self,
        samplers: Sequence[tuple[Sampler, Sequence[int]]],
        number: int,
        mechanism: str,
        inputs: bytes,
        keys: int = 0,
        expected: Runs = (),
    ) -> tuple[N, str]:
        """Of all numbers of a release, and how it came about. keys, expected: of selections to come, and of the
        measurement after the next of them, which are drawn in the same rounds where this noise has to be made."""
        self.finish()
        rows = 0 if self._engine.proves else min(keys, self._gumbel.most)
        if not rows or self.has_counts(samplers):
            return self._of_counts(samplers, number, mechanism, inputs, expected)
        beside, release = self._engine.beside, self._release(number, "keys ahead", inputs)
        self.rows.gumbel += rows
        made, values = interleave(
            self._engine.gates,
            lambda: self._of_counts(samplers, number, mechanism, inputs, expected),
            beside,
            lambda: gumbel_values(beside, beside.release_bits(release), rows),
        )
        self._values = values, rows
        return made

    def _of_counts(
        self,
        samplers: Sequence[tuple[Sampler, Sequence[int]]],
        number: int,
        mechanism: str,
        inputs: bytes,
        expected: Runs,
    ) -> tuple[N, str]:
        gates, release = self._engine.gates, self._release(number, mechanism, inputs)
        cells = sum(sum(lengths) for _, lengths in samplers)
        if len(samplers) > 1:  # of different kinds: made for this release, all in the same rounds
            counts, ahead = (
                [(sampler, sum(lengths)) for sampler, lengths in samplers],
                self._lacking(expected),
            )
            noise = self._make_gaussians([*counts, *((of.sampler, of.rows) for of in ahead)], release, gates)
            self._keep(ahead, noise[cells:])
            return noise[:cells], "fresh"
        [(sampler, _)] = samplers
        pool = self._pool_of(sampler)
        lacking = pool.shortfall(sampler.digest, cells)
        fresh = self._make_gaussian(sampler, lacking, release, gates) if lacking else None
        noise = pool.take(sampler.digest, cells, fresh)
        return noise, gaussian_adder(sampler, lacking, gates.latency_bytes) if lacking else "ahead"

    # -- ahead
    # ---------------------------------------------------------------------------------------------------------------

    def beside(self, begun: BegunSelect, compute: Callable[[], R]) -> R:
        """A selection whose keys have their noise, or values of it; in the same rounds, their grid, and the noise that
        measuring its picks will take."""
        lacking = self._gumbel.shortfall(*_kind_and_count(begun.plan))
        gates, beside = self._engine.gates, self._engine.beside
        if self._underway is not None:  # begun by a measurement, before which no values were drawn
            with self._underway[0].beside(gates):
                result = compute()
            self.finish()
            return result
        if not lacking and not self._expected_shortfall(begun):
            return compute()

        def made() -> N | None:
            if lacking:
                self._give_grid(begun)
            return self._make_expected(begun, beside)

        result, fresh = interleave(gates, compute, beside, made)
        self._fill_expected(begun, fresh)
        return result

    @contextmanager
    def begun_beside(self, begun: BegunMeasure | BegunDistances | BegunTotal) -> Iterator[Callable[[], None]]:
        """Beside the opening of counts, whose noise is there: begin what the measurement after the next selection will take,
        if it is told and lacks. What is yielded lets it send its first messages; it goes on at the turns of the block, at the
        block's end, and beside the selection."""
        expected = begun.expected if isinstance(begun, BegunMeasure) and self._values is None else ()
        ahead, beside = self._lacking(expected), self._engine.beside
        if not ahead:
            yield alone
            return
        runs = [(of.sampler, of.rows) for of in ahead]
        self.rows.gaussian += sum(rows for _, rows in runs)
        source = beside.release_bits(self._release(begun.step.number, "counts ahead", begun.inputs))
        # without these pools, or what is under way would keep them, and nobody could stop it once a run has failed
        underway = Underway(beside, partial(gaussian_noises, beside, source, runs, np.uint32))
        self._underway = underway, ahead
        with underway.beside(self._engine.gates):
            yield underway.turn
        underway.turn()

    def finish(self) -> None:
        """Make the rest of the noise that a measurement began, if there is one: before anything else is made, and at the
        end of the run."""
        if self._underway is not None:
            (underway, ahead), self._underway = self._underway, None
            self._keep(ahead, underway.end())

    def _lacking(self, expected: Runs) -> list[Lacking[N]]:
        """What is to be made for a measurement that is told before the selection whose picks it will measure. Where it may
        have one of several noises, none is made for later ones."""
        if not expected or self._engine.proves or not self._gaussian.most:
            return []
        if all(self._pool_of(sampler).left(sampler.digest) >= counts for sampler, counts in expected):
            return []
        (sampler, counts), *others = expected
        left = self._gaussian.left(sampler.digest)
        rows = 0 if left >= counts else counts + (0 if others else counts // SPARE) - left
        found = [Lacking(self._gaussian, sampler, rows, is_likeliest=True)] if rows else []
        return found + [Lacking(NoisePool[N](0), of, count) for of, count in others if count]

    def _keep(self, ahead: Sequence[Lacking[N]], noise: N) -> None:
        """Noise that was made ahead of a measurement."""
        start = 0
        for of in ahead:
            made, start = noise[start : start + of.rows], start + of.rows
            of.pool.add(of.sampler.digest, made, self._engine.gates.concatenate)
        self._others = {of.sampler.digest: of.pool for of in ahead if not of.is_likeliest}

    def _pool_of(self, sampler: Sampler) -> NoisePool[N]:
        """Where the noise of a measurement is taken from."""
        return self._others.get(sampler.digest, self._gaussian)

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

    def _make_gaussians(self, runs: Runs, release: bytes, gates: Gates[B, N]) -> N:
        self.rows.gaussian += sum(count for _, count in runs)
        return gaussian_noises(gates, gates.release_bits(release), runs, np.uint32)

    def _make_gaussian(self, sampler: Sampler, rows: int, release: bytes, gates: Gates[B, N]) -> N:
        self.rows.gaussian += rows
        noise = gaussian_noise(gates, gates.release_bits(release), sampler, rows, np.uint32)
        return self._engine.for_counts(gates, noise)


def _kind_and_count(plan: SelectionPlan) -> tuple[tuple[int, int], int]:
    """The kind of noise that a selection takes (`NoisePool`), and how much of it."""
    return (plan.a, plan.ring_bits), plan.picks * len(plan.contenders)
