"""One report for all parties of a machine: the leader's process makes it, the others take it over if it is of
their own files (`docs/design/session.md` 7).

A party of a deployment makes its own. On one machine all that would be made is alike, byte for byte, three times
on two cores; nobody is protected from that machine. What the report is made of is still everybody's own, and is
compared by hash; the exchange of signatures, in which each waits for all, comes after the leader's report is
there. Who finds none of these files' makes its own as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.report import render
from runner.results.signatures import SIGNED, hashes

REPORT = "report.html"


@dataclass(frozen=True)
class Reports:
    """How one party comes by its report.

    folder: of a run whose parties are all on this machine, one of this user's own that they share; None
    elsewhere. makes: whether this party makes the report for all of them.
    """

    folder: Path | None = None
    makes: bool = True

    def before_signatures(self, staging: Path) -> None:
        """Make the report of the files in `staging`, if nobody else makes it. Raises `UsageError` as `render`."""
        if self.folder is None:
            render(staging)
        elif self.makes:
            render(staging)
            place = self._place(self.folder, staging)
            with suppress(OSError):  # then the others make their own
                shutil.copyfile(staging / REPORT, place.with_suffix(".part"))
                os.replace(place.with_suffix(".part"), place)

    def after_signatures(self, staging: Path) -> None:
        """Take over the report of these files, if it is not here yet and another party has made it; else make it.
        Raises `UsageError` as `render`."""
        if self.folder is None or self.makes:
            return
        try:
            shutil.copyfile(self._place(self.folder, staging), staging / REPORT)
            os.chmod(staging / REPORT, 0o644)
        except OSError:
            render(staging)

    @staticmethod
    def _place(folder: Path, staging: Path) -> Path:
        """Where the report of these files is: named by all that it is made of."""
        told = repr(sorted(hashes(staging, SIGNED).items()))
        return folder / f"report-{hashlib.sha256(told.encode()).hexdigest()}.html"
