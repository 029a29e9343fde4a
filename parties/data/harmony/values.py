"""Markers of missing values, maps, decimal commas and grouped digits, on whole Arrow arrays; Python sees each distinct value
of a block once.

A text of the private file equals a value as the study's listed values do (`parties/data/counting/coding.py`):
exactly, or as the same plain decimal ("-9" also matches -9.0), true and false in lower case.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from parties.data.counting.coding import Distinct, plain, written
from parties.data.files.arrow import binaries, bits
from parties.data.harmony.grouping import Grouping
from synth.domain.categorical import DECIMAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from parties.data.harmony.recipe import Step

T = TypeVar("T")

_POINTED = str.maketrans(
    ",.", ".'"
)  # a point among decimal commas groups digits, if anything: the coder refuses it, and says so


class Lookup(Generic[T]):
    """What belongs to a text, as tables write it."""

    def __init__(self, pairs: Iterable[tuple[str, T]]) -> None:
        self._texts = dict(pairs)
        self._decimals = {
            Fraction(text): found for text, found in self._texts.items() if DECIMAL.fullmatch(text)
        }

    def get(self, text: str) -> T | None:
        """None: nothing does."""
        found = self._texts.get(text)
        if found is None and self._decimals and DECIMAL.fullmatch(text):
            found = self._decimals.get(Fraction(text))
        return found


class Change:
    """What a step makes of a column's values, block by block. marked, mapped: how many values so far;
    private."""

    def __init__(self, step: Step) -> None:
        self.marked = self.mapped = 0
        self._comma, self._maps = step.comma, bool(step.values)
        self._groups = Grouping(step.thousands, "," if step.comma else ".") if step.thousands else None
        self._marks = bool(self._comma or self._groups)
        self._markers = Lookup((marker, True) for marker in step.missing)
        self._values = Lookup(step.values)
        self._idle = not (step.missing or self._marks or self._maps)

    def __call__(self, values: pa.Array) -> pa.Array:
        """The values changed: as text where there is a map, or a mark in numbers in text, else in their own
        type."""
        if self._idle:
            return values
        values = plain(values)
        text = bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))
        if not (text or pa.types.is_boolean(values.type) or _countable(values.type)):
            return values  # of a type that the coder refuses
        marked = self._marks and text
        if len(values) == values.null_count:
            return pa.nulls(len(values), pa.string()) if self._maps or marked else values
        distinct = Distinct(values)
        before = [written(value) for value in distinct.values.to_pylist()]
        read = [self._read(one) for one in before] if marked else before
        marks = [
            self._markers.get(one) or self._markers.get(two) for one, two in zip(before, read, strict=True)
        ]
        gone: NDArray[np.bool_] = distinct.lookup([bool(mark) for mark in marks], False)
        self.marked += int(gone.sum())
        if not (self._maps or marked):
            return _without(values, gone) if gone.any() else values
        found = [
            self._values.get(one) or self._values.get(two) for one, two in zip(before, read, strict=True)
        ]
        after = [None if mark else new for new, mark in zip(found, marks, strict=True)]
        self.mapped += int(distinct.lookup([new is not None for new in after], False).sum())
        table = [
            None if mark else (old if new is None else new).encode()
            for old, new, mark in zip(read, after, marks, strict=True)
        ]
        return binaries([*table, None]).take(distinct.places).cast(pa.string())

    def _read(self, text: str) -> str:
        """A number without groups and with a decimal point; another text stays none."""
        whole = self._groups.without(text) if self._groups is not None else text
        return whole.translate(_POINTED) if self._comma else whole


def _countable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _without(values: pa.Array, gone: NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(bits(~gone), values, pa.nulls(len(values), values.type))
