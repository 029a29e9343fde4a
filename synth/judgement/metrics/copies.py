"""Whether a table holds rows of another one. OFFLINE ONLY, like every metric here.

Differential privacy bounds what any row shows, so a synthetic table has as many rows in common with the rows
of a run as with others like them. A table that copies has more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer[Any]]


def share_in(table: Codes, rows: Codes) -> float:
    """The share of a table's rows that equal one of `rows` in all columns; both (rows, columns) of codes,
    `table` not empty."""
    both = np.concatenate([rows, table]).astype(np.int64)
    _, place = np.unique(both, axis=0, return_inverse=True)
    place = place.reshape(-1)
    known = np.zeros(int(place.max()) + 1, dtype=bool)
    known[place[: len(rows)]] = True
    return float(known[place[len(rows) :]].mean())
