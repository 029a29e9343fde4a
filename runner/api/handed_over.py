"""Frames that a caller hands over, as files of its own for as long as they are needed, and sentences in its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError, DataRefused, UsageError
from parties.data.libraries import pa

if TYPE_CHECKING:
    import pandas as pd


ARGUMENTS = {
    "--alone": "alone=True",
    "--data": "data",
    "--label": "label",
    "--out": "out",
    "--private": "private",
    "--replace": "replace=True",
    "--resume": "`cosynth run --resume`",
}
"""What options are called in Python; what has no argument is done by the command."""

OPTIONS = re.compile(rf"(?<![\w`-])({'|'.join(ARGUMENTS)})(?![\w-])")


def written(frame: pd.DataFrame, file: Path, name: str) -> None:
    """Write a frame as Parquet. name: what sentences call it. Raises `UsageError`, `DataRefused`; neither
    holds a value of it."""
    if not hasattr(frame, "to_parquet"):
        raise UsageError(f"{name} must be a pandas DataFrame, got {type(frame).__name__}.")
    try:
        frame.to_parquet(file, index=False)
        return
    except (pa.ArrowException, ValueError, TypeError):  # all of them quote values
        pass
    bad = [str(column) for column in frame.columns if not _holds_one_type(frame[column])]
    where = f', column "{bad[0]}",' if bad else ""
    raise DataRefused(
        f"{name}{where} cannot be written as a table; a column needs a text as its name and values of one type."
    )


def _holds_one_type(column: Any) -> bool:
    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


@contextmanager
def named(names: Mapping[Path, str]) -> Iterator[None]:
    """Sentences call temporary files what the caller knows them as, and options, which they are written with, by the
    names of arguments."""
    try:
        yield
    except CosynthError as error:
        sentence = OPTIONS.sub(lambda option: ARGUMENTS[option[0]], error.sentence)
        for file, name in names.items():
            sentence = sentence.replace(str(file.resolve()), name).replace(str(file), name)
        error.sentence, error.args = sentence, (sentence,)
        raise error from None
