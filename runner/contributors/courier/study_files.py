"""A study with the public files that it names, as one message that a courier brings to contributors.

    {"files":{NAME:TEXT,...},"format":"cosynth-study-files-1","study":NAME}      canonical JSON

Threat model: who brings the message may have written it. A contributor knows the SHA-256 of these bytes from
the computing parties, compares it before anything of them is parsed, and takes no other: with receivers' keys
of its own the courier could read the counts. Everything in it is public.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudiesDiffer, UsageError
from mpc_protocols.process.canonical_json import canonical
from parties.inbox.files import write_private
from runner.failures import reason
from runner.study import Study
from runner.study.sections.waves import MEASUREMENTS, RESULT

FORMAT = "cosynth-study-files-1"
MAX_BYTES = 64 << 20
_NAME = r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}"
_PATH = re.compile(rf"(?!.*\.bundle\Z){_NAME}(/{_NAME}){{0,7}}", re.IGNORECASE)
"""Below the study's folder: no way up, nothing hidden, nothing from the root, and no contributor's bundle."""


@dataclass(frozen=True)
class StudyFiles:
    """study: name of the study file. files: texts by path from its folder, the study's among them."""

    study: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, study: Study) -> StudyFiles:
        """Those of a study on disk. Raises `UsageError`: a party's data stands in it, a file lies elsewhere,
        or too much."""
        if any(party.data is not None for party in study.parties):
            raise UsageError(
                f"{study.path} says where parties have their data, which is nobody else's business: name `data` in each party's "
                "private file instead, before it is sent to contributors."
            )
        names = [study.path.name, *named(study.tree)]
        for name in names:
            if not _PATH.fullmatch(name):
                raise UsageError(
                    f"{study.path} names {name}, and a courier brings only files from the study's folder, called by letters, "
                    'digits, "-", "_" and ".", and none called ".bundle" at the end; put it there.'
                )
        try:
            files = {name: (study.path.parent / name).read_bytes().decode() for name in names}
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
    """The study that this contributor has confirmed by its fingerprint, hex. Raises `StudiesDiffer` for any
    other content."""
    if len(content) > MAX_BYTES or hashlib.sha256(content).hexdigest() != fingerprint:
        raise StudiesDiffer(
            f"The courier brought another study than the one confirmed here, whose fingerprint is {fingerprint}; compare it with "
            "what the computing parties say."
        )
    try:
        form = json.loads(content)
    except (ValueError, RecursionError):
        form = None
    if not _readable(form):
        raise StudiesDiffer(
            "The confirmed study is in a form that this version does not read; use that of the others."
        )
    return StudyFiles(form["study"], form["files"])


def _readable(form: object) -> bool:
    """Whether it is the form above, with a study among its files."""
    if not isinstance(form, dict) or form.keys() != {"format", "study", "files"} or form["format"] != FORMAT:
        return False
    study, files = form["study"], form["files"]
    if not isinstance(study, str) or not isinstance(files, dict):
        return False
    return study in files and all(_PATH.fullmatch(name) and isinstance(files[name], str) for name in files)


def named(tree: Mapping[str, Any]) -> Sequence[str]:
    """The public files that a study's parsed tree names, as it names them."""
    own = tree["contributors"]
    names = [tree["domain"].get("file"), *(own.get(key) for key in ("keys", "receivers", "registered"))]
    after = own.get("after", [])
    for wave in after if isinstance(after, list) else [after]:
        names += [f"{wave['run']}/{RESULT}", f"{wave['run']}/{MEASUREMENTS}", wave["receivers"]]
    return [name for name in names if name is not None]
