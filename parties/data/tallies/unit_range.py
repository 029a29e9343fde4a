"""Where the identifiers of a part of a table lie, so that a bound on rows per person holds for the whole.

Each part alone can tell whether a person has too many rows in it; whether a person is in two parts, it
cannot. So a table of a study whose unit is an identifier is cut by ranges of a hash of it, and each part
states the least and the greatest:

    hash(person) = SHA-256 of "STUDY/COLUMN/person" in UTF-8, as SQL engines compute it, too

Somebody in two parts has the same hash in both, which lies in both ranges: they overlap, and the parts are
refused (`total.py`). Ranges that do not overlap have nobody in common, however the table was cut. The prefix
keeps hashes of one study from being compared with those of another; it hides no identifier from who can guess
it, and need not: a tally is as private as the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parties.data.counting.coding import Distinct, Misfit, plain, written
from parties.data.counting.scan import named
from parties.data.libraries import pa
from parties.data.tallies.partition import UnitRange

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOT_AN_IDENTIFIER = "identifiers of a table that is counted in parts must be text or whole numbers"


def unit_hash(study: str, column: str, person: str) -> bytes:
    """32 bytes. study: its name. column: of the unit's id."""
    return hashlib.sha256(f"{study}/{column}/{person}".encode()).digest()


class UnitRangeReader:
    """Reads the identifiers beside the codes (`scan.KeyReader`). leaves_out: rows without one are left out,
    not refused."""

    def __init__(self, study: str, column: str, leaves_out: bool) -> None:
        self.columns: tuple[str, ...] = (column,)
        self.kept: NDArray[np.bool_] | None = None
        self._study, self._leaves_out = study, leaves_out
        self._low, self._high = b"\xff" * 33, b""

    def add(self, blocks: Sequence[pa.Array]) -> list[tuple[str, Misfit]]:
        """See `KeyReader`."""
        (column,), values = self.columns, plain(blocks[0])
        self.kept = named(values) if self._leaves_out else None
        kind = values.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_null(kind)
        ):
            return [(column, Misfit(None, NOT_AN_IDENTIFIER))]
        texts = [written(value) for value in Distinct(values).values.to_pylist()]
        hashes = [unit_hash(self._study, column, text) for text in texts if text]
        if hashes:
            self._low, self._high = min(self._low, *hashes), max(self._high, *hashes)
        return []

    def leave_out(self, kept: NDArray[np.bool_]) -> None:
        """Rows that do not count may widen the range: two parts are refused rather than added."""

    @property
    def range(self) -> UnitRange:
        """Of all identifiers so far."""
        return UnitRange(self._low, self._high) if self._high else UnitRange()
