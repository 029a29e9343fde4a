"""The courier's end: what contributors hand over goes into the folders that the computing parties watch.

A courier holds no key and opens nothing. It checks what anybody can (`Collection.check_new`: study,
contributor, signature, dates, sizes), so that nobody but the study's contributors fills the folders; the
inboxes check everything again. Each party gets only its own part of a bundle. A file appears in one step,
under the contributor's name, and is the watcher's from then on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from mpc_protocols.backends.bundles.bundle import file_bytes, parse
from mpc_protocols.errors import BudgetRefused, ProtocolAborted, UsageError
from parties.inbox.collection import Collection
from parties.inbox.store import SUFFIX
from runner.failures import reason


@dataclass(frozen=True)
class Deliveries:
    """folders: the watched folder of each computing party. contributors: whose bundle has been put into all
    of them."""

    collection: Collection
    folders: Mapping[str, Path]
    contributors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if list(self.folders) != list(self.collection.receivers):
            raise ValueError("A folder for each computing party was expected.")
        for party, folder in self.folders.items():
            if not folder.is_dir():
                raise UsageError(
                    f"The folder {folder} that party {party} watches is not there; make it first."
                )

    def take(self, content: object, now: datetime) -> str:
        """Pass a bundle on; whose it is. content: what came, which may be anything.

        Raises a `CosynthError` whose sentence begins with "It" for what is passed on to nobody, or was
        already (`BudgetRefused`); `UsageError` if a folder cannot be written, after which the same may be
        handed over again.
        """
        if not isinstance(content, bytes) or len(content) > file_bytes(self.collection.layout.cells):
            raise ProtocolAborted("It is not a bundle of this study.")
        bundle = parse(content)
        name = self.collection.check_new(bundle, now).contributor
        if set(bundle.parts) != {"a", "b"}:
            raise ProtocolAborted("It lacks a part; its contributor must hand over the whole bundle.")
        if name in self.contributors:
            raise BudgetRefused(f"It is by {name}, whose bundle has been passed on.")
        for party, folder in self.folders.items():
            part = folder / f".{name}.part"
            try:
                part.write_bytes(bundle.for_receiver(party).to_bytes())
                os.replace(part, folder / f"{name}{SUFFIX}")
            except OSError as error:
                raise UsageError(f"The folder {folder} cannot be written ({reason(error)}).") from None
        self.contributors.add(name)
        return name
