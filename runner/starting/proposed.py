"""`Study.propose`: columns of frames or files as `Study.of` takes them, and what is to be confirmed before
they are public."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from runner.starting.custodians import OwnRule, compared
from runner.starting.files import REASONS, own_settings, proposal_file
from runner.starting.proposals import Proposal, Texts, place_of, texts_of, texts_of_frame

if TYPE_CHECKING:
    import pandas as pd

    from parties.data.harmony.rules import Dialect


@dataclass(frozen=True)
class Proposed:
    """Columns proposed from tables. Private, like these, until somebody has confirmed `to_confirm` by what is
    publicly known.

    columns: by name, as `Study.of` takes them. left_out: columns that are none of a study, and why. notes:
    questions that nobody can answer from the tables. harmonise: by custodian, what its private file says
    under [csv] and [harmonise].
    """

    columns: Mapping[str, Mapping[str, Any]] = field(repr=False)
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    harmonise: Mapping[str, str] = field(repr=False)
    _found: tuple[Proposal, ...] = field(repr=False)

    @property
    def to_confirm(self) -> list[tuple[str, str, str]]:
        """(column, key, why) of everything in `columns` that was read off rows."""
        return [
            (name, key, REASONS[key]) for name, keys in self.columns.items() for key in keys if key in REASONS
        ]

    def to_toml(self) -> str:
        """The tables of the columns as they are appended to a study file, each line that was read off rows
        marked."""
        return proposal_file("tables in Python", self._found, {}, self.notes)


def propose(
    first: pd.DataFrame | str | os.PathLike[str] | None,
    tables: Mapping[str, pd.DataFrame | str | os.PathLike[str]],
) -> Proposed:
    """See `Study.propose`."""
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
        elif hasattr(table, "columns") and hasattr(table, "set_axis"):
            texts[name] = texts_of_frame(table)
        else:
            raise UsageError(
                f"Study.propose takes pandas DataFrames and paths of tables, got {type(table).__name__} for {name}."
            )
    both = compared(texts)
    found = both.proposals if len(texts) > 1 else next(iter(texts.values())).proposals
    rules = both.rules if len(texts) > 1 else {name: _markers(found) for name in texts}
    return Proposed(
        {one.name: dict(one.keys) for one in found if not one.advice},
        {one.name: one.advice for one in found if one.advice},
        both.notes if len(texts) > 1 else (),
        {name: own_settings(dialects.get(name), rules[name], name in both.ignore_case) for name in texts},
        tuple(found),
    )


def _markers(found: Sequence[Proposal]) -> dict[str, OwnRule]:
    return {one.name: OwnRule(missing=one.markers) for one in found if one.markers}
