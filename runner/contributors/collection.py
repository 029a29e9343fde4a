"""From a study to its collection of bundles: layout, keys, digest, and where a party's inbox lies. The same
at everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.backends.bundles import layout
from mpc_protocols.errors import UsageError
from parties.inbox.collection import Collection
from parties.inbox.store import Inbox
from runner.party.synthesis import counted, facts_of
from runner.study import Study, digest
from runner.study.declared.table import nearest

if TYPE_CHECKING:
    from mpc_protocols.backends.bundles.layout import Layout
    from runner.study.private_file import Private
    from runner.study.sections.contributors import Contributors
    from synth.plan import Plan

INBOXES = "inbox"
"""The folder beside the study that holds a folder for each computing party, unless its private file names
another place."""


def contributors_of(study: Study) -> Contributors:
    """The study's [contributors]. Raises `UsageError` if it has none."""
    if study.contributors is None:
        raise UsageError(
            f"{study.path} has no [contributors] table: its custodians take part in the run itself."
        )
    return study.contributors


def layout_of(study: Study, plan: Plan) -> Layout:
    """The marginals of a bundle. Raises `StudyInvalid`: too many cells to share."""
    return layout.layout_of(facts_of(study, 1, b""), counted(plan))


def collection_of(study: Study, plan: Plan) -> Collection:
    """What is public about the collection. Raises `UsageError` (a study without), `StudyInvalid`."""
    own = contributors_of(study)
    return Collection(
        bundle_digest(study),
        layout_of(study, plan),
        own.keys,
        own.receivers,
        own.minimum,
        own.closes,
        own.earlier,
    )


def bundle_digest(study: Study) -> bytes:
    """What a bundle is bound to: study and software, not the session's CA, which contributors do not meet."""
    return digest(study, "")


def waves_of(study: Study) -> tuple[str, ...]:
    """How the waves of the study's table are known in ledgers, hex: by its own digest first, then by the
    earlier ones'."""
    if study.contributors is None:
        return ()
    return (bundle_digest(study).hex(), *(wave.study for wave in study.contributors.after))


def inbox_folder(study: Path, party: str, private: Private) -> Path:
    """Where a computing party's inbox lies."""
    return private.inbox or study.resolve().parent / INBOXES / party


def inbox_of(study: Study, party: str, private: Private, plan: Plan) -> Inbox:
    """A computing party's inbox. Raises `UsageError` for a party that is none, or a study without
    [contributors]."""
    collection = collection_of(study, plan)
    if party not in collection.receivers:
        names = list(collection.receivers)
        raise UsageError(
            f"--party {party} is not a computing party of {study.path}{nearest(party, names)}; those with an inbox are "
            f"{', '.join(names)}."
        )
    return Inbox(inbox_folder(study.path, party, private), collection, party)
