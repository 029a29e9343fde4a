"""The closing of a collection that nothing comes of: each computing party signs that no run of the study opens anything.

A contributor's budget is reserved before its bundle exists, and only what the three parties sign gives it back. Where no run
comes about (too few bundles, a study given up), each party can say so for itself, in this order:

    record     in its ledger: no run of the study has begun to release here, and none will; a run that has begun refuses this (50)
    sign       the study's digest; on disk
    delete     bundles, sum and keys

A release needs all three parties, each of which puts its run on record before anything of it is opened. So the record of one of
them that follows the protocol is enough for "nothing was opened"; all three sign, because each speaks for its own ledger, which
may have been set back. What this cannot give back: the budget of a study of which a run has begun to release, whose events may
have been opened; and that of a study with a party that does not sign.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import PeerIdentity
from runner.contributors import statement
from runner.study.hashing import canonical

if TYPE_CHECKING:
    from runner.contributors.closing import Closing

KIND, FORMAT = "void", "cosynth-void-1"


def declaration(study: bytes) -> bytes:
    """What the parties sign of a study; all three the same."""
    return canonical({"format": FORMAT, "study": study.hex()})


def signed(content: bytes) -> bytes:
    """What signatures are over."""
    return FORMAT.encode() + content


def declare(closing: Closing) -> tuple[Path, list[Path]]:
    """Declare the study void at this party: its signed word, and the paths of what could not be deleted. May be repeated.

    Raises `BudgetRefused` (a run has begun to release; a file that cannot be written), `PeerIdentity` (the key).
    """
    inbox, own = closing.inbox, closing.collection.receivers[closing.party]
    if inbox.void_file.exists():
        closing.record.declare_void()
        return inbox.void_file, inbox.finish()
    signer = inbox.signer()
    if signer.public.signing != own.signing:
        raise PeerIdentity(
            f"The key in {inbox.folder} is not the one that the study lists for party {closing.party}; name the inbox in which "
            "it was made."
        )
    closing.record.declare_void()
    content = declaration(closing.collection.study)
    inbox.write_void(statement.to_bytes(KIND, content, {closing.party: signer.sign(signed(content))}))
    return inbox.void_file, inbox.finish()
