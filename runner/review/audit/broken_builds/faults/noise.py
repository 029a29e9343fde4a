"""Faults of noise: of its law, and of where its bits come from."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import ModuleType
from unittest import mock

from mpc_protocols.engine import prg
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.mechanisms import gaussian
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, replaced


def _sampler(change: Callable[[gaussian.Sampler], gaussian.Sampler]) -> Patch:
    """Measurements draw from other tables than are charged for."""
    return replaced(
        "mpc_protocols.mechanisms.measurement.sampler", lambda plain: lambda sigma2: change(plain(sigma2))
    )


def _with_thresholds(
    noise: gaussian.Sampler, of: Callable[[gaussian.HalfTable], Sequence[int]]
) -> gaussian.Sampler:
    parts = tuple((factor, replace(table, thresholds=tuple(of(table)))) for factor, table in noise.parts)
    return gaussian.Sampler(noise.sigma2, parts, noise.tv, noise.bound)


def noise_times(percent: int) -> Patch:
    """Measurements whose sigma is so many per cent of what is charged; noise too small to be seen stays."""

    def change(noise: gaussian.Sampler) -> gaussian.Sampler:
        factor = Fraction(percent, 100) if noise.sigma2 > 1 else Fraction(1)
        other = gaussian.sampler(noise.sigma2 * factor**2)
        return gaussian.Sampler(noise.sigma2, other.parts, noise.tv, other.bound)

    return _sampler(change)


def _rounded_gaussian() -> Patch:
    """|X| of a continuous Gaussian, rounded."""

    def thresholds(table: gaussian.HalfTable) -> list[int]:
        scale = math.sqrt(2 * float(table.sigma2))
        return [min(int(math.erf((j + 0.5) / scale) * 2**64), 2**64 - 1) for j in range(table.bound)]

    return _sampler(lambda noise: _with_thresholds(noise, thresholds) if noise.sigma2 > 1 else noise)


def _cut_tail() -> Patch:
    def thresholds(table: gaussian.HalfTable) -> Sequence[int]:
        return table.thresholds[: max(1, math.ceil(4 * math.sqrt(table.sigma2)))]

    return _sampler(lambda noise: _with_thresholds(noise, thresholds))


def _noise_of_another_release() -> Patch:
    return mock.patch.object(ComputingParty, "_release", lambda self, *of_release: bytes(32))


@contextmanager
def _derived(change: Callable[[bytes, bytes], bytes]) -> Iterator[None]:
    """Wherever stream keys are derived: change(key, purpose) takes the place of the key."""
    plain = prg.derive

    def derive(key: bytes, purpose: bytes, *context: bytes) -> bytes:
        return plain(change(key, purpose), purpose, *context)

    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("mpc_protocols.")
        and isinstance(module, ModuleType)
        and vars(module).get("derive") is plain
    ]
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "derive", derive))
        yield


def _noise_of_a_fixed_seed() -> Patch:
    return _derived(lambda key, purpose: bytes(32) if purpose == prg.NOISE else key)


MUTATIONS = (
    Mutation("M1", "noise whose sigma is 2 % too small", ("M.tables",), partial(noise_times, 98)),
    Mutation("M3", "a rounded continuous Gaussian", ("M.tables",), _rounded_gaussian),
    Mutation("M4", "a tail cut at 4 sigma", ("M.tables",), _cut_tail),
    Mutation("M5", "the same noise in two releases", ("V.streams",), _noise_of_another_release),
    Mutation("M6", "noise from a fixed seed", ("M.fresh",), _noise_of_a_fixed_seed),
)
