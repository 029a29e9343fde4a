"""Tables of codes and their counts, for tests of oracles: four columns, three computing parties' rows, four
contributors'."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from runner.review.audit.subjects.in_memory import arena
from runner.review.conformance.oracle.runs import SMALL

SIZES = {"a": 3, "b": 4, "c": 5, "d": 2}
__all__ = ["CONTRIBUTORS", "ONE_WAY", "PARTS", "SIZES", "SMALL", "counter", "facts", "table"]
ONE_WAY: list[Clique] = [(c,) for c in SIZES]


def table(rows: int, seed: int) -> NDArray[np.int64]:
    """Rows whose columns a, b and d depend on one another."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, rows)
    return np.stack(
        [first, (first + rng.integers(0, 2, rows)) % 4, rng.integers(0, 5, rows), first % 2], axis=1
    )


def counter(records: NDArray[np.int64], sizes: Mapping[str, int] = SIZES) -> LocalCounts:
    """The marginals of rows of codes, one column for each of `sizes`."""
    return arena.counter(records, sizes)


def facts(row_cap: int = 100_000, session: bytes = b"s" * 32) -> StudyFacts:
    """The public facts of a study of these tables."""
    return StudyFacts(SIZES, "add-remove", 1, row_cap, session)


PARTS = [table(400, 1), table(250, 2), table(333, 3)]
CONTRIBUTORS = [table(77, 4), table(5, 5), table(120, 6), table(9, 7)]
