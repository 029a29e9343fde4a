"""One line of `check`: something that is fine, worth knowing, or a problem with the error that a run would
end with."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.errors import CosynthError
from mpc_protocols.process.foreign_text import printable


@dataclass(frozen=True)
class Finding:
    """A problem if `error` is set, else something that is fine, or (`note`) worth knowing."""

    text: str
    error: CosynthError | None = None
    note: bool = False


def fine(text: str) -> Finding:
    """A look that found nothing wrong."""
    return Finding(printable(text, line=True))


def note(text: str) -> Finding:
    """Something to know that does not prevent a run."""
    return Finding(printable(text, line=True), note=True)


def problem(error: CosynthError) -> Finding:
    """The problem with which a run would end."""
    return Finding(error.sentence, error)
