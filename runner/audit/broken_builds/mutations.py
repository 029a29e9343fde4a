"""Builds that are broken on purpose: the audit must find each fault by a check that is named for it, or it proves nothing.

A mutation replaces functions of the product while a block runs, in a process of its own (`campaign`): no file changes. Numbers
are those of `docs/design/audit.md` 4, which also lists the faults that no mutation makes yet.
"""

from __future__ import annotations

import json
import logging
import math
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.engine import prg
from mpc_protocols.engine.inputs import contribution
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.mechanisms.measurement import MeasurePlan
from mpc_protocols.mechanisms.randomised_response import GRID, Response, certified
from mpc_protocols.mechanisms.selection import SelectionPlan
from parties.budget.journal import Journal
from parties.session.admission.config import SessionConfig
from parties.session.admission.identity import Identity
from parties.session.transport import frames
from runner.audit.broken_builds import faults
from runner.audit.broken_builds.faults import admission
from runner.audit.broken_builds.faults.mutation import Aside, Mutation, Patch, replaced
from runner.audit.subjects import arena
from runner.audit.subjects.processes import deployment
from synth.algorithms.vertimrf.encoders import sketches
from synth.budget import accounting
from synth.mrf import Model

TIMEOUT_S = 600


@dataclass(frozen=True)
class Caught:
    """What became of a mutation. caught_by: of the checks named for it, those that failed, with any seed.

    seeds: with how many it was tried. caught: with how many of these a check named for it failed.
    """

    name: str
    words: str
    expected: tuple[str, ...]
    caught_by: tuple[str, ...]
    seeds: int = 1
    caught: int = 0
    wall_s: float = 0.0

    @property
    def found(self) -> bool:
        """Whether a check that is named for it failed, with each seed."""
        return self.caught == self.seeds


# -- noise -------------------------------------------------------------------------------------------------------------


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


def _half_charge() -> Patch:
    """A measurement is charged as if its sensitivity were smaller by sqrt(2)."""

    def halved(made: MeasurePlan) -> MeasurePlan:
        return replace(made, event=replace(made.event, rho=made.event.rho / 2))

    return replaced(
        "mpc_protocols.public.state.plan_marginals",
        lambda plain: lambda *given, **named: halved(plain(*given, **named)),
    )


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


# -- selections --------------------------------------------------------------------------------------------------------


def _hot_selection() -> Patch:
    """Scores count twice as much as is charged for."""

    def doubled(made: SelectionPlan) -> SelectionPlan:
        weights, biases = ([2 * each for each in numbers] for numbers in (made.weights, made.biases))
        return replace(made, weights=tuple(weights), biases=tuple(biases))

    return replaced(
        "mpc_protocols.public.state.plan_selection",
        lambda plain: lambda *given, **named: doubled(plain(*given, **named)),
    )


def _opened_scores() -> Patch:
    plain = ComputingParty.select

    def select(self: Any, begun: Any, rounded: Any) -> list[int]:
        engine, keys = self.engine, self.engine.keys

        def opened(*given: Any) -> Any:
            made = keys(*given)
            engine.reveal(made)
            return made

        with mock.patch.object(engine, "keys", opened):
            return plain(self, begun, rounded)

    return mock.patch.object(ComputingParty, "select", select)


# -- shares ------------------------------------------------------------------------------------------------------------


def _known_mask() -> Patch:
    """A custodian masks its counts by a stream that everybody can compute."""
    return mock.patch.object(
        contribution,
        "_stream",
        lambda wire, seed: prg.KeyStream(prg.derive(wire.session_id, prg.CONTRIBUTION)),
    )


class _Shallow(prg.KeyStream):
    """Streams whose words have 8 low bits of 0."""

    def draw(self, shape: Any, dtype: Any, operation: int) -> Any:
        return super().draw(shape, dtype, operation) & ~np.array(255, dtype)


def _bare_low_bits() -> Patch:
    return mock.patch.object(
        contribution,
        "_stream",
        lambda wire, seed: _Shallow(prg.derive(seed, prg.CONTRIBUTION, wire.session_id)),
    )


def _short_signs() -> Patch:
    return replaced(
        "mpc_protocols.public.rounded_answers.sign_bits", lambda plain: lambda bound: plain(bound) - 1
    )


def _counted_twice() -> Patch:
    """A custodian's rows count twice."""
    plain = contribution.local_cells
    return mock.patch.object(
        contribution, "local_cells", lambda *given: [2 * cells for cells in plain(*given)]
    )


# -- what is told ------------------------------------------------------------------------------------------------------


def _count_in_the_log() -> Patch:
    plain = contribution.local_cells

    def local_cells(*given: Any) -> Any:
        cells = plain(*given)
        logging.getLogger("cosynth").debug("cells in use: %d", sum(int((each > 0).sum()) for each in cells))
        return cells

    return mock.patch.object(contribution, "local_cells", local_cells)


def _word_of_the_empty() -> Patch:
    """A custodian without rows says so."""
    plain, aside = contribution.send_masked, Aside("empty")

    def send_masked(wire: Any, facts: Any, counts: Any, cliques: Any, *given: Any) -> None:
        plain(wire, facts, counts, cliques, *given)
        if counts is not None and not any(cells.any() for cells in counts([cliques[0]])):
            aside.of(wire).send(given[-1], b"\0")

    return mock.patch.object(contribution, "send_masked", send_masked)


# -- accounts ----------------------------------------------------------------------------------------------------------


def _uncharged() -> Patch:
    """Every second release is opened without an event."""
    plain = ComputingParty._authorise

    def authorise(self: Any, events: Any, exchange: Any = None) -> None:
        self.audited = getattr(self, "audited", 0) + 1
        plain(self, events if self.audited % 2 else [], exchange)

    return mock.patch.object(ComputingParty, "_authorise", authorise)


def _loose_conversion() -> Patch:
    plain = accounting._penalty
    return mock.patch.object(
        accounting, "_penalty", lambda a, log_delta: plain(a, log_delta * Decimal("0.98"))
    )


# -- published schemes -------------------------------------------------------------------------------------------------


def _owners_own_keys() -> Patch:
    """Sketches of different owners do not merge, and no row spans them: not what was published."""
    plain = sketches.Sketches.encode

    def encode(self: sketches.Sketches, codes: Mapping[str, Any], key: bytes) -> bytes:
        return plain(self, codes, key + next(iter(codes)).encode())

    return mock.patch.object(sketches.Sketches, "encode", encode)


def _half_response() -> Patch:
    """The cost of randomised response as it is printed."""
    return mock.patch.object(Response, "rho", property(lambda self: certified(self, GRID) / 2))


def _sketches_everywhere() -> Patch:
    return replaced("synth.algorithms.vertimrf.algorithm.encoder_of", lambda _: sketches.Sketches)


# -- bytes of others ---------------------------------------------------------------------------------------------------


def _endless_frames() -> Patch:
    return mock.patch.dict(frames.MAX_PAYLOAD, {kind: 1 << 32 for kind in frames.MAX_PAYLOAD})


@contextmanager
def _copied_rows() -> Iterator[None]:
    """The model keeps the rows that it was made of, and hands them out."""
    plain, kept = arena.counter, list[Any]()

    def counter(rows: Any, sizes: Any) -> Any:
        kept.append(rows)
        return plain(rows, sizes)

    def sample(self: Any, rows: int, *given: Any, **named: Any) -> Any:
        return kept[-1][:rows]

    with mock.patch.object(arena, "counter", counter), mock.patch.object(Model, "sample", sample):
        yield


# -- in processes of their own -----------------------------------------------------------------------------------------


def _any_certificate() -> Patch:
    """A certificate of the parties' CA will do, whosever it is."""
    return mock.patch.object(Identity, "verify", lambda self, peer, shown, tls: None)


def _unwritten_journal() -> Patch:
    def event(self: Any, event: Event, inputs: bytes) -> int:
        self._releases += 1
        return int(self._releases)

    return mock.patch.object(Journal, "event", event)


def _logged_key() -> Patch:
    def logging_key(own_identity: Callable[[SessionConfig], Identity]) -> Callable[[SessionConfig], Identity]:
        def wrapped(config: SessionConfig) -> Identity:
            assert config.key is not None
            logging.getLogger("cosynth").info("identity %s", config.key.read_text())
            return own_identity(config)

        return wrapped

    return replaced("parties.session.admission.identity.own_identity", logging_key)


IN_PROCESSES: Mapping[str, Callable[[], Patch]] = {
    "M27": _any_certificate,
    "M28": admission.system_authorities,
    "P1": _unwritten_journal,
    "P2": _logged_key,
    "P6": admission.quoted_values,
    "P7": admission.believed_strangers,
    "P8": admission.readable_keys,
    "P9": admission.core_files,
}
"""What a party's process does differently, by mutation (`broken_program`)."""


def _in_processes(name: str) -> Patch:
    return mock.patch.object(deployment, "PROGRAM", ("-m", "runner.audit.broken_builds.broken_program", name))


_HERE = (
    Mutation("M1", "noise whose sigma is 2 % too small", ("M.tables",), partial(noise_times, 98)),
    Mutation("M2", "a charge as if the sensitivity were smaller by sqrt(2)", ("A.events",), _half_charge),
    Mutation("M3", "a rounded continuous Gaussian", ("M.tables",), _rounded_gaussian),
    Mutation("M4", "a tail cut at 4 sigma", ("M.tables",), _cut_tail),
    Mutation("M5", "the same noise in two releases", ("V.streams",), _noise_of_another_release),
    Mutation("M6", "noise from a fixed seed", ("M.fresh",), _noise_of_a_fixed_seed),
    Mutation("M8", "scores that count twice as much as is charged", ("M.choices",), _hot_selection),
    Mutation("M10", "scores opened before the arg max", ("V.opened",), _opened_scores),
    Mutation("M13", "a mask from a key that the receiver has", ("V.masks",), _known_mask),
    Mutation("M14", "8 low bits of a share without a mask", ("V.masks",), _bare_low_bits),
    Mutation("M15", "a sign one bit too short", ("S.values",), _short_signs),
    Mutation("M17", "a log line with a count", ("T.told",), _count_in_the_log),
    Mutation("M19", "a custodian whose counts are all 0 behaves otherwise", ("T.sizes",), _word_of_the_empty),
    Mutation("M22", "rows that count twice", ("S.neighbours", "S.values"), _counted_twice),
    Mutation("M24", "releases without an event", ("A.events",), _uncharged),
    Mutation(
        "M27",
        "a party not tied to its certificate",
        ("W.identity", "W.dialled"),
        partial(_in_processes, "M27"),
    ),
    Mutation("M30", "frames of any length", ("F.decoders",), _endless_frames),
    Mutation("M33", "a conversion that is loose the wrong way", ("A.conversion",), _loose_conversion),
    Mutation("M34", "synthetic rows that are copies of real ones", ("I.distance",), _copied_rows),
    Mutation("B1", "sketches whose owners hash by keys of their own", ("B.sketches",), _owners_own_keys),
    Mutation("B2", "half the cost of a randomised response, as printed", ("B.responses",), _half_response),
    Mutation("B3", "sketches in place of randomised responses", ("B.transcripts",), _sketches_everywhere),
    Mutation("P1", "a journal that is not written", ("W.killed", "C.faults"), partial(_in_processes, "P1")),
    Mutation("P2", "a private key in a log", ("W.traces",), partial(_in_processes, "P2")),
)


def _all() -> tuple[Mutation, ...]:
    """Those of this file and of every file in `runner/audit/broken_builds/faults`, by number."""
    found = list(_HERE)
    for module in pkgutil.iter_modules(faults.__path__):
        found += getattr(import_module(f"{faults.__name__}.{module.name}"), "MUTATIONS", ())
    return tuple(sorted(found, key=lambda each: (each.name[0], int(each.name[1:]))))


MUTATIONS = _all()


def named(name: str) -> Mutation:
    """The mutation of this name. Raises KeyError."""
    return {mutation.name: mutation for mutation in MUTATIONS}[name]


def meant(checks: Sequence[str], only: Sequence[str]) -> list[Mutation]:
    """The mutations for which one of these checks is named; with `only`, of these. Raises `UsageError` for a false name."""
    names = [mutation.name for mutation in MUTATIONS]
    for name in only:
        if name not in names:
            raise UsageError(f"There is no broken build {name!r}; there are {', '.join(names)}.")
    return [
        mutation
        for mutation in MUTATIONS
        if set(mutation.expected) & set(checks) and (not only or mutation.name in only)
    ]


def campaign(
    meant: Sequence[Mutation], checks: Sequence[str], study: Path | None, backend: str, seeds: Sequence[str]
) -> Iterator[Caught]:
    """Each mutation in a process of its own, with those checks named for it that are among `checks`, once with each seed."""
    for mutation in meant:
        began = time.perf_counter()
        named = [name for name in mutation.expected if name in checks]
        failed = _failed(mutation, named, study, backend, seeds)
        yield Caught(
            mutation.name,
            mutation.words,
            mutation.expected,
            tuple(name for name in named if any(name in each for each in failed)),
            len(seeds),
            sum(map(bool, failed)),
            time.perf_counter() - began,
        )


def _failed(
    mutation: Mutation, checks: Sequence[str], study: Path | None, backend: str, seeds: Sequence[str]
) -> list[list[str]]:
    """The checks that fail on the broken build, with each seed for which it came to an end."""
    module = "runner.audit.broken_builds.broken"
    command = [
        sys.executable,
        "-m",
        module,
        mutation.name,
        backend,
        str(study or ""),
        json.dumps(seeds),
        *checks,
    ]
    with suppress(subprocess.TimeoutExpired):
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S * len(seeds), check=False
        )
        return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
    return []
