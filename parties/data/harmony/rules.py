"""What a private file says about its table: `[csv]` and `[harmonise]` (`docs/howto/harmonise.md`). Standard
library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mpc_protocols.options import Options, option
from parties.data.harmony.grouping import MARKS
from synth.domain import Value

ENCODINGS = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    "latin-1": "latin-1",
    "latin-9": "iso8859-15",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "macroman": "mac-roman",
}
"""By the names that spreadsheets use, Python's codec. Of UTF-8, a byte order mark is no part of the first
name."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
DECIMALS = (".", ",")
TABS = ".tsv"
"""How names of files end whose fields tabs separate."""


@dataclass(frozen=True)
class Dialect(Options):
    """[csv]: how a CSV file is written; RFC 4180 in UTF-8 unless said. decimal: the mark in the numbers of
    number columns. thousands: the mark between their groups of three digits; None: digits are not grouped."""

    delimiter: str = option(",", "word", "what separates fields", words=tuple(DELIMITERS))
    decimal: str = option(".", "word", "the mark in columns of numbers", words=DECIMALS)
    encoding: str = option("utf-8", "word", "how letters are bytes", words=tuple(ENCODINGS))
    thousands: str | None = option(
        None, "word", "the mark between groups of three digits in columns of numbers", words=tuple(MARKS)
    )

    @property
    def codec(self) -> str:
        """Python's name of the encoding."""
        return ENCODINGS[self.encoding]

    @property
    def words(self) -> str:
        """What separates fields."""
        return DELIMITERS[self.delimiter]

    def of(self, path: Path) -> Dialect:
        """As a file of this name is read: tabs separate the fields of a .tsv, unless semicolons or bars are
        said to."""
        tabbed = path.suffix.lower() == TABS and self.delimiter == ","
        return replace(self, delimiter="\t") if tabbed else self


RFC = Dialect()


@dataclass(frozen=True)
class ColumnRule:
    """[harmonise.columns.NAME]: where a column of the study comes from.

    source: the data's column (default: of the same name). sql: or an expression over the data's columns.
    missing: texts that stand for an absent value, beside the table's. values: the study's value for each of
    the data's, by its text.
    """

    source: str | None = None
    sql: str | None = field(default=None, repr=False)
    missing: tuple[str, ...] = field(default=(), repr=False)
    values: Mapping[str, Value] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Rules:
    """All of it. file: the private file, for sentences. missing: markers in every column. filter: which rows
    count, as SQL.

    leave_out: rows without an identifier are left out (`missing_ids = "leave out"`) instead of refused.
    ignore_case: the data's names may differ in capitals from those that the study or a rule says (`names =
    "ignore case"`).
    """

    file: str = ""
    dialect: Dialect = RFC
    missing: tuple[str, ...] = field(default=(), repr=False)
    filter: str | None = field(default=None, repr=False)
    leave_out: bool = False
    ignore_case: bool = False
    columns: Mapping[str, ColumnRule] = field(default_factory=dict, repr=False)
    stated: bool = False
    """Whether the file has [csv] or [harmonise] at all."""
