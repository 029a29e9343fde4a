"""Certificates that expire while a run is under way: at one party the clock leaps before anything is
released.

That party has shared its counts, as all have, and must neither put a release on record nor open one.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from parties.session.admission import identity
from runner.results import outdir
from runner.review.audit.subjects.processes.deployment import Stuck, deployed
from runner.review.audit.subjects.processes.faults import PROGRAM, STRUCK, charged

VICTIM, MOMENT, EXPIRED = "north", "shared", "expired"
YEARS = 100
MAY_END = (21, 40, 41)
"""How the others may end: they are told why, or only that it has gone."""


class _Later(datetime):
    """A clock that is far ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=365 * YEARS)


def leap() -> None:
    """Set the clock by which this process looks at certificates."""
    identity.datetime = _Later  # type: ignore[attr-defined]


def problems() -> list[str]:
    """What is wrong after a run in which the victim's clock leaps."""
    with deployed() as deployment:
        for party in deployment.parties:
            party.start(program=(*PROGRAM, EXPIRED, MOMENT) if party.name == VICTIM else ())
        ends = {party.name: party.end() for party in deployment.parties}
        victim = deployment[VICTIM]
        if not (victim.folder / STRUCK).exists():
            raise Stuck(f"Party {VICTIM} never came to share counts ({ends[VICTIM].complaint.strip()}).")
        found = []
        if ends[VICTIM].code != 21 or "has expired while the run was under way" not in ends[VICTIM].complaint:
            found.append(f"Party {VICTIM} ended with {ends[VICTIM].code}: {ends[VICTIM].complaint.strip()}")
        if number := charged(victim):
            found.append(
                f"Party {VICTIM} has put {number} releases on record though certificates had expired."
            )
        found += [
            f"Party {name} ended with {end.code}: {end.complaint.strip()}"
            for name, end in ends.items()
            if end.code not in MAY_END
        ]
        found += [
            f"Party {party.name} has results."
            for party in deployment.parties
            if (party.out / outdir.RUN).exists()
        ]
        return found
