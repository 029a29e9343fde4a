"""`sample DIR --rows N`: more synthetic rows from a finished run, as CSV or Parquet."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import UsageError
from mpc_protocols.process.foreign_text import for_stream
from runner.api.conditions import allowed
from runner.api.inference import check_form
from runner.commands.using.where import conditions
from runner.failures import reason
from runner.report.files import measurements_of
from runner.results import outdir
from runner.results.finished_run import open_run
from runner.results.linked import People, check_of_people, linked_of, write_tables
from runner.results.table.writing import write_parquet, write_table
from runner.results.warnings import tell, texts_of
from synth.inference.replicates import MAX_REPLICATES, Replicates, draw_tables
from synth.mrf import conditional

if TYPE_CHECKING:
    from runner.results.finished_run import FinishedRun

MAX_ROWS = 1 << 27


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if not 0 <= arguments.rows <= MAX_ROWS:
        raise UsageError(f"--rows must be from 0 to {MAX_ROWS:,}, got {arguments.rows}.")
    if arguments.seed is not None and arguments.seed < 0:
        raise UsageError(f"--seed must be at least 0, got {arguments.seed}.")
    target: Path | None = arguments.out
    if "linked" in outdir.finished(arguments.dir):
        _linked(arguments)
        return
    suffix = ".csv" if target is None else target.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UsageError(f"--out {target} must end in .csv or .parquet, which says what is written.")
    if target is not None and arguments.replicates is None:
        outdir.spare(target, replace=arguments.replace)
    finished = open_run(arguments.dir)
    seed = secrets.randbits(64) if arguments.seed is None else arguments.seed
    if arguments.csv_safe and suffix != ".csv":
        raise UsageError(f"--csv-safe is about CSV; {target} holds texts as texts, and needs none.")
    write = partial(write_table, safe=arguments.csv_safe) if suffix == ".csv" else write_parquet
    if arguments.replicates is not None:
        _replicates(arguments, finished, seed, write)
        tell(texts_of(finished.facts))
        return
    model = finished.model
    if arguments.where:
        try:
            model = conditional.given(
                model, allowed(finished.domain, conditions(arguments.where, finished.domain))
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
    codes = model.sample(arguments.rows, np.random.default_rng([seed, 0]))
    try:
        with tempfile.TemporaryDirectory(prefix="cosynth-", dir=target.parent if target else None) as name:
            rows = Path(name) / "rows"
            write(rows, codes, finished.domain, seed)
            if target is not None:
                rows.replace(target)
            else:
                sys.stdout.flush()
                if sys.stdout.isatty():
                    with rows.open(encoding="utf-8", newline="") as text:
                        sys.stdout.writelines(for_stream(line, sys.stdout) for line in text)
                else:
                    with rows.open("rb") as file:
                        shutil.copyfileobj(file, sys.stdout.buffer)
    except OSError as error:
        if target is None:
            raise
        raise UsageError(f"--out {target} cannot be written ({reason(error)}); name another file.") from None
    tell(texts_of(finished.facts))


def _linked(arguments: argparse.Namespace) -> None:
    """A folder of tables, none of which is in place before all are made. --rows are people."""
    target: Path | None = arguments.out
    if target is None or target.suffix or (target.exists() and not target.is_dir()):
        raise UsageError(
            f"{arguments.dir} holds linked tables, of which `sample` writes a folder; name one as --out FOLDER."
        )
    if (target / outdir.RUN).is_file():
        raise UsageError(
            f"--out {target} holds a finished run, whose tables nothing replaces; name another folder."
        )
    if arguments.replicates is not None:
        raise UsageError("--replicates are of one table, and this run holds linked tables; leave it out.")
    finished = open_run(arguments.dir)
    linked = linked_of(finished.facts, finished.domain, arguments.dir)
    assert linked is not None
    for table in linked.names:
        outdir.spare(target / f"{table}.csv", replace=arguments.replace)
    seed, model = secrets.randbits(64) if arguments.seed is None else arguments.seed, finished.model
    if arguments.where:
        where = conditions(arguments.where, finished.domain)
        check_of_people(finished.facts, finished.domain, where, "--where")
        try:
            model = conditional.given(model, allowed(finished.domain, where))
        except ValueError as error:
            raise UsageError(str(error)) from None
    codes = model.sample(arguments.rows, np.random.default_rng([seed, 0]))
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".cosynth-", dir=target) as name:
            people = People.of(linked, codes, seed)
            made = write_tables(Path(name), linked, finished.model, people, seed, safe=arguments.csv_safe)
            for file in made:
                file.replace(target / file.name)
    except OSError as error:
        raise UsageError(
            f"--out {target} cannot be written ({reason(error)}); name another folder."
        ) from None
    tell(texts_of(finished.facts))


def _replicates(
    arguments: argparse.Namespace, finished: FinishedRun, seed: int, write: Callable[..., None]
) -> None:
    """Put them beside each other; none is in place before all are made."""
    target, number = arguments.out, arguments.replicates
    if target is None:
        raise UsageError(
            "--replicates makes several tables; name --out FILE.csv, which they are numbered after."
        )
    if not 2 <= number <= MAX_REPLICATES:
        raise UsageError(f"--replicates must be from 2 to {MAX_REPLICATES}, got {number}.")
    if arguments.where:
        raise UsageError(
            "--replicates are of whole tables; choose rows of a kind from them, without --where."
        )
    files = [target.with_stem(f"{target.stem}.{place}") for place in range(1, number + 1)]
    for file in files:
        outdir.spare(file, replace=arguments.replace)
    check_form(finished.facts)
    made = Replicates(finished.model, measurements_of(arguments.dir, finished.domain), finished.facts)
    try:
        with tempfile.TemporaryDirectory(prefix="cosynth-", dir=target.parent) as name:
            for place, codes in enumerate(draw_tables(made, number, arguments.rows, seed)):
                write(Path(name) / str(place), codes, finished.domain, seed + place)
            for place, file in enumerate(files):
                (Path(name) / str(place)).replace(file)
    except OSError as error:
        raise UsageError(f"--out {target} cannot be written ({reason(error)}); name another file.") from None
