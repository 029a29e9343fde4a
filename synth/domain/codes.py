"""Integer codes that mean themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.process.later import np
from synth.domain.categorical import Categorical
from synth.domain.checks import as_number, check_size, is_integer
from synth.domain.column import Column, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Codes(Column):
    """Integer codes 0..size-1 that mean themselves."""

    size: int
    kind: ClassVar[str] = "codes"
    noun: ClassVar[str] = "codes"
    unit: ClassVar[str] = "code"
    textual: ClassVar[bool] = False
    ordered: ClassVar[bool] = True
    nominal: ClassVar[bool] = True
    missing: ClassVar[bool] = False  # type: ignore[misc]
    value_type: ClassVar[type] = int
    line: ClassVar[str] = "codes"

    def __post_init__(self) -> None:
        check_size(self.size, "size")

    @property
    def unread(self) -> str:
        return f"the value is not an integer from 0 to {self.size - 1}"

    def code_of(self, given: object) -> int | None:
        return given if is_integer(given) and 0 <= given < self.size else None  # type: ignore[operator, return-value]

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The codes themselves, int64."""
        return np.asarray(codes, dtype=np.int64)

    def label(self, code: int) -> str:
        return str(code)

    def numbers(self, name: str) -> list[Span]:
        return self.spans()

    def compared(self, value: object, name: str) -> tuple[float, list[Span]]:
        return as_number(value, name), self.spans()

    def with_missing(self) -> Column:
        return Categorical(tuple(range(self.size)), missing=True)

    def to_spec(self) -> dict[str, object]:
        return {"kind": self.kind, "size": self.size}
