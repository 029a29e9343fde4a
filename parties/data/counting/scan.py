"""One pass over a custodian's table: codes block by block, and every misfit in a sentence that holds no
value.

What all readers of a table share (`local_marginals.py` counts the codes, `records` keeps them). Refused
here (`DataRefused`, exit 30), before anything is sent: a missing column, a value outside the domain, an
identifier that is none, no rows, more rows than the public max_rows (every ring width is derived from it: a
custodian above it would break the sensitivity, `docs/design/mechanisms.md` 5), a unit with more rows than its
bound. Sentences name the file, the column and the line; never a value nor a count.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mpc_protocols.process.later import np
from parties.data.counting.coding import Coder, Misfit
from parties.data.counting.constraints import Constraints
from parties.data.files.arrow import bits, entries, present
from parties.data.harmony.rules import DELIMITERS, RFC
from parties.data.libraries import pa, pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from parties.data.source import Source
    from synth.domain import Domain

log = logging.getLogger("cosynth.custodian.scan")  # below the logger whose lines are private

SHOWN_ROWS = 3
"""Of each kind of misfit, so many of the first rows are kept for the owner."""

Unit = tuple[str, int]
"""The privacy unit's identifier column and the most rows one identifier may have at this custodian."""


@dataclass(frozen=True)
class Inspection:
    """A look at the column names only. present, missing: of the study's columns (and keys); ignored: the
    data's other columns. problems: sentences, empty if the data can be read by the study."""

    present: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    problems: tuple[str, ...]


class KeyReader(Protocol):
    """Takes the key columns of each block. columns: their names."""

    columns: tuple[str, ...]
    kept: NDArray[np.bool_] | None
    """Which rows of the last block have an identifier; None: all, or those without one are refused."""

    def add(self, blocks: Sequence[pa.Array]) -> list[tuple[str, Misfit]]:
        """Read one block, an array per key column; the first row of each kind of misfit and the column's
        name."""

    def leave_out(self, kept: NDArray[np.bool_]) -> None:
        """Of the rows of the last block that have an identifier, only these count."""


def unknown(source: Source, wanted: Sequence[str] = ()) -> str:
    """The sentence about a table that has none of the study's columns. It names no field: there may be no
    header line. wanted: the study's columns."""
    sentence = f"{source.label} has none of the study's columns"
    header = source.header
    alike = {name.casefold() for name in wanted} & {name.casefold() for name in header}
    which = "capitals" if len(alike) == len(set(wanted)) else f"capitals (of {len(alike)} of them)"
    ignored = (
        f'{sentence}, but for {which}; write names = "ignore case" under [harmonise] of the private file'
    )
    if source.location.kind != "csv":
        return (
            f"{ignored}, or rename them." if alike else f"{sentence}; names must be equal, capitals included."
        )
    own = source.location.dialect
    for mark, name in DELIMITERS.items():
        if mark != own.delimiter and len(header) == 1 and mark in header[0]:
            written = mark.replace("\t", "\\t")
            said = f'write delimiter = "{written}" under [csv] of the private file'
            if mark == RFC.delimiter:  # of a .tsv, which is read with tabs
                said = "name the file .csv"
            return f"{sentence}: line 1 has {name} and no other separator; {said}."
    if alike:
        return f"{ignored}."
    if header[0].startswith(("#", "sep=")):
        return f"{sentence}: line 1 is a remark; delete it, so that the header line comes first."
    return f"{sentence} (line 1 must be a header line, its names separated by {own.words}; capitals count)."


def inspect(source: Source, domain: Domain, unit: Unit | None = None, keys: Sequence[str] = ()) -> Inspection:
    """Compare the column names with the study's; reads no row. keys: identifier columns, which may be outside
    the domain.

    Where no column is known, the first line of a CSV may be a record: then its fields are not named.
    """
    wanted = list(dict.fromkeys([*domain.names, *([unit[0]] if unit is not None else []), *keys]))
    missing = tuple(name for name in wanted if name not in source.columns)
    if len(missing) == len(wanted):
        return Inspection((), missing, (), (unknown(source, wanted),))
    problems = [source.lacking(name) for name in missing]
    problems += [
        f'{source.label} has more than one column "{name}"; rename the others, or leave them out.'
        for name in wanted
        if source.columns.count(name) > 1
    ]
    found = tuple(name for name in domain.names if name in source.columns)
    return Inspection(
        found, missing, tuple(name for name in source.columns if name not in wanted), tuple(problems)
    )


@dataclass(frozen=True)
class Refusal:
    """One kind of misfit of a column. row: the first; None: the whole column. count, rows: how many rows, and
    the first of them; private."""

    row: int | None
    count: int = field(default=0, repr=False)
    rows: tuple[int, ...] = field(default=(), repr=False)


def too_many(source: Source, unit: Unit) -> str:
    """The sentence about a person with more rows than the unit's bound."""
    return (
        f"{source.label}, column \"{unit[0]}\": a person (one value of the unit's id) has more rows than the study's unit "
        f"max_rows = {unit[1]}."
    )


def nobody(source: Source, column: str) -> str:
    """The sentence about a row without a person, where the unit is one."""
    return (
        f'{source.label}, column "{column}": a row has no value of the unit\'s id, so its person is not known; '
        'missing_ids = "leave out" under [harmonise] of the private file leaves such rows out.'
    )


class Scan:
    """One pass over the rows. coders: per column of the domain; rows: read so far; left_out: rows without an
    identifier; then `problems`, each kind of misfit once, and `refusals`.

    unit: checked first, by a GROUP BY where the data is. keys: reads the identifier columns beside the codes.
    """

    def __init__(
        self,
        source: Source,
        domain: Domain,
        *,
        max_rows: int,
        unit: Unit | None = None,
        keys: KeyReader | None = None,
        allow_empty: bool = False,
    ) -> None:
        self._source, self._max_rows, self._unit, self._allow_empty = source, max_rows, unit, allow_empty
        self._keys = keys
        self._rules = Constraints(domain)
        self.coders = {name: Coder(domain[name]) for name in domain.names}
        self.rows = self.left_out = 0
        self._read = 0
        self._general: list[str] = []
        self.refusals: dict[tuple[str, str], Refusal] = {}
        """By column and reason."""

    def blocks(self, block_rows: int, *, stop: bool) -> Iterator[dict[str, NDArray[np.int32]]]:
        """Codes per column, block by block; with `stop`, ends at the first misfit. Raises `DataRefused` if
        unreadable."""
        self._check_units()
        if stop and self._general:
            return
        keys = self._keys.columns if self._keys is not None else ()
        unit = (self._unit[0],) if self._unit is not None and self._source.leaves_out else ()
        names = list(dict.fromkeys([*self.coders, *keys, *unit]))
        for batch in self._source.batches(names, block_rows):
            columns = dict(zip(names, batch.columns, strict=True))
            unnamed, kept = list[tuple[str, Misfit]](), None
            if self._keys is not None:
                unnamed, kept = self._keys.add([columns[name] for name in keys]), self._keys.kept
            elif unit:
                kept = named(columns[unit[0]])
            if kept is not None:
                columns = {name: column.filter(bits(kept)) for name, column in columns.items()}
            codes = {}
            for name, coder in self.coders.items():
                codes[name], misfits = coder.code(columns[name])
                self._note(((name, misfit) for misfit in misfits), kept)
            self._note(unnamed, None)
            breaking, keeping = self._rules.look(codes)
            self._note(breaking, kept)
            there = batch.num_rows if kept is None else int(kept.sum())
            self.rows += there
            self.left_out += batch.num_rows - there
            if keeping is not None:
                codes = {name: column[keeping] for name, column in codes.items()}
                if self._keys is not None and not unnamed:
                    self._keys.leave_out(keeping)
                self.rows += int(keeping.sum()) - there
            self._read += batch.num_rows
            if self.rows > self._max_rows:
                self._general.append(
                    f"{self._source.label} has more rows than the study's max_rows = {self._max_rows}; "
                    "the parties must agree on a larger one."
                )
                return
            if stop and self.refusals:
                return
            yield codes
        self._check_units_again()
        if self._source.left_out or self.left_out or any(self.broken.values()):
            log.info(
                "own data: rows left out by the filter %d, without an identifier %d; breaking constraints %s",
                self._source.left_out,
                self.left_out,
                dict(self.broken),
            )
        if self.rows == 0 and not self._allow_empty:
            self._general.append(
                f"{self._source.label} has no rows; if that is right, set allow_empty = true in the private "
                "file."
            )

    def _note(self, misfits: Iterable[tuple[str, Misfit]], kept: NDArray[np.bool_] | None) -> None:
        """kept: which rows of the block the misfits' rows are numbered among; None: all."""
        for name, misfit in misfits:
            earlier = self.refusals.get((name, misfit.reason), Refusal(None))
            if misfit.row is None:
                self.refusals[name, misfit.reason] = earlier
                continue
            rows = np.asarray([misfit.row] if misfit.rows is None else misfit.rows)
            places = (rows if kept is None else np.flatnonzero(kept)[rows]) + self._read
            first = (*earlier.rows, *map(int, places[:SHOWN_ROWS]))[:SHOWN_ROWS]
            self.refusals[name, misfit.reason] = Refusal(first[0], earlier.count + len(rows), first)

    def _check_units(self) -> None:
        if self._unit is None:
            return
        name, bound = self._unit
        above, absent = self._source.units(name, bound)
        if above:
            self._general.append(too_many(self._source, self._unit))
        if absent and not self._source.leaves_out:
            self._general.append(nobody(self._source, name))

    def _check_units_again(self) -> None:
        if self._unit is not None and self._source.outgrown(*self._unit):
            sentence = too_many(self._source, self._unit)
            self._general += [] if sentence in self._general else [sentence]

    @property
    def broken(self) -> Mapping[str, int]:
        """How many rows break each constraint, by its text; private."""
        return self._rules.broken

    def problems(self) -> list[str]:
        """The sentences, by line; what concerns the whole table first."""
        found = sorted(self.refusals.items(), key=lambda entry: -1 if entry[1].row is None else entry[1].row)
        places = self._source.places({one.row for _, one in found if one.row is not None})
        where = [
            f'{self._source.label}, column "{name}"'
            + ("" if one.row is None else f", {places[one.row]}")
            + f": {reason}."
            for (name, reason), one in found
        ]
        return self._general + where


def named(units: pa.Array) -> NDArray[np.bool_]:
    """Which rows have a value of the unit's id."""
    kept = present(units)
    if pa.types.is_string(units.type) or pa.types.is_large_string(units.type):
        lengths = pc.binary_length(units)
        kept &= entries(lengths, str(lengths.type)) > 0
    return kept
