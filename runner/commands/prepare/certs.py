"""`certs make | request | sign | show`: the certificates by which parties know one another
(`docs/design/session.md` 3)."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import PeerIdentity, UsageError
from mpc_protocols.process.installation import program
from runner.commands import command, whole_number
from runner.commands.listing import HELP
from runner.failures import reason
from runner.study import load
from runner.study.declared.table import nearest
from runner.study.sections.parties import NAME

if TYPE_CHECKING:
    from parties.certificates import Facts
    from runner.commands import Commands

PURPOSE = """\
A session trusts its own CA and nothing else. The short way: one party makes everything with
`make` and hands each party its NAME.key in confidence. The careful way: each party makes its own
key with `request`, which stays where it is, and one party certifies the requests with `sign`.
The third way needs no CA: a study may pin each party's certificate by the fingerprint that `show`
prints.
"""
EXAMPLES = """\
  cosynth certs make study.toml --out certs
  cosynth certs request north --out .               at north: north.key stays, north.csr travels
  cosynth certs sign study.toml north.csr south.csr west.csr --out certs
  cosynth certs show certs/north.crt
"""


def add(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser(
        "certs",
        help=HELP["certs"],
        description=PURPOSE,
        epilog="examples:\n" + EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    making = command(
        inner,
        "make",
        make,
        help="a CA and a certificate with its key for every party",
        description="Write DIR/ca.crt, and for every party of STUDY DIR/NAME.crt and DIR/NAME.key (mode 0600).\n"
        "The CA's own key is thrown away, unless it is to sign for parties that join later.",
        examples="  cosynth certs make study.toml --out certs\n",
    )
    making.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    making.add_argument("-o", "--out", metavar="DIR", type=Path, required=True, help="where the files go")
    making.add_argument("--keep-ca-key", action="store_true", help="write DIR/ca.key too, for `certs sign`")
    _days(making)

    asking = command(
        inner,
        "request",
        request,
        help="a key of your own and a request to certify it",
        description="Write DIR/NAME.key, which stays here, and DIR/NAME.csr, which goes to whoever signs.",
        examples="  cosynth certs request north --out .\n",
    )
    asking.add_argument("name", metavar="NAME", help="this party's name in the study")
    asking.add_argument(
        "-o", "--out", metavar="DIR", type=Path, default=Path(), help="where the files go (default: here)"
    )

    signing = command(
        inner,
        "sign",
        sign,
        help="certify requests of the study's parties",
        description="Write DIR/NAME.crt for every NAME.csr, signed by the CA in DIR (ca.crt, ca.key), which is\n"
        "made if DIR has none. Send each party its certificate and ca.crt; neither is secret.",
        examples="  cosynth certs sign study.toml north.csr south.csr --out certs\n",
    )
    signing.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    signing.add_argument("requests", metavar="NAME.csr", type=Path, nargs="+", help="requests")
    signing.add_argument("-o", "--out", metavar="DIR", type=Path, required=True, help="the CA's directory")
    _days(signing)

    showing = command(
        inner,
        "show",
        show,
        help="names, validity and fingerprint of certificates",
        description="Print whom a certificate names, how long it is valid, who signed it, and its fingerprint.",
        examples="  cosynth certs show certs/*.crt\n",
    )
    showing.add_argument("files", metavar="FILE", type=Path, nargs="+", help="certificates (PEM)")


def _days(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days", metavar="N", type=whole_number, default=365, help="validity in days (default: %(default)s)"
    )


def make(arguments: argparse.Namespace) -> None:
    """`certs make`."""
    from parties.certificates import make_all

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
    from parties import certificates

    name, directory = str(arguments.name), _directory(arguments)
    if not NAME.fullmatch(name):
        raise UsageError(f"{name} is not a party's name (letters, digits, '-', '_' and '.').")
    key, asked = directory / f"{name}.key", directory / f"{name}.csr"
    _absent([key, asked])
    csr, secret = certificates.request(name)
    certificates.write_file(key, secret, 0o600)
    certificates.write_file(asked, csr, 0o644)
    print(f"{key} stays here; send {asked} to whoever signs (`{program()} certs sign`).")


def sign(arguments: argparse.Namespace) -> None:
    """`certs sign`."""
    from parties import certificates

    names = [party.name for party in load(arguments.study).parties]
    for path in arguments.requests:
        if path.stem not in names or path.suffix != ".csr":
            raise UsageError(
                f"{path} is not named NAME.csr after a party of {arguments.study}{nearest(path.stem, names)}; "
                f"its parties: {', '.join(names)}."
            )
    asked = {path: _bytes(path) for path in arguments.requests}
    directory = _directory(arguments)
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
    from parties.certificates import read

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
