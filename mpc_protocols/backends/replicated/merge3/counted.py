"""What `merge3` costs: all parties run it in memory, on blank lists (`engine.blank`).

Only what is opened has to be said, for messages to contributors follow from it: how many rows the common table has, and
that every owner's label is borne by as many rows as its list has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3.contributor import contribute
from mpc_protocols.backends.replicated.merge3.keys import Keys
from mpc_protocols.backends.replicated.merge3.protocol import ComputingParty
from mpc_protocols.backends.replicated.merge3.proved import ProvedComputingParty
from mpc_protocols.backends.replicated.merge3.public import DIGEST_BYTES, STREAM, common_salt
from mpc_protocols.backends.replicated.merge3.tags import Rows, TagParty, third_party
from mpc_protocols.backends.replicated.proved.counted import CountedGates, WiredTrio
from mpc_protocols.backends.replicated.sharing.boolean import ALL
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.tally import Tally
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.engine_dry_run import PATIENCE_S
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.wire import Wire


def merge3_cost(
    context: Context, spec: AlignmentSpec, sizes: Sequence[int], union: int, columns: int = 1
) -> tuple[Tally, int]:
    """Everything that the parties send, and the ANDs that they prove. sizes: of the owners' lists, dummies
    included. columns: of the key."""
    allowed = replace(spec, min_size=0, max_size=max(spec.max_size, *sizes))
    third = third_party(spec, context)
    network = BlankNetwork(max(3, *(owner.number + 1 for owner in context.owners)), patience_s=PATIENCE_S)

    def body(wire: Wire) -> None:
        stream, side = wire.fork(STREAM), context.side(wire.me)
        own = None if side is None else BlankKeys(blank(sizes[side], np.uint64), blank(sizes[side], np.int64))
        kinds = ["untyped"] * (columns if own else 0)
        if spec.malicious:
            common_salt(stream, context, bytes(DIGEST_BYTES))
        if own and wire.me >= wire.computing:
            contribute(stream, own, kinds, allowed, context)
        elif third is None:
            merging = (ProvedBlankParty if spec.malicious else BlankParty)(
                stream, own, kinds, allowed, context
            )
            merging.rows = union
            merging.run()
            products.append(merging.products)
        else:
            tagging = BlankTagParty(stream, None, kinds, allowed, context, third)
            tagging.own = own
            tagging.run()

    products: list[int] = []
    network.run([body] * network.parties)
    return network.tally(), max(products, default=0)


class BlankKeys(Keys):
    """Of identifiers of which nothing but their number is known."""

    @property
    def distinct(self) -> int:
        return 0

    def recognised(self, received: Words, union: Words, owners: int) -> NDArray[np.int64]:
        return self.order


class BlankParty(ComputingParty):
    """One of the three."""

    rows: int
    """Of the common table."""

    @property
    def products(self) -> int:
        """That were proved."""
        return 0

    def union(self, opened: Words) -> Words:
        return blank(self.rows, np.uint64)

    def places(self, labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [blank(size, np.int64) for size in self.sizes]


class ProvedBlankParty(BlankParty, ProvedComputingParty):
    """The same where one may deviate."""

    gates: BlankGates

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.gates = BlankGates(WiredTrio(self.trio))

    @property
    def products(self) -> int:
        return self.gates.products


class BlankGates(CountedGates):
    """All that is opened is ones: every list is in order."""

    def opened(
        self, own: NDArray[Any], following: NDArray[Any], join: np.ufunc = np.bitwise_xor
    ) -> NDArray[Any]:
        return np.full(super().opened(own, following, join).shape, ALL)


class BlankTagParty(TagParty):
    """The same where a third party compares tags."""

    def numbered(self, tags: Words) -> tuple[Rows, int]:
        return blank(len(tags), np.uint32), len(tags)

    def _rows(self, own: Keys, found: NDArray[np.int64], union: int) -> NDArray[np.int64]:
        return own.order
