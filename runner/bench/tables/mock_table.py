"""An invented table of any length on disk, dealt to custodians: Parquet files, written in blocks so that
memory stays flat.

Nobody's data: a mixture of a few latent classes in which the columns are independent and uneven
(`runner.forecast.presumed.presumed_tables`),
drawn row by row. The generator is seeded, so that a benchmark repeats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from parties.data.libraries import pa, parquet

BLOCK = 1 << 18
_CLASSES = 6
_STEEPNESS = 1.2
_USUAL = 0.8
_SEED = 20_001


def write_tables(directory: Path, sizes: Mapping[str, int], rows: int, names: list[str]) -> None:
    """NAME.parquet per custodian, rows divided evenly, and domain.json."""
    (directory / "domain.json").write_text(json.dumps(dict(sizes)), encoding="utf-8")
    rng = np.random.default_rng(_SEED)
    cumulative = {}
    for name, size in sizes.items():
        weights = np.arange(1, size + 1) ** -_STEEPNESS
        usual = rng.permutation(size)
        orders = [usual if rng.random() < _USUAL else rng.permutation(size) for _ in range(_CLASSES)]
        cumulative[name] = np.stack([np.cumsum(weights[order] / weights.sum()) for order in orders])
    schema = pa.schema([(name, pa.int16()) for name in sizes])
    for number, custodian in enumerate(names):
        left = (number + 1) * rows // len(names) - number * rows // len(names)
        with parquet.ParquetWriter(directory / f"{custodian}.parquet", schema) as writer:
            while left:
                count = min(left, BLOCK)
                writer.write_table(pa.table(_block(cumulative, count, rng), schema=schema))
                left -= count


def _block(
    cumulative: Mapping[str, np.ndarray], count: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Codes of `count` rows: a class each, then each column by inversion within its class."""
    classes = rng.integers(0, _CLASSES, count)
    columns = {}
    for name, levels in cumulative.items():
        codes = np.empty(count, np.int16)
        for number in range(_CLASSES):
            where = np.flatnonzero(classes == number)
            codes[where] = np.minimum(
                np.searchsorted(levels[number], rng.random(len(where)), side="right"), levels.shape[1] - 1
            )
        columns[name] = codes
    return columns
