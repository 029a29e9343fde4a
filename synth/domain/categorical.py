"""Columns of listed values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.later import np
from synth.domain.checks import check_flag, check_size
from synth.domain.column import Column, Span, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECIMAL = re.compile(
    r"-?[0-9]{1,40}(\.[0-9]{0,40})?"
)  # bounded: a Fraction of "1e999999999" would fill the memory


@dataclass(frozen=True)
class Categorical(Column):
    """One of the listed values; code = position in the list.

    other: the listed value that stands for all that are not listed; without it these are refused.
    """

    values: tuple[Value, ...]
    missing: bool = False
    other: Value | None = None
    kind: ClassVar[str] = "categorical"

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
    def size(self) -> int:  # type: ignore[override]
        """Number of codes: the values, and one for a missing value."""
        return len(self.values) + self.missing

    @property
    def listed(self) -> tuple[Value, ...]:
        return self.values

    @property
    def unlisted(self) -> int:
        return -1 if self.other is None else self.values.index(self.other)

    @property
    def unread(self) -> str:
        return (
            "the value is not one of those declared for this column (a text must equal one of them "
            "exactly, spaces and capitals included)"
        )

    @property
    def value_type(self) -> type:
        kinds = {type(value) for value in self.values}
        for kind in (bool, int):
            if kinds == {kind}:
                return kind
        return float if kinds <= {int, float} else str

    @property
    def line(self) -> tuple[Value, ...] | None:
        return self.values if self.ordered else None

    def code_of(self, given: object) -> int | None:
        texts = [shown_as(value) for value in self.values]
        known = isinstance(given, str | int | float) and shown_as(given) in texts
        return texts.index(shown_as(given)) if known else None  # type: ignore[arg-type]

    @cached_property
    def spellings(self) -> dict[str, int]:
        """Codes by the texts that stand for them exactly; of a boolean in small letters."""
        texts = {str(value): code for code, value in enumerate(self.values)}
        for code, value in enumerate(self.values):
            if isinstance(value, bool):  # "True" is Python's, "true" everybody else's
                for spelling in (str(value).lower(), str(value).upper()):
                    texts.setdefault(spelling, code)
        return texts

    @cached_property
    def decimals(self) -> dict[Fraction, int]:
        """See `Column`: the decimal that was written, not the double next to it."""
        numbers: dict[Fraction, int] = {}
        for code, value in enumerate(self.values):
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers.setdefault(Fraction(repr(value)), code)
        return numbers

    def read(self, text: str) -> int:
        code = self.spellings.get(text)
        if code is None and self.decimals and DECIMAL.fullmatch(text):
            code = self.decimals.get(Fraction(text))
        return -1 if code is None else code

    def fits(self, value: Value) -> bool:
        return any(shown_as(one) == shown_as(value) for one in self.values)

    def writings(self) -> Iterable[str]:
        return iter(self.spellings)

    def numbers(self, name: str) -> list[Span]:
        if any(isinstance(value, bool | str) for value in self.values):
            super().numbers(name)
        return [(float(value), float(value)) for value in self.values]

    def compared(self, value: object, name: str) -> tuple[float, list[Span]]:
        if self.ordered and value in self.values:
            return float(self.values.index(value)), self.spans()
        numbers = [float(v) for v in self.values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) != len(self.values) or not isinstance(value, int | float):
            super().compared(value, name)
        return float(value), [(number, number) for number in numbers]  # type: ignore[arg-type]

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The values as the study lists them, None where missing; an object array."""
        table = np.empty(len(self.values) + 1, dtype=object)
        table[:-1] = self.values
        return table[np.asarray(codes, dtype=np.int64)]

    def label(self, code: int) -> str:
        return str(self.values[code]) if code < len(self.values) else "missing"

    def to_spec(self) -> dict[str, object]:
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


SPELLINGS = (("false", "f", "no", "n", "0"), ("true", "t", "yes", "y", "1"))
"""Of false and of true, in any case."""
_ZEROS = 41
"""That are read behind the point of 1.0: one, and up to 40 more."""


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
        return {"kind": self.kind, "missing": self.missing}

    @property
    def unread(self) -> str:
        return (
            "the value is neither true nor false in a usual spelling; what it means can be said under [harmonise] of the "
            "private file"
        )

    @cached_property
    def spellings(self) -> dict[str, int]:
        return {text: code for code, texts in enumerate(SPELLINGS) for text in texts}

    def read(self, text: str) -> int:
        text = text.lower()
        if text.rstrip("0").endswith(".") and DECIMAL.fullmatch(text):  # 1.0, of a column with gaps
            text = text.partition(".")[0]
        return super().read(text)

    def fits(self, value: Value) -> bool:
        return True

    def writings(self) -> Iterator[str]:
        for text in self.spellings:
            if text.isdigit():
                yield from (text, *(f"{text}.{'0' * zeros}" for zeros in range(_ZEROS)))
            else:
                yield from map("".join, product(*({letter, letter.upper()} for letter in text)))

    def numbers(self, name: str) -> list[Span]:
        return self.spans()
