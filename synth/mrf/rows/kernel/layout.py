"""How the kernel takes what it is given: sizes that its code and its caller share."""

from __future__ import annotations

from typing import Final

LANES: Final = 8
"""Columns, or targets, that are looked at together."""
DIGIT: Final = 11
"""Bits by which numbers are sorted at a time."""
