"""Key columns of a table as canonical identifiers, in whole arrays: what `IdentifierPolicy.canonical` does
value by value.

`mpc_protocols/psu/normalise.py` is the rule (`docs/design/psu.md` 5); this is the same function on Arrow
blocks: 0.3 to 0.5 us a row for ASCII text, numbers and dates instead of 1.2 to 3. Text that is ASCII is
normalised by Arrow's kernels: there, decomposition and composition change nothing, casefolding is lower case,
and white space is the ten characters that Python's `str.split` takes for it. Everything else goes to the rule
itself, each distinct value of a block once. Both ways give the same bytes or both refuse (property-tested).

Identifiers name people: nothing of them is in an error, a log or a repr. Misfits say where and why.
"""

from __future__ import annotations

import datetime
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpc_protocols.psu.identifiers.normalise import (
    MAX_FIELD,
    REAL,
    IdentifierPolicy,
    Identifiers,
    field_of,
    placeholders,
)
from parties.data.counting.coding import Misfit
from parties.data.files.arrow import binaries, bits, entries, present, truths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_BLANKS = r"[\t-\r\x1c-\x20]+"  # ASCII of str.isspace
_REFUSED = 'complete it or leave the row out ([harmonise] missing_ids = "leave out" in the private file)'


class IdentifierReader:
    """Makes identifiers of the key columns, block by block; `finish` gives them. untyped: the table is a CSV
    file.

    leave_out: rows without an identifier are left out, not refused; `kept` says which rows of the last block
    were not, None: all were kept. shapes: how often each shape of identifier came in each key column, where
    it was asked for; private. columns: the key columns. After a misfit the block's identifiers are dropped:
    the caller refuses the table.
    """

    def __init__(
        self, policy: IdentifierPolicy, *, untyped: bool, leave_out: bool = False, shapes: bool = False
    ) -> None:
        self.columns = policy.columns
        self._policy, self._untyped = policy, untyped
        self._kinds = ["untyped"] * len(policy.columns)
        self._keys: list[bytes] = []
        self._leave_out = leave_out
        self.kept: NDArray[np.bool_] | None = None
        self.shapes: dict[str, Counter[str]] | None = (
            {name: Counter() for name in policy.columns} if shapes else None
        )

    def add(self, blocks: Sequence[pa.Array]) -> list[tuple[str, Misfit]]:
        """Read one block, an array per key column; the first row of each kind of misfit and the column's
        name."""
        misfits, fields = [], []
        for i, (values, name, rule) in enumerate(
            zip(blocks, self._policy.columns, self._policy.rules, strict=True)
        ):
            values = _plain(values)
            kind = _kind(values.type)
            if kind is None:
                misfits.append(
                    (
                        name,
                        Misfit(
                            None,
                            f"the column holds {values.type} values; identifiers are text, integers or dates",
                        ),
                    )
                )
                continue
            if len(values):
                self._kinds[i] = "untyped" if self._untyped and kind == "text" else kind
            canonical = _canonical(values, kind, rule)
            fields.append(canonical)
            if self._leave_out:
                continue
            there = present(values)
            for bad, what in (
                (~there, "is missing"),
                (there & ~present(canonical), f"is a placeholder or cannot be read as {rule!r}"),
            ):
                if bad.any():
                    reason = f"the identifier {what}; {_REFUSED}"
                    misfits.append((name, Misfit(int(bad.argmax()), reason, np.flatnonzero(bad))))
        if misfits:
            return misfits
        if self._leave_out:
            fields = self._complete(fields)
        self._note_shapes(fields)
        self._keys += _joined(fields)
        return misfits

    def _complete(self, fields: Sequence[pa.Array]) -> list[pa.Array]:
        """The rows that have all their fields; notes which."""
        kept = np.logical_and.reduce([present(column) for column in fields])
        self.kept = None if kept.all() else kept
        return list(fields) if self.kept is None else [column.filter(bits(kept)) for column in fields]

    def _note_shapes(self, fields: Sequence[pa.Array]) -> None:
        if self.shapes is None:
            return
        for name, column in zip(self.columns, fields, strict=True):
            encoded = pc.dictionary_encode(column)
            for value, place in zip(encoded.dictionary.to_pylist(), _times(encoded), strict=True):
                self.shapes[name][shape(value.decode("utf-8"))] += int(place)

    def leave_out(self, kept: NDArray[np.bool_]) -> None:
        """Of the rows of the last block that have an identifier, only these count."""
        first = len(self._keys) - len(kept)
        self._keys[first:] = [key for key, stays in zip(self._keys[first:], kept, strict=True) if stays]

    def finish(self) -> Identifiers:
        """All identifiers read: distinct, with their first rows and the number of duplicates. Once; the rows
        are let go."""
        keys, self._keys = self._keys, []
        return self._policy.collect(keys, tuple(self._kinds))


def shape(canonical: str) -> str:
    """What an identifier looks like without saying what it is: 9s for digits, a for letters however many, the
    rest as it stands.

    "+33612345678" is "+99999999999", "ann@example.org" is "a@a.a".
    """
    kinds = ["9" if one.isdigit() else "a" if one.isalpha() else one for one in canonical]
    return "".join("a" if kind == "a" else "".join(run) for kind, run in groupby(kinds))


def _times(encoded: pa.DictionaryArray) -> NDArray[np.int64]:
    """How often each entry of the dictionary comes."""
    return np.bincount(entries(encoded.indices, np.int32), minlength=len(encoded.dictionary))


def _plain(values: pa.Array) -> pa.Array:
    """Without a dictionary; text as `string`."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        values = pc.cast(values, pa.string())
    return values


def _kind(kind: pa.DataType) -> str | None:
    """As in `normalise.KINDS`; None for a type that is no identifier."""
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "untyped" if pa.types.is_null(kind) else None


def _canonical(values: pa.Array, kind: str, rule: str) -> pa.Array:
    """The canonical bytes (type binary) of each value; null where there are none."""
    if kind == "untyped":  # no value at all
        return _chosen(np.zeros(len(values), bool), pc.cast(values, pa.binary()))
    if kind == "date":
        days = pc.cast(values, pa.date32(), safe=False)
        return _apply_to_distinct(days, lambda day: field_of(day, rule), among=_whole_days(values, days))
    texts = pc.cast(values, pa.string())
    if rule == "exact":
        return _bounded(texts)
    if rule not in ("text", "name", "email"):
        return _apply_to_distinct(texts, lambda text: field_of(text, rule), among=present(texts))
    there = present(texts)
    ascii_ = there & truths(pc.string_is_ascii(texts))
    plain = _bounded(_ascii(texts, rule))
    if ascii_.all():
        return plain
    others = _apply_to_distinct(texts, lambda text: field_of(text, rule), among=there & ~ascii_)
    return pc.if_else(bits(ascii_), plain, others)


def _ascii(texts: pa.Array, rule: str) -> pa.Array:
    """The rules text, name and email on ASCII; null where the rule refuses. Anything where a text is not
    ASCII."""
    lower = pc.ascii_lower(texts)
    tidy = pc.ascii_trim(pc.replace_substring_regex(lower, _BLANKS, " "), " ")
    words = binaries([word.encode() for word in sorted(placeholders(rule))])
    refused = truths(pc.is_in(tidy, value_set=pc.cast(words, pa.string())))
    if rule == "email":
        refused = refused | ~truths(pc.match_substring_regex(tidy, r"\A[^@ ]+@[^@ ]+\z"))
    if not np.any(refused):
        return tidy
    return _chosen(~refused & present(tidy), pc.cast(tidy, pa.binary()))


def _bounded(texts: pa.Array) -> pa.Array:
    """The texts' bytes; null where one is empty or too long."""
    encoded = pc.cast(texts, pa.binary())
    lengths = entries(pc.binary_length(encoded), "int32")
    fits = (lengths > 0) & (lengths <= MAX_FIELD)
    return encoded if fits.all() else _chosen(fits & present(encoded), encoded)


def _whole_days(values: pa.Array, days: pa.Array) -> NDArray[np.bool_]:
    """Where a date of the years 1 to 9999, or a moment at its midnight (UTC), is there."""
    epoch = datetime.date(1970, 1, 1)
    number = entries(days, np.int32)
    there = (
        present(values)
        & (number >= (datetime.date.min - epoch).days)
        & (number <= (datetime.date.max - epoch).days)
    )
    if pa.types.is_timestamp(values.type):
        moment = pa.timestamp(values.type.unit)
        there &= truths(pc.equal(pc.cast(values, moment), pc.cast(days, moment, safe=False)))
    return there


def _apply_to_distinct(
    values: pa.Array, rule: Callable[[object], bytes | None], among: NDArray[np.bool_]
) -> pa.Array:
    """The rule applied to each distinct value among these rows; null elsewhere, and where the rule refuses."""
    encoded = pc.dictionary_encode(_chosen(among, values))
    return binaries([rule(value) for value in encoded.dictionary.to_pylist()]).take(encoded.indices)


def _chosen(chosen: NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """The values of these rows; null elsewhere."""
    return pc.if_else(bits(chosen), values, pa.nulls(len(values), values.type))


def _joined(fields: Sequence[pa.Array]) -> list[bytes]:
    """One identifier per row: byte 0, then every field behind its length in four bytes."""
    rows = len(fields[0])
    parts = [_fixed(np.full(rows, REAL[0], np.uint8))]
    for column in fields:
        parts += [_fixed(entries(pc.binary_length(column), np.int32).astype(">u4")), column]
    joined = pc.binary_join_element_wise(
        *parts, _fixed(np.zeros((rows, 0), np.uint8))
    )  # the last one separates: nothing
    assert joined.type == pa.binary()
    texts: list[bytes] = joined.to_pylist()
    return texts


def _fixed(records: NDArray[Any]) -> pa.Array:
    """(n,) or (n, k): each entry's bytes."""
    rows, width = len(records), records.dtype.itemsize * (records.shape[1] if records.ndim == 2 else 1)
    offsets = (
        np.arange(0, (rows + 1) * width, width, dtype=np.int32) if width else np.zeros(rows + 1, np.int32)
    )
    return pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(records.tobytes())]
    )
