"""Whether the linked tables in a directory are what the model makes of the table of people's rows beside it;
of a run on one machine, also those that its parties hold."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, StudiesDiffer
from runner.check.finding import Finding, fine, problem
from runner.report.files import load
from runner.results.finished_run import MODEL
from runner.results.linked import People, linked_of, seed_of, write_tables
from runner.results.outdir import table_of

if TYPE_CHECKING:
    from runner.review.verification.place import Place


def linked_tables(place: Place) -> Iterator[Finding]:
    """Nothing for a run of one table."""
    if "linked" not in place.run:
        return
    try:
        run = load(place.directory)
        linked = linked_of(run.facts, run.domain, place.directory)
        assert linked is not None
        table = place.directory / table_of(run.facts)
        people = People.read(linked, run.codes, table)
        with tempfile.TemporaryDirectory(prefix="cosynth-") as folder:
            made = write_tables(
                Path(folder), linked, run.model, people, seed_of(table, place.directory / MODEL)
            )
            folders = [place.directory, *(own.directory for own in place.parties)]
            other = [
                (folder / file.name).relative_to(place.directory).as_posix()
                for folder in folders
                for file in made
                if _bytes(folder / file.name) != file.read_bytes()
            ]
    except CosynthError as error:
        yield problem(error)
        return
    except (KeyError, ValueError, TypeError):
        other = [table_of(place.run)]
    names = [
        f"{name}.csv"
        for name in [place.run["linked"]["parent"], *(t["name"] for t in place.run["linked"]["tables"])]
    ]
    if other:
        yield problem(
            StudiesDiffer(
                f"{place.directory}: {' and '.join(other)} {'is' if len(other) == 1 else 'are'} not what the model "
                f"makes of the people in "
                f"{table_of(place.run)}; ask the parties for their own directories."
            )
        )
    else:
        yield fine(f"{' and '.join(names)} are what the model makes of the people in {table_of(place.run)}")


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
