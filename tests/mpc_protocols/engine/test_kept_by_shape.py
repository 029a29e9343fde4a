"""Places that a process keeps for all its runs and parties: right for every shape, and written by nobody."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mpc_protocols.engine.bitwise import argmax
from mpc_protocols.engine.noise import alias


@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_comparisons_are_all_pairs_of_a_row_after_those_of_another(count: int) -> None:
    """From any comparison on, few enough to be kept or not."""
    pairs = list(combinations(range(count), 2))
    for start in (0, 1, len(pairs), 2 * len(pairs) + 1):
        for several in (1, len(pairs), 2 * len(pairs) + 1, argmax._MAX_COMPARED_KEPT + 1):
            expected = [
                (number // len(pairs), *pairs[number % len(pairs)])
                for number in range(start, start + several)
            ]
            assert list(zip(*argmax._compared(count, start, several), strict=True)) == expected


@pytest.mark.parametrize("high, low", [(1, 4), (2, 2), (4, 4), (8, 2), (2, 8)])
def test_products_are_taken_of_all_entries_but_the_first_row_by_row(high: int, low: int) -> None:
    expected = [(row, column) for row in range(1, high) for column in range(1, low)]
    assert list(zip(*alias._entries(high, low), strict=True)) == expected


def test_what_is_kept_cannot_be_written_to() -> None:
    for places in (*argmax._compared(5, 0, 10), *alias._entries(4, 4)):
        with pytest.raises(ValueError, match="read-only"):
            places += np.intp(1)
