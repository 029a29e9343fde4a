"""A study that collects bundles: three computing parties, contributors with small tables, all their keys and
files on disk.

world = collecting.write(tmp_path, contributors=12)
world.contribute("c03")                     # its bundle, made by the command's own code
world.deliver(file)                         # at all three inboxes
world.everybody()                           # all contributors, delivered
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import numpy as np

from mpc_protocols.backends.bundles.bundle import Bundle, Header, seal_bundle
from parties.inbox.collection import Collection
from parties.inbox.store import Inbox
from runner.__main__ import main
from runner.contributors.collection import collection_of, inbox_folder
from runner.contributors.contributing import Contribution, make_key, own_key
from runner.party.synthesis import plan_of
from runner.study import Study, load, private_file
from synth.plan import Plan
from tests.runner import small

TABLE = """
[contributors]
keys = "contributors.txt"
receivers = "receivers.json"
expected_rows = 2000
min = 2
close = { bundles = 2 }
"""
PARTIES = ("north", "south", "west")


@dataclass(frozen=True)
class World:
    """trial: the study and the rows of computing parties. names: contributors. rows: theirs."""

    trial: small.Trial
    names: tuple[str, ...]
    rows: dict[str, list[small.Row]]

    @property
    def folder(self) -> Path:
        return self.trial.path.parent

    @cached_property
    def study(self) -> Study:
        return load(self.trial.path)

    def private(self, name: str) -> private_file.Private:
        return private_file.load(self.folder / f"{name}.toml")

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.study)

    @cached_property
    def collection(self) -> Collection:
        return collection_of(self.study, self.plan)

    def contribution(self, name: str) -> Contribution:
        return Contribution(self.study, name, self.private(name), None)

    def contribute(self, name: str, file: Path | None = None) -> Path:
        """The contributor's bundle as a file."""
        place = file or self.folder / f"{name}.bundle"

        def write(bundle: Bundle) -> None:
            place.write_bytes(bundle.to_bytes())

        self.contribution(name).leave(write)
        return place

    def seal(self, name: str, created: datetime | None = None) -> Path:
        """The contributor's true counts, sealed now or then, as a file."""
        own, public = small.Trial(self.trial.path, (), {name: self.rows[name]}, {}), self.collection
        counts = np.array([count for clique in public.layout.cliques for count in own.marginal(clique)])
        key, sign = own_key(self.folder / f"{name}.key", name)
        now, to = (created or datetime.now(UTC)).replace(microsecond=0), public.receivers_of(name)
        header = Header(
            public.study,
            public.layout.hash,
            public.layout.cells,
            name,
            hashlib.sha256(key).digest(),
            secrets.token_bytes(32),
            to,
            now,
            max(now, public.close_at or now) + timedelta(days=10_000),
        )
        file = self.folder / f"{name}.bundle"
        file.write_bytes(seal_bundle(header, counts, [public.receivers[of] for of in to], sign).to_bytes())
        return file

    def inbox(self, party: str) -> Inbox:
        return Inbox(inbox_folder(self.trial.path, party, private_file.Private()), self.collection, party)

    def deliver(self, *files: Path, to: Iterable[str] = PARTIES) -> None:
        for party in to:
            inbox = self.inbox(party)
            for file in files:
                inbox.add(file, datetime.now(UTC))

    def everybody(self, names: Sequence[str] | None = None) -> None:
        """These contributors' bundles, or all, are at all three parties."""
        self.deliver(*[self.seal(name) for name in (self.names if names is None else names)])

    def marginal(self, clique: Sequence[str], names: Iterable[str]) -> list[int]:
        """True counts of the computing parties' rows and those of these contributors."""
        pooled = {**self.trial.rows, **{name: self.rows[name] for name in names}}
        return small.Trial(self.trial.path, self.trial.names, pooled, self.trial.ports).marginal(clique)


def write(
    directory: Path,
    contributors: int = 4,
    *,
    count: int = 60,
    own: int | None = None,
    changes: Sequence[tuple[str, str]] = (),
    table: str = TABLE,
) -> World:
    """contributors: how many are enrolled, c00, c01, ... count: rows of each. own: rows of each computing
    party, None: no table.

    changes: texts of the study to replace. table: its [contributors].
    """
    data = {name: None if own is None else small.rows(100 + at, own) for at, name in enumerate(PARTIES)}
    text = small.STUDY.replace("silence_s = 200\n", 'silence_s = 200\ntls = "insecure-loopback"\n' + table)
    trial = small.write(directory, data=data, text=text, changes=changes)
    names = tuple(f"c{at:02}" for at in range(contributors))
    rows = {name: small.rows(1000 + at, count) for at, name in enumerate(names)}
    lines = ["# contributors of the trial"]
    for name in names:
        small.write_csv(directory / f"{name}.csv", rows[name])
        public = make_key(directory / f"{name}.key")
        lines.append(f"{name} ed25519:{base64.b64encode(public).decode()}")
        (directory / f"{name}.toml").write_text(
            f'data = "{name}.csv"\nkey = "{name}.key"\n[ledger]\nfile = "ledgers/{name}.db"\ndataset = "{name}"\n'
        )
    (directory / "contributors.txt").write_text("\n".join(lines) + "\n")
    for party in PARTIES:
        assert main(["inbox", str(trial.path), "--party", party, "--make-key"]) == 0
    return World(trial, names, rows)
