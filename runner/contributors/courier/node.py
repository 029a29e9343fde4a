"""A contributor's machine that a courier asks for a bundle: its own settings decide what it does, never the
courier's.

    settings file (TOML)    party = "clinic"             this contributor
                            study = "9f86d081..."        fingerprint of the study that its owner has confirmed
                            keep = "kept"                a folder of its own, for keep/STUDY/PARTY.bundle and the study's files
                            private = "clinic.toml"      its private file, as for `contribute`; or nothing

The bundle is made once, as `contribute` makes it, and kept: whoever asks again gets the same one, so that a
courier that lost it may come back, and nothing new leaves. One that no inbox would take any more, as it
expires too early, is made anew, on the same reservation. Without `private` none is made: its owner has put it
there, and who runs this needs to read neither table nor key. A refusal stays here: the courier learns only
that there is no bundle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mpc_protocols.backends.bundles.bundle import parse
from mpc_protocols.errors import CosynthError, StudyInvalid, UsageError
from parties.inbox.collection import MARGIN
from parties.inbox.files import discard_unfinished, write_private
from runner.contributors.contributing import Contribution
from runner.contributors.courier import study_files
from runner.failures import reason
from runner.study import load, private_file
from runner.study.declared.table import Table, read_toml

KEYS = ("party", "study", "keep", "private")


@dataclass(frozen=True)
class Node:
    """One contributor's settings. study: fingerprint, hex. Paths are absolute."""

    party: str
    study: str
    keep: Path
    private: Path | None

    @classmethod
    def read(cls, path: Path) -> Node:
        """From a settings file, to which its paths are relative. Raises `StudyInvalid` with the first
        problem."""
        problems: list[str] = []
        table, folder = Table(read_toml(path), str(path), "", KEYS, problems), path.resolve().parent
        node = cls(
            table.text("party"),
            table.text("study", expected="the fingerprint of a study's files, which `check` shows").lower(),
            folder / table.text("keep", "kept"),
            folder / table.text("private") if "private" in table else None,
        )
        if problems:
            raise StudyInvalid(problems[0])
        return node

    def bundle(self, content: bytes) -> bytes:
        """This contributor's bundle for the study in the courier's message: the one made before, else a new
        one.

        Raises `StudiesDiffer` (not the confirmed study; nothing of it is read), `UsageError` (none that can
        be used, and no private file to make one with), and as `Contribution.leave`.
        """
        files = study_files.parse(content, self.study)
        folder = self.keep / self.study
        file = folder / f"{self.party}.bundle"
        try:
            there = file.exists()
            if there and (sentence := _unusable(file, datetime.now(UTC))) is None:
                return file.read_bytes()
            if self.private is None:
                why = sentence if there else f"{file} is not there"
                raise UsageError(f"{why}, and the settings name no private file to make it with.")
            discard_unfinished(folder)
            self._make(files.write(folder), file, there)
            return file.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{folder} cannot be used ({reason(error)}); name another folder as `keep`."
            ) from None

    def _make(self, study: Path, file: Path, anew: bool) -> None:
        contribution = Contribution(load(study), self.party, private_file.load(self.private), None)
        try:
            contribution.leave(lambda bundle: write_private(file, bundle.to_bytes(), replace=anew))
        except FileExistsError:  # asked twice at a time: the first one counts
            return


def _unusable(file: Path, now: datetime) -> str | None:
    """Why no inbox would take a kept bundle, without a full stop; None if one may. Raises OSError,
    `UsageError` (none at all).

    All bundles outlast the study's closing date by more than inboxes ask for, so that only the time from now
    on counts.
    """
    try:
        expires = parse(file.read_bytes()).header.expires
    except CosynthError as error:
        raise UsageError(
            f"{file} is no bundle ({error.sentence.rstrip('.')}); restore it, or remove it."
        ) from None
    if expires >= now + MARGIN:
        return None
    return f"{file} expires at {expires:%Y-%m-%d %H:%M:%S} UTC, too early for an inbox to take it"
