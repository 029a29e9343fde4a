"""`bench [NAME ...]`: what every protocol costs, by real party processes over the real session."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import as_started, program
from mpc_protocols.registry import not_installed
from runner.bench import registry
from runner.bench.net.network import networks
from runner.bench.output import files, table
from runner.bench.output.page import write
from runner.bench.parameters import TLS, spelled
from runner.bench.registry import Survey
from runner.bench.running import driver
from runner.bench.running.driver import Order
from runner.commands import whole_number
from runner.commands.cli import Parser
from runner.study.declared.table import nearest

if TYPE_CHECKING:
    from runner.bench.parameters import Parameter, Value
    from runner.bench.registry import Bench

DESCRIPTION = """\
Measure the protocols: party processes of this machine over the real session, one MPyC process
per computing party; warm-up, repetitions, median and spread; wall and CPU time, bytes, rounds and
memory per party; beside MPyC's own secure arrays (on sizes they manage; never extrapolated) and
plain NumPy. Results are checked against plain NumPy before they count.

Every parameter takes a list: --cells 1e5,1e6 measures both, and --html draws the curves.
"""
EXAMPLES = """\
examples:
  cosynth bench --list
  cosynth bench scores --cells 1e5,1e6,2^22 --bits 17,24
  cosynth bench select --net loopback,lan,wan --html select.html
  cosynth bench scores select --backend replicated,shamir,pair --cells 1e4,1e5
  cosynth bench select --backend shamir --parties 3,5,7
  cosynth bench rounds --delay-ms 0,1,5,20 --json rounds.jsonl
  cosynth bench end-to-end --rows 48000,1e6 --parties 3,8,16
"""
NET_HELP = "loopback, lan (0.25 ms one way, 1 Gbit/s), wan (20 ms, 100 Mbit/s); a list (default: %(default)s)"
BY_HELP = "who slows it down: the session itself (default), or namespaces with netem or a relay (root, iproute2; implies TLS)"


def parser(benches: Sequence[Bench]) -> argparse.ArgumentParser:
    """The command's own arguments."""
    made = Parser(
        prog=f"{program()} bench",
        description=DESCRIPTION,
        epilog=as_started(EXAMPLES),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(bench.name for bench in benches)
    made.add_argument("names", metavar="NAME", nargs="*", help=f"{names} (default: all)")
    made.add_argument(
        "--list", action="store_true", help="say what there is to measure, with parameters and defaults"
    )
    made.add_argument("--net", metavar="NAME", default="loopback", help=NET_HELP)
    made.add_argument("--delay-ms", metavar="N", help="one-way delay instead; a list")
    made.add_argument("--rate-mbit", metavar="N", help="rate into each party instead, Mbit/s; a list")
    made.add_argument("--net-by", choices=("shim", "netns"), default="shim", help=BY_HELP)
    made.add_argument(
        "--repeats",
        metavar="N",
        type=whole_number,
        default=5,
        help="repetitions that count (default: %(default)s)",
    )
    made.add_argument(
        "--warmup",
        metavar="N",
        type=whole_number,
        default=1,
        help="repetitions before that (default: %(default)s)",
    )
    made.add_argument(
        "--no-baseline", action="store_true", help="leave MPyC, NumPy and the ideal backend out"
    )
    files.declare(made, "per measurement", "a page of curves that loads nothing")
    group = made.add_argument_group("parameters, each a list of values")
    for parameter in [*_parameters(benches).values(), TLS]:
        # kept as text: how the values read depends on the parameter alone, but their errors on the benchmarks
        # chosen
        bare = {"nargs": "?", "const": "on"} if parameter is TLS else {}
        group.add_argument(f"--{parameter.name}", metavar="V,..", help=parameter.help, **bare)  # type: ignore[arg-type]
    return made


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    with _interruptible():
        benches = registry.load()
        if arguments.rest and isinstance(survey := benches.get(arguments.rest[0]), registry.Survey):
            survey.command(arguments.rest[1:])
            return
        options = parser(list(benches.values())).parse_args(arguments.rest)
        if options.list:
            _list(list(benches.values()))
            return
        order = _order(options, benches)
        driver.points(order)  # refuse before anything is emptied
        lines: list[dict[str, Any]] = []
        with files.opened(options) as file:
            shown: Bench | None = None

            def emit(bench: Bench, line: dict[str, Any]) -> None:
                nonlocal shown
                if bench is not shown:
                    print(table.heading(bench), flush=True)
                    shown = bench
                print(table.row(line), flush=True)
                lines.append(line)
                file.write(json.dumps(line) + "\n")
                file.flush()

            print(
                f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; medians of {order.repeats}; CPU, bytes and "
                "memory of the busiest party; x: times as fast as MPyC at the size that it manages, as plain NumPy at this one",
                flush=True,
            )
            try:
                driver.measure(order, emit)
            finally:  # what was measured before a failure is worth keeping
                if options.html and lines:
                    write(options.html, lines, benches)
        if options.html:
            print(f"\ncurves: {options.html}")


def _parameters(benches: Sequence[Bench]) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for bench in benches:
        for parameter in bench.parameters:
            found.setdefault(parameter.name, parameter)
    return found


def _order(options: argparse.Namespace, benches: dict[str, Bench]) -> Order:
    """What is to be measured. Raises `UsageError`."""
    timed = [name for name, bench in benches.items() if not isinstance(bench, Survey)]
    installed = [name for name in timed if not_installed(benches[name]) is None]
    names = list(dict.fromkeys(options.names)) or installed
    for name in names:
        if name not in benches:
            raise UsageError(
                f"There is no benchmark {name!r}{nearest(name, list(benches))}; there are {', '.join(benches)}."
            )
        if name not in timed:
            raise UsageError(f"bench {name} has options of its own: name it first, and alone.")
        if lack := not_installed(benches[name]):
            raise UsageError(f"The benchmark {name} {lack}.")
    for what, least in (("repeats", 1), ("warmup", 0)):
        if not least <= getattr(options, what) <= 10_000:
            raise UsageError(f"--{what} must be from {least} to 10,000, got {getattr(options, what)}.")
    chosen = [benches[name] for name in names]
    own, everybodys = _parameters(chosen), _parameters(list(benches.values()))
    values: dict[str, tuple[Value, ...]] = {}
    for parameter in [*everybodys.values(), TLS]:
        text = getattr(options, parameter.name.replace("-", "_"))
        if text is None:
            continue
        if parameter is not TLS and parameter.name not in own:
            owners = [
                bench.name
                for bench in benches.values()
                if parameter.name in {each.name for each in bench.parameters}
            ]
            raise UsageError(
                f"--{parameter.name} is not a parameter of {', '.join(names)}; it is one of {', '.join(owners)}."
            )
        values[parameter.name] = own.get(parameter.name, parameter).parse(text)
    nets = networks(options.net, options.delay_ms, options.rate_mbit, options.net_by)
    return Order(chosen, values, nets, options.repeats, options.warmup, not options.no_baseline)


def _list(benches: Sequence[Bench]) -> None:
    for bench in benches:
        print(f"{bench.name:12} {bench.purpose}; throughput in {bench.counts}/s")
        for parameter in bench.parameters:
            print(
                f"{'':14}--{parameter.name:14} {parameter.help} (default: {','.join(map(spelled, parameter.default))})"
            )


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end a benchmark as Ctrl-C does: its processes are ended first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
