"""`evaluate DIR --real FILE`: how good a finished run's table is, by real rows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.failures import reason
from runner.report.files import load
from runner.results import outdir
from runner.results.finished_run import agreed_study, open_run
from runner.results.linked import linked_of
from runner.review.evaluation.judge import judge, real_rows, rows_by_rules
from runner.review.evaluation.linked import judge_linked
from runner.review.evaluation.linked_rows import real_tables, released_tables
from runner.review.evaluation.page import write_page
from runner.review.evaluation.private_score import score
from runner.review.evaluation.words import lines, to_json
from runner.study import private_file
from runner.study.model import DataLocation

if TYPE_CHECKING:
    from runner.report.files import Run
    from runner.review.evaluation.judge import Table
    from synth.linked.tables import LinkedTables


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    open_run(arguments.dir)  # its sentences name what is missing
    if arguments.html is not None and arguments.html.resolve().is_relative_to(arguments.dir.resolve()):
        raise UsageError(
            f"--html {arguments.html} lies in the run's directory, which is passed on; write the page elsewhere."
        )
    if arguments.html is not None:
        outdir.spare(arguments.html, "--html", replace=arguments.replace)
    finished = load(arguments.dir)
    linked = linked_of(finished.facts, finished.domain, arguments.dir)
    if arguments.private_score is not None:
        _private_score(arguments, finished, linked)
        return
    if linked is not None:
        _linked(arguments, finished, linked)
        return
    read = _reader(arguments, finished)
    for option, given in (("--real", arguments.real), ("--test", arguments.test or [])):
        _refuse_own(arguments.dir / outdir.table_of(finished.facts), option, given)
    real = read(_file(arguments.real, "--real"))
    held_out = None if arguments.test is None else read(_file(arguments.test, "--test"))
    found = judge(finished, real, held_out, arguments.label)
    print(to_json(found) if arguments.json else "\n".join(lines(found)))
    if arguments.html is not None:
        try:
            write_page(arguments.html, finished, real, found)
        except OSError as error:
            raise UsageError(
                f"--html {arguments.html} cannot be written ({reason(error)}); name another file."
            ) from None


def _refuse_own(table: Path, option: str, given: Sequence[str]) -> None:
    """Raise `UsageError` for the run's own table, which any table would be judged good by."""
    for text in given:
        if Path(text).is_file() and table.is_file() and Path(text).samefile(table):
            raise UsageError(
                f"{option} {text} is the run's own synthetic table, and real rows judge it; name a file of these."
            )


def _file(given: Sequence[str], option: str) -> Path:
    """Where the rows of one table are. Raises `UsageError`."""
    if len(given) > 1:
        raise UsageError(f"{option} is given {len(given)} times, and the run has one table; name one file.")
    return Path(given[0])


def _reader(arguments: argparse.Namespace, finished: Run) -> Callable[[Path], Table]:
    """How real rows are read: as the study writes its columns, or by the rules of a private file, whose
    ledger is not touched."""
    if arguments.private is None:
        return partial(real_rows, domain=finished.domain)
    study = agreed_study(finished.facts, arguments.dir / outdir.RUN)
    return partial(rows_by_rules, study=study, rules=private_file.load(arguments.private).rules)


def _linked(arguments: argparse.Namespace, finished: Run, linked: LinkedTables) -> None:
    """The same of linked tables. Raises also `UsageError` for a page, which is of one table."""
    from runner.review.evaluation.linked_words import lines, to_json

    if arguments.html is not None:
        raise UsageError(
            "--html is a page of one table; of linked tables ask for --json, or read what is printed."
        )
    study = agreed_study(finished.facts, arguments.dir / outdir.RUN)
    rules = None if arguments.private is None else private_file.load(arguments.private).rules
    real = real_tables(_places(arguments.real, "--real", linked), study, rules)
    held_out = (
        None
        if arguments.test is None
        else real_tables(_places(arguments.test, "--test", linked), study, rules)
    )
    found = judge_linked(
        finished, linked, released_tables(arguments.dir, linked), real, held_out, arguments.label
    )
    print(to_json(found) if arguments.json else "\n".join(lines(found)))


def _places(given: Sequence[str], option: str, linked: LinkedTables) -> DataLocation:
    """Where linked tables are: in a folder, or TABLE=FILE of each. Raises `UsageError`."""
    if len(given) == 1 and Path(given[0]).is_dir():
        return DataLocation(Path(given[0]).resolve())
    files = dict(text.partition("=")[::2] for text in given)
    if sorted(files) != sorted(linked.names) or len(files) < len(given):
        raise UsageError(
            f"The run is of linked tables: name each once, as {' '.join(f'{option} {name}=FILE' for name in linked.names)}, or a "
            "folder that holds a file of each."
        )
    return DataLocation(tables={name: DataLocation(Path(file).resolve()) for name, file in files.items()})


def _private_score(arguments: argparse.Namespace, finished: Run, linked: LinkedTables | None) -> None:
    """One figure that may be told, and nothing else."""
    beside = [name for name in ("test", "label", "html") if getattr(arguments, name) is not None]
    if beside:
        raise UsageError(
            f"--{beside[0]} shows exact figures of real rows; ask for it without --private-score, which may be told."
        )
    if arguments.private is None:
        raise UsageError(
            "--private-score needs --private FILE: the custodian's private file says how its rows are read, and which ledger is "
            "charged up to which cap."
        )
    private = private_file.load(arguments.private)
    real = _file(arguments.real, "--real") if linked is None else _places(arguments.real, "--real", linked)
    found = score(finished, real, arguments.dir, arguments.private_score, private)
    if arguments.json:
        print(json.dumps({**asdict(found), "ledger": str(found.ledger)}))
    else:
        print("\n".join(found.lines()))
