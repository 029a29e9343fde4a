"""What `init --from` writes: the proposals as a private file whose lines are marked, code books as columns of
the study."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime

from parties.data.harmony.rules import RFC, Dialect
from runner.starting.custodians import OwnRule
from runner.starting.linked import LinkedProposal
from runner.starting.proposals import Proposal
from synth.domain import Value

UNCONFIRMED = "TO BE CONFIRMED"
"""What marks a line that was read off rows; `check` counts those that are left in a study."""
REASONS = {
    "low": "the smallest number is somebody's: take it from a code book, an instrument, a registry's years",
    "high": "the largest number is somebody's: take it from a code book, an instrument, a registry's years",
    "values": "a value that one row has is that row's: take the list from a code book (--codes)",
    "missing": "whether a value can be absent is a rule of the form, not of these rows",
    "max_rows": "how many rows people have was counted: take what nearly all stay below from what is known of them",
    "zero": "whether zero is a case of its own is a rule of the form, not of these rows",
}
"""By the key: why what was read off rows must be confirmed."""
HEAD = """\
# PRIVATE until you have confirmed it, like what it was read off: {label}
#
# The domain of a study is public, and no noise hides it. Limits and lists of values taken from data tell of the data: so every
# line that was read off rows is marked {mark}. Replace what it says by what everybody knows (a code book, the range of
# an instrument, the years of a registry), or satisfy yourself that this is it, and remove the mark. Kinds and widths of bins
# are choices and need no confirmation. Then append this file to study.toml, which has no columns yet:
#
#     cat {file} >> {study}
#
# `check` counts the marks that are left. `init --codes COLUMN=FILE` takes values from a public code book instead.
"""


def proposal_file(
    label: str,
    found: Sequence[Proposal],
    booked: Mapping[str, Sequence[Value]],
    notes: Sequence[str] = (),
    file: str = "domain.proposed.toml",
    study: str = "study.toml",
    linked: LinkedProposal | None = None,
) -> str:
    """The file of proposals, ready to be appended to a study. booked: columns that a code book says, which
    need none.

    linked: tables of children, after the columns found, which are the parent's.
    """
    parts = [HEAD.format(label=label, mark=UNCONFIRMED, file=file, study=study)]
    parts += [f"# TO BE ASKED: {note}\n" for note in notes]
    parts += _columns("", found, booked)
    for child in linked.children if linked else ():
        keys = {"parent": child.parent, "key": child.key, "max_rows": child.max_rows}
        lines = [f"[table.{child.name}]", *(_marked(key, value) for key, value in keys.items())]
        if child.order is not None:
            lines.append(f"order = {_toml(child.order)}  # leave it out if all rows of a person are alike")
        parts.append("".join(f"{line}\n" for line in lines))
        parts += _columns(child.name, child.columns, booked)
    return "\n".join(parts)


def _columns(table: str, found: Sequence[Proposal], booked: Mapping[str, Sequence[Value]]) -> list[str]:
    """A text of each column of a table of children, or of the study ("")."""
    parts = []
    for one in found:
        if (f"{table}.{one.name}" if table else one.name) in booked:
            parts.append(f"# {_name(one.name)}: in study.toml, from its code book\n")
        elif one.advice:
            parts.append(f"# {_name(one.name)}: {one.advice}\n")
        else:
            lines = [_section(table, one.name), *(_marked(key, value) for key, value in one.keys)]
            parts.append("".join(f"{line}\n" for line in [*lines, *(f"# {line}" for line in _read_by(one))]))
    return parts


def _section(table: str, column: str) -> str:
    return f"[{f'table.{table}' if table else 'domain'}.columns.{_name(column)}]"


def _marked(key: str, value: object) -> str:
    """A line of a column's table, with the reason where it was read off rows."""
    line = f"{key} = {_toml(value)}"
    return f"{line}  # {UNCONFIRMED}: {REASONS[key]}" if key in REASONS else line


def _read_by(one: Proposal) -> list[str]:
    """How the private file reads days that are not written 2019-12-31."""
    rules = _day_rules(one.name, one.spellings)
    if not rules:
        return []
    table = f"[harmonise.columns.{_name(one.name)}]"
    if len(rules) == 1:
        return [f"days are not written 2019-12-31; in the private file, {table} reads them: {rules[0]}"]
    return [
        f"AMBIGUOUS: no value tells whether the day or the month is first; in the private file, {table} reads them, as one of:",
        *(f"    {rule}" for rule in rules),
    ]


def _day_rules(source: str, spellings: Sequence[str]) -> list[str]:
    """By each of the spellings: the line that reads this column of the custodian's as days."""
    return ["sql = " + _toml(f"try_strptime({_quoted(source)}, '{spelling}')") for spelling in spellings]


def _quoted(column: str) -> str:
    """A column's name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def _scaled(rule: OwnRule, source: str, dialect: Dialect) -> str:
    """The line that converts a column's numbers. Markers of missing values are told by it, too: what `missing` says is
    looked for in what `sql` gives."""
    column = _quoted(source)
    number = column
    if dialect.thousands is not None:
        mark = dialect.thousands.replace("'", "''")
        number = f"replace({number}, '{mark}', '')"
    if dialect.decimal == ",":
        number = f"replace({number}, ',', '.')"
    # a ratio of medians is no unit: of a factor and its inverse, the one that is written shorter
    by = min(f"* {rule.scale:.6g}", f"/ {1 / rule.scale:.6g}", key=len)
    told = f"TRY_CAST({number} AS DOUBLE) {by}"
    if rule.missing:
        markers = ", ".join("'" + marker.replace("'", "''") + "'" for marker in rule.missing)
        told = f"CASE WHEN {column} NOT IN ({markers}) THEN {told} END"
    return "sql = " + _toml(told)


def private_settings(dialect: Dialect, found: Sequence[Proposal]) -> str:
    """What the private file needs for such a table, or an empty text."""
    rules = {one.name: OwnRule.of(one) for one in found}
    return own_settings(dialect, {name: rule for name, rule in rules.items() if not rule.silent})


def own_settings(dialect: Dialect | None, rules: Mapping[str, OwnRule], ignore_case: bool = False) -> str:
    """[csv] and [harmonise] of a custodian's private file, or an empty text. rules: by the study's column."""
    parts = []
    if dialect is not None and dialect != RFC:
        parts.append(
            "[csv]                          # how the table is written\n"
            f"delimiter = {_toml(dialect.delimiter)}\ndecimal = {_toml(dialect.decimal)}\nencoding = {_toml(dialect.encoding)}\n"
            + ("" if dialect.thousands is None else f"thousands = {_toml(dialect.thousands)}\n")
        )
    if ignore_case:
        parts.append('[harmonise]\nnames = "ignore case"          # AGE and Age are the study\'s age\n')
    for name, rule in rules.items():
        lines = [f"[harmonise.columns.{_name(name)}]"]
        if rule.units:
            scaled = _scaled(rule, rule.source or name, dialect or RFC)
            lines += [f"# TO BE ASKED: {rule.units}:", f"# {scaled}"]
        days = _day_rules(rule.source or name, rule.spellings)
        if len(days) > 1:
            lines.append(
                "# AMBIGUOUS: no value tells whether the day or the month is first; leave the line that is right"
            )
        lines += days[:1] + [f"# {line}" for line in days[1:]]
        if rule.source is not None and rule.source.casefold() != name.casefold() and not days:
            lines.append(f"from = {_toml(rule.source)}")
        if rule.missing:
            lines.append(f"missing = {_toml(rule.missing)}")
        if rule.values:
            inner = ", ".join(f"{_name(given)} = {_toml(value)}" for given, value in rule.values.items())
            lines.append(f"values = {{ {inner} }}")
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def booked_columns(booked: Mapping[str, Sequence[Value]], children: Collection[str] = ()) -> str:
    """The study's tables of columns whose values code books list. children: tables whose columns are named
    TABLE.COLUMN."""
    parts = []
    for name, values in booked.items():
        table, _, column = name.partition(".")
        section = _section(table, column) if table in children else _section("", name)
        parts.append(f'{section}\nkind = "categorical"\nvalues = {_toml(values)}\n')
    return "\n".join(parts)


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
