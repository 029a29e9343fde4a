"""Integer codes that mean themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.process.later import np
from synth.domain.checks import check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Codes:
    """Integer codes 0..size-1 that mean themselves."""

    size: int
    kind: ClassVar[str] = "codes"
    ordered: ClassVar[bool] = True
    missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.size, "size")

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The codes themselves, int64."""
        return np.asarray(codes, dtype=np.int64)

    def label(self, code: int) -> str:
        """What a code means, for people."""
        return str(code)

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        return {"kind": self.kind, "size": self.size}
