"""A warning as data: what it is about, and one or two sentences for a person."""

from __future__ import annotations

from dataclasses import dataclass


class CosynthWarning(UserWarning):
    """A result that needs a second look."""


@dataclass(frozen=True)
class Warned:
    """code: a word that programs can compare (`docs/reference/outputs.md`). text: for a person."""

    code: str
    text: str
