"""The arguments of `graph`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace
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
        carried_out_by("graph"),
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
    may_replace(parser)
