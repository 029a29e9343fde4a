"""`contribute STUDY --party NAME`: a contributor's visit (`docs/howto/contribute.md`)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, UsageError
from parties import core_dumps
from parties.inbox.files import discard_unfinished, write_private
from parties.inbox.upload import Box, client_tls
from runner.contributors.contributing import Contribution, make_key
from runner.results import outdir
from runner.study import load, private_file
from runner.study.sections.contributors import key_line
from runner.study.sections.parties import NAME, address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.backends.bundles.bundle import Bundle


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    core_dumps.forbid_core_dumps()
    if arguments.out is None and (arguments.split or arguments.replace):
        raise UsageError("--split and --replace belong to --out.")
    if bool(arguments.to) != (arguments.send is not None):
        raise UsageError("--send needs --to NAME=HOST:PORT, and --to belongs to --send.")
    if arguments.make_key is not None:
        _make_key(arguments.party, arguments.make_key)
        return
    own = private_file.load(arguments.private)
    contribution = Contribution(load(arguments.study), arguments.party, own, None)
    if arguments.send is not None:
        _send(contribution, arguments.send, arguments.to, own)
        return
    if arguments.settle is not None:
        told = contribution.settle(*arguments.settle)
        took = "took part" if told.took_part else "did not take part, and will not in any run of this study"
        took += " (all three parties have signed that it is void)" * told.void
        print(f"{arguments.party} {took}: the ledger is charged rho {told.rho:.4g}")
        return
    _leave(contribution, arguments)


def _make_key(name: str, file: Path) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            f'--party {name} cannot be a contributor\'s name: use letters, digits, "-", "_" or ".", a letter or digit first.'
        )
    print(key_line(name, make_key(file)))


def _send(contribution: Contribution, file: Path, to: Sequence[str], own: private_file.Private) -> None:
    """To each party; one that cannot be reached does not keep the others from getting theirs."""
    boxes, tls = [], client_tls(own.ca)
    for text in to:
        name, _, address = text.partition("=")
        place = address_of(address)
        if name not in contribution.collection.receivers or place is None:
            raise UsageError(
                f"--to {text} is not NAME=HOST:PORT with a computing party of the study: "
                f"{', '.join(contribution.collection.receivers)}."
            )
        boxes.append(Box(name, *place, tls, expected=name if own.ca else place[0]))
    failed: list[CosynthError] = []
    for box in boxes:
        try:
            print(f"{box.party}: {contribution.deliver(file, box)}", flush=True)
        except CosynthError as error:
            failed.append(error)
            if len(boxes) > 1:
                print(f"{box.party}: {error.sentence}", flush=True)
    if len(boxes) == 1 and failed:
        raise failed[0]
    if failed:
        raise type(failed[0])(
            f"{len(failed)} of {len(boxes)} parties did not take the bundle, the first of them for this: {failed[0].sentence}"
        )


def _leave(contribution: Contribution, arguments: argparse.Namespace) -> None:
    collection, out = contribution.collection, Path(arguments.out)
    places = {
        name: out.with_name(f"{out.name.removesuffix('.bundle')}.{name}.bundle")
        for name in collection.receivers
    }
    files = list(places.values()) if arguments.split else [out]
    for file in files:
        outdir.spare(file, replace=arguments.replace)
        if not file.parent.is_dir():
            raise UsageError(f"The folder of {file} is not there; make it first.")
        discard_unfinished(file.parent, file.name)

    def write(bundle: Bundle) -> None:
        try:
            for name, place in places.items() if arguments.split else ():
                write_private(place, bundle.for_receiver(name).to_bytes())
            if not arguments.split:
                write_private(out, bundle.to_bytes())
        except OSError as error:
            raise UsageError(
                f"The bundle cannot be written ({error.strerror}); it is charged once, so make it again elsewhere."
            ) from None

    bundle = contribution.leave(write)
    for file in files:
        print(f"{file} ({file.stat().st_size:,} bytes)")
    for name, key in collection.receivers.items():
        print(f"key of {name}: {key.fingerprint}")
    first, second = bundle.header.receivers
    print(
        f"bundle of {arguments.party}: {bundle.header.cells:,} cells, sealed to {first} and {second}, to be used by "
        f"{bundle.header.expires:%Y-%m-%d}; give it to all three computing parties. The ledger has reserved the study's budget."
    )
