"""What every kind of column has: all that the other layers ask before they treat columns differently.

Nobody compares a column's class. A new kind is a class here that overrides what differs, and its declaration in
`kinds.py`; `docs/howto/add-a-column-kind.md` goes through one. The defaults are those of values that are read
as texts, one code each, without an order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = str | int | float | bool
Span = tuple[float, float]
"""The smallest and the largest of a code's values on the column's line."""


class Column(ABC):
    """One column: frozen, hashable.

    size: number of codes. missing: whether the last one is for an absent value. low, high, bins: of binned ones.
    """

    kind: ClassVar[str]
    """As the study file says it."""
    noun: ClassVar[str] = "values"
    """What its values are called."""
    integral_by: ClassVar[str] = "integral = true"
    """What of the study says that the numbers of its bins are whole."""
    unit: ClassVar[str] = "value"
    """What one of its codes stands for."""
    example: ClassVar[str] = ""
    """Of days and times: one, as a table writes it."""
    textual: ClassVar[bool] = True
    """Whether a table's values are read one by one as texts (`read`), and charts have a bar for each."""
    binned: ClassVar[bool] = False
    """Whether codes are bins of a line (`numbers.Binned`): neighbours are drawn and coarsened together."""
    quantity: ClassVar[bool] = False
    """Whether its values are numbers that can be added, and have a decimal mark in a table."""
    ordered: ClassVar[bool] = False
    """Whether neighbouring codes are alike."""
    nominal: ClassVar[bool] = False
    """Whether ordered codes may yet be names, of which none is above another."""
    size: int
    missing: bool
    low: int | float
    high: int | float
    bins: int
    zero: bool = False
    """Whether the number 0 has a code of its own, `zero_code`."""
    zero_code: int = -1
    integral: bool = False
    """Whether bins hold whole numbers only."""
    scale: str = ""
    """What has equal widths in all bins: "linear" numbers or their "log"; else empty."""
    even: bool = False
    """Whether bins are drawn over the numbers themselves: they are equally wide, and these are no days."""
    other: Value | None = None
    """The listed value that stands for all that are not listed."""

    @abstractmethod
    def code_of(self, given: object) -> int | None:
        """The code of a value as the study's constraints write it; None for what is none, or out of bounds."""

    @abstractmethod
    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """Values of these codes, one each."""

    @abstractmethod
    def label(self, code: int) -> str:
        """What a code means, for people."""

    @abstractmethod
    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""

    @property
    def unread(self) -> str:
        """Why a value of a table has no code."""
        return "the value is not one that the study declares for this column"

    def read(self, text: str) -> int:
        """The code of a value as a table without types writes it; -1 for what is none."""
        code = self.code_of(text)
        return -1 if code is None else code

    def fits(self, value: Value) -> bool:
        """Whether a private file may map to this value, as far as it can be told without the data."""
        return not self.textual or self.read(str(value)) >= 0

    @property
    def value_type(self) -> type:
        """Of decoded values: int, float, bool, str, date or datetime."""
        return str

    @property
    def dated(self) -> bool:
        """Whether its values are days or times (`dates.Calendar`)."""
        return issubclass(self.value_type, date)

    @property
    def listed(self) -> tuple[Value, ...]:
        """All values that there are, in the order of codes, if the study lists them."""
        return ()

    @property
    def unlisted(self) -> int:
        """The code of a value that is not listed; -1 if there is none."""
        return -1

    @property
    def decimals(self) -> Mapping[Fraction, int]:
        """Codes of the numbers of which any plain decimal writing is read."""
        return {}

    def writings(self) -> Iterable[str] | None:
        """All other texts that `read` knows; None: they are too many for a statement of SQL."""
        return None

    @property
    def line(self) -> Hashable:
        """Columns may be put in an order if their lines are equal; None: not at all."""
        return None

    def number_of(self, given: object) -> float | None:
        """Where a value lies on the column's line; None for what is none."""
        return None

    def span(self, code: int) -> Span:
        """The smallest and the largest place on its line that a code decodes to."""
        return code, code

    def spans(self) -> list[Span]:
        """Of all codes but that of a missing value."""
        return [self.span(code) for code in range(self.size - self.missing)]

    def edges(self) -> tuple[float, ...]:
        """Borders between the codes on the column's line, the ends included."""
        return tuple(code - 0.5 for code in range(self.size - self.missing + 1))

    def bin(self, code: int) -> int | None:
        """The code's place among those between `edges`; None if it has none."""
        return None if self.missing and code == self.size - 1 else code

    def written(self, value: float) -> str:
        """A place on the column's line, for people."""
        return str(value) if isinstance(value, int) else f"{value:g}"

    def numbers(self, name: str) -> list[Span]:
        """Of each code that is there, the numbers that it may stand for. ValueError, a sentence about the
        column `name`, where these have no mean."""
        raise ValueError(
            f"Column {name} holds texts, which have no mean and no quantiles; ask for a share, such as share({name} == ...)."
        )

    def compared(self, value: object, name: str) -> tuple[float, list[Span]]:
        """Where a value stands among the codes that are there. ValueError, as of `numbers`, where it has no
        place."""
        raise ValueError(
            f"Column {name} has no order in which {value!r:.40} has a place; list its values with in [...]."
        )

    def with_missing(self) -> Column:
        """With a code for an absent value, if it has none yet."""
        able: Any = self  # every kind but codes declares whether values may lack
        lacking: Column = replace(able, missing=True)
        return lacking
