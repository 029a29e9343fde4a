"""A workbook of a spreadsheet program (.xlsx): its first sheet, as the CSV file that it would be exported to.

The first row holds the names. A cell is the text that a CSV file would have: numbers without a needless
point, days as 2019-12-31, times as 2019-12-31 10:30:00, true and false; an empty cell, or a formula that was
never computed, is a missing value. The copy lies in a private folder of this process and is removed with it.
openpyxl reads the workbook, an optional package (the extra excel); its errors may quote a cell and are never
forwarded.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

from mpc_protocols.errors import DataRefused
from mpc_protocols.process.installation import pip_install
from parties.data.counting.coding import written
from parties.data.harmony.rules import RFC
from parties.data.location import Location

COPY = "sheet.csv"


class _Unnamed(Exception):
    """Raised for a sheet whose first row is empty."""


def as_csv(location: Location, folder: Path) -> Location:
    """The location of a copy of the first sheet in `folder`, which nobody else may enter. Raises
    `DataRefused`."""
    assert location.path is not None
    try:
        import openpyxl
    except ImportError:
        raise DataRefused(
            f"{location.label} is a workbook, which openpyxl reads; install it with "
            f"{pip_install(['excel']) or 'python -m pip install openpyxl'}, or export the sheet as .csv."
        ) from None
    refused = None
    try:
        book = openpyxl.load_workbook(location.path, read_only=True, data_only=True)
        try:
            with (folder / COPY).open("x", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(_rows(book.worksheets[0]))
        finally:
            book.close()
    except MemoryError:
        raise
    except _Unnamed:
        refused = DataRefused(
            f"{location.label}: the first row of its first sheet is empty, and the columns' names stand there; remove "
            "the rows above these."
        )
    except Exception:  # zip, XML and values: whatever it is may quote a cell
        refused = DataRefused(
            f"{location.label} is not a whole .xlsx workbook with a table in its first sheet, or it is encrypted or damaged."
        )
    if refused is not None:
        raise refused  # out here, so that nothing hangs on it
    return replace(location, kind="csv", path=folder / COPY, dialect=RFC, state=None)


def _rows(sheet: Any) -> Iterator[list[str]]:
    """The rows as texts: as wide as the first; what is empty to the end is left out. Raises `_Unnamed` for
    a sheet whose first row is empty."""
    width = 0
    for cells in sheet.iter_rows(values_only=True):
        texts = [_text(cell) for cell in cells]
        if not width:
            width = max((place + 1 for place, text in enumerate(texts) if text), default=0)
            if not width:
                raise _Unnamed
        if any(texts):
            yield texts[:width] if not any(texts[width:]) else texts


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ", "seconds")
    return written(cell) if isinstance(cell, bool | int | float) else str(cell)
