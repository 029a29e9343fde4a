"""`Study.propose`: columns of frames or files as `Study.of` takes them, and what is to be confirmed before
they are public."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyarrow import parquet

from mpc_protocols.errors import UsageError
from parties.data.scratch import Scratch
from runner.starting.custodians import OwnRule, compared
from runner.starting.files import REASONS, own_settings, proposal_file
from runner.starting.linked import LinkedProposal, linked_proposal, table_name
from runner.starting.proposals import Proposal, Texts, place_of, table_of, texts_of, texts_of_frame

if TYPE_CHECKING:
    import pandas as pd

    from parties.data.harmony.rules import Dialect
    from parties.data.location import Location

    Given: TypeAlias = pd.DataFrame | str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Proposed:
    """Columns proposed from tables. Private, like these, until somebody has confirmed `to_confirm` by what is
    publicly known.

    columns: by name, as `Study.of` takes them. left_out: columns that are none of a study, and why. notes:
    questions that nobody can answer from the tables. harmonise: by custodian, what its private file says
    under [csv] and [harmonise]. tables: of linked tables, those of children as `Study.of(..., table=...)`
    takes them; columns are then people's, and a child's column is called TABLE.COLUMN in `left_out` and
    `to_confirm`.
    """

    columns: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    harmonise: Mapping[str, str]
    _proposals: tuple[Proposal, ...]
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _linked: LinkedProposal | None = None

    def __repr__(self) -> str:
        """What there is to do with it; no value that was read off rows."""
        parts = [f"columns {', '.join(self.columns)}", *(f"table {name}" for name in self.tables)]
        parts += [f"left out: {', '.join(self.left_out)}"] if self.left_out else []
        parts += (
            [f"{len(self.to_confirm)} values are to be confirmed, see .to_confirm"] if self.to_confirm else []
        )
        parts += [f"{len(self.notes)} questions, see .notes"] if self.notes else []
        return f"Proposed({'; '.join(parts)})"

    @property
    def to_confirm(self) -> list[tuple[str, str, str]]:
        """(column, key, why) of everything in `columns` and `tables` that was read off rows."""
        tables = {
            name: {key: keys[key] for key in keys if key != "columns"} for name, keys in self.tables.items()
        }
        inner = {
            f"{table}.{name}": own
            for table, keys in self.tables.items()
            for name, own in keys["columns"].items()
        }
        return [
            (name, key, REASONS[key])
            for name, keys in {**self.columns, **tables, **inner}.items()
            for key in keys
            if key in REASONS
        ]

    def to_toml(self) -> str:
        """The tables of the columns as they are appended to a study file, each line that was read off rows
        marked."""
        return proposal_file("tables in Python", self._proposals, {}, self.notes, linked=self._linked)


def _of_linked(tables: Mapping[str, Given], key: str | None) -> Proposed:
    """tables: by name, that of people first."""
    if len(tables) < 2 or any(not isinstance(name, str) or table_name(name) != name for name in tables):
        raise UsageError(
            "Study.propose of linked tables takes the table of people and what belongs to them, by names of small letters, "
            'digits and _: Study.propose({"patients": ..., "visits": ...}).'
        )
    with Scratch() as folder:
        places = {name: _placed(name, table, folder) for name, table in tables.items()}
        found = linked_proposal(places, key)
    kept = {
        child.name: {
            "parent": child.parent,
            "key": child.key,
            "max_rows": child.max_rows,
            **({} if child.order is None else {"order": child.order}),
            "columns": _able(child.columns),
        }
        for child in found.children
    }
    left = {one.name: one.advice for one in found.people if one.advice}
    for child in found.children:
        left |= {f"{child.name}.{one.name}": one.advice for one in child.columns if one.advice}
    return Proposed(_able(found.people), left, found.notes, {}, tuple(found.people), kept, found)


def _able(found: Sequence[Proposal]) -> dict[str, dict[str, Any]]:
    return {one.name: dict(one.keys) for one in found if not one.advice}


def _placed(name: str, table: Given, folder: Path) -> Location:
    """Where a table lies; a frame in `folder`, which nobody else may enter."""
    if isinstance(table, str | os.PathLike):
        return place_of(Path(os.path.expanduser(table)))
    _check_frame(name, table)
    path = folder / f"{name}.parquet"
    parquet.write_table(table_of(table), path)
    return place_of(path)


def _check_frame(name: str, table: object) -> None:
    if not (hasattr(table, "columns") and hasattr(table, "set_axis")):
        raise UsageError(
            f"Study.propose takes pandas DataFrames and paths of tables, got {type(table).__name__} for {name}."
        )


def propose(
    first: Given | Mapping[str, Given] | None, tables: Mapping[str, Given], key: str | None = None
) -> Proposed:
    """See `Study.propose`."""
    if isinstance(first, Mapping) and not tables:
        return _of_linked(first, key)
    if key is not None or isinstance(first, Mapping):
        raise UsageError(
            "Study.propose takes linked tables of one custodian, with a key if need be, or tables to compare."
        )
    given = {**({} if first is None else {"data": first}), **tables}
    if not given or (first is not None and tables):
        raise UsageError(
            "Study.propose takes one frame or file, or one of each custodian by name: Study.propose(north=..., south=...)."
        )
    texts: dict[str, Texts] = {}
    dialects: dict[str, Dialect] = {}
    for name, table in given.items():
        if isinstance(table, str | os.PathLike):
            place = place_of(Path(os.path.expanduser(table)))
            texts[name], dialects[name] = texts_of(place), place.dialect
        else:
            _check_frame(name, table)
            texts[name] = texts_of_frame(table)
    both = compared(texts)
    found = both.proposals if len(texts) > 1 else next(iter(texts.values())).proposals
    alone = {one.name: rule for one in found if not (rule := OwnRule.of(one)).silent}
    rules = both.rules if len(texts) > 1 else dict.fromkeys(texts, alone)
    return Proposed(
        _able(found),
        {one.name: one.advice for one in found if one.advice},
        both.notes if len(texts) > 1 else (),
        {name: own_settings(dialects.get(name), rules[name], name in both.ignore_case) for name in texts},
        tuple(found),
    )
