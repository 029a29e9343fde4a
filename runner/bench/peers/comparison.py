"""The alternation: one run of MP-SPDZ's, one of ours, and again; and what one step came to on both sides.

Both are taken after a warm-up of the same, on inputs that are shared already, over mutual TLS and loopback, one party a process.
In turns, so that what else this machine does meets both alike. A ratio is that of two runs of one turn.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_protocols.errors import UsageError
from runner.bench import registry
from runner.bench.net.network import KNOWN
from runner.bench.output.results import summary
from runner.bench.parameters import Params
from runner.bench.peers import machines
from runner.bench.peers.machines import PeerRun
from runner.bench.peers.protocols import PeerProtocol
from runner.bench.peers.steps import PeerStep
from runner.bench.peers.tree import Tree
from runner.bench.registry import Kernel
from runner.bench.running.processes import Parties


@dataclass(frozen=True)
class Turn:
    """One run of each, and the machine's load (of the last minute) before them."""

    theirs: PeerRun
    ours: PeerRun
    load: float


@dataclass(frozen=True)
class Quantity:
    """One thing that was measured of every run, less of which is better. of: a run -> its figure, None if it has none. unit: as
    tables write it; empty for a number of things."""

    name: str
    of: Callable[[PeerRun], float | None]
    unit: str


def _cpu(run: PeerRun) -> float | None:
    return None if run.cpu_s is None else sum(run.cpu_s)


QUANTITIES = (
    Quantity("wall", lambda run: run.wall_s, "s"),
    Quantity("CPU of all parties", _cpu, "s"),
    Quantity("bytes sent by the busiest party", lambda run: max(run.bytes_sent), "B"),
    Quantity("bytes sent by all", lambda run: sum(run.bytes_sent), "B"),
    Quantity("rounds", lambda run: run.rounds, ""),
)


@dataclass(frozen=True)
class Spread:
    """Figures of several runs."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(min(values), statistics.median(values), max(values))


@dataclass(frozen=True)
class Compared:
    """A step by one protocol of MP-SPDZ's and by ours."""

    step: PeerStep
    protocol: PeerProtocol
    ours: Params
    turns: tuple[Turn, ...]

    def spreads(self, quantity: Quantity) -> tuple[Spread, Spread, Spread] | None:
        """Of theirs, of ours, and of how many times theirs is ours in a turn (above 1: ours is better); None if a side has
        no such figure or ours is nothing."""
        pairs = [(quantity.of(turn.theirs), quantity.of(turn.ours)) for turn in self.turns]
        figures = [(theirs, ours) for theirs, ours in pairs if theirs is not None and ours]
        if len(figures) < len(pairs):
            return None
        theirs, ours = zip(*figures, strict=True)
        return Spread.of(theirs), Spread.of(ours), Spread.of([one / other for one, other in figures])

    def line(self) -> dict[str, Any]:
        """Its JSON line: every run as it was."""
        return {
            "bench": "peers",
            "step": self.step.name,
            "peer": f"MP-SPDZ {self.protocol.name}",
            "compiled_for": list(self.protocol.compiled_for),
            "params": dict(self.ours),
            "turns": [
                {"theirs": _figures(turn.theirs), "ours": _figures(turn.ours), "load": turn.load}
                for turn in self.turns
            ],
        }


def _figures(run: PeerRun) -> dict[str, Any]:
    return {
        "wall_s": run.wall_s,
        "cpu_s": None if run.cpu_s is None else list(run.cpu_s),
        "bytes_sent": list(run.bytes_sent),
        "rounds": run.rounds,
    }


def kernel_of(step: PeerStep, protocol: PeerProtocol, ours: Params) -> Kernel:
    """Our benchmark of a step. Raises `UsageError` if it cannot be run with these parameters."""
    bench = registry.load()[step.bench]
    assert isinstance(bench, Kernel)
    if problem := bench.problem(ours):
        raise UsageError(f"bench {bench.name} beside {protocol.name}: {problem}.")
    return bench


def compare(
    tree: Tree, protocol: PeerProtocol, steps: Sequence[tuple[PeerStep, Params]], turns: int, place: Path
) -> Iterator[Compared]:
    """Each step, in turns. place: an empty folder. Raises `CosynthError`."""
    tree.make_certificates(place)
    parties = None
    with ExitStack() as stack:
        for step, ours in steps:
            bench = kernel_of(step, protocol, ours)
            arguments = step.arguments(ours)
            name = tree.compile(
                place, protocol, [step.bench, *map(str, (*arguments, int(protocol.opens)))], arguments[0]
            )
            if parties is None:
                computing = bench.computing(ours)
                parties = stack.enter_context(
                    Parties(protocol.parties, computing, True, KNOWN["loopback"], None)
                )
            found = []
            inputs = step.inputs(ours)
            for _ in range(turns):
                load = round(os.getloadavg()[0], 1)
                theirs = machines.run(tree, protocol, place, name, inputs)
                step.check(protocol, ours, theirs.results)
                found.append(Turn(theirs, _own(parties, bench, ours, int(step.warm)), load))
            yield Compared(step, protocol, ours, tuple(found))


def _own(parties: Parties, bench: Kernel, ours: Params, warmup: int) -> PeerRun:
    """One run of ours, after as many that do not count."""
    figures = summary(parties.run(what="protocol", bench=bench.name, params=ours, repeats=1, warmup=warmup))
    return PeerRun(
        figures["wall_s"], tuple(figures["cpu_s"]), tuple(figures["bytes_sent"]), figures["rounds"], ()
    )
