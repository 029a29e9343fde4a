"""The two-party engine as a dry run has it: transfers of which only the messages are there, and how long
things take.

What a party sends for transfers is said here once more, since its masks are blank (`engine.blank`); all else
is derived.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mpc_protocols.backends.pair.engine import PairEngine
from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.marginals import Counted, counted
from mpc_protocols.backends.pair.oracle import contribute
from mpc_protocols.backends.pair.transfers.bit_matrix import LANES
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks
from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS
from mpc_protocols.backends.pair.transfers.ot_extension import (
    Choosing,
    Offering,
    base_count,
    blocks_for,
)
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.vertical.two_owners import plan_tables, shape_of
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.in_memory.engine_dry_run import BlankParts, Inputs, Seconds

START_S, SIGN_S, GUMBEL_S, NOISE_S = 0.05, 3e-6, 1.2e-3, 40e-6
"""CPU seconds of a party for the base transfers, and per compared cell, candidate's noise and noisy cell."""
RECORD_S, BLOCK_S = 2e-6, 1e-8
"""The same per record of a table over two owners' columns, and per 16 bytes of its leaves' expansions."""


class _BlankChoosing(Choosing):
    def __init__(self, link: Link) -> None:
        self._link = link

    def _piece(self, size: int, given: Words | None) -> tuple[Words, Blocks]:
        blocks = blocks_for(LEVELS) - (given is None)
        self._link.send(self._link.peer, blank((blocks, size), np.uint64))
        return blank(size, np.uint64), blank((LANES, size, 2), np.uint64)

    def fork(self, link: Link) -> _BlankChoosing:
        return _BlankChoosing(link)


class _BlankOffering(Offering):
    def __init__(self, link: Link) -> None:
        self._link = link

    def _piece(self, size: int, are_given: bool) -> tuple[Blocks, Blocks]:
        blocks = blocks_for(LEVELS) - (not are_given)
        self._link.receive(self._link.peer, (blocks, size), np.uint64)
        return blank((LANES, size, 2), np.uint64), blank((LANES, size, 2), np.uint64)

    def fork(self, link: Link) -> _BlankOffering:
        return _BlankOffering(link)


def blank_transfers(link: Link) -> Transfers:
    """As `Transfers.start`: points, blinded points, sums of the trees."""
    for elements in (1, base_count(), base_count()):
        link.exchange(blank((elements, 32), np.uint8))
    return Transfers(link, _BlankChoosing(link), _BlankOffering(link))


def blank_roles(counted: Counted = counted) -> Roles[Bits, Any]:
    """As `oracle.ROLES`. counted: as of `PairEngine`."""
    return Roles(partial(PairEngine, counted=counted, start=blank_transfers))


def blank_parts() -> BlankParts:
    """For a dry run."""
    seconds = Seconds(START_S, SIGN_S, GUMBEL_S, NOISE_S)
    return BlankParts(
        blank_roles(), contribute, seconds, table_seconds, repeats=False, beside_bytes=kept_bytes
    )


def kept_bytes(engine: PairEngine) -> int:
    """What is kept of cells that selections compare, at most."""
    return engine.gates.kept.most_bytes


def table_seconds(inputs: Inputs) -> float:
    """Of tables over two owners' columns."""
    if inputs.split is None:
        return 0.0
    sizes, total = inputs.facts.sizes, 0.0
    for plan in plan_tables(inputs.split, sizes, inputs.cliques):
        shape = shape_of(inputs.split, sizes, plan)
        expanded = shape.leaves * -(-shape.row_bytes // 16)
        total += shape.records * (RECORD_S + BLOCK_S * expanded)
    return total
