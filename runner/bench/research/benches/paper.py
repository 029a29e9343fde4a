"""`bench paper`: the tables and figures of the papers again, beside what they print; and which cannot be
rerun, and why.

    cosynth bench paper flaim --data DIR --quick
    cosynth bench paper vertimrf --data DIR --seeds 5 --json FILE
    cosynth bench paper flaim --data DIR --item "figure over T"
    cosynth bench paper all --data DIR --quick

Papers: flaim, vertimrf, florist, vertigan, distaim. Nothing here is protected, and the data must be public;
the project comes with none of it. "agrees": the printed figure lies within a tenth of our mean, or within two
spreads of one run. Of curves without printed figures, what the paper says of them in words is looked at.
docs/design/papers.md has the state of every table and figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import program
from runner.bench.output import files
from runner.bench.registry import Survey
from runner.bench.research.papers.federated import DISTAIM, FLAIM
from runner.bench.research.papers.paper import Settings
from runner.bench.research.papers.show import show
from runner.bench.research.papers.split_columns import VERTIGAN, VERTIMRF
from runner.bench.research.papers.union import FLORIST
from runner.commands.cli import Parser

NAMES = ("flaim", "vertimrf", "florist", "vertigan", "distaim")
ALL = "all"


class Papers(Survey):
    """One paper, or all of them."""

    name, purpose, counts = (
        "paper",
        "the papers' tables and figures again, beside the printed ones",
        "figures",
    )
    parameters = ()

    def command(self, arguments: Sequence[str]) -> None:
        """Run and print. Raises `UsageError`."""
        papers = {paper.name: paper for paper in (FLAIM, VERTIMRF, FLORIST, VERTIGAN, DISTAIM)}
        options = _parser().parse_args(arguments)
        if options.seeds < 1:
            raise UsageError(f"--seeds takes a number of at least 1, got {options.seeds}.")
        if not options.data.is_dir():
            raise UsageError(
                f"--data {options.data} is no folder: give one with NAME.csv and NAME-domain.json."
            )
        settings = Settings(options.data, options.quick, options.seeds)
        if options.item is not None:
            papers = {name: paper.only(options.item) for name, paper in papers.items()}
        chosen = [paper for name, paper in papers.items() if options.name in (name, ALL) and paper.items]
        if not chosen:
            raise UsageError(
                f"{options.name} has no item called {options.item!r}; leave --item out to see all."
            )
        with files.opened(options) as lines:
            for number, paper in enumerate(chosen):
                if number:
                    print()
                show(paper, settings, lines)


def _parser() -> argparse.ArgumentParser:
    made = Parser(
        prog=f"{program()} bench paper",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("name", metavar="NAME", choices=(*NAMES, ALL), help=f"{', '.join(NAMES)}, or {ALL}")
    made.add_argument(
        "--data", metavar="DIR", type=Path, required=True, help="NAME.csv with NAME-domain.json"
    )
    made.add_argument("--item", metavar="TEXT", help="only the items whose name contains this")
    made.add_argument(
        "--quick", action="store_true", help="one run of each, small grids, the slow ones left out"
    )
    made.add_argument(
        "--seeds", metavar="N", type=int, default=4, help="runs of each figure (default: %(default)s)"
    )
    files.declare(made, "for each figure")
    return made


BENCH = Papers()
