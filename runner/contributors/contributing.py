"""A contributor's two visits: leave a bundle, and learn what it has cost.

The study's whole rho is in the contributor's ledger before the file exists. It stays there until the signed
result says what was spent: the events of the run if the bundle was in it, nothing if it was not, for then no
run of this study can use it any more; or until all three parties have signed that the study is void. A bundle
made again for the same study (a file that was lost) is charged once: of one contributor the parties take one
bundle.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from mpc_protocols.backends.bundles.bundle import HASH, Header, file_bytes, parse, seal_bundle
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    PeerIdentity,
    StudiesDiffer,
    StudyInvalid,
    UsageError,
)
from mpc_protocols.process.installation import program
from parties.budget.ledger import Ledger
from parties.budget.waves import check_waves
from parties.inbox.files import discard_unfinished, write_private
from parties.inbox.upload import send
from runner.contributors import signed_result, statement, void
from runner.contributors.collection import collection_of, contributors_of, waves_of
from runner.party.custodian import REFUSALS, Custodian
from runner.party.synthesis import counted, plan_of
from runner.study import DataLocation, Study
from runner.study.declared.table import nearest
from runner.study.private_file import Private, read_by_rules

if TYPE_CHECKING:
    from mpc_protocols.backends.bundles.bundle import Bundle
    from parties.inbox.collection import Collection
    from parties.inbox.upload import Box
    from runner.contributors.signed_result import Result
    from synth.plan import Plan

DAYS = 90
"""How long after the collection's last day, or after its own making, a bundle may still enter a list. One
that is in a list of a round of arrivals is in the sums of the later ones, too, though it expires in the
meantime."""


@dataclass(frozen=True)
class Settled:
    """took_part: whether the bundle was in the run. void: there was none. rho: what it was charged in the
    end."""

    took_part: bool
    void: bool
    rho: float


def ledger_run(study: bytes, name: str) -> bytes:
    """What stands for the study's one run in a contributor's ledger, before it has an id: the same for all
    its bundles. 32 bytes.

    study: its digest.
    """
    return binding(b"contribution", study, name.encode())


def in_earlier_wave(study: Study, name: str) -> BudgetRefused:
    """What a contributor is told whose rows are in an earlier wave of the table."""
    return BudgetRefused(
        f"{name} was in an earlier wave of the table of {study.path}: its rows are in the table and have spent their budget."
    )


def own_key(file: Path | None, name: str) -> tuple[bytes, Callable[[bytes], bytes]]:
    """(public key, signature of a message) of a contributor's Ed25519 key file. Raises `PeerIdentity`."""
    if file is None:
        raise PeerIdentity(
            f"Contributor {name} has no key: its private file (--private) does not name `key`; `{program()} contribute "
            f"STUDY --party {name} --make-key FILE` makes one."
        )
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except OSError as error:
        raise PeerIdentity(
            f"The key {file} of contributor {name} cannot be read ({error.strerror})."
        ) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise PeerIdentity(
            f"{file} is not an Ed25519 key in PEM without a password, which contributor {name} signs with."
        )
    return key.public_key().public_bytes_raw(), key.sign


def make_key(file: Path) -> bytes:
    """Write a fresh Ed25519 key, PEM, mode 0600; its public half. Raises `UsageError`."""
    discard_unfinished(file.parent, file.name)
    key = Ed25519PrivateKey.generate()
    try:
        write_private(
            file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), replace=False
        )
    except FileExistsError:
        raise UsageError(f"{file} is there already; name another file for a new key.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written ({error.strerror}); name another place.") from None
    return key.public_key().public_bytes_raw()


class Contribution:
    """One contributor's part in a study."""

    def __init__(
        self,
        study: Study,
        name: str,
        private: Private,
        data: DataLocation | None,
        like: Contribution | None = None,
    ) -> None:
        """data: what replaces the private file's. like: another one to this very study, which knows its plan.

        Raises `UsageError` (no contributor of the study), `PeerIdentity` (another key), `StudyInvalid` (no
        data).
        """
        own = contributors_of(study)
        if name not in own.keys:
            raise UsageError(f"--party {name} is not a contributor of {study.path}{nearest(name, own.keys)}.")
        public, self._sign = own_key(private.key, name)
        if public != own.keys[name]:
            raise PeerIdentity(
                f"The key {private.key} is not the one that the study lists for contributor {name}; use that one, or have "
                "the study list this one."
            )
        data = data or private.data
        if data is None:
            raise StudyInvalid(
                f"Contributor {name} has no data: name it as `data` in its private file (--private)."
            )
        data = read_by_rules(study, data, private.rules)
        self._study, self._name, self._public = study, name, public
        if like is not None and like._study is not study:
            raise ValueError("Contributions to one study were expected.")
        self._plan: Plan = plan_of(study) if like is None else like._plan
        self.collection: Collection = collection_of(study, self._plan) if like is None else like.collection
        self._custodian = Custodian(study, name, private, data)

    @property
    def _run(self) -> bytes:
        return ledger_run(self.collection.study, self._name)

    def leave(self, write: Callable[[Bundle], None]) -> Bundle:
        """Count the table, reserve, make a bundle, hand it to `write`.

        Raises `DataRefused` (nothing is reserved), `BudgetRefused` (by cap; the study has settled already;
        the rows are in an earlier wave, or in this one, or may be), and what `write` raises (the reservation
        stands).
        """
        digest = self.collection.study
        self._check_waves()
        try:
            self._custodian.ready(counted(self._plan), asked=False)
            counts = self._custodian.counts()
            assert counts is not None
            cells = np.concatenate(counts(self.collection.layout.cliques))
            self._custodian.reserve(self._plan, self._run, digest, computes=False)
        except CosynthError as error:
            if error.exit_code in REFUSALS:
                self._custodian.refuse(digest, error.exit_code)
            raise
        try:
            header = self._header(datetime.now(UTC).replace(microsecond=0))
            receivers = [self.collection.receivers[name] for name in header.receivers]
            bundle = seal_bundle(header, cells, receivers, self._sign)
            write(bundle)
        finally:
            self._custodian.close()  # not settled: the reservation stands
        return bundle

    def _check_waves(self) -> None:
        """Raise `BudgetRefused` if the rows are in an earlier wave, as its result or this contributor's own
        ledger says."""
        if self._name in contributors_of(self._study).earlier:
            raise in_earlier_wave(self._study, self._name)
        ledger = Ledger(self._custodian.ledger_file)
        check_waves(
            ledger.path, self._custodian.dataset, self._run.hex(), waves_of(self._study), ledger.entries()
        )

    def deliver(self, file: Path, box: Box) -> str:
        """Upload a bundle to a party's drop box; "accepted" or "known". Raises `UsageError` (the file), and
        as `upload.send`."""
        most = file_bytes(self.collection.layout.cells)
        try:
            with file.open("rb") as stream:
                content = stream.read(most + 1)
            sender = parse(content[:most]).header.contributor
        except OSError as error:
            raise UsageError(f"{file} cannot be read ({error.strerror}).") from None
        except CosynthError as error:
            raise UsageError(f"{file} is no bundle of this study: {error.sentence}") from None
        if sender != self._name:
            raise UsageError(f"{file} is a bundle of {sender}, and each contributor sends its own.")
        return send(box, content, self.collection.study, self._name, self._sign)

    def settle(self, *paths: Path) -> Settled:
        """Charge what the signed result says instead of the reservation, or nothing for a study that all
        three say is void.

        Raises `UsageError` (a file that is none of these, or cannot be read), `StudiesDiffer`, `PeerIdentity`
        (not signed by all three), `BudgetRefused`.
        """
        told = self._fetch_result(paths)
        ledger = Ledger(self._custodian.ledger_file)
        known = [
            entry
            for entry in ledger.entries(self._custodian.dataset)
            if entry.reservation.run == self._run.hex()
        ]
        if not known:
            raise UsageError(
                f"The ledger {ledger.path} knows of no bundle of {self._name} for this study; nothing is to be settled."
            )
        took_part = told is not None and self._name in told.contributors
        events = told.events if told is not None and took_part else ()
        if known[0].state == "open":
            self._custodian.reserve(self._plan, self._run, self.collection.study, computes=False)
            try:
                self._custodian.begin_all([(event, number) for number, event in enumerate(events, start=1)])
                self._custodian.settle()
            finally:
                self._custodian.close()
        return Settled(took_part, told is None, float(sum(event.rho for event in events)))

    def _fetch_result(self, paths: Sequence[Path]) -> Result | None:
        """The result; None if the study is void."""
        kind, content, signatures = statement.read(
            paths, {signed_result.KIND: signed_result.FORMAT, void.KIND: void.FORMAT}
        )
        study, receivers = self.collection.study, self.collection.receivers
        files = " and ".join(map(str, paths))
        if kind == void.KIND:
            statement.verify(
                f"The word that the study is void ({files})",
                void.signed(content),
                signatures,
                study,
                receivers,
            )
            if content != void.declaration(study):
                raise StudiesDiffer(f"{files} speaks of another study, or of another version of the program.")
            return None
        statement.verify(f"The result {files}", signed_result.signed(content), signatures, study, receivers)
        told = signed_result.parse(paths[0], content)
        if told.study != study.hex():
            raise StudiesDiffer(
                f"The result {files} is of another study, or of another version of the program."
            )
        return told

    def _header(self, now: datetime) -> Header:
        collection = self.collection
        return Header(
            collection.study,
            collection.layout.hash,
            collection.layout.cells,
            self._name,
            hashlib.sha256(self._public).digest(),
            secrets.token_bytes(HASH),
            collection.receivers_of(self._name),
            now,
            max(now, collection.close_at or now) + timedelta(days=DAYS),
        )
