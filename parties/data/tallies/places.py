"""Where the parts of a table are, as a `data` key says it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class TallyFiles:
    """Where the counts of a table's parts are. pattern: of paths, absolute. parts: how many there are; None:
    not said.

    by_unit: the table is cut by ranges of the hash of the unit's id (`unit_range.py`).
    """

    pattern: str
    parts: int | None = None
    by_unit: bool = False

    @property
    def dataset(self) -> str:
        """The ledger's name for the data when the custodian gives none: its place, as of any table."""
        path = Path(self.pattern)
        return str(path.parent.resolve() / path.name)


@dataclass(frozen=True)
class EngineTallies:
    """Parts that an engine of another distribution counts (`engine.py`). engine: its name. settings: the keys beside it, as TOML
    has them, for the engine alone: they may hold a password. folder: where relative paths in them start.

    parts, by_unit: as of `TallyFiles`.
    """

    engine: str
    settings: Mapping[str, object] = field(repr=False)
    folder: Path
    parts: int | None = None
    by_unit: bool = False

    @property
    def dataset(self) -> str:
        """As of `TallyFiles`: settings may be secret, and are not told."""
        return f"{self.engine}:{self.folder}"

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"The table of the engine {self.engine}"


@dataclass(frozen=True)
class DaskCluster:
    """A Dask cluster that counts the parts. scheduler: its address, tls://host:port. ca, cert, key: PEM
    files, absolute.

    files: the parts, a pattern of paths as the workers see them. by_unit: as of `TallyFiles`. tables: of
    linked tables a pattern each, by name; then `files` are the people's.
    """

    scheduler: str
    ca: Path
    cert: Path
    key: Path
    files: str
    by_unit: bool = False
    tables: Mapping[str, str] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        """As of `TallyFiles`."""
        return self.files
