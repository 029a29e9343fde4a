"""`graph DIR`: the released model's attribute graph or junction tree as GraphML, beside the report."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpc_protocols.errors import UsageError
from runner.failures import reason
from runner.results import outdir
from runner.results.finished_run import open_run
from runner.results.model_graph import attribute_graph, junction_tree, write

PICTURES = (".png", ".svg", ".pdf", ".jpg", ".html")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    finished = open_run(arguments.dir)
    target: Path = arguments.out or arguments.dir / (outdir.TREE if arguments.tree else outdir.GRAPH)
    outdir.spare(target, replace=arguments.out is None or arguments.replace)
    if target.suffix.lower() in PICTURES:
        raise UsageError(
            f"--out {target}: GraphML is written, which is no picture; name a .graphml file, or draw it in Python by "
            f'load({str(arguments.dir)!r}).plot("graph").'
        )
    try:
        write(target, (junction_tree if arguments.tree else attribute_graph)(finished))
    except OSError as error:
        raise UsageError(f"--out {target} cannot be written ({reason(error)}); name another file.") from None
    print(target)
