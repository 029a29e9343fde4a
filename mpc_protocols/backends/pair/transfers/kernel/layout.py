"""What the kernel's code and its callers both count with."""

from __future__ import annotations

from typing import Final

LEVELS: Final = 5
"""k of SoftSpokenOT, for which sums of streams are compiled."""
WIDTH: Final = 8
"""Words of a row that are computed together. Rows that begin so many words more than a power of two apart do not
meet in a cache."""
SWAPS: Final = (
    (32, 0x00000000FFFFFFFF),
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)
"""Of a transposition of 64 x 64 bits: how far apart two rows are whose bits are swapped, and which bits of the
first."""
