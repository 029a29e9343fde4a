"""`bench paper`: the tables and figures of the papers again, beside what they print; and which cannot be
rerun, and why.

    cosynth bench paper flaim --data DIR --quick
    cosynth bench paper vertimrf --data DIR --seeds 5 --json FILE
    cosynth bench paper all --data DIR --quick

Papers: flaim, vertimrf, florist, vertigan, distaim. Nothing here is protected, and the data must be public;
the project comes with none of it. "agrees": the printed figure lies within a tenth of our mean, or within two
spreads of one run. docs/design/papers.md has the state of every table and figure.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import program
from runner.bench.registry import Survey

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
        from runner.bench.research.papers.federated import DISTAIM, FLAIM
        from runner.bench.research.papers.paper import Settings
        from runner.bench.research.papers.show import show
        from runner.bench.research.papers.split_columns import VERTIGAN, VERTIMRF
        from runner.bench.research.papers.union import FLORIST

        papers = {paper.name: paper for paper in (FLAIM, VERTIMRF, FLORIST, VERTIGAN, DISTAIM)}
        options = _parser().parse_args(arguments)
        if options.seeds < 1:
            raise UsageError(f"--seeds takes a number of at least 1, got {options.seeds}.")
        if not options.data.is_dir():
            raise UsageError(
                f"--data {options.data} is no folder: give one with NAME.csv and NAME-domain.json."
            )
        settings = Settings(options.data, options.quick, options.seeds)
        with (options.json or Path(os.devnull)).open("w", encoding="utf-8") as lines:
            for number, name in enumerate(NAMES if options.name == ALL else (options.name,)):
                if number:
                    print()
                show(papers[name], settings, lines if options.json else None)


def _parser() -> argparse.ArgumentParser:
    from runner.commands.cli import Parser

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
    made.add_argument(
        "--quick", action="store_true", help="one run of each, small grids, the slow ones left out"
    )
    made.add_argument(
        "--seeds", metavar="N", type=int, default=4, help="runs of each figure (default: %(default)s)"
    )
    made.add_argument(
        "--json", metavar="FILE", type=Path, help="a JSON line for each figure; FILE is emptied first"
    )
    return made


BENCH = Papers()
