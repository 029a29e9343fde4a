"""A party's private settings, `--private FILE` (DESIGN section 7): its data, keys, ledger. Never sent, never hashed.

Paths are relative to the file itself. Everything is optional: what is absent comes from the study or the command line.
Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_protocols.errors import PeerIdentity, StudyInvalid
from runner.party.options import CertificateFiles
from runner.study.model import DataLocation, Study
from runner.study.parties import read_address, read_location
from runner.study.table import Table, read_toml

KEYS = ("data", "listen", "out", "cert", "key", "ca", "allow_empty", "ledger")


@dataclass(frozen=True)
class LedgerSettings:
    """[ledger]: where this custodian keeps account, under which name for its population, and how much it allows.

    Caps compare eps(sum of rho, cap_delta) over all runs on the data set; None means no cap. `max_alignments` limits the
    runs with one counterparty.
    """

    file: Path | None = None
    dataset: str | None = None
    cap_epsilon: float | None = None
    cap_delta: float | None = None
    max_alignments: int | None = None


@dataclass(frozen=True)
class Private:
    """One party's private file; all paths absolute. `listen` is (host, port) when it differs from the study's address."""

    data: DataLocation | None = None
    listen: tuple[str, int] | None = None
    out: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    allow_empty: bool = False
    ledger: LedgerSettings = LedgerSettings()


def load(path: Path | str | None) -> Private:
    """The private file at `path` (None: all defaults). Raises `StudyInvalid` with its first problem."""
    found: list[str] = []
    private = _read(Path(path), found) if path is not None else Private()
    if found:
        raise StudyInvalid(found[0])
    return private


def problems(path: Path | str) -> list[str]:
    """All problems of the private file at `path`, one sentence each."""
    found: list[str] = []
    try:
        _read(Path(path), found)
    except StudyInvalid as error:
        found.append(error.sentence)
    return found


def location(study: Study, name: str, private: Private) -> DataLocation | None:
    """Where this party's data lies: its private file wins over the study; None if it only computes.

    Raises `StudyInvalid` for a party that would neither compute nor have data.
    """
    party = study.party(name)
    found = private.data or party.data
    if found is None and not party.compute:
        raise StudyInvalid(
            f"{study.path}: [[party]] {name} neither computes nor has data; give it data in the study or in its "
            "private file, let it compute, or remove it."
        )
    return found


def certificates(study: Study, name: str, private: Private) -> CertificateFiles | None:
    """The certificate files of this party of a deployment; None if the study goes without.

    Raises `PeerIdentity` naming the key that the private file lacks. `ca` may be absent if the study pins every certificate.
    """
    if study.session.tls == "insecure-loopback":
        return None
    pinned = all(party.fingerprint for party in study.parties)
    if private.cert and private.key and (private.ca or pinned):
        return CertificateFiles(private.ca, private.cert, private.key)
    missing = next(key for key in ("cert", "key", "ca") if getattr(private, key) is None)
    raise PeerIdentity(
        f"Party {name} has no certificate: its private file (--private) does not name `{missing}`; "
        "`python -m runner certs make` makes ca.crt, NAME.crt and NAME.key."
    )


def _read(path: Path, found: list[str]) -> Private:
    table = Table(read_toml(path), str(path), "", KEYS, found)

    def place(inner: Table, key: str) -> Path | None:
        return (path.parent / inner.text(key, expected="a path")).resolve() if key in inner else None

    ledger = Table(
        table.raw.get("ledger", {}),
        str(path),
        "[ledger]",
        ("file", "dataset", "cap_epsilon", "cap_delta", "max_alignments"),
        found,
    )
    if ("cap_epsilon" in ledger) != ("cap_delta" in ledger):
        ledger.problem(
            "needs cap_epsilon and cap_delta together: the cap compares the epsilon spent at that delta"
        )
    caps: dict[str, Any] = {
        "cap_epsilon": float(ledger.number("cap_epsilon")) if "cap_epsilon" in ledger else None,
        "cap_delta": float(ledger.number("cap_delta", below=1.0)) if "cap_delta" in ledger else None,
        "max_alignments": ledger.integer("max_alignments", low=0) if "max_alignments" in ledger else None,
    }
    return Private(
        data=read_location(table, path),
        listen=read_address(table, "listen") if "listen" in table else None,
        out=place(table, "out"),
        cert=place(table, "cert"),
        key=place(table, "key"),
        ca=place(table, "ca"),
        allow_empty=table.flag("allow_empty", False),
        ledger=LedgerSettings(
            place(ledger, "file"), ledger.text("dataset") if "dataset" in ledger else None, **caps
        ),
    )
