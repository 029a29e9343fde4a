"""`predict DIR STUDY`: probabilities of the label for people, by both owners of a trained model."""

from __future__ import annotations

import argparse
import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import unobserved
from parties import core_dumps
from parties.certificates import check_private
from parties.inbox.files import write_private
from runner.failures import reason
from runner.party.custodian import override
from runner.party.prediction import ACTIVE, PASSIVE, Part, People, TrainedModel, here
from runner.results.outdir import spare
from runner.study import private_file

if TYPE_CHECKING:
    from runner.party.prediction import Probabilities
    from runner.study import DataLocation
    from runner.study.private_file import Private


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    core_dumps.forbid_core_dumps()
    if arguments.insecure_key and arguments.party is None:
        raise UsageError("--insecure-key belongs to one party: name it with --party NAME.")
    if arguments.out is not None and arguments.out.suffix.lower() != ".csv":
        raise UsageError(f"--out {arguments.out} must end in .csv, which says what is written.")
    model = TrainedModel.find(arguments.dir, arguments.study)
    role = PASSIVE if arguments.party is None else model.role(arguments.party)
    data = override(arguments.data)
    if role == ACTIVE and data is not None:
        raise UsageError("--data belongs to the owner without the label: the other one sends no records.")
    if role == PASSIVE and arguments.party is not None and arguments.out is not None:
        raise UsageError("--out belongs to the owner of the label: the other one gets no probabilities.")
    if arguments.out is not None:
        spare(arguments.out, replace=arguments.replace)
        _check_folder(arguments.out)
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
        write_private(arguments.out, text.getvalue().encode(), replace=arguments.replace)
    except OSError as error:
        raise UsageError(
            f"--out {arguments.out} cannot be written ({reason(error)}); name another file."
        ) from None
    print(f"done: {len(people.canonical):,} probabilities in {arguments.out}")


def _check_folder(out: Path) -> None:
    """Raise `UsageError` unless a file can be made there."""
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"--out {out} cannot be made, for {out.parent} is no folder to write to; name another file."
        )


def _passive_settings(given: str | None, owner: str) -> Private:
    """Of the owner without the label, where both are here. given: its NAME=FILE, if it has one. Raises
    `UsageError`."""
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
    own = private_file.load(arguments.private)
    certs = private_file.certificates(model.study, arguments.party, own)
    if certs is not None and arguments.insecure_key:
        certs = replace(certs, insecure_key=True)
    elif certs is not None:
        check_private(certs.key)
    location = private_file.location(model.study, arguments.party, own, data)
    return Part(model, arguments.dir, people, arguments.party, own, certs, location).carry_out(unobserved)
