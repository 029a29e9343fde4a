"""`graph DIR`: the released model's attribute graph or junction tree as GraphML, beside the report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.failures import reason
from runner.results.outdir import GRAPH, TREE

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Write what the released model connects as GraphML, which Gephi, Cytoscape, yEd and networkx read: a
node per column, and an edge, with its mutual information, between columns that were measured together.
With --tree it is the junction tree in which the model reasons. Costs no further budget.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "graph",
        run,
        description=DESCRIPTION,
        examples="  cosynth graph out\n  cosynth graph out --tree --out tree.graphml\n",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument("--tree", action="store_true", help="the junction tree")
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help=f"write here (default: DIR/{GRAPH}, with --tree DIR/{TREE})",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from runner.results.finished_run import open_run
    from runner.results.model_graph import attribute_graph, junction_tree, write

    finished = open_run(arguments.dir)
    target: Path = arguments.out or arguments.dir / (TREE if arguments.tree else GRAPH)
    try:
        write(target, (junction_tree if arguments.tree else attribute_graph)(finished))
    except OSError as error:
        raise UsageError(f"--out {target} cannot be written ({reason(error)}); name another file.") from None
    print(target)
