"""`bench peers`: the same steps by MP-SPDZ, which you have compiled yourself, and by ours, in turns, on one page.

    cosynth bench peers --mp-spdz DIR
    cosynth bench peers --mp-spdz DIR --protocols replicated-ring,semi2k --steps scores --turns 7 --html FILE

DIR is a tree of MP-SPDZ (Keller, CCS 2020) with compile.py and those of its virtual machines that are to be measured; which are
there is found out. Programmes are written, compiled for each protocol as MP-SPDZ's own manual has it, and run in a folder of the
benchmark's own. Results are compared with NumPy's. What the two sides do differently stands under each table, and what MP-SPDZ
does better at the head.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import program
from parties.data.scratch import Scratch
from runner.bench.output import files
from runner.bench.parameters import BITS, CANDIDATES, CELLS, Parameter, Params, Value
from runner.bench.peers.comparison import Compared, compare, kernel_of
from runner.bench.peers.page import Page
from runner.bench.peers.protocols import PROTOCOLS, PeerProtocol
from runner.bench.peers.steps import STEPS, PeerStep
from runner.bench.peers.tree import Tree
from runner.bench.registry import Survey
from runner.commands import whole_number
from runner.commands.cli import Parser

MAX_TURNS = 1_000
Named = TypeVar("Named")


class Peers(Survey):
    """Turn by turn, a table a step and protocol."""

    name, purpose, counts = "peers", "the same steps by MP-SPDZ, which you have compiled, in turns", "turns"
    parameters = ()

    def command(self, arguments: Sequence[str]) -> None:
        """Run and print. Raises `CosynthError`."""
        options = _parser().parse_args(arguments)
        if not 1 <= options.turns <= MAX_TURNS:
            raise UsageError(f"--turns must be from 1 to {MAX_TURNS:,}, got {options.turns}.")
        tree = Tree.of(options.mp_spdz)
        built = tree.built()
        protocols = _chosen("--protocols", options.protocols, {each.name: each for each in PROTOCOLS}, built)
        steps = _chosen("--steps", options.steps, {step.name: step for step in STEPS}, STEPS)
        if absent := [each.executable for each in protocols if each not in built]:
            raise UsageError(
                f"--mp-spdz {options.mp_spdz} has no {' and no '.join(absent)}; compile it, or leave it out."
            )
        order = {protocol: _steps(protocol, steps, options) for protocol in protocols}
        found: list[Compared] = []
        with files.opened(options) as lines:
            for protocol, taken in order.items():
                with Scratch() as place:
                    for compared in compare(tree, protocol, taken, options.turns, place):
                        found.append(compared)
                        lines.write(json.dumps(compared.line()) + "\n")
                        lines.flush()
            page = Page.of(
                found, [each for each in PROTOCOLS if each not in built], tree.commit, options.turns
            )
            print(page.markdown(), end="")
            if options.html:
                options.html.write_text(page.html(), encoding="utf-8")


def _steps(
    protocol: PeerProtocol, steps: Sequence[PeerStep], options: argparse.Namespace
) -> list[tuple[PeerStep, Params]]:
    """The steps that a protocol takes, with the parameters of ours. Raises `UsageError` for what ours cannot do."""
    sizes: dict[str, Value] = {
        CELLS.name: _one(CELLS, options.cells, protocol.cells),
        BITS.name: _one(BITS, options.bits, BITS.default[0]),
        CANDIDATES.name: _one(CANDIDATES, options.candidates, CANDIDATES.default[0]),
    }
    taken = []
    for step in steps:
        if step.of_all or step.name in protocol.also:
            ours = step.ours(protocol, sizes)
            kernel_of(step, protocol, ours)
            taken.append((step, ours))
    return taken


def _one(parameter: Parameter, text: str | None, default: Value) -> Value:
    """One value of a parameter."""
    if text is None:
        return default
    values = parameter.parse(text)
    if len(values) > 1:
        raise UsageError(f"--{parameter.name} takes one value here, got {len(values)}.")
    return values[0]


def _chosen(option: str, text: str | None, known: dict[str, Named], default: Sequence[Named]) -> list[Named]:
    """What a list of names stands for. Raises `UsageError`."""
    if text is None:
        return list(default)
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: {name!r} is not one of {', '.join(known)}.")
    return [known[name] for name in names]


def _parser() -> argparse.ArgumentParser:
    made = Parser(
        prog=f"{program()} bench peers",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--mp-spdz", metavar="DIR", type=Path, required=True, help="a compiled tree of MP-SPDZ")
    made.add_argument(
        "--protocols",
        metavar="NAME,..",
        help=f"of {', '.join(each.name for each in PROTOCOLS)} (default: those that are built)",
    )
    made.add_argument(
        "--steps", metavar="NAME,..", help=f"of {', '.join(step.name for step in STEPS)} (default: all)"
    )
    made.add_argument(
        "--turns", metavar="N", type=whole_number, default=5, help="runs of each side (default: %(default)s)"
    )
    for parameter, default in ((CELLS, "1e6, of what takes gigabytes 1e5"), (BITS, "24"), (CANDIDATES, "64")):
        made.add_argument(f"--{parameter.name}", metavar="N", help=f"{parameter.help} (default: {default})")
    files.declare(made, "per step and protocol", "the page, self-contained")
    return made


BENCH = Peers()
