"""Run a whole study from Python, all parties on this machine; open what a run has left.

    from cosynth import run_study
    run = run_study("study.toml", data={"north": north, "south": south, "west": west}, out="result")
    run.synthetic          # a pandas DataFrame

The parties are processes of their own, as with `cosynth run STUDY`: frames given as `data`, and a study that
no file holds, are written to files that only this user can read, for as long as the run lasts. No sentence
names these. A run on one machine protects nobody from that machine.

Each custodian's budget is kept in a ledger, over all runs, under a name of its data: "study/party" unless
told otherwise.

    run_study("study.toml", data=..., ledger={"north": {"dataset": "patients", "cap_epsilon": 3.0, "cap_delta": 1e-8}})
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from parties.data.scratch import Scratch
from runner.api.handed_over import named, written
from runner.api.run import Run
from runner.launch.launcher import launch
from runner.results.outdir import finished
from runner.study.in_code import IN_CODE
from synth.judgement.warned import CosynthWarning

if TYPE_CHECKING:
    import pandas as pd

    from runner.study import Study


def load(directory: str | os.PathLike[str]) -> Run:
    """A finished run, from the directory that holds its results. Raises `UsageError` if there is none."""
    place = Path(directory)
    if place.is_file():
        raise UsageError(
            f"{place} is a file; load opens the directory of a finished run, and Study.read a study file."
        )
    return Run(place, finished(place))


def run_study(
    study: str | os.PathLike[str] | Study,
    data: Mapping[str, pd.DataFrame | Mapping[str, pd.DataFrame]] | None = None,
    out: str | os.PathLike[str] = "out",
    *,
    replace: bool = False,
    ledger: Mapping[str, Mapping[str, Any]] | None = None,
    private: Mapping[str, str | os.PathLike[str]] | None = None,
    alone: bool = False,
    quiet: bool = True,
) -> Run:
    """Run a study with all its parties on this machine.

    study: a file, or a `Study`. data: tables of the parties named, instead of what the study names for them;
    of linked tables a mapping of them, by name. out: new or empty; with `replace` also the directory of an
    earlier run, whose files give way to this one's if it succeeds. ledger: of the parties named, the keys of
    a private file's [ledger]: `dataset` names the population, so that all runs on it add up (default:
    "study/party"); `cap_epsilon` and `cap_delta` limit them, for the notion of `cap_unit` ("row", or a dict
    of id, max_rows, max_custodians) and `cap_adjacency`; `file` is the ledger (default: as for the command
    line). private: private files of the parties named, with data and [ledger]; `data` and `ledger` here go
    before what they say. alone: one party may be the only one with a table; else a run in which `data` and
    `private` give one alone, and the study none, is refused (2). quiet: no progress on standard output.
    Raises the `CosynthError` of the first cause; its `exit_code` is the command line's: `BudgetRefused` (50)
    for a run that a cap does not allow. Sentences call a frame "The frame of party north".
    """
    for argument, by_party in (("data", data), ("ledger", ledger), ("private", private)):
        if by_party is not None and not isinstance(by_party, Mapping):
            raise UsageError(
                f'{argument} names each party\'s, as in {argument}={{"north": ...}}; got {type(by_party).__name__}.'
            )
    with Scratch(watched=True) as folder, open(os.devnull, "w") as nowhere:
        names: dict[Path, str] = {}
        if isinstance(study, str | os.PathLike):
            path = Path(study)
        elif study.path == IN_CODE:
            path = folder / "study.toml"
            path.write_text(study.to_toml(), encoding="utf-8")
            names[path] = str(IN_CODE)
        else:
            path = study.path
        files = {}
        for number, (name, given) in enumerate((data or {}).items()):
            if isinstance(given, Mapping):  # linked tables: a folder with a file of each
                files[name] = folder / str(number)
                files[name].mkdir()
                own = {files[name] / f"{table}.parquet": frame for table, frame in given.items()}
                names |= {file: f"The frame {file.stem} of party {name}" for file in own}
            else:
                files[name] = folder / f"{number}.parquet"
                own = {files[name]: given}
                names[files[name]] = f"The frame of party {name}"
            for file, frame in own.items():
                written(frame, file, names[file])
        with named(names), redirect_stdout(nowhere) if quiet else nullcontext():
            summary = launch(
                path,
                Path(out),
                data=files,
                private={name: Path(file) for name, file in (private or {}).items()},
                ledger=ledger,
                replace=replace,
                alone=alone,
            )
    found = Run(Path(out), summary)
    for text in found.warnings:
        warnings.warn(text, CosynthWarning, stacklevel=2)
    return found
