"""The Python API: a whole study from a notebook or a test, all parties on this machine.

    from runner import run_study
    run = run_study("study.toml", data={"north": north, "south": south, "west": west}, out="result")
    run.synthetic          # a pandas DataFrame

The parties are processes of their own, as with `python -m runner run STUDY`: frames given as `data` are written to files that
only this user can read, for as long as the run lasts. A run on one machine protects nobody from that machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A finished run: where its files are, and the content of its run.json."""

    directory: Path
    summary: Mapping[str, Any]

    @property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic table; a missing value is NaN."""
        import pandas as pd

        texts = {
            column["name"]: str
            for column in self.summary["columns"]
            if column["kind"] == "categorical" and any(isinstance(value, str) for value in column["values"])
        }
        return pd.read_csv(
            self.directory / "synthetic.csv", dtype=texts, keep_default_na=False, na_values=[""]
        )

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.directory / "report.html"

    def graph(self) -> nx.Graph:
        """Which columns the released model connects, and how strongly: a networkx graph (`runner.results.model_graph`)."""
        from runner.results.finished_run import open_run
        from runner.results.model_graph import attribute_graph

        return attribute_graph(open_run(self.directory))

    def junction_tree(self) -> nx.Graph:
        """The released model's junction tree: a networkx graph (`runner.results.model_graph`)."""
        from runner.results.finished_run import open_run
        from runner.results.model_graph import junction_tree

        return junction_tree(open_run(self.directory))


def run_study(
    study: str | os.PathLike[str],
    data: Mapping[str, pd.DataFrame] | None = None,
    out: str | os.PathLike[str] = "out",
    *,
    replace: bool = False,
    quiet: bool = True,
) -> Run:
    """Run a study with all its parties on this machine.

    data: tables of the parties named, instead of what the study names for them. out: new or empty; with `replace` also the
    directory of an earlier run, whose files give way to this one's if it succeeds. quiet: no progress on standard output. Raises
    the `CosynthError` of the first cause; its `exit_code` is the command line's.
    """
    from parties.data.scratch import Scratch
    from runner.launch.launcher import launch

    with Scratch(watched=True) as private, open(os.devnull, "w") as nowhere:
        files = {}
        for number, (name, frame) in enumerate((data or {}).items()):
            files[name] = private / f"{number}.parquet"
            frame.to_parquet(files[name], index=False)
        if quiet:
            with redirect_stdout(nowhere):
                summary = launch(Path(study), Path(out), data=files, replace=replace)
        else:
            summary = launch(Path(study), Path(out), data=files, replace=replace)
    return Run(Path(out), summary)
