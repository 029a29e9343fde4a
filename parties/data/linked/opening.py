"""A custodian's data as its private file names it: one table, or linked ones with a row a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from parties.data.files.opening import check_file, of_copy, open_table
from parties.data.location import Location
from parties.data.source import Source

if TYPE_CHECKING:
    from parties.data.linked import places
    from parties.data.sql import unfolding
else:
    places = Later("parties.data.linked.places")
    unfolding = Later("parties.data.sql.unfolding")


def open_source(location: Location) -> Source:
    """Open it read-only and learn its column names. A table is not read; linked ones are made a copy with a row a person, or
    unfolded where the rows lie. Raises `DataRefused`."""
    linked = location.linked
    if linked is None:
        return open_table(location)
    check_file(location)
    if location.push_down:
        return unfolding.open_inside(location)
    return of_copy(lambda folder: places.as_parquet(location, linked, folder))
