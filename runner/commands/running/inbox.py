"""`inbox STUDY --party NAME`: a computing party's inbox for bundles of contributors
(`docs/howto/contribute.md`)."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, PeerUnreachable, UsageError
from mpc_protocols.process.foreign_text import printable
from parties.inbox.arrivals import WORDS, Arrivals
from parties.inbox.drop_box import DropBox, server_tls
from parties.inbox.files import discard_unfinished
from parties.inbox.store import make_key
from runner.contributors.closing import Closing
from runner.contributors.collection import contributors_of, inbox_folder, inbox_of
from runner.contributors.void import declare
from runner.party.synthesis import plan_of
from runner.study import Study, load, private_file
from runner.study.declared.table import nearest, read_toml
from runner.study.sections.parties import address_of
from runner.study.sections.receivers import read_receivers, receivers_text

if TYPE_CHECKING:
    from parties.inbox.store import Inbox

POLL_S = 2.0


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.make_key:
        _make_key(arguments.study, arguments.party, private_file.load(arguments.private))
        return
    study, own = load(arguments.study), private_file.load(arguments.private)
    contributors_of(study)
    inbox = inbox_of(study, arguments.party, own, plan_of(study))
    _not_deleted(inbox.tidy())
    if arguments.void:
        _void(study, arguments.party, own)
    elif arguments.list:
        _list(inbox, list(study.contributors.keys if study.contributors else ()))
    elif arguments.add:
        _add(inbox, arguments.add)
    elif arguments.watch:
        _watch(inbox, arguments.watch)
    else:
        _listen(inbox, arguments.listen, arguments.party, own)


def _void(study: Study, party: str, own: private_file.Private) -> None:
    file, left = declare(Closing.of(study, party, own, plan_of(study)))
    print(
        f"{file}\nno run of this study will open anything at {party}; give this file to all contributors, who settle with those "
        "of all three parties"
    )
    _not_deleted(left)


def _not_deleted(left: Sequence[Path]) -> None:
    for path in left:
        print(f"{path} should be gone and cannot be deleted; delete it by hand", file=sys.stderr)


def _make_key(path: Path, party: str, own: private_file.Private) -> None:
    """The study cannot be loaded yet: its receivers are what is being made."""
    tree = read_toml(path)
    table, parties = tree.get("contributors"), tree.get("party")
    named = table.get("receivers") if isinstance(table, dict) else None
    if not isinstance(named, str) or not named:
        raise UsageError(
            f"{path} does not say where the receivers' keys are to stand: give it [contributors] with receivers = "
            '"receivers.json" first.'
        )
    names = (
        [str(entry.get("name")) for entry in parties if isinstance(entry, dict)]
        if isinstance(parties, list)
        else []
    )
    if party not in names:
        raise UsageError(
            f"--party {party} is not in {path}{nearest(party, names)}; its parties: {', '.join(names)}."
        )
    file = path.parent / named
    try:
        known = read_receivers(file) if file.exists() else {}
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} cannot be used ({str(error).rstrip('.')}); correct it or move it away."
        ) from None
    folder = inbox_folder(path, party, own)
    _not_deleted(discard_unfinished(folder))
    known[party] = make_key(folder)
    file.write_text(receivers_text(known), encoding="utf-8")
    print(
        f"keys of {party} for this study: secret in {folder}, public in {file}; fingerprint {known[party].fingerprint}"
    )


def _add(inbox: Inbox, files: Sequence[Path]) -> None:
    refused: list[CosynthError] = []
    for file in files:
        try:
            outcome, contributor = inbox.add(file, datetime.now(UTC))
            print(f"{printable(str(file), line=True)}: {WORDS[outcome]}, of {contributor}")
        except CosynthError as error:
            refused.append(error)
            if len(files) > 1:
                print(error.sentence)
    if not refused:
        return
    if len(files) == 1:
        raise refused[0]
    first = refused[0]
    raise type(first)(
        f"{len(refused)} of {len(files)} bundles were refused, the first of them for this: {first.sentence}"
    )


def _watch(inbox: Inbox, folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"--watch {folder} is not a folder; name the one in which bundles arrive.")
    print(f"watching {printable(str(folder), line=True)}; stop with Ctrl-C", flush=True)
    arrivals = Arrivals(inbox, folder, lambda line: print(line, flush=True))
    while True:
        arrivals.sweep(datetime.now(UTC))
        time.sleep(POLL_S)


def _listen(inbox: Inbox, address: str, party: str, own: private_file.Private) -> None:
    if (place := address_of(address)) is None:
        raise UsageError(f"--listen {address} is not HOST:PORT with a port from 1 to 65535.")
    if own.cert is None or own.key is None:
        raise UsageError(
            f"--listen shows contributors the certificate of party {party}: name `cert` and `key` in its private file "
            "(--private), or take bundles in with --watch."
        )
    inbox.ready()
    box = DropBox(inbox, server_tls(own.cert, own.key), lambda line: print(line, flush=True))

    async def serve() -> None:
        try:
            server = await box.listen(*place)
        except OSError as error:
            raise PeerUnreachable(
                f"--listen {address} cannot be had ({error.strerror}); name another port."
            ) from None
        print(f"listening at {address}; stop with Ctrl-C", flush=True)
        try:
            async with server:
                await server.serve_forever()
        finally:
            await box.close()

    asyncio.run(serve())


def _list(inbox: Inbox, enrolled: Sequence[str]) -> None:
    agreed = inbox.agreed(inbox.collection.rounds)
    here = set((agreed.entries if agreed else inbox.accepted(datetime.now(UTC))).values())
    for name in enrolled:
        if name in here:
            print(name)
    state = "void, holds" if inbox.void_file.exists() else "closed with" if agreed else "open, holds"
    print(f"{state} {len(here)} of {len(enrolled)} contributors' bundles")
