"""The keys of a party's private file, each declared once, as those of the study are (`keys.py`): its readers,
what sentences expect follow; `tests/runner/test_events.py` holds the example on the reference page
(`docs/reference/study-file.md`) against them.

[csv] is `parties.data.harmony.rules.Dialect`, which declares its keys itself. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from mpc_protocols.functionality import Adjacency
from mpc_protocols.options import Option, Options, option

MAX_WORKERS = 256
MISSING_IDS = ("refuse", "leave out")
NAMES = ("as written", "ignore case")
_PATH: dict[str, Any] = {"shape": "a path", "path": True}


@dataclass(frozen=True)
class PrivateKeys(Options):
    """The file itself."""

    data: Any = option(None, "form", "where this party's table lies")
    workers: int = option(1, "whole", "processes that count a large table", low=1, high=MAX_WORKERS)
    listen: Any = option(None, "form", "if it differs from the study's address")
    out: str | None = option(None, "text", "where results go", **_PATH)
    cert: str | None = option(None, "text", "this party's certificate", **_PATH)
    key: str | None = option(None, "text", "its key", **_PATH)
    ca: str | None = option(None, "text", "who signed the parties' certificates", **_PATH)
    allow_empty: bool = option(False, "flag", "a table without rows is taken")
    inbox: str | None = option(None, "text", "where contributors' files come", **_PATH)
    csv: Any = option(None, "form", "how a CSV file is written")
    harmonise: Any = option(None, "form", "how the table becomes the study's")
    ledger: Any = option(None, "form", "where account is kept, and how much is allowed")


@dataclass(frozen=True)
class HarmoniseKeys(Options):
    """[harmonise]."""

    missing: Any = option((), "form", "texts that stand for an absent value, in every column")
    filter: str | None = option(None, "text", "rows that count", shape="an expression in DuckDB's SQL")
    missing_ids: str = option(MISSING_IDS[0], "word", "rows without an identifier", words=MISSING_IDS)
    names: str = option(NAMES[0], "word", "how the data's columns may be written", words=NAMES)
    columns: Any = option(None, "form", "a table a column")


COLUMN: Mapping[str, Option] = {
    "from": Option("text", "the data's column", optional=True, shape="the name of a column of the data"),
    "sql": Option("text", "in place of `from`", optional=True, shape="an expression in DuckDB's SQL"),
    "missing": Option("form", "more markers"),
    "values": Option("form", "of the data's texts the study's values"),
}
"""[harmonise.columns.NAME]."""


@dataclass(frozen=True)
class LedgerKeys(Options):
    """[ledger]."""

    file: str | None = option(None, "text", "the ledger", **_PATH)
    dataset: str | None = option(None, "text", "the custodian's name for a population")
    cap_epsilon: float | None = option(None, "number", "what all runs may come to")
    cap_delta: float | None = option(None, "number", "at this delta", below=1.0)
    cap_unit: Any = option(None, "form", "what the cap protects")
    cap_adjacency: str | None = option(None, "word", "which tables are neighbours", words=get_args(Adjacency))
    max_alignments: int | None = option(None, "whole", "runs of vertical studies with one counterparty")
