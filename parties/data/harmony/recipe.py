"""The rules of a private file fitted to one study: what becomes of each column. Standard library only.

Everything that can be told without the data is checked here: rules for columns that the study does not have,
values that it does not list, markers that are values. A `Recipe` is private like the file it comes from; its
digest is for two custodians who believe that they read their tables alike, and hand it on themselves.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.counting.coding import written
from parties.data.harmony.rules import ColumnRule, Rules
from synth.domain import Column, Domain


@dataclass(frozen=True)
class Step:
    """What becomes of one column, in this order: its place or expression, marks in numbers, markers of
    missing, the map.

    source: the data's column; None: the result of `sql`, whose numbers have no marks. comma: decimal commas.
    thousands: the mark between groups of three digits, or an empty text.
    """

    source: str | None
    sql: str | None = field(default=None, repr=False)
    comma: bool = False
    thousands: str = ""
    missing: tuple[str, ...] = field(default=(), repr=False)
    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def plain(self) -> bool:
        """Whether the values stay as they are."""
        return not (self.sql or self.comma or self.thousands or self.missing or self.values)


@dataclass(frozen=True)
class Recipe:
    """file: the private file, for sentences. steps: of the study's columns and identifiers. filter: which
    rows count, as SQL.

    leave_out: rows without an identifier are left out. ignore_case: the data's names may differ in capitals.
    """

    file: str
    steps: Mapping[str, Step] = field(repr=False)
    filter: str | None = field(default=None, repr=False)
    leave_out: bool = False
    ignore_case: bool = False

    def step(self, name: str) -> Step:
        """Of any column; one that the study does not have stays as it is."""
        return self.steps.get(name) or Step(name)

    def written_as(self, header: Sequence[str]) -> Recipe:
        """With the names of columns as this header has them, if capitals do not count.

        A name that is there as it stands is that column. Raises `DataRefused` if only others are, and
        several.
        """
        if not self.ignore_case:
            return self
        alike: dict[str, list[str]] = {}
        for name in dict.fromkeys(header):
            alike.setdefault(name.casefold(), []).append(name)
        steps = {}
        for name, step in self.steps.items():
            source = step.source
            names = [] if source is None or source in header else alike.get(source.casefold(), [])
            if len(names) > 1:
                raise DataRefused(
                    f'{self.file}: [harmonise] names ignores case, and "{source}" may be "{names[0]}" or "{names[1]}"; say which '
                    "with `from`."
                )
            steps[name] = replace(step, source=names[0]) if names else step
        return replace(self, steps=steps)

    @property
    def digest(self) -> str:
        """64 hexadecimal digits: equal where two custodians' rules mean the same, however their files are
        laid out.

        The delimiter and the encoding of a file are not in it: they say nothing about values.
        """
        form: dict[str, object] = {
            "filter": self.filter,
            "leave_out": self.leave_out,
            "columns": {
                name: {
                    "source": step.source,
                    "sql": step.sql,
                    "comma": step.comma,
                    "missing": sorted(step.missing),
                    "values": sorted(step.values),
                    **({"thousands": step.thousands} if step.thousands else {}),
                }
                for name, step in self.steps.items()
            },
        }
        # absent before it could be said, as `thousands` above: digests of other rules stay what they were
        if self.ignore_case:
            form["names"] = "ignore case"
        return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


def fit(rules: Rules, domain: Domain, identifiers: Collection[str]) -> Recipe:
    """The recipe for a study's columns and identifier columns. Raises `StudyInvalid` with the first problem
    of the rules."""
    for sentence in misfits(rules, domain, identifiers):
        raise StudyInvalid(f"{rules.file}: {sentence}")
    names = dict.fromkeys([*domain.names, *identifiers])
    columns = dict(zip(domain.names, domain.columns, strict=True))
    return Recipe(
        rules.file,
        {name: _step(rules, name, columns.get(name)) for name in names},
        rules.filter,
        rules.leave_out,
        rules.ignore_case,
    )


def misfits(rules: Rules, domain: Domain, identifiers: Collection[str]) -> Iterator[str]:
    """What of the rules does not fit the study, a sentence each."""
    known = [*domain.names, *identifiers]
    for name, rule in rules.columns.items():
        where = f"[harmonise.columns.{name}]"
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f' (did you mean "{close[0]}"?)' if close else ""
            yield f"{where} is not a column of the study nor an identifier{hint}; a column of the data is named with `from`."
        elif name in domain:
            for given, value in rule.values.items():
                if not domain[name].fits(value):
                    yield f"{where} values maps {given!r} to {value!r}, which the study does not have in this column."
    for name in domain.names:
        rule = rules.columns.get(name, ColumnRule())
        for marker in (*rules.missing, *rule.missing):
            if marker in rule.values:
                yield (
                    f"[harmonise.columns.{name}] has {marker!r} among its values, and as a marker of missing values; a marker "
                    "comes first: name it in one place only."
                )
            elif marker in map(written, domain[name].listed) and marker not in rule.missing:
                yield (
                    f"[harmonise] missing lists {marker!r}, which is a value of the study's column {name}; name the marker under "
                    "`missing` of the columns that use it."
                )


def _step(rules: Rules, name: str, column: Column | None) -> Step:
    rule = rules.columns.get(name, ColumnRule())
    number = column is not None and column.quantity and rule.sql is None
    return Step(
        None if rule.sql else rule.source or name,
        rule.sql,
        number and rules.dialect.decimal == ",",
        (rules.dialect.thousands or "") if number else "",
        tuple(dict.fromkeys([*rules.missing, *rule.missing])),
        tuple((given, written(value)) for given, value in rule.values.items()),
    )
