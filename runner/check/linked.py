"""What `check --party NAME` tells a custodian of linked tables, and nobody else (`docs/howto/linked.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError
from parties.data.linked.places import written
from parties.data.scratch import Scratch
from parties.data.sql.unfolding import UnfoldedInside
from runner.check.finding import Finding, note

if TYPE_CHECKING:
    from runner.study import DataLocation


def own_children(party: str, data: DataLocation) -> Iterator[Finding]:
    """Children without a parent, and people with more children than the study allows; nothing of tables that
    a run refuses for another reason, which is told with them."""
    place = data.locate()
    if place.linked is None:
        return
    try:
        if place.push_down:
            inside = UnfoldedInside(place)
            inside.close()
            told = inside.unfoldings
        else:
            with Scratch() as folder:
                _, told = written(place, place.linked, folder)
    except CosynthError:
        return
    for one in told:
        owner = place.linked.linked.owner(one.name)
        whose = "people" if owner == place.linked.linked.parent else f"rows of {owner}"
        child = next(each for each in place.linked.linked.tables if each.name == one.name)
        yield note(
            f"{party}: what follows is private, about {one.children:,} rows of {one.name}: do not pass it on"
        )
        if one.orphans:
            yield note(f"{party}: {one.orphans:,} rows of {one.name} have no row of {owner}")
        yield note(
            f"{party}: {one.truncated:,} {whose} have more than max_rows = {child.max_rows:,} rows of {one.name}; "
            f"{one.left_out:,} rows "
            "are left out, drawn at random"
        )
