"""`certs make | request | sign | show`: the certificates by which parties know one another
(`docs/design/session.md` 3)."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import PeerIdentity, UsageError
from mpc_protocols.process.installation import program
from parties import certificates
from parties.certificates import make_all, read
from runner.failures import reason
from runner.results.outdir import RUN, spare
from runner.study import load
from runner.study.declared.table import nearest
from runner.study.sections.parties import NAME

if TYPE_CHECKING:
    from parties.certificates import Facts


def make(arguments: argparse.Namespace) -> None:
    """`certs make`."""
    names = [party.name for party in load(arguments.study).parties]
    directory = _directory(arguments)
    _absent(
        [directory / file for name in names for file in (f"{name}.crt", f"{name}.key")]
        + [directory / "ca.crt"]
    )
    make_all(directory, names, days=arguments.days, ca_name="cosynth", keep_ca_key=arguments.keep_ca_key)
    print(
        f"{directory}: ca.crt, and a certificate and a key for {', '.join(names)}, valid for {arguments.days} days.\n"
        "Each party needs ca.crt, its own NAME.crt and, in confidence, its own NAME.key; delete the keys here afterwards."
    )


def request(arguments: argparse.Namespace) -> None:
    """`certs request`."""
    name = str(arguments.name)
    if not NAME.fullmatch(name):
        raise UsageError(f"{name} is not a party's name (letters, digits, '-', '_' and '.').")
    directory = _directory(arguments)
    key, asked = directory / f"{name}.key", directory / f"{name}.csr"
    _absent([key, asked])
    csr, secret = certificates.request(name)
    certificates.write_file(key, secret, 0o600)
    certificates.write_file(asked, csr, 0o644)
    print(f"{key} stays here; send {asked} to whoever signs (`{program()} certs sign`).")


def sign(arguments: argparse.Namespace) -> None:
    """`certs sign`."""
    names = [party.name for party in load(arguments.study).parties]
    for path in arguments.requests:
        if path.stem not in names or path.suffix != ".csr":
            raise UsageError(
                f"{path} is not named NAME.csr after a party of {arguments.study}{nearest(path.stem, names)}; "
                f"its parties: {', '.join(names)}."
            )
    asked = {path: _bytes(path) for path in arguments.requests}
    directory = _directory(arguments)
    for path in asked:
        spare(directory / f"{path.stem}.crt", replace=arguments.replace)
    ca_cert, ca_key = directory / "ca.crt", directory / "ca.key"
    if not ca_cert.exists() and not ca_key.exists():
        certificates.write(directory, "ca", certificates.make_ca("cosynth", arguments.days))
    ca = certificates.Credential(_bytes(ca_cert), _bytes(ca_key))
    for path, csr in asked.items():
        certificate = certificates.sign(ca, csr, path.stem, days=arguments.days)
        certificates.write_file(directory / f"{path.stem}.crt", certificate, 0o644)
        print(directory / f"{path.stem}.crt")
    print(
        f"Send each party its NAME.crt and {ca_cert}, neither of which is secret; keep {ca_key} to yourself, or delete it when "
        "all are signed."
    )


def show(arguments: argparse.Namespace) -> None:
    """`certs show`."""
    for number, path in enumerate(arguments.files):
        facts = read(path)
        print(
            "\n"
            * (number > 0)
            + f"{path}\n  for         {', '.join(facts.names)}{' (a CA)' if facts.authority else ''}\n"
            f"  signed by   {facts.issuer}\n  valid       {facts.not_before:%Y-%m-%d} to {validity(facts)}\n"
            f"  fingerprint {facts.fingerprint}"
        )


def validity(facts: Facts) -> str:
    """The last day and what is left until then."""
    left = facts.not_after - datetime.now(UTC)
    words = f"{left.days} days left" if left.total_seconds() > 0 else "EXPIRED"
    return f"{facts.not_after:%Y-%m-%d} ({words})"


def _directory(arguments: argparse.Namespace) -> Path:
    if "days" in arguments and not 1 <= arguments.days <= 3650:
        raise UsageError(f"--days must be from 1 to 3650, got {arguments.days}.")
    directory: Path = arguments.out
    if (directory / RUN).exists():
        raise UsageError(
            f"--out {directory} holds the results of a run, which are passed on, and keys are not; name another directory."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out {directory} cannot be made ({reason(error)}); name another directory."
        ) from None
    return directory


def _absent(paths: list[Path]) -> None:
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists already and is left alone; name another directory or remove it.")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PeerIdentity(f"{path} cannot be read ({reason(error)}).") from None
