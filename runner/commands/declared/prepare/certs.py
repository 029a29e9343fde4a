"""The arguments of `certs`, and its help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, whole_number
from runner.commands.listing import HELP

if TYPE_CHECKING:
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
        carried_out_by("certs", "make"),
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
        carried_out_by("certs", "request"),
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
        carried_out_by("certs", "sign"),
        help="certify requests of the study's parties",
        description="Write DIR/NAME.crt for every NAME.csr, signed by the CA in DIR (ca.crt, ca.key), which is\n"
        "made if DIR has none. Send each party its certificate and ca.crt; neither is secret.",
        examples="  cosynth certs sign study.toml north.csr south.csr --out certs\n",
    )
    signing.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    signing.add_argument("requests", metavar="NAME.csr", type=Path, nargs="+", help="requests")
    signing.add_argument("-o", "--out", metavar="DIR", type=Path, required=True, help="the CA's directory")
    may_replace(signing, what="an earlier certificate of the same party")
    _days(signing)

    showing = command(
        inner,
        "show",
        carried_out_by("certs", "show"),
        help="names, validity and fingerprint of certificates",
        description="Print whom a certificate names, how long it is valid, who signed it, and its fingerprint.",
        examples="  cosynth certs show certs/*.crt\n",
    )
    showing.add_argument("files", metavar="FILE", type=Path, nargs="+", help="certificates (PEM)")


def _days(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days", metavar="N", type=whole_number, default=365, help="validity in days (default: %(default)s)"
    )
