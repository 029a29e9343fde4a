"""One computing party's inbox on disk: its keys for the study, the bundles it has accepted, and its sum once
they are added.

    receiver.key          ReceiverSecret; from the closing on without the half that opens bundles
    bundles/NAME.bundle   what this party needs of each contributor's bundle, still sealed; one a contributor, the first one
    proposed.json         the list that the parties were about to fix when they last met: hash and contributor of each bundle
    agreed.json           the list that is fixed, in the same form (public)
    sum.bin               the sum of this party's parts over that list; gone when the run has its results
    ...-2, -3, ...        of a study that selects while contributors arrive: the same of the second round's list, the third's, ...
    begun                 the id of the run that releases something of them, in hex, before the first release (public)
    void-PARTY.json       this party's signed word that no run of the study will open anything (`runner.contributors.void`)
    finished              there while bundles, sum and keys are being deleted: what is left of them goes at the next start

Folders 0700, files 0600. Nothing is added up before the collection is closed. Who can write here can lie to
this party only.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.bundles.bundle import Bundle, content_of, file_bytes, letters_of, parse
from mpc_protocols.backends.bundles.sealing import SECRET_BYTES, ReceiverKey, ReceiverSecret
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    DataRefused,
    OutOfResources,
    PeerIdentity,
    ProtocolAborted,
    UsageError,
)
from mpc_protocols.process.foreign_text import printable
from mpc_protocols.process.installation import program
from mpc_protocols.process.resources import lacking
from parties.inbox.files import delete, discard_unfinished, write_private

if TYPE_CHECKING:
    from parties.inbox.collection import Collection

KEY, BUNDLES, PROPOSED, AGREED, SUM = "receiver.key", "bundles", "proposed.json", "agreed.json", "sum.bin"
BEGUN, FINISHED = "begun", "finished"
SUFFIX = ".bundle"
_SUM_MAGIC = b"cosynth-sum-1\n"
Outcome = Literal["accepted", "known"]


class InboxUnusable(UsageError):
    """This party's own inbox is at fault, not a bundle that is to be taken in."""


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
    """A receiver's fresh keys for a study; the public half.

    Raises `UsageError` if there are some, if the folder was an earlier study's inbox, or if they cannot be
    written.
    """
    if not (folder / KEY).exists() and (earlier := _earlier(folder)) is not None:
        raise UsageError(
            f"{earlier} is of an earlier study, and an inbox is for one: name another inbox for another study."
        )
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
        self.folder, self.collection, self.party = folder, collection, party

    # -- while the collection is open
    # -------------------------------------------------------------------------------------

    def secret(self) -> ReceiverSecret:
        """This party's secret keys. Raises `PeerIdentity` if they are not there, closed already, or not the
        study's."""
        secret = ReceiverSecret(self._key_file())
        if not secret.opens:
            raise PeerIdentity(
                f"The key of {self.folder} was deleted when the collection was closed; later bundles go to another study."
            )
        if secret.public != self.collection.receivers[self.party]:
            raise PeerIdentity(
                f"The key in {self.folder} is not the one that the study lists for party {self.party}; name the inbox in which "
                "it was made."
            )
        return secret

    def ready(self) -> None:
        """Raise `PeerIdentity` if bundles could be taken in, were it not for this party's own key."""
        if not self.closed and not self.void_file.exists():
            self.secret()

    def signer(self) -> ReceiverSecret:
        """The same, also when only the half that signs results is left. Raises `PeerIdentity`."""
        return ReceiverSecret(self._key_file())

    def add(self, file: Path, now: datetime) -> tuple[Outcome, str]:
        """Take a bundle in; "known" if it was here before; and whose it is.

        Raises a `CosynthError` that names the file and says why it is refused; then nothing of it is kept.
        Whatever a file makes go wrong here refuses that file; of an unforeseen error only the kind is told.
        `InboxUnusable`: no fault of it.
        """
        return self._refusing(lambda: self._add(self._read(file), now), printable(str(file), line=True))

    def take(self, content: bytes, now: datetime, called: str) -> tuple[Outcome, str]:
        """The same of a bundle that is no file. called: what it is, in sentences, after "the bundle"."""
        return self._refusing(lambda: self._add(content, now), called)

    def _refusing(self, add: Callable[[], tuple[Outcome, str]], called: str) -> tuple[Outcome, str]:
        """Errors as `add` says."""
        try:
            return add()
        except CosynthError as error:
            kind: type[CosynthError] = InboxUnusable if isinstance(error, DataRefused) else type(error)
            sentence = error.sentence
        except OSError as error:
            kind, sentence = InboxUnusable, f"The inbox {self.folder} cannot be read ({error.strerror})."
        except Exception as error:
            kind, sentence = ProtocolAborted, f"It cannot be examined ({type(error).__name__})."
        raise kind(f"The bundle {called} is refused: {sentence[0].lower()}{sentence[1:]}")

    def _add(self, content: bytes, now: datetime) -> tuple[Outcome, str]:
        if self.void_file.exists():
            raise BudgetRefused(
                "The study is void, and no run will use a bundle of it; its contributor can settle that."
            )
        if self.closed:
            raise BudgetRefused("The collection is closed; contributors who come later go to another study.")
        if self.collection.close_at is not None and now >= self.collection.close_at:
            raise BudgetRefused("The collection has closed; contributors who come later go to another study.")
        bundle = parse(content)
        header = self.collection.check_new(bundle, now)
        bundle = self.collection.own_part(bundle, self.party)
        secret = self.secret()
        for letter in letters_of(header, self.party):
            content_of(header, letter, bundle.opened(letter, secret))
        place = self._place(header.contributor)
        try:
            write_private(place, bundle.to_bytes(), replace=False)
        except FileExistsError:
            return self._second(place, bundle, now), header.contributor
        except OSError as error:
            raise self._unwritable(error) from None
        return "accepted", header.contributor

    def _second(self, place: Path, bundle: Bundle, now: datetime) -> Outcome:
        """A bundle beside an earlier one of its contributor, which it replaces only if no run can use that
        any more."""
        kept = self._parsed(place)
        if kept.name == bundle.name:
            return "known"
        lists = self._lists()
        if now < kept.header.expires or any(kept.name in each.entries for each in lists):
            raise BudgetRefused(
                f"Another bundle of {bundle.header.contributor} is in the inbox, and the first one counts; a contributor leaves "
                "one."
            )
        try:
            write_private(place, bundle.to_bytes())
        except OSError as error:
            raise self._unwritable(error) from None
        return "accepted"

    def accepted(self, now: datetime) -> dict[bytes, str]:
        """Hash and contributor of each bundle that is here and has not expired.

        Raises `DataRefused` for one that is damaged, or was taken in when the study or the program was
        another.
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

    # -- closing
    # ----------------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the last list is fixed: no bundle is taken in any more. Raises `DataRefused`."""
        return self.agreed(self.collection.rounds) is not None

    def waiting(self) -> frozenset[tuple[str, int]]:
        """The bundles that are here, whatever they are worth: name and time of each file, which are other
        ones when something has come or gone. Nothing is opened."""
        found = set()
        for file in (self.folder / BUNDLES).glob(f"*{SUFFIX}"):
            with suppress(FileNotFoundError):
                found.add((file.name, file.stat().st_mtime_ns))
        return frozenset(found)

    def agreed(self, round: int = 1) -> AgreedList | None:
        """The agreed list, once there is one; of a round. Raises `DataRefused` for a file that cannot be
        read."""
        return self._list(_of_round(AGREED, round))

    def proposed(self, round: int = 1) -> AgreedList | None:
        """The list that was to be fixed. Raises `DataRefused` for a file that cannot be read."""
        return self._list(_of_round(PROPOSED, round))

    def _lists(self) -> list[AgreedList]:
        """All that are proposed or fixed."""
        rounds = range(1, self.collection.rounds + 1)
        lists = [of(round) for round in rounds for of in (self.agreed, self.proposed)]
        return [each for each in lists if each is not None]

    def propose(self, agreed: AgreedList, round: int = 1) -> None:
        """Put a list on disk that the parties will fix if all of them have it.

        Raises `DataRefused` for a bundle of it that is not here, `OutOfResources` or `BudgetRefused` if the
        list cannot be written.
        """
        for name, contributor in agreed.entries.items():
            self._listed(name, contributor)
        self._write(_of_round(PROPOSED, round), agreed.to_bytes())

    def keep(self, agreed: AgreedList, round: int = 1) -> None:
        """Put the agreed list on disk. Raises `OutOfResources` or `BudgetRefused` if it cannot be."""
        self._write(_of_round(AGREED, round), agreed.to_bytes())
        delete([self.folder / _of_round(PROPOSED, round)])

    def sum(self, agreed: AgreedList, round: int = 1) -> NDArray[np.uint32]:
        """The sum of this party's parts over the agreed list, uint32 of (cells,): made once, then kept until
        `finish`.

        When the last round's is on disk, the key that opened the bundles is deleted. Raises `DataRefused` (a
        bundle that is gone), `PeerIdentity` (the key), `OutOfResources` or `BudgetRefused` (it cannot be
        kept).
        """
        mark = _SUM_MAGIC + self.collection.study + agreed.hash
        cells, place = self.collection.layout.cells, self.folder / _of_round(SUM, round)
        try:
            kept = place.read_bytes()
        except FileNotFoundError:
            total = self._added(agreed)
            self._write(place.name, mark + total.astype("<u4").tobytes())
        else:
            if kept[: len(mark)] != mark or len(kept) != len(mark) + 4 * cells:
                raise DataRefused(f"{place} is of another list of bundles; restore it from a copy.")
            total = np.frombuffer(kept[len(mark) :], "<u4").astype(np.uint32)
        if round == self.collection.rounds:
            self._forget_key()
        return total

    @property
    def added_up(self) -> bool:
        """Whether the sum is on disk."""
        return (self.folder / SUM).exists()

    @property
    def begun(self) -> bytes | None:
        """Of the run that releases something of the bundles: its id in hex; None before. Raises
        `DataRefused`."""
        return self._content(BEGUN)

    def begin(self, run: bytes) -> None:
        """Put on disk that this run releases something. Raises as `check_run`, and as `keep` if it cannot be
        written."""
        if self.begun is None:
            self._write(BEGUN, run.hex().encode())
        self.check_run(run)

    def check_run(self, run: bytes) -> None:
        """Raise `BudgetRefused` if another run may have released something, or this party has signed that
        none will.

        The ledger knows the same, unless it is another one than it was, or was set back.
        """
        if self.void_file.exists():
            raise BudgetRefused(
                f"Party {self.party} has declared this study void ({self.void_file}): contributors may have their budget back, "
                "so nothing of their bundles is opened; collect for a new study."
            )
        if self.begun not in (None, run.hex().encode()):
            raise BudgetRefused(
                f"The bundles of this study are for one run, and another one has begun to release ({self.folder / BEGUN}); go on "
                "with that one with --resume, or collect for a new study."
            )

    def finish(self) -> list[Path]:
        """The run has its results, or there will be none: bundles, sum and keys go. The agreed list and the
        run's id stay.

        The paths of what could not be deleted, which every later `tidy` tries again.
        """
        with suppress(BudgetRefused, OutOfResources):  # on a full disk nothing reminds a later start
            self._write(FINISHED, b"")
        return self._clear()

    def tidy(self) -> list[Path]:
        """Remove what a crash has left of files that were being written, and what should be gone; paths of
        what cannot be."""
        left = [*discard_unfinished(self.folder), *discard_unfinished(self.folder / BUNDLES)]
        return left + (self._clear() if (self.folder / FINISHED).exists() or self._says_void() else [])

    def _says_void(self) -> bool:
        """Whether this party's word about this very study stands here."""
        return self.collection.study.hex().encode() in (self._content(self.void_file.name) or b"")

    def _clear(self) -> list[Path]:
        rounds = range(1, self.collection.rounds + 1)
        names = [self.folder / _of_round(name, round) for name in (SUM, PROPOSED) for round in rounds]
        return delete([*names, self.folder / KEY, *(self.folder / BUNDLES).glob(f"*{SUFFIX}")]) or delete(
            [self.folder / FINISHED]
        )

    @property
    def void_file(self) -> Path:
        """Where this party's word stands that no run will open anything."""
        return self.folder / f"void-{self.party}.json"

    def write_void(self, content: bytes) -> None:
        """Put it there. Raises as `keep`."""
        self._write(self.void_file.name, content)

    def _added(self, agreed: AgreedList) -> NDArray[np.uint32]:
        secret, total = self.secret(), np.zeros(self.collection.layout.cells, np.uint32)
        for name, contributor in agreed.entries.items():
            bundle = self._listed(name, contributor)
            header = bundle.header
            for letter in letters_of(header, self.party):
                total += content_of(header, letter, bundle.opened(letter, secret))
        return total

    def _listed(self, name: bytes, contributor: str) -> Bundle:
        """A bundle of the agreed list. Raises `DataRefused` if it is not here."""
        place = self._place(contributor)
        bundle = self._parsed(place) if place.exists() else None
        if bundle is None or bundle.name != name:
            raise DataRefused(
                f"The bundle of {contributor} is in the agreed list and not in the inbox {self.folder}; restore it."
            )
        return bundle

    def _forget_key(self) -> None:
        """Delete what opens bundles; what signs the result stays."""
        content = self._key_file()
        signing = ReceiverSecret(content).signing_only()
        if content != signing.secret:
            self._write(KEY, signing.secret)

    # -- files
    # ------------------------------------------------------------------------------------------------------------

    def _key_file(self) -> bytes:
        try:
            content = (self.folder / KEY).read_bytes()
        except OSError as error:
            raise PeerIdentity(
                f"The inbox {self.folder} of party {self.party} has no key that can be read ({error.strerror}); "
                f"`{program()} inbox STUDY --party NAME --make-key` makes one, before the study goes out."
            ) from None
        if len(content) != SECRET_BYTES:
            raise PeerIdentity(f"{self.folder / KEY} is not a key of an inbox; restore it from a copy.")
        return content

    def _read(self, file: Path) -> bytes:
        most = file_bytes(self.collection.layout.cells)
        try:
            content = _regular(file, most + 1)
        except OSError as error:
            link = error.errno == errno.ELOOP
            raise UsageError(
                "It is a symbolic link; name the file itself."
                if link
                else f"It cannot be read ({error.strerror})."
            ) from None
        if len(content) > most:
            raise ProtocolAborted("It is longer than any bundle of this study.")
        return content

    def _list(self, name: str) -> AgreedList | None:
        content = self._content(name)
        if content is None:
            return None
        try:
            form = json.loads(content)
            return AgreedList({bytes.fromhex(each): str(of) for each, of in form["bundles"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DataRefused(f"{self.folder / name} cannot be read; restore it from a copy.") from None

    def _content(self, name: str) -> bytes | None:
        """Of a file; None if there is none. Raises `DataRefused` for one that cannot be read."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise DataRefused(f"{self.folder / name} cannot be read; restore it from a copy.") from None

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
            raise lacking(
                error, f"The inbox {self.folder}", ", so nothing is computed with it"
            ) or BudgetRefused(
                f"The inbox {self.folder} cannot be written ({error.strerror}), so nothing is computed with it."
            ) from None

    def _unwritable(self, error: OSError) -> InboxUnusable:
        return InboxUnusable(f"The inbox {self.folder} cannot be written ({error.strerror}).")


def _of_round(name: str, round: int) -> str:
    """A file's name for the list of a round."""
    stem, dot, suffix = name.partition(".")
    return name if round == 1 else f"{stem}-{round}{dot}{suffix}"


def _earlier(folder: Path) -> Path | None:
    """What a study that has used this folder as its inbox has left there; None if nothing."""
    left = [folder / name for name in (AGREED, PROPOSED, SUM, BEGUN, FINISHED) if (folder / name).exists()]
    return next(iter([*left, *folder.glob("void-*"), *(folder / BUNDLES).glob(f"*{SUFFIX}")]), None)


def _regular(file: Path, most: int) -> bytes:
    """The first bytes of a regular file. Anything else is not waited for, nor followed. Raises OSError,
    `UsageError`."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError("It is a folder, a pipe or a device, and a bundle is a file.")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(descriptor)
