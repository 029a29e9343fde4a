"""A fleet of contributors with settings for a courier, and three computing parties with watched folders;
tables are random codes.

fleet = Fleet(tmp_path, nodes=12)
bundle = Node.read(fleet.settings(3)).bundle(fleet.message)
fleet.deliveries().take(bundle, now)
agreed = fleet.take_in()                    # by all three inboxes, from their watched folders
fleet.opened(agreed) == fleet.clear(agreed.contributors)
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parties.inbox.arrivals import Arrivals
from parties.inbox.store import AgreedList, Inbox
from runner.__main__ import main
from runner.contributors.collection import collection_of, inbox_folder
from runner.contributors.contributing import make_key
from runner.contributors.courier.deliveries import Deliveries
from runner.contributors.courier.study_files import StudyFiles
from runner.launch.ports import free_ports
from runner.party.synthesis import plan_of
from runner.study import load, private_file

PARTIES = ("north", "south", "west")
SIZES = (32, 24, 16, 12, 10, 8, 6, 4)
ROWS = 40
STUDY = """\
[study]
name = "fleet"
algorithm = "aim"
backend = "replicated"
partition = "horizontal"
[privacy]
epsilon = 1.0
delta = 1e-6
adjacency = "add-remove"
max_rows = 1000
[workload]
degree = 3
[aim]
rounds = 10
prune = false
[contributors]
keys = "contributors.txt"
receivers = "receivers.json"
expected_rows = 45000
min = 2
"""


class Fleet:
    """The study, its contributors' tables, keys and settings, and the parties' inboxes, in one folder."""

    def __init__(self, folder: Path, nodes: int, sizes: Sequence[int] = SIZES) -> None:
        self.folder, self.sizes = folder, sizes
        self.study = folder / "study" / "study.toml"
        self.study.parent.mkdir()
        self.tables = [
            np.random.default_rng(number).integers(0, sizes, (ROWS, len(sizes))) for number in range(nodes)
        ]
        closes = datetime.now(UTC) + timedelta(days=1)
        columns = "".join(f"c{place} = {size}\n" for place, size in enumerate(sizes))
        parties = "".join(
            f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n'
            for name, port in zip(PARTIES, free_ports(3), strict=True)
        )
        close = f"close = {{ at = {closes:%Y-%m-%dT%H:%M:%SZ} }}\n"
        self.study.write_text(f"{STUDY}{close}[domain.columns]\n{columns}{parties}")
        self.keys = [self._write_table(number) for number in range(nodes)]
        lines = [f"n{number:04} ed25519:{key}\n" for number, key in enumerate(self.keys)]
        (self.study.parent / "contributors.txt").write_text("".join(lines))
        for party in PARTIES:
            assert main(["inbox", str(self.study), "--party", party, "--make-key"]) == 0
            self.arrivals(party).mkdir(parents=True)
        study = load(self.study)
        self.collection = collection_of(study, plan_of(study))
        files = StudyFiles.of(study)
        self.message = files.to_bytes()
        for number in range(nodes):
            (folder / f"{number}.toml").write_text(
                f'party = "n{number:04}"\nprivate = "n{number:04}.toml"\nstudy = "{files.fingerprint}"\nkeep = "kept/{number}"\n'
            )

    def _write_table(self, number: int) -> str:
        """A contributor's table, private file and key; its public half."""
        name = f"n{number:04}"
        heading = ",".join(f"c{place}" for place in range(len(self.sizes)))
        np.savetxt(self.folder / f"{name}.csv", self.tables[number], "%d", ",", header=heading, comments="")
        (self.folder / f"{name}.toml").write_text(
            f'data = "{name}.csv"\nkey = "{name}.key"\n[ledger]\nfile = "ledgers/{name}.db"\n'
        )
        return base64.b64encode(make_key(self.folder / f"{name}.key")).decode()

    def settings(self, number: int) -> Path:
        """A node's settings file."""
        return self.folder / f"{number}.toml"

    def deliveries(self) -> Deliveries:
        """The courier's end."""
        return Deliveries(self.collection, {party: self.arrivals(party) for party in PARTIES})

    def arrivals(self, party: str) -> Path:
        """The folder that a party watches."""
        return self.folder / "arrivals" / party

    def take_in(self) -> AgreedList:
        """At all three inboxes; who is in all of them."""
        held = []
        for party in PARTIES:
            watched = Arrivals(self._inbox(party), self.arrivals(party), lambda line: None)
            for _ in range(2):
                watched.sweep(datetime.now(UTC))
            held.append(self._inbox(party).accepted(datetime.now(UTC)))
        return AgreedList({name: who for name, who in held[0].items() if all(name in of for of in held)})

    def opened(self, agreed: AgreedList) -> NDArray[np.uint32]:
        """The sum of all three parties' parts."""
        total = np.zeros(self.collection.layout.cells, np.uint32)
        for party in PARTIES:
            total += self._inbox(party).sum(agreed)
        return total

    def clear(self, names: tuple[str, ...]) -> NDArray[np.uint32]:
        """These contributors' counts, by an independent histogram."""
        rows = np.concatenate([self.tables[int(name[1:])] for name in names])
        parts = []
        for clique in self.collection.layout.cliques:
            places = [int(column[1:]) for column in clique]
            shape = [self.sizes[place] for place in places]
            cells = np.ravel_multi_index(tuple(rows[:, places].T), shape)
            parts.append(np.bincount(cells, minlength=int(np.prod(shape))))
        return np.concatenate(parts).astype(np.uint32)

    def _inbox(self, party: str) -> Inbox:
        return Inbox(inbox_folder(self.study, party, private_file.Private()), self.collection, party)
