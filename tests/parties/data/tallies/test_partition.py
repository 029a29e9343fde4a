"""The bytes of a part's counts: they come back as they were, and nothing else is taken for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.tallies.counting import layout_of
from parties.data.tallies.partition import (
    HASH,
    MAGIC,
    CellCounts,
    PartitionCounts,
    cell_counts,
    max_bytes,
    parse,
)
from tests.parties.data.tables import write_csv
from tests.parties.data.tallies.parts import BY_PERSON, COUNTING, DOMAIN, partition, people

LAYOUT = layout_of(COUNTING.counters(), DOMAIN)


def read(content: bytes) -> PartitionCounts:
    return parse(content, LAYOUT, 0, "p.tally", COUNTING.study)


def refused(content: bytes, *words: str) -> None:
    with pytest.raises(DataRefused) as caught:
        read(content)
    assert caught.value.sentence.startswith("p.tally ") and all(
        word in caught.value.sentence for word in words
    )


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return partition(write_csv(tmp_path_factory.mktemp("t") / "t.csv", people(9))).to_bytes()


@pytest.mark.parametrize("rows", [1, 3, 60])
def test_counts_come_back_as_they_were(tmp_path: Path, rows: int) -> None:
    part = partition(write_csv(tmp_path / "t.csv", people(rows)), BY_PERSON)
    back = read(part.to_bytes())
    assert repr(back) == repr(part) and (back.rows, back.absent, back.units) == (
        rows,
        part.absent,
        part.units,
    )
    for one, other in zip(part.tables, back.tables, strict=True):
        assert (one.cells is None) == (other.cells is None)
        assert np.array_equal(one.counts, other.counts) and str(rows) not in repr(one)
    assert len(part.to_bytes()) <= max_bytes(LAYOUT)


def test_cells_are_listed_where_few_are_filled() -> None:
    few, many = np.zeros(30, np.uint32), np.zeros(30, np.uint32)
    few[[3, 7]], many[:10] = [5, 2**32 - 2], 1
    sparse, dense = cell_counts(few), cell_counts(many)
    assert sparse.cells is not None and sparse.cells.tolist() == [3, 7] and dense.cells is None
    for counts, table in ((sparse, few), (dense, many)):
        total = np.ones(30, np.uint32)
        counts.add_to(total)
        assert (total == table + 1).all()


def test_every_flipped_byte_is_noticed(content: bytes) -> None:
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 + place % 255
        refused(bytes(damaged), "damaged")


def test_every_length_but_its_own_is_noticed(content: bytes) -> None:
    for length in range(len(content)):
        refused(content[:length], "damaged")
    refused(content + b"\0", "damaged")


def test_a_part_of_another_study_or_version_is_refused(content: bytes) -> None:
    part = read(content)
    for foreign in (replace(part, study=b"t" * 32), replace(part, layout=b"l" * 32)):
        refused(foreign.to_bytes(), "another study", "version")


def resealed(
    content: bytes, change: Callable[[dict[str, Any]], object] | None = None, tables: bytes = b""
) -> bytes:
    """With another header or other tables, and the hash that belongs to them."""
    begin = len(MAGIC) + 4
    end = begin + int.from_bytes(content[len(MAGIC) : begin], "little")
    header = json.loads(content[begin:end])
    if change is not None:
        change(header)
    text = json.dumps(header).encode()
    changed = MAGIC + len(text).to_bytes(4, "little") + text + (tables or content[end:-HASH])
    return changed + hashlib.sha256(changed).digest()


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(rows=header["rows"] + 1),
        lambda header: header.update(rows=-1),
        lambda header: header.update(rows=9.0),
        lambda header: header.update(rows=True),
        lambda header: header.update(rows=1 << 32),
        lambda header: header.update(clamped=[]),
        lambda header: header.update(clamped={"age": "1"}),
        lambda header: header.update(broken=[0]),
        lambda header: header.update(place="ab"),
        lambda header: header.update(units=["f" * 64, "0" * 64]),
        lambda header: header.update(ignored=[1]),
        lambda header: header.pop("absent"),
    ],
)
def test_a_header_that_no_part_has_is_refused(
    content: bytes, change: Callable[[dict[str, Any]], object]
) -> None:
    read(resealed(content))
    refused(resealed(content, change), "damaged")


def column(*numbers: int) -> bytes:
    return np.array(numbers, "<u4").tobytes()


@pytest.mark.parametrize(
    "cells",
    [
        column(1 << 31),
        column(57, *range(57), *[1] * 57),
        column(2, 5, 4, 4, 5),
        column(2, 4, 4, 4, 5),
        column(2, 4, 168, 4, 5),
        column(2, 4, 5, 9, 0),
        column(1, 4, 8),
        column(2, 4, 5, 4),
        column(2, 4, 5, 4, 5, 0),
        column(0xFFFFFFFF, *[1] * 9),
    ],
    ids=["size", "too many", "falling", "twice", "outside", "empty", "sum", "cut", "more", "short"],
)
def test_tables_that_no_rows_have_are_refused(content: bytes, cells: bytes) -> None:
    assert LAYOUT.cells == 168
    assert read(resealed(content, tables=column(2, 4, 5, 4, 5))).rows == 9
    refused(resealed(content, tables=cells), "damaged")


def test_more_columns_than_a_header_holds_are_not_named(tmp_path: Path) -> None:
    part = partition(write_csv(tmp_path / "t.csv", people(3)))
    wide = replace(part, ignored=tuple(f"{number:07d}" for number in range(500_000)))
    assert read(wide.to_bytes()).ignored == ()


def test_no_number_of_a_part_is_shown() -> None:
    part = CellCounts(None, np.array([77], np.uint32))
    assert "77" not in repr(part)
