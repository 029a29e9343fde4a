"""The columns of a study, in order: how they are given, and what is derived from them. Public; part of the
study's hash."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import StudyInvalid
from synth.domain.column import Column
from synth.domain.constraints import Constraint, closed, constraint_from_spec, impossible_cells
from synth.domain.keys import BROKEN_ROWS, DomainKeys
from synth.domain.kinds import column_from_spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique


@dataclass(frozen=True)
class Domain:
    """The columns of a study, in order, and what is known to be impossible. Frozen and hashable."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...] = ()
    """With every order that follows from others (`constraints.closed`)."""
    broken_rows: str = BROKEN_ROWS[0]
    """What becomes of a real row that breaks a constraint: one of `BROKEN_ROWS`."""
    constraints_spec: tuple[str, ...] = ()
    """The constraints as they were given, each as JSON: part of the study's hash."""

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
        return dict(self._sizes)

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return {name: column.size for name, column in zip(self.names, self.columns, strict=True)}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def cells(self, clique: Clique) -> int:
        """Number of cells of the clique's marginal."""
        return math.prod(map(self._sizes.__getitem__, clique))

    def ordered(self, names: Iterable[str]) -> Clique:
        """These columns in the domain's order."""
        return tuple(sorted(self._places.keys() & set(names), key=self._places.__getitem__))

    def subset(self, names: Iterable[str]) -> Domain:
        """The domain of these columns only, in the domain's order (vertical: what one party owns)."""
        kept = self.ordered(names)
        return Domain(
            kept,
            tuple(self[name] for name in kept),
            tuple(one for one in self.constraints if one.names <= set(kept)),
            self.broken_rows,
        )

    @cached_property
    def impossible(self) -> Mapping[Clique, NDArray[np.bool_]]:
        """The structural zeros: sets of columns in domain order, and which of their cells cannot be, one axis
        a column."""
        columns = dict(zip(self.names, self.columns, strict=True))
        found: dict[Clique, NDArray[np.bool_]] = {}
        for constraint in self.constraints:
            for clique, cells in impossible_cells(constraint, columns):
                found[clique] = found[clique] | cells if clique in found else cells
        return found

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> list[NDArray[Any]]:
        """The values of a table of codes, (rows, columns in domain order), as an array a column
        (`decoding.py`)."""
        from synth.domain.decoding import decode

        return decode(self, codes, rng)

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Domain:
        """The domain of `{"file": contents}` or `{"columns": {...}}`, or of what `to_spec` wrote. Raises
        `StudyInvalid`.

        contents (of the referenced JSON file, already parsed) and columns: mappings from a column's name to
        its size or its table, in the columns' order.
        """
        if foreign := sorted(str(key) for key in spec.keys() - DomainKeys.options().keys()):
            raise StudyInvalid(
                f"[domain] has an unknown key {foreign[0]}; it knows {', '.join(DomainKeys.options())}."
            )
        if len(spec.keys() & {"file", "columns"}) != 1:
            raise StudyInvalid("[domain] needs either file or columns, and only one of them.")
        key = "file" if "file" in spec else "columns"
        given = spec[key]
        if key == "columns" and isinstance(given, Sequence) and not isinstance(given, str | bytes):
            pairs = [_named(entry) for entry in given]
        elif isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            raise StudyInvalid(f"[domain] {key} must map each column to its size or its table.")
        prefix = "domain.columns" if key == "columns" else "the domain file's"
        joint = "." if key == "columns" else " "
        domain = cls(
            tuple(name for name, _ in pairs),
            tuple(column_from_spec(column, f"{prefix}{joint}{name}") for name, column in pairs),
        )
        return domain.constrained(spec.get("constraints", ()), spec.get("broken_rows", BROKEN_ROWS[0]))

    def constrained(self, specs: object, broken_rows: object) -> Domain:
        """With constraints as the study writes them. Raises `StudyInvalid` with the first that does not fit."""
        if broken_rows not in BROKEN_ROWS:
            listed = " or ".join(f'"{word}"' for word in BROKEN_ROWS)
            raise StudyInvalid(f"[domain] broken_rows must be {listed}, got {broken_rows!r}.")
        if not isinstance(specs, Sequence) or isinstance(specs, str | bytes):
            raise StudyInvalid(
                "[domain] constraints must be a list of tables: begin each with [[domain.constraints]]."
            )
        columns = dict(zip(self.names, self.columns, strict=True))
        found = []
        for number, spec in enumerate(specs, 1):
            try:
                found.append(constraint_from_spec(spec, columns))
            except StudyInvalid as error:
                raise StudyInvalid(f"[[domain.constraints]] {number}: {error.sentence}") from None
        texts = tuple(json.dumps(spec, default=_iso) for spec in specs)
        return replace(self, constraints=closed(found), broken_rows=str(broken_rows), constraints_spec=texts)

    def to_spec(self) -> dict[str, object]:
        """Canonical, JSON-able and ordered whatever becomes of the order of keys: for run.json and the
        study's hash."""
        given = [json.loads(text) for text in self.constraints_spec]
        return {
            "columns": [
                {"name": name, **column.to_spec()}
                for name, column in zip(self.names, self.columns, strict=True)
            ],
            **({"constraints": given, "broken_rows": self.broken_rows} if given else {}),
        }


def _iso(value: object) -> str:
    """A day or time as text."""
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError


def _named(entry: object) -> tuple[str, object]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise StudyInvalid("[domain] columns, given as a list, needs tables with a name.")
    return entry["name"], {key: value for key, value in entry.items() if key != "name"}
