"""A column kind that the product does not have: days of the week. `docs/howto/add-a-column-kind.md` shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.options import FLAG
from synth.domain import Column
from synth.domain.kinds import Kind

NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WRITINGS = {
    text: code
    for code, name in enumerate(NAMES)
    for whole in (name, name[:3])
    for text in (whole, whole.lower(), whole.upper())
}


@dataclass(frozen=True)
class Weekday(Column):
    """A day of the week, as Monday, Mon or MON; code 0 is Monday."""

    missing: bool = False
    kind: ClassVar[str] = "weekday"
    noun: ClassVar[str] = "days of the week"
    ordered: ClassVar[bool] = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(NAMES) + self.missing

    def code_of(self, given: object) -> int | None:
        return WRITINGS.get(str(given))

    def writings(self) -> Iterable[str]:
        return iter(WRITINGS)

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        return np.array([*NAMES, None], dtype=object)[np.asarray(codes, dtype=np.int64)]

    def label(self, code: int) -> str:
        return NAMES[code] if code < len(NAMES) else "missing"

    def to_spec(self) -> dict[str, object]:
        return {"kind": self.kind, "missing": self.missing}


WEEKDAY = Kind(Weekday, {}, {"missing": FLAG}, ("dow",))


def guess(values: Counter[str], rows: int) -> tuple[tuple[str, object], ...] | None:
    """What `init --from` proposes for a column of such texts."""
    return (("kind", "weekday"),) if values.keys() <= WRITINGS.keys() else None
