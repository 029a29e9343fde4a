"""`init DIR`: a commented, valid study to start from, horizontal or `--vertical`, and a private file to go
with it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import program
from runner.failures import reason
from runner.starting import code_books
from runner.starting.custodians import compared
from runner.starting.files import booked_columns, own_settings, private_settings, proposal_file
from runner.starting.linked import linked_proposal, table_name
from runner.starting.proposals import place_of, texts_of
from runner.starting.template import CONFIRM, called, private_template, template, with_custodians
from runner.study.declared.schema import schema_text

if TYPE_CHECKING:
    from synth.domain import Value


def _tables(
    given: Sequence[str],
    option: str = "--from",
    once: str = "a custodian has one table",
    called: Callable[[str], str] = lambda stem: stem.lower().replace(" ", "-"),
) -> dict[str, Path]:
    """`--from [NAME=]FILE`..., by the custodian; one that is not named is called as its file. Raises
    `UsageError`."""
    tables: dict[str, Path] = {}
    for text in given:
        several = text.split(",")
        if len(several) > 1 and all(
            one.strip() and Path(os.path.expanduser(one.strip())).is_file() for one in several
        ):
            raise UsageError(
                f"{option} {text} names several files; write {option} before each: "
                f"{' '.join(f'{option} {one.strip()}' for one in several)}."
            )
        name, mark, file = text.partition("=")
        if mark and not (name and file) and not Path(text).exists():
            raise UsageError(f"{option} must be FILE or NAME=FILE, got {text}.")
        path = Path(os.path.expanduser(text if not mark or Path(text).exists() else file))
        name = name if mark and file and not Path(text).exists() else called(path.stem)
        if path.is_dir():
            raise UsageError(
                f"{option} {text}: that is a directory; name a table in it, and write {option} for each."
            )
        if not path.name:
            raise UsageError(f"{option} must be FILE or NAME=FILE, got {text}.")
        if name in tables:
            raise UsageError(f"{option} names {name} twice; {once}: write {option} NAME=FILE for each.")
        tables[name] = path
    return tables


def _booked(arguments: argparse.Namespace, tables: Iterable[Path]) -> dict[str, tuple[Value, ...]]:
    """`--codes COLUMN=FILE`..., by the column. Raises `UsageError`."""
    booked = {}
    for text in arguments.codes:
        name, mark, file = text.partition("=")
        if not (name and mark and file):
            raise UsageError(f"--codes must be COLUMN=FILE, got {text}.")
        book = Path(os.path.expanduser(file))
        if any(book.is_file() and table.is_file() and book.samefile(table) for table in tables):
            raise UsageError(
                f"--codes {text} is a custodian's own table, and what a code book lists becomes public; name a published list of "
                f"the values of {name}, or leave it out."
            )
        booked[name] = code_books.read(book)
    return booked


def _of_linked(arguments: argparse.Namespace) -> dict[str, str]:
    """The files of a study by the linked tables of one custodian. Raises `UsageError`, `DataRefused`."""
    if arguments.tables or arguments.vertical:
        other = "--from" if arguments.tables else "--vertical"
        raise UsageError(
            f"--linked looks at one custodian's tables of a horizontal study; leave {other} out "
            "(docs/howto/linked.md has patients here and visits there)."
        )
    tables = _tables(arguments.linked, "--linked", "tables of a study differ in their names", table_name)
    if len(tables) < 2:
        raise UsageError(
            "--linked needs the table of people and, by a further --linked, what belongs to them."
        )
    places = {name: place_of(path) for name, path in tables.items()}
    found, booked = linked_proposal(places, arguments.key), _booked(arguments, tables.values())
    children = [child.name for child in found.children]
    proposed = proposal_file(
        ", ".join(map(str, tables.values())),
        found.people,
        booked,
        found.notes,
        str(arguments.dir / "domain.proposed.toml"),
        str(arguments.dir / "study.toml"),
        found,
    )
    more = private_settings(places[found.parent].dialect, ())
    own = private_template({name: path.resolve() for name, path in tables.items()})
    return {
        "study.toml": template(False, booked_columns(booked, children) + "\n" + CONFIRM, list(tables)),
        "private.example.toml": "\n".join([own, *([more] if more else [])]),
        "domain.proposed.toml": proposed,
    }


def _looked_at(arguments: argparse.Namespace, tables: Mapping[str, Path]) -> dict[str, str]:
    """The files of a study by custodians' tables and by code books. Raises `UsageError`, `DataRefused`."""
    booked = _booked(arguments, tables.values())
    study = template(arguments.vertical, booked_columns(booked) + "\n" + CONFIRM)
    files = {"study.toml": study, "private.example.toml": private_template()}
    if not tables:
        return files
    places = {name: place_of(path) for name, path in tables.items()}
    texts = {name: texts_of(place) for name, place in places.items()}
    wanted = partial(
        proposal_file,
        ", ".join(map(str, tables.values())),
        booked=booked,
        file=str(arguments.dir / "domain.proposed.toml"),
        study=str(arguments.dir / "study.toml"),
    )
    if len(tables) == 1:
        ((name, path),) = tables.items()
        columns = texts[name].proposals
        files["domain.proposed.toml"] = wanted(columns)
        more = private_settings(places[name].dialect, columns)
        files["private.example.toml"] = "\n".join(
            [private_template(path.resolve()), *([more] if more else [])]
        )
        return files
    found = compared(texts)
    files["domain.proposed.toml"] = wanted(found.proposals, notes=found.notes)
    files["study.toml"] = with_custodians(study, list(tables))
    for name, path in tables.items():
        settings = own_settings(places[name].dialect, found.rules[name], name in found.ignore_case)
        data = f"data = {json.dumps(str(path.resolve()), ensure_ascii=False)}\n"
        files[f"{name}.toml"] = "\n".join(
            [f"# Private settings of {name}; this file never leaves it.\n{data}", settings]
        )
    return files


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    directory: Path = arguments.dir
    if directory.suffix == ".toml" and not directory.exists():
        raise UsageError(
            f"{directory} would be a directory, in which init writes study.toml; name it without .toml."
        )
    tables = _tables(arguments.tables)
    if arguments.key is not None and not arguments.linked:
        raise UsageError("--key names the column of linked tables; name these by --linked.")
    if arguments.linked:
        files = _of_linked(arguments)
    elif tables or arguments.codes:
        files = _looked_at(arguments, tables)
    else:
        files = {"study.toml": template(arguments.vertical), "private.example.toml": private_template()}
    files["study.toml"] = called(files["study.toml"], directory.resolve().name)
    files["study.schema.json"] = schema_text()
    if directory.is_file() and tables:
        raise UsageError(
            f"{directory} is a file, and init makes a directory; write --from before each table, and name a directory."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in files:
            if (directory / name).exists():
                raise UsageError(
                    f"{directory / name} exists already and is left alone; name another directory."
                )
        for name, text in files.items():
            private = name == "domain.proposed.toml" or name.removesuffix(".toml") in tables
            mode = 0o600 if private else 0o666
            with open(directory / name, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
                file.write(text)
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written ({reason(error)}); name another directory."
        ) from None
    study = directory / "study.toml"
    parties = (
        "two owners of different columns, and a third party that computes"
        if arguments.vertical
        else "three custodians"
    )
    proposed = directory / "domain.proposed.toml"
    if proposed.name in files:
        looked_at = ", ".join([*map(str, tables.values()), *arguments.linked])
        print(
            f"{proposed} has a proposal for each column of {looked_at}. It is private: limits\n"
            f"and values taken from data tell of the data. Confirm each line that is marked by what is publicly known, then:\n"
            f"  cat {shlex.quote(str(proposed))} >> {shlex.quote(str(study))}"
        )
    named = len(tables) > 1
    described = (
        f"has {', '.join(tables)} as its custodians"
        if named
        else f"has an example of {parties}, to be replaced by yours"
        if tables or arguments.codes or arguments.linked
        else f"describes a study of {parties}"
    )
    first = (
        "confirm the columns, and what each custodian's file says of its table"
        if named
        else "append the columns once they are confirmed, and declare the parties, each with a [[party]]; put each table where "
        "`data` says"
        if proposed.name in files
        else "declare your columns under [domain.columns] and the parties, each with a [[party]]; put each table where `data` "
        "says"
    )
    own = (
        " ".join(f"--private {name}={shlex.quote(str(directory / f'{name}.toml'))}" for name in tables)
        if named
        else ""
    )
    more = f" {own}" if own else ""
    print(f"""{study} {described}. Next:
  1. {first}
  2. {program()} check {study}{more}
  3. {program()} plan {study}{more}
  4. {program()} run {study} --out {directory / "out"}{more}
{directory / "private.example.toml"} shows what a party keeps to itself in a deployment.""")
