"""Where a custodian's linked tables are, and the copy with a row a person that is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from parties.data.files.opening import open_table
from parties.data.harmony.rules import RFC
from parties.data.linked.draw_key import DrawKey, drawing_key
from parties.data.linked.unfold import unfold

if TYPE_CHECKING:
    from parties.data.linked.unfold import Unfolding
    from parties.data.location import Location
    from synth.linked.tables import LinkedTables


@dataclass(frozen=True)
class LinkedPlaces:
    """linked: the study's. children: by name, the tables that this custodian has. draws: the key of the
    draws; None: a fresh one each time, for a look at the tables, or for a part whose counts are kept."""

    linked: LinkedTables
    children: Mapping[str, Location] = field(repr=False)
    draws: DrawKey | None = field(default=None, repr=False)


def as_parquet(location: Location, linked: LinkedPlaces, folder: Path) -> Location:
    """The location of the copy in `folder`, which nobody else may enter. Raises `DataRefused`, also for
    orphans."""
    path, told = written(location, linked, folder)
    for one in told:
        if one.orphans:
            raise orphan(location, linked, one.name, one.orphan_place)
    return replace(
        location, kind="parquet", path=path, url="", dialect=RFC, recipe=None, state=None, linked=None
    )


def orphan(location: Location, linked: LinkedPlaces, name: str, place: str) -> DataRefused:
    """What is said of a row of the table `name` that has no parent. place: "" where no row was seen."""
    labels = {linked.linked.parent: location.label}
    labels |= {child: where.label for child, where in linked.children.items()}
    return orphan_of(labels, linked.linked, name, place)


def orphan_of(labels: Mapping[str, str], linked: LinkedTables, name: str, place: str) -> DataRefused:
    """The same of tables that are called so."""
    where, owner = f", {place}" if place else ", a row", linked.owner(name)
    keys = {child.name: str(child.key) for child in linked.children}
    parent = labels.get(owner, labels[linked.parent])
    return DataRefused(
        f'{labels[name]}, column "{keys.get(owner, linked.key)}"{where}: no row of {parent} '
        f"has this key; every row of {name} needs a row of {owner}, by a key that is written alike (1, 01 and 1.0 are three)."
    )


def written(location: Location, linked: LinkedPlaces, folder: Path) -> tuple[Path, list[Unfolding]]:
    """The copy, and what its owner may know of it. Raises `DataRefused`, but not for orphans: those are in no
    row."""
    key = drawing_key(linked.draws)
    with ExitStack() as stack:
        people = stack.enter_context(open_table(location))
        children = {name: stack.enter_context(open_table(place)) for name, place in linked.children.items()}
        return unfold(people, children, linked.linked, key, folder)
