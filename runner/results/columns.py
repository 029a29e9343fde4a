"""Rows of codes as columns of values: decoded by the public seed, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parties.data.libraries import pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain

BLOCK_ROWS = 1 << 16
"""Rows decoded and written at a time."""


def shown_in_csv(columns: Sequence[list[Any]], domain: Domain) -> list[list[Any]]:
    """Values of the domain's columns as a CSV file has them: days and times as ISO 8601 writes them."""
    return [
        [None if value is None else value.isoformat() for value in values] if column.dated else values
        for column, values in zip(domain.columns, columns, strict=True)
    ]


def frame_of(codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> pd.DataFrame:
    """The rows that `write_table` would write as a data frame; a missing value is NaN or NaT, days and times
    are datetime64."""
    values: list[list[Any]] = [[] for _ in domain.names]
    for block in decoded(codes, domain, seed):
        for known, more in zip(values, block, strict=True):
            known += more
    frame = {}
    for name, column, own in zip(domain.names, domain.columns, values, strict=True):
        if column.dated:
            frame[name] = pd.Series(pd.to_datetime(pd.Series(own, dtype=object)))
        elif column.binned and column.missing:
            frame[name] = pd.Series(own, dtype=float)  # None becomes NaN
        else:
            frame[name] = pd.Series(own)
    return pd.DataFrame(frame)


def decoded(codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> Iterator[list[list[Any]]]:
    """Values of the rows, column by column, in blocks: as Python objects, all rows at once would take ten
    times the table."""
    for block in decoded_arrays(codes, domain, seed):
        yield [column.tolist() for column in block]


def decoded_arrays(
    codes: NDArray[np.integer[Any]], domain: Domain, seed: int
) -> Iterator[list[NDArray[Any]]]:
    """The same as arrays."""
    rng = np.random.default_rng(seed)
    for start in range(0, len(codes), BLOCK_ROWS):
        yield domain.decode(codes[start : start + BLOCK_ROWS], rng)
