"""The arguments of `verify`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, private_path

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Recompute what a finished run claims, from its files alone, for an auditor: all directories (one of each
party) hold the same files; the digest is that of the study shown; every party has signed them with its
certificate's key; each event's cost, their sum and epsilon, by an accountant of its own; the computing
parties' journals, and with --ledger or --private a custodian's ledger, tell of the same releases; the
report is what the files make; what run.json says of its release follows from the table, the measurements,
the model and the study, whoever has signed. What is not there is said to be not checked, and what cannot be
recomputed to be the word of the signers.

A run of parties with certificates has been signed: without signatures it is refused. They prove whose files
these are as far as you know what each rests on, which is printed: the CA that issued a party's certificate,
or the certificate that the study pins. Name the CA that the parties tell you by another way (--ca), or a
study of your own that pins certificates (--study): without either, all is the word of whoever gave you the
files, and `verify` says so. With --study the study that was agreed must be yours. With --prior the run began
from what lies there: its bytes, its session, what its people had spent, and the signatures that pins ask for.

Ends with 0 if nothing is wrong, else with the exit code of the first problem.
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "verify",
        carried_out_by("verify"),
        description=DESCRIPTION,
        examples="  cosynth verify out\n"
        "  cosynth verify from-north from-south from-west --ca ca.crt --private north.toml\n",
    )
    parser.add_argument(
        "dirs",
        metavar="DIR",
        type=Path,
        nargs="+",
        help="the --out directory of a finished run, of each party",
    )
    parser.add_argument(
        "--study",
        metavar="STUDY",
        type=Path,
        help="the study file as you know it: the run must be of this one",
    )
    parser.add_argument(
        "--ca",
        metavar="CERT",
        help="the parties' CA as you know it, its certificate or SHA-256 fingerprint: no other is believed",
    )
    parser.add_argument(
        "--ledger", metavar="FILE", type=Path, action="append", default=[], help="a ledger file"
    )
    parser.add_argument(
        "--private",
        metavar="FILE",
        type=private_path,
        action="append",
        default=[],
        help="a party's private file, whose ledger is meant",
    )
    parser.add_argument(
        "--prior",
        metavar="PATH",
        type=Path,
        help="the earlier release's folder, or the public table, that the run began from",
    )
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
