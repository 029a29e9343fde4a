"""One computing party's inbox on disk: its keys for the study, the bundles it has accepted, and its sum once they are added.

    receiver.key          ReceiverSecret; from the closing on without the half that opens bundles
    bundles/NAME.bundle   what this party needs of each contributor's bundle, still sealed; one a contributor, the first one
    agreed.json           the agreed list: hash and contributor of each bundle (public)
    sum.bin               the sum of this party's parts over that list; gone when the run has its results

Folders 0700, files 0600. Nothing is added up before the collection is closed. Who can write here can lie to this party only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.bundles.bundle import Bundle, content_of, file_bytes, letters_of, parse
from mpc_protocols.bundles.sealing import SECRET_BYTES, ReceiverKey, ReceiverSecret
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    DataRefused,
    PeerIdentity,
    ProtocolAborted,
    UsageError,
)
from parties.inbox.files import delete, write_private

if TYPE_CHECKING:
    from parties.inbox.collection import Collection

KEY, BUNDLES, AGREED, SUM = "receiver.key", "bundles", "agreed.json", "sum.bin"
SUFFIX = ".bundle"
_SUM_MAGIC = b"cosynth-sum-1\n"
Outcome = Literal["accepted", "known"]


@dataclass(frozen=True)
class AgreedList:
    """The bundles of a run: hash of each, ascending, with its contributor. Public."""

    entries: Mapping[bytes, str]

    @property
    def hash(self) -> bytes:
        """32 bytes: what all compare and every ledger fixes."""
        return binding(b"agreed list", *sorted(self.entries))

    @property
    def contributors(self) -> tuple[str, ...]:
        """Who is in it, in alphabetical order."""
        return tuple(sorted(self.entries.values()))

    def to_bytes(self) -> bytes:
        """JSON."""
        entries = {name.hex(): self.entries[name] for name in sorted(self.entries)}
        return json.dumps({"format": "cosynth-agreed-1", "bundles": entries}, indent=1).encode() + b"\n"


def make_key(folder: Path) -> ReceiverKey:
    """A receiver's fresh keys for a study; the public half. Raises `UsageError` if there are some, or they cannot be written."""
    secret = ReceiverSecret.generate()
    try:
        write_private(folder / KEY, secret.secret, replace=False)
    except FileExistsError:
        raise UsageError(
            f"{folder / KEY} is there already: bundles may have been sealed to it; name another inbox for another study."
        ) from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}); name another inbox.") from None
    return secret.public


class Inbox:
    """The inbox of one computing party for one study, whose public facts are in `collection`."""

    def __init__(self, folder: Path, collection: Collection, party: str) -> None:
        self.folder, self.collection, self._party = folder, collection, party

    # -- while the collection is open -------------------------------------------------------------------------------------

    def secret(self) -> ReceiverSecret:
        """This party's secret keys. Raises `PeerIdentity` if they are not there, closed already, or not the study's."""
        secret = ReceiverSecret(self._key_file())
        if not secret.opens:
            raise PeerIdentity(
                f"The key of {self.folder} was deleted when the collection was closed; later bundles go to another study."
            )
        if secret.public != self.collection.receivers[self._party]:
            raise PeerIdentity(
                f"The key in {self.folder} is not the one that the study lists for party {self._party}; name the inbox in which "
                "it was made."
            )
        return secret

    def signer(self) -> ReceiverSecret:
        """The same, also when only the half that signs results is left. Raises `PeerIdentity`."""
        return ReceiverSecret(self._key_file())

    def add(self, file: Path, now: datetime) -> tuple[Outcome, str]:
        """Take a bundle in; "known" if it was here before; and whose it is.

        Raises a `CosynthError` that names the file and says why it is refused; then nothing of it is kept.
        """
        try:
            return self._add(self._read(file), now)
        except CosynthError as error:
            sentence = error.sentence
            raise type(error)(f"The bundle {file} is refused: {sentence[0].lower()}{sentence[1:]}") from None

    def _add(self, content: bytes, now: datetime) -> tuple[Outcome, str]:
        if self.agreed() is not None:
            raise BudgetRefused("The collection is closed; contributors who come later go to another study.")
        if self.collection.close_at is not None and now >= self.collection.close_at:
            raise BudgetRefused("The collection has closed; contributors who come later go to another study.")
        bundle = parse(content)
        header = self.collection.check(bundle, now)
        bundle = self.collection.own_part(bundle, self._party)
        secret = self.secret()
        for letter in letters_of(header, self._party):
            content_of(header, letter, bundle.opened(letter, secret))
        place = self._place(header.contributor)
        try:
            write_private(place, bundle.to_bytes(), replace=False)
        except FileExistsError:
            if parse(place.read_bytes()).name == bundle.name:
                return "known", header.contributor
            raise BudgetRefused(
                f"Another bundle of {header.contributor} is in the inbox, and the first one counts; a contributor leaves one."
            ) from None
        except OSError as error:
            raise UsageError(f"The inbox {self.folder} cannot be written ({error.strerror}).") from None
        return "accepted", header.contributor

    def accepted(self, now: datetime) -> dict[bytes, str]:
        """Hash and contributor of each bundle that is here and has not expired.

        Raises `DataRefused` for one that is damaged, or was taken in when the study or the program was another.
        """
        found = {}
        for name in self.collection.contributors:
            place = self._place(name)
            if not place.exists():
                continue
            bundle = self._parsed(place)
            try:
                self.collection.check(bundle, now)
            except ProtocolAborted:  # expired
                continue
            except CosynthError as error:
                raise DataRefused(
                    f"{place} in the inbox cannot be used any more ({error.sentence.rstrip('.')}); use the study and the version "
                    "that took it in, or move it away."
                ) from None
            found[bundle.name] = name
        return found

    # -- closing ----------------------------------------------------------------------------------------------------------

    def agreed(self) -> AgreedList | None:
        """The agreed list, once there is one. Raises `DataRefused` for a file that cannot be read."""
        try:
            form = json.loads((self.folder / AGREED).read_bytes())
            return AgreedList({bytes.fromhex(name): str(of) for name, of in form["bundles"].items()})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DataRefused(f"{self.folder / AGREED} cannot be read; restore it from a copy.") from None

    def keep(self, agreed: AgreedList) -> None:
        """Put the agreed list on disk. Raises `BudgetRefused` if it cannot be."""
        self._write(AGREED, agreed.to_bytes())

    def sum(self, agreed: AgreedList) -> NDArray[np.uint32]:
        """The sum of this party's parts over the agreed list, uint32 of (cells,): made once, then kept until `finish`.

        When it is on disk, the key that opened the bundles is deleted. Raises `DataRefused` (a bundle that is gone),
        `PeerIdentity` (the key), `BudgetRefused` (it cannot be kept).
        """
        mark = _SUM_MAGIC + self.collection.study + agreed.hash
        cells = self.collection.layout.cells
        with suppress(FileNotFoundError):
            kept = (self.folder / SUM).read_bytes()
            if kept[: len(mark)] != mark or len(kept) != len(mark) + 4 * cells:
                raise DataRefused(
                    f"{self.folder / SUM} is of another list of bundles; restore it from a copy."
                )
            self._forget_key()
            return np.frombuffer(kept[len(mark) :], "<u4").astype(np.uint32)
        total = self._added(agreed)
        self._write(SUM, mark + total.astype("<u4").tobytes())
        self._forget_key()
        return total

    def finish(self) -> None:
        """The run has its results: bundles, sum and keys go. The agreed list stays."""
        for place in [self.folder / SUM, self.folder / KEY, *(self.folder / BUNDLES).glob(f"*{SUFFIX}")]:
            with suppress(OSError):
                delete(place)

    def _added(self, agreed: AgreedList) -> NDArray[np.uint32]:
        secret, total = self.secret(), np.zeros(self.collection.layout.cells, np.uint32)
        for name, contributor in agreed.entries.items():
            place = self._place(contributor)
            bundle = self._parsed(place) if place.exists() else None
            if bundle is None or bundle.name != name:
                raise DataRefused(
                    f"The bundle of {contributor} is in the agreed list and not in the inbox {self.folder}; restore it."
                )
            header = bundle.header
            for letter in letters_of(header, self._party):
                total += content_of(header, letter, bundle.opened(letter, secret))
        return total

    def _forget_key(self) -> None:
        """Delete what opens bundles; what signs the result stays."""
        content = self._key_file()
        signing = ReceiverSecret(content).signing_only()
        if content != signing.secret:
            self._write(KEY, signing.secret)

    # -- files ------------------------------------------------------------------------------------------------------------

    def _key_file(self) -> bytes:
        try:
            content = (self.folder / KEY).read_bytes()
        except OSError as error:
            raise PeerIdentity(
                f"The inbox {self.folder} of party {self._party} has no key that can be read ({error.strerror}); "
                "`python -m runner inbox STUDY --party NAME --make-key` makes one, before the study goes out."
            ) from None
        if len(content) != SECRET_BYTES:
            raise PeerIdentity(f"{self.folder / KEY} is not a key of an inbox; restore it from a copy.")
        return content

    def _read(self, file: Path) -> bytes:
        most = file_bytes(self.collection.layout.cells)
        try:
            with file.open("rb") as stream:
                content = stream.read(most + 1)
        except OSError as error:
            raise UsageError(f"It cannot be read ({error.strerror}).") from None
        if len(content) > most:
            raise ProtocolAborted("It is longer than any bundle of this study.")
        return content

    def _parsed(self, place: Path) -> Bundle:
        try:
            return parse(place.read_bytes())
        except ProtocolAborted as error:
            raise DataRefused(
                f"{place} in the inbox is damaged ({error.sentence.rstrip('.')}); restore it from a copy."
            ) from None

    def _place(self, contributor: str) -> Path:
        return self.folder / BUNDLES / f"{contributor}{SUFFIX}"

    def _write(self, name: str, content: bytes) -> None:
        try:
            write_private(self.folder / name, content)
        except OSError as error:
            raise BudgetRefused(
                f"The inbox {self.folder} cannot be written ({error.strerror}), so nothing is computed with it."
            ) from None


def waiting(folder: Path) -> Sequence[Path]:
    """The bundles in a watched folder, oldest name first; none if it cannot be listed."""
    try:
        return sorted(
            entry for entry in folder.iterdir() if entry.suffix == SUFFIX and not entry.name.startswith(".")
        )
    except OSError:
        return []


def set_aside(file: Path) -> None:
    """Rename a refused bundle so that it is not looked at again."""
    with suppress(OSError):
        os.replace(file, file.with_name(file.name + ".refused"))
