"""The closing of a collection that nothing comes of: each computing party signs that no run of the study
opens anything.

A contributor's budget is reserved before its bundle exists, and only what the three parties sign gives it
back. Where no run comes about (too few bundles, a study given up), each party can say so for itself, in this
order:

    record     in its ledger: no run of the study has begun to release here, and none will; a run that has begun refuses this (50)
    sign       the study's digest; on disk
    delete     bundles, sum and keys

A release needs all three parties, each of which puts its run on record before anything of it is opened. So
the record of one of them that follows the protocol is enough for "nothing was opened"; all three sign,
because each speaks for its own ledger, which may have been set back. A party that names another ledger than
its runs' is found out by its inbox, which holds the agreed list from the closing on and the run's id from
before the first release on. What this cannot give back: the budget of a study of which a run has begun to
release, whose events may have been opened; and that of a study with a party that does not sign.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import BudgetRefused, PeerIdentity, StudiesDiffer
from mpc_protocols.process.canonical_json import canonical
from runner.contributors import statement

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
    """Declare the study void at this party: its signed word, and the paths of what could not be deleted. May
    be repeated.

    Raises `BudgetRefused` (a run has begun to release; a ledger that does not know what the inbox shows; a
    file that cannot be written), `PeerIdentity` (the key), `StudiesDiffer` (the word about another study is
    there), `DataRefused` (a damaged inbox).
    """
    inbox, own = closing.inbox, closing.collection.receivers[closing.party]
    content = declaration(closing.collection.study)
    _check_ledger(closing)
    if inbox.void_file.exists():
        if statement.read([inbox.void_file], {KIND: FORMAT})[1] != content:
            raise StudiesDiffer(
                f"{inbox.void_file} speaks of another study, or of another version of the program; name the inbox of this study."
            )
        closing.record.declare_void()
        return inbox.void_file, inbox.finish()
    signer = inbox.signer()
    if signer.public.signing != own.signing:
        raise PeerIdentity(
            f"The key in {inbox.folder} is not the one that the study lists for party {closing.party}; name the inbox in which "
            "it was made."
        )
    closing.record.declare_void()
    inbox.write_void(statement.to_bytes(KIND, content, {closing.party: signer.sign(signed(content))}))
    return inbox.void_file, inbox.finish()


def _check_ledger(closing: Closing) -> None:
    """Raise `BudgetRefused` if the inbox has seen a closing or a run that the ledger does not know, which
    then is another one."""
    inbox, record = closing.inbox, closing.record
    if record.begun:
        return  # it refuses by itself
    agreed, fixed = inbox.agreed(), record.fixed
    closed = (agreed is not None and agreed.hash != fixed) or (inbox.added_up and fixed is None)
    if inbox.begun is not None or (closed and not record.void):
        raise BudgetRefused(
            f"The inbox {inbox.folder} shows that the collection was closed or a run has begun at party {closing.party}, and the "
            f"ledger {record.file} does not know it; name by --private the private file whose ledger the run used."
        )
