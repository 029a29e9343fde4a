"""Predictions of a model that two owners have trained, each holding its half (`docs/design/florist.md` 8).

    both      read the list of people, and compare it: the list is for both to know
    passive   finds its records of these people, puts on record that it shows them, sends f(X), float32, a block at a time
    active    computes probabilities and writes them; nothing comes back

Who learns what: the active owner gets an embedding of everybody on the list, from which features can be
inferred, and that the other owner holds a record of each; the passive one learns nothing but the list. No
claim holds for features, so under a cap the passive owner refuses (50). Somebody whom it does not hold makes
it refuse the list (30), before anything is sent; the other hears only that it refused. Third parties of the
study take no part.

Both halves on one machine need no session: `here`, a rehearsal.
"""

from __future__ import annotations

import csv
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import BudgetRefused, DataRefused, StudiesDiffer, UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.process.installation import program
from mpc_protocols.vertical.owners import SPLIT_PROTOCOLS, Link
from parties.budget.ledger import Ledger
from parties.budget.spending import Reservation
from parties.data.linked.opening import open_source
from parties.data.records import read
from parties.session import run_session
from runner.failures import reason
from runner.party.alignment import identifier_policy
from runner.party.custodian import Custodian
from runner.party.session import session_config, study_digest
from runner.results.finished_run import columns_of
from runner.results.outdir import PARTY_FOLDERS, RUN, finished
from runner.results.table.csv_fields import row_writer
from runner.study import DataLocation, VerticalStudy, load
from runner.study.private_file import CertificateFiles, Private, location
from runner.study.trained import training_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Observe
    from parties.session import SessionConfig, SessionWire
    from synth.training import ActiveModel, PassiveModel, Training

    Probabilities = NDArray[np.float64]

BLOCK = 512
"""People of one message."""
ACTIVE, PASSIVE = "active", "passive"


@dataclass(frozen=True)
class TrainedModel:
    """A finished run that trained a model. session: its public id; roles: the owner of each half."""

    study: VerticalStudy
    training: Training[Any, Any]
    session: str
    roles: Mapping[str, str]

    @classmethod
    def find(cls, directory: Path, path: Path) -> TrainedModel:
        """directory: of the run; path: of its study. Raises `UsageError`, `StudyInvalid`."""
        study, facts = load(path), finished(directory)
        training = training_of(study)
        if training is None or not isinstance(study, VerticalStudy):
            raise UsageError(
                f"{path} makes a table, not a model of two owners; `{program()} sample` and `query` say more of it."
            )
        if "model" not in facts:
            raise UsageError(f"{directory} holds the run of a study that makes a table, not a model.")
        same = (facts.get("study"), facts.get("algorithm"), facts.get("columns"))
        if same != (study.name, study.algorithm, columns_of(study.domain)):
            raise UsageError(
                f"{directory} holds a run of another study than {path}; name the study with which it was trained."
            )
        return cls(study, training, str(facts["session"]), facts["model"]["owners"])

    def passive_half(self, directory: Path) -> PassiveModel:
        """From the directory of its owner. Raises `UsageError`, `DataRefused`; `StudiesDiffer` for another
        run's."""
        half = self.training.passive_model(reader(directory))
        self._check(directory, half.run)
        return half

    def active_half(self, directory: Path) -> ActiveModel:
        """As `passive_half`."""
        half = self.training.active_model(reader(directory))
        self._check(directory, half.run)
        return half

    def link(self, wire: SessionWire, peer: int, name: str, cut: int) -> Link:
        """The other owner, by the protocol of the training. peer: its number; name: its name."""
        return SPLIT_PROTOCOLS[self.training.protocol].link(wire.fork("predict"), peer, name, cut)

    def _check(self, directory: Path, run: str) -> None:
        if run != self.session:
            raise StudiesDiffer(
                f"{directory} holds half of the model of another run than its {RUN} tells of; name a directory as one run has "
                "left it, or train again."
            )

    def role(self, party: str) -> str:
        """Which half is this party's. Raises `UsageError` if none is."""
        for role, owner in self.roles.items():
            if owner == party:
                return role
        raise UsageError(
            f"--party {party} holds no half of the model; its owners are {' and '.join(sorted(self.roles.values()))}."
        )


@dataclass(frozen=True)
class People:
    """Whom a prediction is asked for: private to both owners. canonical: identifiers in the order in which
    they are sent; fields: those of each in the file, in the same order."""

    canonical: tuple[bytes, ...] = field(repr=False)
    columns: tuple[str, ...]
    fields: tuple[tuple[str, ...], ...] = field(repr=False)

    @classmethod
    def read(cls, path: Path, study: VerticalStudy) -> People:
        """A CSV file with the study's identifier columns; others are ignored. Raises `DataRefused`."""
        policy = identifier_policy(study)
        assert policy is not None  # a training is aligned by identifiers
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = list(csv.DictReader(file))
        except OSError as error:
            raise DataRefused(
                f"{path} cannot be read ({reason(error)}); name a .csv file of people."
            ) from None
        except (ValueError, csv.Error):
            raise DataRefused(f"{path} is no CSV file in UTF-8; name a .csv file of people.") from None
        found: dict[bytes, tuple[str, ...]] = {}
        for number, line in enumerate(lines, start=1):
            shown = tuple(line.get(name) or "" for name in policy.columns)
            canonical = policy.canonical(shown)
            if canonical is None:
                raise DataRefused(
                    f"{path}: row {number} has no identifier in {', '.join(policy.columns)} that the study's [alignment] reads; "
                    "complete it or leave the row out."
                )
            found.setdefault(canonical, shown)
        if not 0 < len(found) <= study.privacy.max_rows:
            raise DataRefused(f"{path} must name from 1 to max_rows = {study.privacy.max_rows:,} people.")
        order = sorted(found)
        return cls(tuple(order), policy.columns, tuple(found[one] for one in order))

    @property
    def digest(self) -> str:
        """Equal for equal people, whatever their order in the file."""
        return hashlib.sha256(
            b"cosynth people" + b"".join(len(one).to_bytes(4, "little") + one for one in self.canonical)
        ).hexdigest()

    def write(self, probabilities: Probabilities, out: IO[str]) -> None:
        """The file's identifiers, each with its probability, as CSV."""
        writer = row_writer(out)
        writer.writerow((*self.columns, "probability"))
        for fields, probability in zip(self.fields, probabilities.tolist(), strict=True):
            writer.writerow((*fields, f"{probability:.6f}"))


class Records:
    """The passive owner's side: embeddings of the people, and what goes on record before they leave."""

    def __init__(
        self,
        model: TrainedModel,
        own: Private,
        directory: Path,
        data: DataLocation | None,
        one_machine: bool = False,
    ) -> None:
        """own: this party's settings. directory: with its half. data: whose records are shown."""
        self._model, self._own, self._data = model, own, data
        self._custodian = Custodian(model.study, model.roles[PASSIVE], own, data, one_machine)
        self._half = model.passive_half(directory)
        self._codes: NDArray[Any] | None = None

    @property
    def cut(self) -> int:
        """Numbers in an embedding."""
        return self._half.cut

    def find(self, people: People) -> None:
        """Read the records of the people. Raises `DataRefused`: somebody is not held, or the half is of other
        columns."""
        study, owner = self._model.study, self._model.roles[PASSIVE]
        sizes = {name: study.domain.sizes[name] for name in self._half.columns if name in study.domain}
        if sizes != dict(self._half.columns):
            raise DataRefused(f"Party {owner} holds the half of a model of other columns than the study's.")
        if self._data is None:
            raise DataRefused(f"Party {owner} has no data; name it with --data, or in its private file.")
        policy = identifier_policy(study)
        with open_source(self._data.locate()) as source:
            records = read(source, study.domain.subset(tuple(sizes)), policy, max_rows=study.privacy.max_rows)
        assert records.identifiers is not None
        place = {entry: number for number, entry in enumerate(records.identifiers.entries)}
        if not all(one in place for one in people.canonical):
            raise DataRefused(
                f"Party {owner} does not hold a record of everybody on the list; nothing was sent: agree on another list, or "
                "name other records with --data."
            )
        rows = [place[one] for one in people.canonical]
        columns = [records.codes[name][rows].astype(np.int64) for name in sizes]
        self._codes = np.stack(columns, axis=1).reshape(len(rows), len(columns))

    def check_account(self) -> None:
        """Raise `UsageError` unless the account that is to be charged is that of the training."""
        ledger, owner = Ledger(self._own.ledger.file), self._model.roles[PASSIVE]
        entries = ledger.entries(self._custodian.dataset)
        if not any(entry.reservation.run == self._model.session for entry in entries):
            raise UsageError(
                f"The ledger {ledger.path} has no record of this run for {self._custodian.dataset}: party {owner} keeps account "
                f"elsewhere; name its private file with --private {owner}=FILE."
            )

    def record(self, session: str, digest: bytes) -> None:
        """Put on record that features are shown without a claim. Raises `BudgetRefused`; under a cap, always."""
        study, settings = self._model.study, self._own.ledger
        asked = self._custodian.proposal(digest)
        if settings.cap.epsilon is not None:
            raise BudgetRefused(
                "Predictions show features without a privacy claim and cannot be counted against the cap of "
                f"{asked.dataset}; use a private file without a cap."
            )
        run = Ledger(settings.file).reserve(
            Reservation(
                asked.dataset,
                session,
                asked.study,
                asked.digest,
                float(study.privacy.epsilon),
                float(study.privacy.delta),
                asked.notion,
                Fraction(0),
                Fraction(0),
                (self._model.roles[ACTIVE],),
                domain=asked.domain,
                max_rows=asked.max_rows,
            )
        )
        try:
            run.begin(Event("predict", Fraction(0), Fraction(0), {"claim": "none", "of": "features"}))
            run.settle()
        finally:
            run.close()

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Embeddings of the people, a block at a time."""
        assert self._codes is not None
        for start in range(0, len(self._codes), BLOCK):
            yield self._half.embed(self._codes[start : start + BLOCK])


def here(
    model: TrainedModel, directory: Path, people: People, own: Private, data: DataLocation | None
) -> Probabilities:
    """Both halves on this machine, of a run of all parties here. own: settings of the passive owner; its
    account must be the one in which the run stands. data: instead of its own. Raises `CosynthError`."""
    owner = model.roles[PASSIVE]
    folder = directory / PARTY_FOLDERS
    active = model.active_half(folder / model.roles[ACTIVE])
    data = data or location(model.study, owner, own)
    records = Records(model, own, folder / owner, data, one_machine=True)
    records.check_account()
    records.find(people)
    records.record(secrets.token_hex(32), study_digest(model.study, None))
    return np.concatenate([np.zeros(0), *(active.probabilities(block) for block in records.blocks())])


@dataclass(frozen=True)
class Part:
    """One owner's part over a session. name: this party. data: of the passive owner."""

    model: TrainedModel
    directory: Path
    people: People
    name: str
    own: Private
    certs: CertificateFiles | None
    data: DataLocation | None

    def carry_out(self, observe: Observe) -> Probabilities | None:
        """The probabilities, (n,), at the active owner; None at the other. Raises `CosynthError`."""
        if self.model.role(self.name) == ACTIVE:
            active = self.model.active_half(self.directory)
            return run_session(self.config(), lambda wire: self._receive(wire, active), observe)
        records = Records(self.model, self.own, self.directory, self.data)
        return run_session(
            self.config(),
            lambda wire: self._send(wire, records),
            observe,
            local_work=lambda: records.find(self.people),
        )

    def config(self) -> SessionConfig:
        """The session of both owners alone."""
        digest = hashlib.sha256(b"cosynth predict" + study_digest(self.model.study, self.certs)).digest()
        facts = {"people": self.people.digest, "model": self.model.session}
        study = self.model.study
        whole = session_config(study, self.name, self.certs, digest, self.own.listen, facts)
        owners = set(self.model.roles.values())
        return replace(whole, parties=tuple(peer for peer in whole.parties if peer.name in owners))

    def _peer(self, wire: SessionWire) -> tuple[int, str]:
        """Number and name of the other owner, once both are known to mean the same. Raises `StudiesDiffer`."""
        [other] = [name for name in self.model.roles.values() if name != self.name]
        own, told = wire.announcements[self.name], wire.announcements[other]
        for what, words in (
            ("model", "half of the model of another run"),
            ("people", "list of other people"),
        ):
            if own.get(what) != told.get(what):
                raise StudiesDiffer(
                    f"Party {other} has the {words} than party {self.name}; give both the same, nothing was sent."
                )
        return 1 - wire.me, other

    def _send(self, wire: SessionWire, records: Records) -> None:
        number, other = self._peer(wire)
        records.record(wire.session_id.hex(), study_digest(self.model.study, self.certs))
        wire.all_assembled()  # blocks leave from here on, so that no later error says that nothing was sent
        link = self.model.link(wire, number, other, records.cut)
        for block in records.blocks():
            link.send(block)

    def _receive(self, wire: SessionWire, active: ActiveModel) -> Probabilities:
        number, other = self._peer(wire)
        link = self.model.link(wire, number, other, active.cut)
        count = len(self.people.canonical)
        found = [np.zeros(0)]
        for start in range(0, count, BLOCK):
            block = link.receive(min(BLOCK, count - start))
            wire.all_assembled()  # the other owner's data is here
            found.append(active.probabilities(block))
        return np.concatenate(found)


def reader(directory: Path) -> Callable[[str], bytes]:
    """Reads an owner's own files. Raises `UsageError` for one that is not there."""

    def read(name: str) -> bytes:
        try:
            return (directory / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{directory} holds no {name}; name the directory in which this owner's run has left its half and {RUN}."
            ) from None

    return read
