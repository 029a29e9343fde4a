"""When a list of bundles may be fixed. Standard library only: studies are read with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Close:
    """When a list of bundles may be fixed: at a date or with so many of them, whichever comes first; one of
    them may be None."""

    at: datetime | None
    bundles: int | None

    def still_open(self, bundles: int, now: datetime) -> str | None:
        """Why it is not time yet, a sentence; None if it is."""
        if self.bundles is not None and bundles >= self.bundles:
            return None
        if self.at is not None and now >= self.at:
            return None
        ends = [] if self.at is None else [f"at {self.at:%Y-%m-%d %H:%M:%S} UTC"]
        ends += [] if self.bundles is None else [f"with {self.bundles} bundles"]
        return f"The collection is open until it closes {' or '.join(ends)}, and there are {bundles} so far; run the study then."
