"""The table [prior]: an earlier release, or public rows, that the run begins from
(`docs/howto/next-release.md`).

Every party has its own copy and checks it before anything is sent; its digest is in the study's, so all have
the same bytes. The files may come from anybody: each is bounded in size before it is read, nothing is
unpickled, and where the study pins certificates, the parties that it pins must have signed the release with
them. Standard library only at import: what a study without the table does not need is not loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError, UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.process.later import Later, np
from parties.data.location import locate
from runner.failures import reason
from runner.results.outdir import SIGNATURES
from runner.study.declared.keys import MAX_EPSILON, PEOPLE, PriorKeys
from runner.study.declared.table import Table
from runner.study.sections.public_files import MAX_BYTES, read_public
from synth.algorithm import ALGORITHMS, Algorithm

if TYPE_CHECKING:
    from parties.data.linked import opening
    from runner.report import files
    from runner.results import finished_run, release, signatures
    from runner.study.model import Party
    from synth import mrf, prior
    from synth.domain import Domain
    from synth.inference import licence
    from synth.prior import Known, Prior
    from synth.synthesis import Measured
else:
    opening = Later("parties.data.linked.opening")
    files = Later("runner.report.files")
    finished_run = Later("runner.results.finished_run")
    licence = Later("synth.inference.licence")
    mrf = Later("synth.mrf")
    prior = Later("synth.prior")
    release = Later("runner.results.release")
    signatures = Later("runner.results.signatures")

SAME, DISJOINT = PEOPLE
FILES = RUN, MEASUREMENTS, MODEL = "run.json", "measurements.json", "model.npz"
MAX_RHO = 1e12
ROUNDING = 1e-9
"""Relative: by which sums of the same figures may differ."""
MAX_NAME = 1 << 10
"""Bytes of a study's name."""
MAX_RUNS = 1 << 12
"""Of earlier runs that one tells of."""


class _Unusable(Exception):
    """Why a prior cannot be used: the rest of a sentence."""


@dataclass(frozen=True)
class StudyPrior:
    """place: the folder or file. people: whether the same people may be in it and in this run. digest: of its
    content, hex. content: what is in it. name, run: of a release, its study and session. spent: rho of it,
    and of releases that it rests on, as far as one person can have been in all of them, as its files say.
    runs: its session and those of releases that it rests on, where all parties of this study, pinned, have
    signed it: ledgers count by them, so nobody else's word will do. epsilon: that the release was to spend.
    beta: of the samplers, as `spent` is of rho. A public table has none of the last six."""

    place: Path
    people: str
    digest: str
    content: Prior = field(repr=False, compare=False)
    name: str | None = None
    run: str | None = None
    spent: float = 0.0
    runs: tuple[str, ...] = ()
    epsilon: float = 0.0
    beta: float = 0.0

    def public(self) -> dict[str, Any]:
        """What the study's digest and run.json say of it."""
        kind = {"table": self.digest} if self.run is None else {"release": self.digest, "run": self.run}
        spent = {} if self.run is None else {"rho": self.spent}
        return {**kind, **spent, "people": self.people}

    def check_out(self, out: Path) -> None:
        """Raise `UsageError` where the run would take the place of what it begins from."""
        if self.run is not None and self.place.resolve() == out.resolve():
            raise UsageError(
                f"--out {out} is the release that [prior] names, and a run cannot begin from itself: name another directory."
            )

    @property
    def apart(self) -> tuple[str, ...]:
        """Sessions of releases in which nobody was who is in this run, as the study states and ledgers count."""
        return self.runs if self.people == DISJOINT else ()

    def together(self, rho: float) -> float:
        """rho that one person can have spent in this run, of so much, and in the earlier ones."""
        return together(rho, self.public())

    def beta_together(self, beta: float) -> float:
        """The same of the samplers' distance."""
        return beta + self.beta if self.people == SAME else max(beta, self.beta)


def together(rho: float, agreed: Mapping[str, Any]) -> float:
    """rho that one person can have spent in a run, of so much, and in the earlier ones, by what the parties
    agreed on (`StudyPrior.public`). Raises KeyError or ValueError for another form."""
    before = _rho(agreed["rho"]) if "release" in agreed else 0.0
    if agreed["people"] not in PEOPLE or ("release" in agreed) == ("table" in agreed):
        raise ValueError("What a run began from is of another form.")
    return rho + before if agreed["people"] == SAME else max(rho, before)


def runs_of(told: Mapping[str, Any]) -> tuple[str, ...]:
    """The sessions of what a run rests on, as its run.json tells. Raises ValueError or TypeError for another
    form."""
    runs = told.get("runs", [])
    if not isinstance(runs, list) or len(runs) > MAX_RUNS:
        raise ValueError("The earlier runs that a run names are none.")
    return tuple(map(_session, runs))


def read_prior(
    table: Table, folder: Path, algorithm: Algorithm[Any, Any], domain: Domain, parties: tuple[Party, ...]
) -> StudyPrior | None:
    """[prior]; None if it is wrong, which `table` is told."""
    before = len(table.problems)
    given = [key for key in ("release", "table") if key in table]
    if len(given) != 1:
        table.problem(
            'needs release = "DIR", the folder of a finished run, or table = "FILE", public rows: one of the two'
        )
        return None
    [key] = given
    told = table.options(PriorKeys)
    path = folder / (told.release or told.table or "?")
    people = told.people
    if key == "table" and "people" in table:
        table.problem("has no meaning with a public table, which costs nobody anything; remove it", "people")
    if not algorithm.inherits:
        others = " or ".join(f'"{one.name}"' for one in ALGORITHMS if one.inherits)
        table.problem(
            f'has no meaning with algorithm = "{algorithm.name}", which begins from nothing; use {others}'
        )
    if len(table.problems) > before:
        return None
    try:
        return prior_at(path, key, people, domain, parties)
    except UsageError as error:
        table.problem(f"names {error.sentence.rstrip('.')}", key)
        return None


def prior_at(path: Path, key: str, people: str, domain: Domain, parties: tuple[Party, ...]) -> StudyPrior:
    """What lies there. key: "release" or "table". parties: the study's. Raises `UsageError`: the path, and
    what is wrong."""
    try:
        return _release(path, people, domain, parties) if key == "release" else _rows(path, people, domain)
    except OSError as error:
        raise UsageError(f"{error.filename or path}, which cannot be read ({reason(error)}).") from None
    except CosynthError as error:
        raise UsageError(f"{path}, which cannot be used: {error.sentence}") from None
    except _Unusable as error:
        raise UsageError(f"{path}, which cannot be used: {error}.") from None


def _bytes(path: Path) -> bytes:
    try:
        return read_public(path)
    except ValueError as error:
        raise _Unusable(str(error)) from None


def _rows(path: Path, people: str, domain: Domain) -> StudyPrior:
    """A public table: those of its columns that the study has, in the study's values."""
    from parties.data.records import read

    content = _bytes(path)
    digest = hashlib.sha256(content).hexdigest()
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name  # what the digest is of, where nobody else changes it
        copy.write_bytes(content)
        try:
            with opening.open_source(locate(copy)) as table:
                shared = domain.subset([name for name in domain.names if name in table.columns])
                if len(shared) < 2:
                    raise _Unusable("it has fewer than two columns of this study")
                records = read(table, shared, None, max_rows=MAX_BYTES)
        except CosynthError as error:
            raise _Unusable(error.sentence.replace(str(copy), path.name).rstrip(".")) from None
    if records.rows < 1:
        raise _Unusable("it has no rows")
    codes = np.column_stack([records.codes[name] for name in shared.names])
    return StudyPrior(path, people, digest, prior.PublicTable(shared.names, codes, shared.sizes))


def _release(path: Path, people: str, domain: Domain, parties: tuple[Party, ...]) -> StudyPrior:
    """A finished run: its three files, read once."""
    files = {name: _bytes(path / name) for name in FILES}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    _check_signatures(path, hashes, parties)
    model = mrf.Model.from_bytes(files[MODEL])
    try:
        facts = json.loads(files[RUN].decode("utf-8"))
        old, measured, inherited = _content(facts, files[MEASUREMENTS].decode("utf-8"))
        run, study, before = (
            _session(facts["session"]),
            _name(facts["study"]),
            runs_of(facts.get("prior") or {}),
        )
        runs = (run, *before) if all(party.fingerprint for party in parties) else ()
        spent, beta, epsilon = _spent(facts), _beta(facts), float(facts["privacy"]["epsilon"])
        learned = prior.known_of(licence.readable(facts, measured), model.total, inherited)
        if not all(0 < of.error < math.inf for of in learned):
            raise ValueError("A marginal without an error is none of a run.")
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError):
        raise _Unusable(
            "it is no finished run of this version with a table, or its files were altered"
        ) from None
    if dict(model.sizes) != dict(old.sizes):
        raise _Unusable(f"its {MODEL} is of other columns than its {RUN}: the files are not of one run")
    shared = tuple(name for name in domain.names if name in old and old[name] == domain[name])
    if len(shared) < 2:
        raise _Unusable(
            "it is of another domain: fewer than two of its columns have the name and the values of this study's"
        )
    known = [of for of in learned if set(of.columns) <= set(shared)]
    marginals = tuple(replace(of, columns=tuple(n for n in shared if n in of.columns)) for of in known)
    digest = hashlib.sha256("".join(hashes[name] for name in FILES).encode()).hexdigest()
    return StudyPrior(
        path, people, digest, prior.Release(shared, model, marginals), study, run, spent, runs, epsilon, beta
    )


def _content(facts: Mapping[str, Any], text: str) -> tuple[Domain, tuple[Measured, ...], tuple[Known, ...]]:
    """Its domain, measurements and what it had inherited itself. Raises as what is not of a run's form."""
    domain = finished_run.domain_of(facts)
    _, measured = files.measurements_in(text, domain)
    if any(m.sigma2 <= 0 for m in measured):
        raise ValueError("A measurement without noise is none of a run.")
    release.check_measured(
        [Event(event["what"], Fraction(0), Fraction(0), event) for event in facts["privacy"]["events"]],
        measured,
    )
    return domain, measured, files.inherited_in(text, domain)


def _spent(facts: Mapping[str, Any]) -> float:
    """rho of a run, with those that it rests on."""
    own, before, agreed = (
        _rho(facts["privacy"]["rho_spent"]),
        facts.get("prior"),
        facts["agreed"].get("prior"),
    )
    if (before is None) != (agreed is None):
        raise ValueError("What a run began from is told without being agreed on, or the other way round.")
    rho = own if before is None else _rho(before["rho_together"])
    least = own if agreed is None else together(own, agreed)
    charged = sum(_rho(event["rho"]) for event in facts["privacy"]["events"])
    if not (
        0 < charged <= own * (1 + ROUNDING)
        and least <= rho * (1 + ROUNDING)
        and 0 < facts["privacy"]["epsilon"] <= MAX_EPSILON
    ):
        raise ValueError("What a run has spent is out of range.")
    return rho


def _beta(facts: Mapping[str, Any]) -> float:
    """The samplers' distance of a run, with those that it rests on."""
    own, before = facts["privacy"]["beta"], facts.get("prior") or {}
    beta = before.get("beta_together", own)  # of no release before this was told
    if not own <= beta * (1 + ROUNDING) or not 0 <= _rho(own) <= beta <= 1:
        raise ValueError("The samplers' distance is none.")
    return float(beta)


def _rho(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_RHO:
        raise ValueError("A cost is none.")
    return float(value)


def _session(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("A session is none.")
    return value


def _name(value: object) -> str:
    """Of a study; UnicodeEncodeError, a ValueError, where it cannot be written."""
    if not isinstance(value, str) or not 0 < len(value.encode()) <= MAX_NAME:
        raise ValueError("A study's name is none.")
    return value


def _check_signatures(path: Path, hashes: Mapping[str, str], parties: tuple[Party, ...]) -> None:
    """Where there are signatures, they are of these files; where the study pins certificates, they are of
    those it pins."""
    pinned = {party.name: party.fingerprint for party in parties if party.fingerprint}
    file = path / SIGNATURES
    if not file.is_file():
        if pinned:
            raise _Unusable(
                f"it has no {SIGNATURES}, and this study pins the certificates of its parties, who must have signed it"
            )
        return
    signed = signatures.read(file)
    if changed := [name for name, of in hashes.items() if signed.files.get(name) != of]:
        raise _Unusable(f"{' and '.join(changed)} was changed since the parties signed it")
    for name, fingerprint in pinned.items():
        signed.check(name, fingerprint)
