"""The public study file: reading it, checking it, hashing it (DESIGN section 7). Standard library only."""

from runner.study.hashing import digest
from runner.study.model import (
    ADAPTIVE,
    Alignment,
    DataLocation,
    Party,
    Privacy,
    Session,
    Settings,
    Study,
    Unit,
)
from runner.study.read import load, problems

__all__ = [
    "ADAPTIVE",
    "Alignment",
    "DataLocation",
    "Party",
    "Privacy",
    "Session",
    "Settings",
    "Study",
    "Unit",
    "digest",
    "load",
    "problems",
]
