"""`contribute STUDY --party NAME`: a contributor's visit (`docs/howto/contribute.md`)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, UsageError
from runner.commands import command
from runner.study import load, private_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.backends.bundles.bundle import Bundle
    from runner.commands import Commands
    from runner.contributors.contributing import Contribution

DESCRIPTION = """\
Take part in a study that collects bundles, without staying online: count the table, seal the counts for
two of the three computing parties, write one file, end. The file may travel by any courier: each of the
two parties sees random bytes, everybody else a ciphertext. The study's whole budget is charged to this
contributor's ledger before the file exists; --settle replaces that by what the run has spent, as its
signed result says, or by nothing if the three parties have signed that no run will come of it.
Compare the fingerprints of the three keys that are shown with what the computing parties say of theirs:
who could exchange all of them would read the counts. The values are this contributor's own word.

The private file names `data`, `key` (an Ed25519 key, --make-key makes one) and, if wished, [ledger].
"""
EXAMPLES = """\
  cosynth contribute study.toml --party clinic --make-key clinic.key
  cosynth contribute study.toml --party clinic --private clinic.toml --out clinic.bundle
  cosynth contribute study.toml --party clinic --private clinic.toml --send clinic.bundle \\
      --to north=north.example:8443 south=south.example:8443 west=west.example:8443
  cosynth contribute study.toml --party clinic --private clinic.toml --settle result.json
  cosynth contribute study.toml --party clinic --private clinic.toml --settle void-*.json
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "contribute", run, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", required=True, help="this contributor")
    parser.add_argument(
        "--private", metavar="FILE", type=Path, help="its private settings: data, key, ledger"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--out", metavar="FILE", type=Path, help="where the bundle goes")
    what.add_argument(
        "--make-key", metavar="FILE", type=Path, help="make a key; prints the line for the study's list"
    )
    what.add_argument(
        "--send", metavar="BUNDLE", type=Path, help="deliver the bundle to the parties' drop boxes"
    )
    what.add_argument(
        "--settle",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="charge what a run has spent (result.json), or nothing for a study that all three parties say is void",
    )
    parser.add_argument(
        "--to",
        metavar="NAME=HOST:PORT",
        nargs="+",
        default=[],
        help="with --send: the drop box of each party; its certificate is to be NAME's by the `ca` of the private file, or else "
        "HOST's by an authority that this machine trusts",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="with --out: one file for each computing party, FILE.PARTY.bundle",
    )
    parser.add_argument("--replace", action="store_true", help="with --out: a file there may be replaced")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from parties.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    if arguments.out is None and (arguments.split or arguments.replace):
        raise UsageError("--split and --replace belong to --out.")
    if bool(arguments.to) != (arguments.send is not None):
        raise UsageError("--send needs --to NAME=HOST:PORT, and --to belongs to --send.")
    if arguments.make_key is not None:
        _make_key(arguments.party, arguments.make_key)
        return
    from runner.contributors.contributing import Contribution

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
    from runner.contributors.contributing import make_key
    from runner.study.sections.contributors import key_line
    from runner.study.sections.parties import NAME

    if not NAME.fullmatch(name):
        raise UsageError(
            f'--party {name} cannot be a contributor\'s name: use letters, digits, "-", "_" or ".", a letter or digit first.'
        )
    print(key_line(name, make_key(file)))


def _send(contribution: Contribution, file: Path, to: Sequence[str], own: private_file.Private) -> None:
    """To each party; one that cannot be reached does not keep the others from getting theirs."""
    from parties.inbox.upload import Box, client_tls
    from runner.study.sections.parties import address_of

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
    from parties.inbox.files import discard_unfinished

    collection, out = contribution.collection, Path(arguments.out)
    places = {
        name: out.with_name(f"{out.name.removesuffix('.bundle')}.{name}.bundle")
        for name in collection.receivers
    }
    files = list(places.values()) if arguments.split else [out]
    for file in files:
        if file.exists() and not arguments.replace:
            raise UsageError(f"{file} is there already; name another file, or say --replace.")
        if not file.parent.is_dir():
            raise UsageError(f"The folder of {file} is not there; make it first.")
        discard_unfinished(file.parent, file.name)

    def write(bundle: Bundle) -> None:
        from parties.inbox.files import write_private

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
