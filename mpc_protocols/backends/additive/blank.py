"""Two parties and a dealer as a dry run has them: what CrypTen's protocols open, without CrypTen, and how
long things take."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.dealing.dealer import DealerOperations
from mpc_protocols.backends.additive.dealing.masks import Masks
from mpc_protocols.backends.additive.dealing.operations import Operations, planes_at_once
from mpc_protocols.backends.additive.engine import AdditiveEngine
from mpc_protocols.backends.additive.link import DEALER, Link
from mpc_protocols.backends.additive.oracle import contribute
from mpc_protocols.backends.additive.vertical.plan import make_plan
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.in_memory.engine_dry_run import BlankParts, Inputs, Seconds

START_S, SIGN_S, GUMBEL_S, NOISE_S = 2.0, 3e-7, 2e-4, 4e-6
"""CPU seconds of a party for loading CrypTen, and per compared cell, candidate's noise and noisy cell."""
COLUMN_S, PRODUCT_S = 4e-9, 1e-10
"""The same per masked element of two owners' columns, and per row and cell of the products."""


class BlankOperations(CrypTenOperations):
    """Parties 0 and 1: of CrypTen's protocols what they open, and what the dealer sends for it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._masks, self._common = (Masks(link.wire, other, link.stream) for other in (DEALER, 1 - link.me))

    def and_words(self, x: Words, y: Words) -> Words:
        return self._opened(x.size + y.size, np.uint64, np.broadcast_shapes(x.shape, y.shape), np.uint64)

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        for planes in planes_at_once(len(bits), cells):
            self._opened(-(-planes * cells // 8), np.uint8, (planes * cells,), ring)
        return blank((len(bits), cells), ring)

    def products(self, x: Elements, y: Elements) -> Elements:
        return self._opened(x.size + y.size, x.dtype.type, x.shape, x.dtype.type)

    def _opened(self, elements: int, of: UInt, shape: tuple[int, ...], ring: UInt) -> Elements:
        """So many masked elements are opened; the dealer completes the correlation."""
        result = blank(shape, ring)
        if self.link.me == 0:
            self.link.due(result, ring)
        self.link.exchange(blank(elements, of))
        return result


def _operations(link: Link) -> Operations:
    return DealerOperations(link) if link.deals else BlankOperations(link)


def blank_parts() -> BlankParts:
    """For a dry run."""
    roles: Roles[Bits, Any] = Roles(partial(AdditiveEngine, operations=_operations))
    return BlankParts(roles, contribute, Seconds(START_S, SIGN_S, GUMBEL_S, NOISE_S), table_seconds)


def table_seconds(inputs: Inputs) -> float:
    """Of tables over two owners' columns."""
    if inputs.split is None:
        return 0.0
    plan = make_plan(inputs.split, inputs.facts.sizes, inputs.cliques)
    masked = plan.rows * sum(map(plan.breadth, (0, 1)))
    return masked * COLUMN_S + plan.rows * plan.dealt_cells * PRODUCT_S
