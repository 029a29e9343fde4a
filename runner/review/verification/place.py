"""One directory with a finished run: its run.json, and the hashes of what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.report.files import load
from runner.report.page import page
from runner.results import signatures
from runner.results.outdir import PARTY_FOLDERS, RESULT, RUN, SIGNATURES, finished
from runner.starting.demo import comparison_of

REPORT = "report.html"
COMPARED = (*signatures.SIGNED, REPORT, RESULT, SIGNATURES)
"""What is the same at every party."""


@dataclass(frozen=True)
class Place:
    """One directory with a finished run: its run.json, and what is in it."""

    directory: Path
    run: Mapping[str, Any]

    @classmethod
    def at(cls, directory: Path) -> Place:
        """Raises `UsageError` if no run has finished there."""
        return cls(directory, finished(directory))

    @property
    def parties(self) -> tuple[Place, ...]:
        """Of a run on one machine, the parties' own directories."""
        return tuple(
            Place.at(folder)
            for folder in sorted(self.directory.glob(f"{PARTY_FOLDERS}/*"))
            if (folder / RUN).is_file()
        )

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Of the files that are the same at every party."""
        return signatures.hashes(self.directory, COMPARED)

    @cached_property
    def handed_out(self) -> dict[str, str]:
        """The same, of what the parties of a run on one machine hold: their report has no comparison with a
        demo's real rows.

        Raises `UsageError` for files that make no report.
        """
        if REPORT not in self.hashes or comparison_of(self.directory) is None:
            return self.hashes
        made = page(load(self.directory)).encode("utf-8", "replace")
        return {**self.hashes, REPORT: hashlib.sha256(made).hexdigest()}
