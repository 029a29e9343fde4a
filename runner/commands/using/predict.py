"""`predict DIR STUDY`: probabilities of the label for people, by both owners of a trained model."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.failures import reason

if TYPE_CHECKING:
    from runner.commands import Commands
    from runner.party.prediction import People, Probabilities, TrainedModel
    from runner.study import DataLocation
    from runner.study.private_file import Private

DESCRIPTION = """\
Predict the label of people with a model that two owners have trained (algorithm "florist"). Each owner
holds one half, so a prediction needs both: each types this command about itself, with the same list of
people; each waits for the other until the study's connect_s is over. Third parties take no part.

The owner of the label gets the probabilities, as CSV, and nobody else does. What each side learns: the
owner of the label receives an embedding of everybody on the list, from which features can be inferred,
and that the other owner holds a record of each. The other owner learns the list, and nothing else. There
is no privacy claim for its features: this stands in its ledger, and it refuses under a cap (50).
The list is a CSV file with the study's identifier columns. Whoever is on it must be held by the owner
without the label, in its data or in --data FILE; else it refuses the list (30), and nothing is sent.

Without --party, both halves are on this machine: DIR is the directory of a run of all parties here. If
the owner without the label had a private file in that run, name it with --private NAME=FILE: the ledger
that is charged must be the one in which the run stands.
"""
EXAMPLES = """\
  cosynth predict out study.toml --party south --private south.toml --people asked.csv --out found.csv
  cosynth predict out study.toml --party north --private north.toml --people asked.csv
  cosynth predict out study.toml --people asked.csv > found.csv
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "predict", run, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of the finished run")
    parser.add_argument("study", metavar="STUDY", type=Path, help="its study file")
    parser.add_argument("-p", "--party", metavar="NAME", help="be this one owner")
    parser.add_argument(
        "--private", metavar="FILE", help="this owner's private settings; without --party NAME=FILE"
    )
    parser.add_argument(
        "--people", metavar="FILE", type=Path, required=True, help="a .csv file with the identifiers"
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        type=Path,
        help="records of the people, at the owner without the label (default: the data of the study)",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="at the owner of the label: a new .csv file, readable by nobody else (default: standard output)",
    )
    parser.add_argument(
        "--insecure-key",
        action="store_true",
        help="go on although other users of this machine can read this party's key",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from parties.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    if arguments.insecure_key and arguments.party is None:
        raise UsageError("--insecure-key belongs to one party: name it with --party NAME.")
    if arguments.out is not None and arguments.out.suffix.lower() != ".csv":
        raise UsageError(f"--out {arguments.out} must end in .csv, which says what is written.")
    from parties.inbox.files import write_private
    from runner.party.custodian import override
    from runner.party.prediction import ACTIVE, PASSIVE, People, TrainedModel, here

    model = TrainedModel.find(arguments.dir, arguments.study)
    role = PASSIVE if arguments.party is None else model.role(arguments.party)
    data = override(arguments.data)
    if role == ACTIVE and data is not None:
        raise UsageError("--data belongs to the owner without the label: the other one sends no records.")
    if role == PASSIVE and arguments.party is not None and arguments.out is not None:
        raise UsageError("--out belongs to the owner of the label: the other one gets no probabilities.")
    if arguments.out is not None:
        _check_new(arguments.out)
    people = People.read(arguments.people, model.study)
    found: Probabilities | None
    if arguments.party is None:
        own = _passive_settings(arguments.private, model.roles[PASSIVE])
        found = here(model, arguments.dir, people, own, data)
    else:
        found = _over_a_session(arguments, model, people, data)
    if found is None:
        other = model.roles[ACTIVE]
        print(
            f"done: embeddings of {len(people.canonical):,} people were sent to {other}, who has the probabilities"
        )
        return
    if arguments.out is None:
        people.write(found, sys.stdout)
        return
    try:
        text = io.StringIO()
        people.write(found, text)
        write_private(arguments.out, text.getvalue().encode(), replace=False)
    except OSError as error:
        raise UsageError(
            f"--out {arguments.out} cannot be written ({reason(error)}); name another file."
        ) from None
    print(f"done: {len(people.canonical):,} probabilities in {arguments.out}")


def _check_new(out: Path) -> None:
    """Raise `UsageError` unless a file can be made there that is not there yet."""
    if os.path.lexists(out):
        raise UsageError(f"--out {out} is there already, and nothing is overwritten; name another file.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"--out {out} cannot be made, for {out.parent} is no folder to write to; name another file."
        )


def _passive_settings(given: str | None, owner: str) -> Private:
    """Of the owner without the label, where both are here. given: its NAME=FILE, if it has one. Raises
    `UsageError`."""
    from runner.study import private_file

    if given is None:
        return private_file.load(None)
    name, _, file = given.partition("=")
    if name != owner or not file:
        raise UsageError(
            f"--private {given} belongs to one party: name it with --party NAME, or write --private {owner}=FILE when "
            "both halves are here."
        )
    return private_file.load(file)


def _over_a_session(
    arguments: argparse.Namespace, model: TrainedModel, people: People, data: DataLocation | None
) -> Probabilities | None:
    """This one owner's part."""
    from dataclasses import replace

    from mpc_protocols.functionality import unobserved
    from parties.certificates import check_private
    from runner.party.prediction import Part
    from runner.study import private_file

    own = private_file.load(arguments.private)
    certs = private_file.certificates(model.study, arguments.party, own)
    if certs is not None and arguments.insecure_key:
        certs = replace(certs, insecure_key=True)
    elif certs is not None:
        check_private(certs.key)
    location = private_file.location(model.study, arguments.party, own, data)
    return Part(model, arguments.dir, people, arguments.party, own, certs, location).carry_out(unobserved)
