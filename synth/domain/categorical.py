"""Columns of listed values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.later import np
from synth.domain.checks import check_flag, check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = str | int | float | bool


@dataclass(frozen=True)
class Categorical:
    """One of the listed values; code = position in the list.

    other: the listed value that stands for all that are not listed; without it these are refused.
    """

    values: tuple[Value, ...]
    missing: bool = False
    other: Value | None = None
    kind: ClassVar[str] = "categorical"
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_flag(self.missing, "missing")
        if not self.values:
            raise StudyInvalid("values must list at least one value.")
        check_size(len(self.values), "the number of values")
        seen: set[str] = set()
        for value in self.values:
            if not isinstance(value, str | int | float) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise StudyInvalid(f"values may hold texts, numbers, true and false, got {value!r}.")
            if value == "":
                raise StudyInvalid(
                    "values must not hold the empty text, which reads as a missing value: declare missing = true."
                )
            written = shown_as(value)
            if written in seen:
                raise StudyInvalid(f"values holds {value!r} twice (a table cannot tell them apart).")
            seen.add(written)
        if self.other is not None and (not isinstance(self.other, str) or self.other not in self.values):
            raise StudyInvalid(
                f"other must be the text among values that stands for all values not listed, got {self.other!r}."
            )

    @property
    def size(self) -> int:
        """Number of codes: the values, and one for a missing value."""
        return len(self.values) + self.missing

    @property
    def unlisted(self) -> int:
        """The code of a value that is not listed; -1 if there is none."""
        return -1 if self.other is None else self.values.index(self.other)

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The values as the study lists them, None where missing; an object array."""
        table = np.empty(len(self.values) + 1, dtype=object)
        table[:-1] = self.values
        return table[np.asarray(codes, dtype=np.int64)]

    def label(self, code: int) -> str:
        """What a code means, for people."""
        return str(self.values[code]) if code < len(self.values) else "missing"

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        named = {} if self.other is None else {"other": self.other}
        return {"kind": self.kind, "values": list(self.values), "missing": self.missing, **named}


def shown_as(value: Value) -> str:
    """What a table without types shows of it: 1 and 1.0 are one number, true and "true" one text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class Ordinal(Categorical):
    """The same where the order means something: neighbours are alike, and may be taken together."""

    kind: ClassVar[str] = "ordinal"
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.other is not None:
            raise StudyInvalid("other has no place in an order; declare the column categorical.")


@dataclass(frozen=True)
class Boolean(Categorical):
    """False or true, in whatever common spelling the table has it (`SPELLINGS`)."""

    values: tuple[Value, ...] = (False, True)
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values != (False, True) or self.other is not None:
            raise StudyInvalid("A boolean column has the values false and true.")

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        return {"kind": self.kind, "missing": self.missing}


SPELLINGS = (("false", "f", "no", "n", "0"), ("true", "t", "yes", "y", "1"))
"""Of false and of true, in any case."""
