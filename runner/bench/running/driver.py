"""Every point of every curve, one after the other: this machine runs one measurement at a time.

Points of one session (number of parties, TLS, network) follow each other in the same processes. A baseline
that does not depend on what changes between two points is measured once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpc_protocols.errors import CosynthError, UsageError
from parties.data.scratch import Scratch
from runner.bench.net.netns import Namespaces
from runner.bench.net.network import Net
from runner.bench.output.results import Line, baseline_runs, line_of, rounded, runs, summary
from runner.bench.parameters import TLS, Params, Value, spelled
from runner.bench.registry import Bench, Kernel, Place, Predicted, Program
from runner.bench.running.processes import Parties

MAX_POINTS = 1000


@dataclass(frozen=True)
class Order:
    """What to measure: benchmarks, values of parameters by name (the benchmark's defaults where none are
    given), networks."""

    benches: Sequence[Bench]
    values: Mapping[str, tuple[Value, ...]]
    networks: Sequence[Net]
    repeats: int
    warmup: int
    baselines: bool = True


@dataclass(frozen=True)
class Point:
    """One line of the result."""

    bench: Bench
    params: dict[str, Value]
    net: Net

    @property
    def parties(self) -> int:
        """Processes, contributors included."""
        return self.bench.processes(self.params)

    @property
    def computing(self) -> int:
        """How many of them compute."""
        return self.bench.computing(self.params)


def points(order: Order) -> list[Point]:
    """All of them, those of one session next to each other. Raises `UsageError`."""
    found: list[Point] = []
    for bench in order.benches:
        parameters = (*bench.parameters, TLS if isinstance(bench, Kernel) else TLS.of(True))
        for net in order.networks:
            namespaces = net.by == "netns"
            if namespaces and False in order.values.get(TLS.name, ()):
                raise UsageError(
                    "--tls off is only for loopback; with --net-by netns the parties have addresses of their own."
                )
            given = {**order.values, TLS.name: (True,)} if namespaces else order.values
            one = []
            for values in itertools.product(*(given.get(p.name, p.default) for p in parameters)):
                params = dict(zip((p.name for p in parameters), values, strict=True))
                if problem := bench.problem(params):
                    raise UsageError(f"bench {bench.name}: {problem}.")
                one.append(Point(bench, params, net))
            sessions = list(dict.fromkeys(map(_session_of, one)))
            found += sorted(one, key=lambda point: sessions.index(_session_of(point)))
    if len(found) > MAX_POINTS:
        raise UsageError(f"That is {len(found):,} measurements; at most {MAX_POINTS:,} fit into one bench.")
    return found


def _session_of(point: Point) -> tuple[object, ...]:
    """What points have in common that are measured in the same processes."""
    return point.parties, point.computing, point.params[TLS.name], point.net


def measure(order: Order, emit: Callable[[Bench, Line], None]) -> None:
    """Measure all points; `emit` gets each line as it is there. Raises the first failure; no process is left."""
    with _Sessions() as sessions:
        known: dict[str, Line] = {}
        for point in points(order):
            try:
                emit(point.bench, _line(order, point, sessions, known))
            except CosynthError as error:
                values = ", ".join(f"{name} {spelled(value)}" for name, value in point.params.items())
                raise type(error)(
                    f"bench {point.bench.name} ({values}; {point.net}): {error.sentence}"
                ) from None


def _line(order: Order, point: Point, sessions: _Sessions, known: dict[str, Line]) -> Line:
    bench = point.bench
    if isinstance(bench, Kernel):
        figures, baseline = _kernel(order, bench, point, sessions.parties(point), known)
        predicted, by = bench.predicted(point.params), sessions.by
    elif isinstance(bench, Program):
        sessions.end()
        figures, baseline, predicted, by = _program(order, bench, point)
    else:
        raise UsageError(f"The benchmark {bench.name} is neither a kernel nor a program.")
    return line_of(
        bench, point.params, point.net, by, figures, order.repeats, order.warmup, baseline, predicted
    )


def _kernel(
    order: Order, bench: Kernel, point: Point, parties: Parties, known: dict[str, Line]
) -> tuple[Line, Line]:
    def job(what: str, params: Params, repeats: int, warmup: int) -> Line:
        return summary(
            parties.run(what=what, bench=bench.name, params=params, repeats=repeats, warmup=warmup)
        )

    def once(what: str, params: Params, take: Callable[[Line], Line]) -> Line:
        key = json.dumps([what, bench.name, params, str(point.net)], sort_keys=True)
        if key not in known:
            known[key] = rounded(
                take(job(what, params, max(1, order.repeats // 2), 1 if order.warmup else 0))
            )
        return known[key]

    figures = job("protocol", point.params, order.repeats, order.warmup)
    baseline: Line = {}
    if order.baselines:
        if type(bench).floor is not Kernel.floor:
            baseline["numpy"] = once(
                "numpy",
                point.params,
                lambda found: {
                    "wall_s": found["wall_s_per_party"][0],
                    "cpu_s": found["cpu_s"][0],
                    "throughput": bench.amount(point.params) / found["wall_s_per_party"][0],
                },
            )
        smaller = bench.peer(point.params)
        if smaller is not None:
            baseline["mpyc"] = once(
                "mpyc",
                smaller,
                lambda found: {
                    "params": dict(smaller),
                    "amount": bench.amount(smaller),
                    "throughput": bench.amount(smaller) / found["wall_s"],
                    **{name: found[name] for name in ("wall_s", "cpu_s", "bytes_sent", "rounds")},
                },
            ) | {
                "ours": once(
                    "protocol", {**point.params, **smaller}, lambda found: {"wall_s": found["wall_s"]}
                )
            }
    return figures, baseline


def _program(order: Order, bench: Program, point: Point) -> tuple[Line, Line, Predicted | None, str | None]:
    with Scratch() as directory, _namespaces(point) as namespaces:
        place = Place(directory, point.net, namespaces)
        bench.prepare(point.params, place)
        found: list[dict[str, Any]] = []
        others: list[dict[str, dict[str, Any]]] = []
        for _ in range(
            order.warmup + order.repeats
        ):  # in turns: what else this machine does should meet both alike
            found.append(bench.run(point.params, place))
            if order.baselines:
                others.append(bench.baseline(point.params, place))
        return (
            runs(found[order.warmup :]),
            rounded(baseline_runs(others[order.warmup :])),
            bench.predicted(point.params, place),
            _by(point.net, namespaces),
        )


def _by(net: Net, namespaces: Namespaces | None) -> str | None:
    """What slows the network down."""
    return namespaces.by if namespaces else net.by if net.emulated else None


@contextlib.contextmanager
def _namespaces(point: Point) -> Iterator[Namespaces | None]:
    if point.net.by == "shim":
        yield None
        return
    with Namespaces(point.parties, point.net) as made:
        yield made


class _Sessions:
    """The processes of the session that is up; at most one is."""

    def __init__(self) -> None:
        self._key: Any = None
        self._stack = contextlib.ExitStack()
        self._parties: Parties | None = None
        self.by: str | None = None
        """What slows its network down."""

    def parties(self, point: Point) -> Parties:
        """The processes for this point: those that are up, if they fit."""
        key = _session_of(point)
        if self._parties is None or key != self._key:
            self.end()
            namespaces = self._stack.enter_context(_namespaces(point))
            self.by = _by(point.net, namespaces)
            self._parties = self._stack.enter_context(
                Parties(point.parties, point.computing, bool(point.params[TLS.name]), point.net, namespaces)
            )
            self._key = key
        return self._parties

    def end(self) -> None:
        """No process is left."""
        self._parties = None
        self._stack.close()

    def __enter__(self) -> _Sessions:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
