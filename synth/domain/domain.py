"""The columns of a study, in order: how they are given, and what is derived from them. Public; part of the study's hash."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from synth.domain.kinds import Column, column_from_spec

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique


@dataclass(frozen=True)
class Domain:
    """The columns of a study, in order. Frozen and hashable."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.columns):
            raise StudyInvalid(f"The domain has {len(self.names)} names for {len(self.columns)} columns.")
        if not self.names:
            raise StudyInvalid("[domain] must declare at least one column.")
        if len(set(self.names)) != len(self.names):
            raise StudyInvalid(f"[domain] declares a column twice among {', '.join(self.names)}.")
        for name in self.names:
            if not isinstance(name, str) or not name or not name.isprintable():
                raise StudyInvalid(f"[domain] column names must be printable text, got {name!r}.")

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column, in order."""
        return {name: column.size for name, column in zip(self.names, self.columns, strict=True)}

    def cells(self, clique: Clique) -> int:
        """Number of cells of the clique's marginal."""
        return math.prod(self[name].size for name in clique)

    def ordered(self, names: Iterable[str]) -> Clique:
        """These columns in the domain's order."""
        wanted = set(names)
        return tuple(name for name in self.names if name in wanted)

    def subset(self, names: Iterable[str]) -> Domain:
        """The domain of these columns only, in the domain's order (vertical: what one party owns)."""
        kept = self.ordered(names)
        return Domain(kept, tuple(self[name] for name in kept))

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Domain:
        """The domain of `{"file": contents}` or `{"columns": {...}}`, or of what `to_spec` wrote. Raises `StudyInvalid`.

        contents (of the referenced JSON file, already parsed) and columns: mappings from a column's name to its size or its
        table, in the columns' order.
        """
        if foreign := sorted(str(key) for key in spec.keys() - {"file", "columns"}):
            raise StudyInvalid(f"[domain] has an unknown key {foreign[0]}; it knows file and columns.")
        if len(spec) != 1:
            raise StudyInvalid("[domain] needs either file or columns, and only one of them.")
        ((key, given),) = spec.items()
        if key == "columns" and isinstance(given, Sequence) and not isinstance(given, str | bytes):
            pairs = [_named(entry) for entry in given]
        elif isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            raise StudyInvalid(f"[domain] {key} must map each column to its size or its table.")
        prefix = "domain.columns" if key == "columns" else "the domain file's"
        joint = "." if key == "columns" else " "
        return cls(
            tuple(name for name, _ in pairs),
            tuple(column_from_spec(column, f"{prefix}{joint}{name}") for name, column in pairs),
        )

    def to_spec(self) -> dict[str, object]:
        """Canonical, JSON-able and ordered whatever becomes of the order of keys: for run.json and the study's hash."""
        return {
            "columns": [
                {"name": name, **column.to_spec()}
                for name, column in zip(self.names, self.columns, strict=True)
            ]
        }


def _named(entry: object) -> tuple[str, object]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise StudyInvalid("[domain] columns, given as a list, needs tables with a name.")
    return entry["name"], {key: value for key, value in entry.items() if key != "name"}
