"""The files a finished run leaves at every party (`docs/reference/outputs.md`): written beside their final
place, then moved there.

`synthetic.csv`, `measurements.json`, `model.npz`, `run.json` and `report.html` appear together, after
everything has been written: a run that ends early leaves its events and its log, never half a table. All five
are functions of the release and of public facts; what only this party knows (clamped values, missing counts,
its own row count) stays in its private log.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.process.later import Later
from parties.data.libraries import pa, parquet, pd
from runner.results import outdir
from runner.results.csv_fields import Fields
from runner.results.formulas import harmless
from runner.results.release import Release
from runner.results.shared_report import Reports
from synth.mrf import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from runner.results import linked
    from synth.domain import Column, Domain
else:
    linked = Later("runner.results.linked")


BLOCK_ROWS = 1 << 16
"""Rows decoded and written at a time."""


def write_outputs(
    directory: Path,
    release: Release,
    domain: Domain,
    run: dict[str, Any],
    result: bytes | None = None,
    sign: Callable[[Path], bytes | None] = lambda _: None,
    reports: Reports = Reports(),  # noqa: B008 - frozen
) -> None:
    """Write all files of a finished run into `directory`. run: the content of run.json; result: of
    result.json, if there is one. sign: of the folder where they lie before any is in its place, what
    signatures.json is to hold; it may raise. reports: how this party comes by its report."""
    with tempfile.TemporaryDirectory(prefix=outdir.STAGING, dir=directory) as name:
        staging = Path(name)
        write_table(staging / outdir.table_of(run), release.codes, domain, release.decode_seed)
        (staging / "measurements.json").write_text(measurements_json(release, domain), encoding="utf-8")
        (staging / "model.npz").write_bytes(release.model)
        if (folded := linked.linked_of(run, domain, directory)) is not None:
            people = linked.People.of(folded, release.codes, release.decode_seed)
            seed = linked.seed_of(staging / outdir.table_of(run), staging / "model.npz")
            linked.write_tables(staging, folded, Model.from_bytes(release.model), people, seed)
        if result is not None:
            (staging / outdir.RESULT).write_bytes(result)
        (staging / outdir.RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        reports.before_signatures(staging)
        if (signatures := sign(staging)) is not None:
            (staging / outdir.SIGNATURES).write_bytes(signatures)
        reports.after_signatures(staging)
        outdir.install(staging, directory, run)


def measurements_json(release: Release, domain: Domain) -> str:
    """The content of measurements.json."""
    return (
        json.dumps(
            {
                "columns": dict(domain.sizes),
                "noisy_total": release.noisy_total,
                **(
                    {
                        "levels": {
                            level.name: {"column": level.column, "bins": level.bins}
                            for level in release.levels
                        }
                    }
                    if release.levels
                    else {}
                ),
                "measurements": [
                    {
                        "clique": list(m.columns),
                        **({"resolution": list(m.clique)} if m.levels else {}),
                        "sigma2": f"{m.sigma2.numerator}/{m.sigma2.denominator}",
                        "round": m.round,
                        **({} if m.rows is None else {"rows": m.rows}),
                        "values": m.values.tolist(),
                    }
                    for m in release.measurements
                ],
                **(
                    {
                        "inherited": [
                            {"clique": list(known.columns), "cells": known.cells, "error": known.error}
                            for known in release.prior.known
                        ]
                    }
                    if release.prior is not None
                    else {}
                ),
            }
        )
        + "\n"
    )


def write_table(
    path: Path, codes: NDArray[np.integer[Any]], domain: Domain, seed: int, *, safe: bool = False
) -> None:
    """Write synthetic rows, (rows, columns) codes, as CSV: codes as integers, or values decoded by the public
    seed.

    A missing value is an empty field; days and times are as ISO 8601 has them. safe: an apostrophe stands
    before what a spreadsheet would run (`formulas`).
    """
    # not by Arrow, whose arrays of NumPy values load pandas; nor row by row by the csv module, which asks of
    # every value anew whether it has to be quoted
    fields = Fields(harmless if safe else None)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(fields.of_each(domain.names)) + "\n")
        for columns in _decoded(codes, domain, seed):
            texts = [fields.of(column) for column in columns]
            if len(texts) == 1:  # a line must hold something
                texts = [[text or '""' for text in texts[0]]]
            file.write("\n".join([*map(",".join, zip(*texts, strict=True)), ""]))


def shown_in_csv(columns: Sequence[list[Any]], domain: Domain) -> list[list[Any]]:
    """Values of the domain's columns as a CSV file has them: days and times as ISO 8601 writes them."""
    return [
        [None if value is None else value.isoformat() for value in values] if column.dated else values
        for column, values in zip(domain.columns, columns, strict=True)
    ]


def write_parquet(path: Path, codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> None:
    """Write the rows that `write_table` would write as Parquet, in the columns' own types; a missing value is
    a null.

    Whole numbers are int64, others float64, days date32, times timestamps to the second, values of a category
    what they are in the study (of different kinds: text).
    """
    types = [_arrow_type(column) for column in domain.columns]
    schema = pa.schema(list(zip(domain.names, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        for columns in decoded(codes, domain, seed):
            arrays = [
                pa.array(
                    [None if v is None else str(v) for v in column] if pa.types.is_string(kind) else column,
                    kind,
                )
                for column, kind in zip(columns, types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


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
    for block in _decoded(codes, domain, seed):
        yield [column.tolist() for column in block]


def _decoded(codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> Iterator[list[NDArray[Any]]]:
    rng = np.random.default_rng(seed)
    for start in range(0, len(codes), BLOCK_ROWS):
        yield domain.decode(codes[start : start + BLOCK_ROWS], rng)


def _arrow_type(column: Column) -> pa.DataType:

    types = {
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        date: pa.date32(),
        datetime: pa.timestamp("s"),
    }
    return types.get(column.value_type, pa.string())
