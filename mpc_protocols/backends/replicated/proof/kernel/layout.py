"""How rows lie before the kernel: sizes that its code and its callers share, and the sums of rows that it
begins with."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

VARIABLES: Final = 6
ROWS: Final = 1 << VARIABLES
LANES: Final = 8
"""Words of a column: what is computed with at a time."""
VECTORS: Final = 4
"""Columns of a block, which stays in cache."""
OUTER: Final = 3**3
"""Points of the grid of the first three variables."""
INNER: Final = 3**3
"""Points of the grid of the last three."""
GROUP: Final = 1 << 3
"""Rows that are expanded in registers."""
TABULATED: Final = 4
"""Rows whose sums are tabulated."""


def plan() -> tuple[NDArray[np.uint64], int]:
    """Sums of rows that expand 8 x 8 rows in three variables, for `code`, and their number."""
    place = np.arange(OUTER).reshape(3, 3, 3)
    sums: list[tuple[int, ...]] = []
    for axis in range(3):
        for point in np.ndindex(*(3,) * (axis + 1), *(2,) * (2 - axis)):
            if point[axis] == 2:
                of = [point, *((*point[:axis], at, *point[axis + 1 :]) for at in range(2))]
                sums += [tuple(GROUP * int(place[each]) + row for each in of) for row in range(GROUP)]
    rows = [GROUP * int(place[point]) + row for point in np.ndindex(2, 2, 2) for row in range(GROUP)]
    return np.array([*(part for triple in sums for part in triple), *rows], np.uint64), len(sums)
