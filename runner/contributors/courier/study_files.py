"""A study with the public files that it names, as one message that a courier brings to contributors.

    {"files":{NAME:TEXT,...},"format":"cosynth-study-files-1","study":NAME}      canonical JSON

Threat model: who brings the message may have written it. A contributor knows the SHA-256 of these bytes from the computing
parties, compares it before anything of them is parsed, and takes no other: with receivers' keys of its own the courier could read
the counts. Everything in it is public.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpc_protocols.errors import StudiesDiffer, UsageError
from parties.inbox.files import write_private
from runner.failures import reason
from runner.study import Study
from runner.study.hashing import canonical

FORMAT = "cosynth-study-files-1"
MAX_BYTES = 64 << 20
NAMED_BY_CONTRIBUTORS = ("keys", "receivers", "registered")
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class StudyFiles:
    """study: name of the study file. files: texts by name, the study's among them; all of one folder."""

    study: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, study: Study) -> StudyFiles:
        """Those of a study on disk. Raises `UsageError`: a party's data stands in it, a file in another folder, or too much."""
        if any(party.data is not None for party in study.parties):
            raise UsageError(
                f"{study.path} says where parties have their data, which is nobody else's business: name `data` in each party's "
                "private file instead, before it is sent to contributors."
            )
        tree, folder = study.tree, study.path.parent
        named = [
            tree["domain"].get("file"),
            *(tree["contributors"].get(key) for key in NAMED_BY_CONTRIBUTORS),
        ]
        names = [study.path.name, *(name for name in named if name is not None)]
        for name in names:
            if not _PLAIN.fullmatch(name):
                raise UsageError(
                    f"{study.path} names {name}, and a courier brings only files of one folder, called by letters, digits, "
                    '"-", "_" and "."; put it beside the study.'
                )
        try:
            files = {name: (folder / name).read_text(encoding="utf-8") for name in names}
        except OSError as error:
            raise UsageError(f"A file that {study.path} names cannot be read ({reason(error)}).") from None
        found = cls(study.path.name, files)
        if len(found.to_bytes()) > MAX_BYTES:
            raise UsageError(
                f"{study.path} and its files take more than {MAX_BYTES >> 20} MiB; send them another way."
            )
        return found

    def to_bytes(self) -> bytes:
        """The message."""
        return canonical({"format": FORMAT, "study": self.study, "files": dict(self.files)})

    @property
    def fingerprint(self) -> str:
        """What contributors compare: SHA-256 of the message, hex."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def write(self, folder: Path) -> Path:
        """Put the files into a folder of their own; the path of the study. Raises OSError."""
        for name, text in self.files.items():
            write_private(folder / name, text.encode())
        return folder / self.study


def parse(content: bytes, fingerprint: str) -> StudyFiles:
    """The study that this contributor has confirmed by its fingerprint, hex. Raises `StudiesDiffer` for any other content."""
    if len(content) > MAX_BYTES or hashlib.sha256(content).hexdigest() != fingerprint:
        raise StudiesDiffer(
            f"The courier brought another study than the one confirmed here, whose fingerprint is {fingerprint}; compare it with "
            "what the computing parties say."
        )
    form = json.loads(content)
    if form["format"] != FORMAT or not all(map(_PLAIN.fullmatch, form["files"])):
        raise StudiesDiffer(
            "The confirmed study is in a form that this version does not read; use that of the others."
        )
    return StudyFiles(form["study"], form["files"])
