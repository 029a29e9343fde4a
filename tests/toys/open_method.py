"""A toy alignment method: two owners show each other all identifiers. IT PROTECTS NOTHING; it shows what a
method has to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import DataRefused
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.psu.two_owners.exchange import COUNT_BYTES, Exchange
from mpc_protocols.psu.two_owners.two_owner_method import TwoOwners

if TYPE_CHECKING:
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.wire import Wire

WIDTH = 96
"""Of an entry that travels: a byte that says how long the identifier is, the identifier, zeros. All lists
look alike."""


class Open(TwoOwners):
    """Sorted identifiers in the clear."""

    name = "open"
    union_only = True
    hides = "values beside the identifiers"
    reveals = "each owner learns every identifier of the other"
    way = "in the clear between the two owners (open)"
    matched = "{together}, in the clear."
    trust = "The owners showed each other all identifiers."
    owners = "2, at least one computing"
    adversary = "the other owner"
    speed = "no time at all"

    @property
    def claim(self) -> str:
        return self.reveals

    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        if any(len(entry) >= WIDTH for entry in entries):
            raise DataRefused(f"An identifier of this party has {WIDTH} bytes or more; shorten it.")
        exchange = Exchange(wire, context, spec)
        count, _ = exchange.announce(len(entries))
        shown = [bytes([len(entry)]) + entry.ljust(WIDTH - 1, b"\0") for entry in entries]
        own = np.frombuffer(b"".join(shown), np.uint8).reshape(-1, WIDTH)
        theirs = exchange.lists(own, count, WIDTH)
        exchange.distinct(theirs, "a list")
        table = sorted({*shown, *(entry.tobytes() for entry in theirs)})
        result = digest(b"open", exchange.sid, *table)
        exchange.agree(result, "common table")
        row = {entry: number for number, entry in enumerate(table)}
        return Alignment(len(table), np.array([row[entry] for entry in shown], np.int64), result)

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        total = Cost()
        total.swap(COUNT_BYTES)
        total.stream((first, second), WIDTH)
        total.agree()
        return total


METHOD = Open()
