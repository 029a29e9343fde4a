"""What `init --from` writes: the proposals as a private file of commented lines, code books as columns of the study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from parties.data.harmony.rules import RFC, Dialect
from runner.starting.proposals import Proposal
from synth.domain import Value

HEAD = """\
# PRIVATE until you have confirmed it, like the table that it was read off: {label}
#
# Limits and lists of values taken from data tell of the data: the smallest number is somebody's, and a value that one row has
# is that row's. No noise hides them, for the domain of a study is public. So every line here is a comment. Replace what was read
# off by what everybody knows (a code book, the range of an instrument, the years of a registry), ask whether each value may be
# known to occur, and only then move a column to [domain.columns] in study.toml and remove its #. `init --codes COLUMN=FILE`
# takes values from a public code book instead.
"""


def proposal_file(label: str, found: Sequence[Proposal], booked: Mapping[str, Sequence[Value]]) -> str:
    """The file of proposals. booked: columns that a code book says, which need none."""
    parts = [HEAD.format(label=label)]
    for one in found:
        if one.name in booked:
            parts.append(f"# {_name(one.name)}: in study.toml, from its code book\n")
        elif one.advice:
            parts.append(f"# {_name(one.name)}: {one.advice}\n")
        else:
            lines = [
                f"[domain.columns.{_name(one.name)}]",
                *(f"{key} = {_toml(value)}" for key, value in one.keys),
            ]
            parts.append("".join(f"# {line}\n" for line in [*lines, *_read_by(one)]))
    return "\n".join(parts)


def _read_by(one: Proposal) -> list[str]:
    """How the private file reads days that are not written 2019-12-31."""
    name = '"' + one.name.replace('"', '""') + '"'
    rules = ["sql = " + _toml(f"try_strptime({name}, '{spelling}')") for spelling in one.spellings]
    if not rules:
        return []
    table = f"[harmonise.columns.{_name(one.name)}]"
    if len(rules) == 1:
        return [f"days are not written 2019-12-31; in the private file, {table} reads them: {rules[0]}"]
    return [
        f"AMBIGUOUS: no value tells whether the day or the month is first; in the private file, {table} reads them, as one of:",
        *(f"    {rule}" for rule in rules),
    ]


def private_settings(dialect: Dialect, found: Sequence[Proposal]) -> str:
    """What the private file needs for such a table, or an empty text."""
    parts = []
    if dialect != RFC:
        parts.append(
            "[csv]                          # how the table is written\n"
            f"delimiter = {_toml(dialect.delimiter)}\ndecimal = {_toml(dialect.decimal)}\nencoding = {_toml(dialect.encoding)}\n"
        )
    for one in found:
        if one.markers:
            parts.append(f"[harmonise.columns.{_name(one.name)}]\nmissing = {_toml(one.markers)}\n")
    return "\n".join(parts)


def booked_columns(booked: Mapping[str, Sequence[Value]]) -> str:
    """The study's tables of columns whose values code books list."""
    return "\n".join(
        f'[domain.columns.{_name(name)}]\nkind = "categorical"\nvalues = {_toml(values)}\n'
        for name, values in booked.items()
    )


def _name(name: str) -> str:
    """A bare key of TOML, or a quoted one."""
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
