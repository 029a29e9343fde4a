"""Synthetic tables as files: CSV and Parquet hold the same rows, Parquet in the columns' own types."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet as pq

from runner.results import columns
from runner.results.columns import decoded, shown_in_csv
from runner.results.table.csv_fields import Fields
from runner.results.table.formulas import harmless
from runner.results.table.writing import write_parquet, write_table
from synth.domain import Domain

SPEC: list[dict[str, object]] = [
    {"name": "code", "kind": "codes", "size": 5},
    {
        "name": "age",
        "kind": "numeric",
        "low": 0,
        "high": 90,
        "bins": 9,
        "integral": True,
        "missing": True,
    },
    {"name": "height", "kind": "numeric", "low": 0.5, "high": 2.5, "bins": 4},
    {"name": "text", "kind": "categorical", "values": ["a", "b, c"], "missing": True},
    {"name": "whole", "kind": "categorical", "values": [1, 20]},
    {"name": "number", "kind": "categorical", "values": [1, 2.5], "missing": True},
    {"name": "truth", "kind": "categorical", "values": [True, False]},
    {"name": "mixed", "kind": "categorical", "values": ["none", 1, 2]},
]
DOMAIN = Domain.from_spec({"columns": SPEC})


def codes(rows: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    draw = np.random.default_rng(4)
    return np.column_stack([draw.integers(0, size, rows) for size in DOMAIN.sizes.values()])


def test_both_kinds_of_file_hold_the_same_rows(tmp_path: Path) -> None:
    text, table = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    drawn = codes(columns.BLOCK_ROWS + 300)  # of two blocks
    write_table(text, drawn, DOMAIN, 9)
    write_parquet(table, drawn, DOMAIN, 9)
    read = pq.read_table(table)
    assert read.schema.names == list(DOMAIN.names) and [str(kind) for kind in read.schema.types] == [
        "int64",
        "int64",
        "double",
        "string",
        "int64",
        "double",
        "bool",
        "string",
    ]
    as_text = pd.read_csv(text, dtype=str, keep_default_na=False)
    for name in DOMAIN.names:
        values = ["" if value is None else str(value) for value in read.column(name).to_pylist()]
        if name == "number":
            values = [value.removesuffix(".0") for value in values]
        assert values == as_text[name].tolist(), name
    for name in ("age", "text", "number"):
        assert 0 < read.column(name).null_count < len(drawn)


HARD = Domain.from_spec(
    {
        "columns": [
            *SPEC,
            {"name": "=name", "kind": "categorical", "values": ['say "so"', "two\nlines", "-1", "=1+1", "é"]},
            {"name": "no, field", "kind": "categorical", "values": [1, "1.0", "true", " "], "missing": True},
            {"name": "truth too", "kind": "boolean", "missing": True},
            {"name": "wide", "kind": "numeric", "low": -1e15, "high": 1e15, "bins": 3, "integral": True},
            {"name": "day", "kind": "date", "low": "2019-01-01", "high": "2020-02-29", "missing": True},
        ]
    }
)


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("domain", [HARD, *(HARD.subset([name]) for name in HARD.names)])
def test_a_csv_file_is_what_the_csv_module_writes_row_by_row(
    domain: Domain, safe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "BLOCK_ROWS", 2048)
    rows = columns.BLOCK_ROWS + 50 if len(domain) > 1 else 300
    draw = np.random.default_rng(5)
    drawn = np.column_stack([draw.integers(0, size, rows) for size in domain.sizes.values()])
    write_table(tmp_path / "rows.csv", drawn, domain, 9, safe=safe)
    told = io.StringIO(newline="")
    writer = csv.writer(told, lineterminator="\n")
    writer.writerow(map(harmless, domain.names) if safe else domain.names)
    for block in decoded(drawn, domain, 9):
        for row in zip(*shown_in_csv(block, domain), strict=True):
            writer.writerow(map(harmless, row) if safe else row)
    assert (tmp_path / "rows.csv").read_bytes() == told.getvalue().encode()


def test_a_column_without_a_value_keeps_its_type(tmp_path: Path) -> None:
    drawn = codes(3)
    for name in ("age", "text", "number"):
        drawn[:, DOMAIN.names.index(name)] = DOMAIN.sizes[name] - 1
    write_parquet(tmp_path / "rows.parquet", drawn, DOMAIN, 9)
    read = pq.read_table(tmp_path / "rows.parquet")
    assert [str(read.schema.field(name).type) for name in ("age", "text", "number")] == [
        "int64",
        "string",
        "double",
    ]
    assert read.column("age").to_pylist() == [None] * 3


@pytest.mark.parametrize("text", ["\r", "a\rb", "x\r=1+1", "\r\n", 'a\r"b"\r', "\n\r", "a\n"])
@pytest.mark.parametrize("safe", [False, True])
def test_an_end_of_a_line_within_a_value_ends_no_line(text: str, safe: bool, tmp_path: Path) -> None:
    """Neither for readers of CSV nor for a spreadsheet, to which what follows would be a formula."""
    domain = Domain.from_spec(
        {
            "columns": [
                {"name": "one", "kind": "categorical", "values": [text, "other"]},
                {"name": "two", "kind": "categorical", "values": ["u", "v"]},
            ]
        }
    )
    write_table(tmp_path / "rows.csv", np.array([[0, 1], [1, 0], [0, 0]]), domain, 9, safe=safe)
    with (tmp_path / "rows.csv").open(newline="") as file:
        written = file.read()
    shown = str(harmless(text)) if safe else text
    assert list(csv.reader(io.StringIO(written, newline=""))) == [
        ["one", "two"],
        [shown, "v"],
        ["other", "u"],
        [shown, "u"],
    ]
    outside = written.replace(f'"{shown.replace(chr(34), 2 * chr(34))}"', "")  # what is in quotes
    assert "\r" not in outside and outside.count("\n") == 4


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_whole_numbers_of_any_width_are_written_as_they_are(kind: str) -> None:
    limits = np.iinfo(kind)
    numbers = np.array([limits.max, limits.min, limits.max // 2, limits.min // 2, 0, 1], kind)
    close = np.array([min(100, limits.max), max(-100, limits.min), 3], kind)
    for column in (numbers, close):
        assert Fields().of(column) == list(map(str, column.tolist()))
