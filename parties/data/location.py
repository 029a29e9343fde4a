"""Where a custodian's table is: what the `data` key of a study or of a private file names. Opens nothing.

Threat model: a URL may hold a password. It is shown without user, password and query, in a label as in the
ledger's name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.harmony.rules import RFC, TABS, Dialect
from parties.data.sql.addresses import FILES, POSTGRES, SCHEMES, SERVERS, misfit
from parties.data.table_names import parts

if TYPE_CHECKING:
    from parties.data.harmony.recipe import Recipe
    from parties.data.linked.places import LinkedPlaces


KINDS_OF_FILES: Mapping[str, Literal["csv", "parquet", "xlsx"]] = {
    ".csv": "csv",
    TABS: "csv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
"""By how names of files end."""


@dataclass(frozen=True)
class Location:
    """Where a table is. `label` may be shown; `url` may hold a password and is not even in the `repr`.

    dataset: the ledger's name for the data when the custodian gives none: the file's absolute path without
    symbolic links, or the database's address and table. It names a place: a copy under another name starts a
    new account, so a custodian who sets a cap should also set `[ledger] dataset` to the name of the
    population.

    push_down: rows may not leave the database: it is asked for counts only.

    dialect: how a CSV file is written. recipe: what its custodian's private file makes of the table; None: it
    is read as it is. rows: of a Parquet file, only those from the first number to before the second; None:
    all. state: the size and the time (mtime_ns) that the file must have; None: any. linked: where the tables
    of children are, whose people this table lists; then the source is of a row a person (`linked/`).
    """

    kind: Literal["csv", "parquet", "xlsx", "duckdb", "sqlite", "postgres", "server"]
    label: str
    dataset: str
    path: Path | None = None
    url: str = field(default="", repr=False)
    table: str = ""
    dialect: Dialect = RFC
    recipe: Recipe | None = field(default=None, repr=False)
    push_down: bool = False
    rows: tuple[int, int] | None = None
    state: tuple[int, int] | None = None
    linked: LinkedPlaces | None = field(default=None, repr=False)


def locate(data: str | os.PathLike[str] | Mapping[str, object], base: Path | None = None) -> Location:
    """The place that a `data` key names: a path, relative to `base`, or `{url = ..., table = ...}`. Opens
    nothing.

    Raises `StudyInvalid` for a value of another form, `DataRefused` for a kind of file or database that
    cannot be read.
    """
    base = Path.cwd() if base is None else base
    if not isinstance(data, Mapping):
        if not isinstance(data, str | os.PathLike) or not os.fspath(data):
            raise StudyInvalid(
                'data must be the path of a .csv, .tsv, .parquet or .xlsx file, or a table { url = "...", table = "..." }.'
            )
        path = base / os.path.expanduser(data)
        kind = path.suffix.lower()
        if kind not in KINDS_OF_FILES:
            raise DataRefused(
                f"{data} is not a file that can be read: its name must end in .csv, .tsv, .parquet or .xlsx."
            )
        return Location(KINDS_OF_FILES[kind], str(data), os.path.realpath(path), path, dialect=RFC.of(path))
    if foreign := sorted(str(key) for key in data.keys() - {"url", "table", "push_down"}):
        raise StudyInvalid(f"data has an unknown key {foreign[0]}; it knows url, table and push_down.")
    url, table, push_down = data.get("url"), data.get("table"), data.get("push_down", False)
    if not isinstance(push_down, bool):
        raise StudyInvalid("data.push_down must be true or false.")
    if not isinstance(url, str) or not isinstance(table, str) or not url or not table:
        raise StudyInvalid("data needs both url and table, and both must be text.")
    try:
        parts(table)
    except ValueError:
        raise StudyInvalid(
            "data.table must be a table's name: people, schema.people, or with quotation marks around a part that "
            "holds a dot or a quotation mark (doubled)."
        ) from None
    scheme = url.partition("://")[0]
    if scheme in FILES:
        path = base / unquote(url.removeprefix(f"{scheme}://").partition("?")[0])
        return Location(
            "duckdb" if scheme == "duckdb" else "sqlite",
            f"{path} table {table}",
            f"{os.path.realpath(path)}#{table}",
            path,
            url,
            table,
            push_down=push_down,
        )
    if scheme in (*POSTGRES, *SERVERS):
        if wrong := misfit(url):
            raise StudyInvalid(f"data.url {wrong}.")
        server = _without_secrets(url)
        return Location(
            "postgres" if scheme in POSTGRES else "server",
            f"{server} table {table}",
            f"{server}#{table}",
            None,
            url,
            table,
            push_down=push_down,
        )
    raise StudyInvalid(
        f"data.url must start with {'://, '.join(SCHEMES)}://; other tables can be exported to a .parquet file."
    )


def _without_secrets(url: str) -> str:
    """A server's address without user, password and query."""
    with suppress(ValueError):
        parts = urlsplit(url)
        scheme = "postgres" if parts.scheme in POSTGRES else parts.scheme
        return f"{scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    raise StudyInvalid(
        "data.url is not a valid address; it must look like postgres://user@host:5432/database."
    )
