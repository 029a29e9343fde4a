"""Public sizes of one owner's secret order of the rows (`ordered_sums`): what plans weigh and what travels.

The block length is chosen so that the second of the protocol's two shuffles, over blocks instead of places,
costs next to nothing: with B the first carries about n + B cells places, the second n / B + cells blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True)
class Layout:
    """Public sizes of one asked: rows, cells, columns of w, bytes of an element."""

    rows: int
    cells: int
    columns: int
    element: int

    @property
    def block(self) -> int:
        """B: near the minimum of what travels, B cells (e v + i) + 2 e v rows / B."""
        return max(
            1,
            isqrt(
                2
                * self.columns
                * self.element
                * self.rows
                // (self.cells * (self.columns * self.element + 4))
            ),
        )

    @property
    def blocks(self) -> int:
        """M: enough for every cell to have blocks of its own, at least one, filled up with places beyond the
        rows."""
        return self.cells - (-self.rows // self.block)

    @property
    def places(self) -> int:
        """L."""
        return self.blocks * self.block

    @property
    def index_bytes(self) -> int:
        """Bytes in which a place travels."""
        return 2 if self.places <= 1 << 16 else 4

    def transfers(self) -> tuple[int, int, int]:
        """Bytes from O to Q, from H to Q, from Q to O."""
        width = self.columns * self.element
        return (
            self.index_bytes * (self.places + self.cells),
            (self.places + self.blocks) * width,
            self.blocks * width,
        )
