"""What a benchmark is, and how one is found: a file in `runner/bench/benches`, or in
`runner/bench/research/benches`, that holds `BENCH`. Nothing else needs to know it.

Three kinds. A `Kernel` is protocol code between party processes that are connected already: the harness
starts them, repeats, times, counts, and checks the result. A `Program` is whole runs of this project as a
user would start them. A `Survey` measures something else than speed, and has a command line of its own.

    class Multiply(Kernel):                     runner/bench/benches/multiply.py
        name, purpose, counts = "multiply", "elementwise products of two secret vectors", "products"
        parameters = (CELLS, BITS.of(32, 64))
        def prepare(self, wire, params): ...    at every party: make the input, return the Task that is timed
        def predicted(self, params): ...        what the cost model behind `plan` says of it, if it does
        def floor(self, params): ...            the same work on plain NumPy arrays, if there is such a thing
        def peer(self, params): ...             the parameters of a size that MPyC's secure arrays manage
        def mpyc(self, mpc, params): ...        the same work by MPyC
    BENCH = Multiply()
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from mpc_protocols.process.plug_ins import plug_ins
from mpc_protocols.registry import modules_of
from runner.bench.net.network import Net
from runner.bench.parameters import PARTIES, Parameter, Params

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire
    from runner.bench.net.netns import Namespaces


def _nothing(*result: Any) -> None:
    """No check, or nothing to do before."""


@dataclass(frozen=True)
class Task:
    """One party's part of what is repeated and timed, and a check of the last result (untimed; it may talk to
    the others).

    before: what each repetition begins with, untimed and uncounted; it may talk to the others, too. `check`
    raises `CosynthError` if the result is wrong; it must take the same messages at every party.
    """

    run: Callable[[], Any]
    check: Callable[[Any], None] = _nothing
    before: Callable[[], None] = _nothing


@dataclass(frozen=True)
class Predicted:
    """What a cost model says of one repetition: rounds, and bytes that each party sends, by wire number."""

    rounds: int
    bytes_sent: tuple[int, ...]


class Bench(ABC):
    """A name, what it measures, and what can be varied.

    extra, requires: an optional part of the installation, and its modules.
    """

    name: str
    purpose: str
    counts: str
    """What the throughput counts, in the plural: cells, samples."""
    parameters: tuple[Parameter, ...]
    extra: str = ""
    requires: tuple[str, ...] = ()

    def amount(self, params: Params) -> float:
        """How many of `counts` one repetition does."""
        return float(params["cells"])

    def processes(self, params: Params) -> int:
        """Party processes, contributors included."""
        return int(params.get(PARTIES.name, 3))

    def computing(self, params: Params) -> int:
        """How many of them compute: the first ones."""
        return min(3, self.processes(params))

    def problem(self, params: Params) -> str | None:
        """What is wrong with values that do not go together; None if they do."""
        return None


class Kernel(Bench):
    """Protocol code of connected parties (the first wire numbers compute, usually three; the others
    contribute)."""

    @abstractmethod
    def prepare(self, wire: Wire, params: Params) -> Task:
        """At every party: invent and share the input (untimed), and return what is timed."""

    def predicted(self, params: Params) -> Predicted | None:
        """Rounds and bytes by the cost model that `plan` uses; None where it does not tell of such a part."""
        return None

    def floor(self, params: Params) -> Task | None:
        """The same work in the clear, on NumPy arrays, at one party; None if there is nothing to compare
        with."""
        return None

    def peer(self, params: Params) -> Params | None:
        """The parameters at which MPyC's own secure arrays do the same work in about a second; None if they
        cannot."""
        return None

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """The same work by MPyC's secure arrays, at every computing party. Only called if `peer` gives
        parameters."""
        raise UsageError(f"The benchmark {self.name} has no baseline by MPyC.")


@dataclass(frozen=True)
class Place:
    """Where a program runs: an empty directory of its own, the network, and its namespaces if it is emulated
    by those."""

    directory: Path
    net: Net
    namespaces: Namespaces | None


class Program(Bench):
    """Whole runs, started as a user starts them; start-up counts."""

    @abstractmethod
    def prepare(self, params: Params, place: Place) -> None:
        """Write the input files (untimed)."""

    @abstractmethod
    def run(self, params: Params, place: Place) -> dict[str, Any]:
        """One run: wall_s, and per party cpu_s, bytes_sent, bytes_received, peak_mb; rounds; more keys are
        kept as they are."""

    def predicted(self, params: Params, place: Place) -> Predicted | None:
        """What `plan` says of such a run, after `prepare`."""
        return None

    def baseline(self, params: Params, place: Place) -> dict[str, dict[str, Any]]:
        """What to compare with, by name: one run of each, at least wall_s."""
        return {}


class Survey(Bench):
    """Figures of another kind, asked for by name alone: `bench NAME ...`."""

    @abstractmethod
    def command(self, arguments: Sequence[str]) -> None:
        """Measure and print; arguments: what follows the name. Raises `UsageError`."""


def load() -> dict[str, Bench]:
    """All benchmarks by name, those of other distributions after our own. Imports them, and with them NumPy.

    Raises `StudyInvalid` for one of another distribution that cannot be loaded.
    """
    benches: dict[str, Bench] = {}
    modules = modules_of("runner.bench.benches", research="runner.bench.research.benches")
    for module in sorted(modules, key=lambda module: module.rpartition(".")[2]):
        _add(benches, importlib.import_module(module).BENCH, f"{module}.BENCH")
    for plug_in in plug_ins("cosynth.benchmarks").values():
        _add(benches, plug_in.load(), plug_in.label)
    return benches


def _add(benches: dict[str, Bench], bench: object, label: str) -> None:
    if not isinstance(bench, Bench) or bench.name in benches:
        raise UsageError(f"{label} is no benchmark of a name of its own.")
    benches[bench.name] = bench
