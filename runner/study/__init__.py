"""The public study file: reading it, checking it, hashing it (`docs/reference/study-file.md`). Standard
library only."""

from runner.study.declared.tables import Alignment, Privacy, Session, Unit
from runner.study.hashing import digest
from runner.study.model import DataLocation, Party, Study, VerticalStudy
from runner.study.read import load, problems

__all__ = [
    "Alignment",
    "DataLocation",
    "Party",
    "Privacy",
    "Session",
    "Study",
    "Unit",
    "VerticalStudy",
    "digest",
    "load",
    "problems",
]
