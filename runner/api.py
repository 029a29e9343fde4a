"""The Python API: a whole study from a notebook or a test, all parties on this machine.

    from runner import run_study
    run = run_study("study.toml", data={"north": north, "south": south, "west": west}, out="result")
    run.synthetic          # a pandas DataFrame

The parties are processes of their own, as with `python -m runner run STUDY`: frames given as `data` are written to files that
only this user can read, for as long as the run lasts. A run on one machine protects nobody from that machine.

Each custodian's budget is kept in a ledger, over all runs, under a name of its data: "study/party" unless told otherwise.

    run_study("study.toml", data=..., ledger={"north": {"dataset": "patients", "cap_epsilon": 3.0, "cap_delta": 1e-8}})
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
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
        """The synthetic table; a missing value is NaN, days and times are pandas' own."""
        import pandas as pd

        from runner.results.outdir import table_of

        texts = {
            column["name"]: str
            for column in self.summary["columns"]
            if any(isinstance(value, str) for value in column.get("values", ()))
        }
        return pd.read_csv(
            self.directory / table_of(self.summary),
            dtype=texts,
            keep_default_na=False,
            na_values=[""],
            parse_dates=[column["name"] for column in self.summary["columns"] if "step" in column],
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
    ledger: Mapping[str, Mapping[str, Any]] | None = None,
    private: Mapping[str, str | os.PathLike[str]] | None = None,
    quiet: bool = True,
) -> Run:
    """Run a study with all its parties on this machine.

    data: tables of the parties named, instead of what the study names for them. out: new or empty; with `replace` also the
    directory of an earlier run, whose files give way to this one's if it succeeds.
    ledger: of the parties named, the keys of a private file's [ledger]: `dataset` names the population, so that all runs on it
    add up (default: "study/party"); `cap_epsilon` and `cap_delta` limit them, for the notion of `cap_unit` ("row", or a dict of
    id, max_rows, max_custodians) and `cap_adjacency`; `file` is the ledger (default: as for the command line). private: private
    files of the parties named, with data and [ledger]; `data` and `ledger` here go before what they say. quiet: no progress on
    standard output. Raises the `CosynthError` of the first cause; its `exit_code` is the command line's: `BudgetRefused` (50)
    for a run that a cap does not allow.
    """
    from parties.data.scratch import Scratch
    from runner.launch.launcher import launch

    with Scratch(watched=True) as folder, open(os.devnull, "w") as nowhere:
        files = {}
        for number, (name, frame) in enumerate((data or {}).items()):
            files[name] = folder / f"{number}.parquet"
            frame.to_parquet(files[name], index=False)
        with redirect_stdout(nowhere) if quiet else nullcontext():
            summary = launch(
                Path(study),
                Path(out),
                data=files,
                private={name: Path(file) for name, file in (private or {}).items()},
                ledger=ledger,
                replace=replace,
            )
    return Run(Path(out), summary)
