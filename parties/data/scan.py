"""One pass over a custodian's table: codes block by block, and every misfit in a sentence that holds no value.

What all readers of a table share (`local_marginals.py` counts the codes, `records.py` keeps them). Refused here (`DataRefused`,
exit 30), before anything is sent: a missing column, a value outside the domain, an identifier that is none, no rows, more
rows than the public max_rows (every ring width is derived from it: a custodian above it would break the sensitivity,
`docs/design/mechanisms.md` 5), a unit with more rows than its bound. Sentences name the file, the column and the line; never a
value nor a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from parties.data.coding import Coder, Misfit
from parties.data.source import Source

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from synth.domain import Domain

Unit = tuple[str, int]
"""The privacy unit's identifier column and the most rows one identifier may have at this custodian."""


@dataclass(frozen=True)
class Inspection:
    """A look at the column names only. present, missing: of the study's columns (and keys); ignored: the data's other columns.
    problems: sentences, empty if the data can be read by the study."""

    present: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    problems: tuple[str, ...]


class KeyReader(Protocol):
    """Takes the key columns of each block. columns: their names."""

    columns: tuple[str, ...]

    def add(self, blocks: Sequence[pa.Array]) -> list[tuple[str, Misfit]]:
        """Read one block, an array per key column; the first row of each kind of misfit and the column's name."""


def unknown(source: Source) -> str:
    """The sentence about a table that has none of the study's columns. It names no field: there may be no header line."""
    sentence = f"{source.label} has none of the study's columns"
    if source.location.kind != "csv":
        return f"{sentence}; names must be equal, capitals included."
    for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(source.columns) == 1 and mark in source.columns[0]:
            return (
                f"{sentence}: line 1 has {name} and no comma; save the table with commas between its fields."
            )
    return f"{sentence} (line 1 must be a header line, its names separated by commas; capitals count)."


def inspect(source: Source, domain: Domain, unit: Unit | None = None, keys: Sequence[str] = ()) -> Inspection:
    """Compare the column names with the study's; reads no row. keys: identifier columns, which may be outside the domain.

    Where no column is known, the first line of a CSV may be a record: then its fields are not named.
    """
    wanted = list(dict.fromkeys([*domain.names, *([unit[0]] if unit is not None else []), *keys]))
    missing = tuple(name for name in wanted if name not in source.columns)
    if len(missing) == len(wanted):
        return Inspection((), missing, (), (unknown(source),))
    problems = [
        f'{source.label} has no column "{name}", which the study declares; names must be equal, capitals included.'
        for name in missing
    ]
    problems += [
        f'{source.label} has more than one column "{name}".'
        for name in wanted
        if source.columns.count(name) > 1
    ]
    found = tuple(name for name in domain.names if name in source.columns)
    return Inspection(
        found, missing, tuple(name for name in source.columns if name not in wanted), tuple(problems)
    )


class Scan:
    """One pass over the rows. coders: per column of the domain; rows: read so far; then `problems`, each kind of misfit once.

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
        self.coders = {name: Coder(domain[name]) for name in domain.names}
        self.rows = 0
        self._general: list[str] = []
        self._misfits: dict[tuple[str, str], int | None] = {}

    def blocks(self, block_rows: int, *, stop: bool) -> Iterator[dict[str, NDArray[np.int64]]]:
        """Codes per column, block by block; with `stop`, ends at the first misfit. Raises `DataRefused` if unreadable."""
        self._check_units()
        if stop and self._general:
            return
        keys = self._keys.columns if self._keys is not None else ()
        names = list(dict.fromkeys([*self.coders, *keys]))
        for batch in self._source.batches(names, block_rows):
            columns = dict(zip(names, batch.columns, strict=True))
            codes = {}
            for name, coder in self.coders.items():
                codes[name], misfits = coder.code(columns[name])
                self._note((name, misfit) for misfit in misfits)
            if self._keys is not None:
                self._note(self._keys.add([columns[name] for name in keys]))
            self.rows += batch.num_rows
            if self.rows > self._max_rows:
                self._general.append(
                    f"{self._source.label} has more rows than the study's max_rows = {self._max_rows}; "
                    "the parties must agree on a larger one."
                )
                return
            if stop and self._misfits:
                return
            yield codes
        if self.rows == 0 and not self._allow_empty:
            self._general.append(
                f"{self._source.label} has no rows; if that is right, set allow_empty = true in the private "
                "file."
            )

    def _note(self, misfits: Iterator[tuple[str, Misfit]] | list[tuple[str, Misfit]]) -> None:
        for name, misfit in misfits:
            self._misfits.setdefault(
                (name, misfit.reason), None if misfit.row is None else misfit.row + self.rows
            )

    def _check_units(self) -> None:
        if self._unit is None:
            return
        name, bound = self._unit
        above, absent = self._source.units(name, bound)
        if above:
            self._general.append(
                f'{self._source.label}, column "{name}": a person (one value of the unit\'s id) has more rows '
                f"than the study's unit max_rows = {bound}."
            )
        if absent:
            self._general.append(
                f'{self._source.label}, column "{name}": a row has no value of the unit\'s id, so its person '
                "is not known."
            )

    def problems(self) -> list[str]:
        """The sentences, by line; what concerns the whole table first."""
        found = sorted(self._misfits.items(), key=lambda entry: -1 if entry[1] is None else entry[1])
        places = self._source.places({row for _, row in found if row is not None})
        where = [
            f'{self._source.label}, column "{name}"'
            + ("" if row is None else f", {places[row]}")
            + f": {reason}."
            for (name, reason), row in found
        ]
        return self._general + where
