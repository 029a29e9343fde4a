"""Which computing party deals for which cells of a marginal (`replicated.dealing`): public, alike at every party, for the whole
run.

Every third cell of a marginal belongs to the same dealer, so that the zeros of the model's answers, which cluster, burden all
alike. A marginal of few cells is one dealer's as a whole, in turn by its handle: cutting it up would only add messages.
"""

from __future__ import annotations

from mpc_protocols.functionality import Handle

THIRDS = 3
SPLIT = 1024
"""Cells from which on a marginal is cut up: its thirds fill at least five words of 64 cells."""


def pieces(handle: Handle, cells: int) -> list[tuple[int, slice]]:
    """The dealers of a marginal, each with its cells; together they are all cells, once."""
    if cells < SPLIT:
        return [(handle % THIRDS, slice(None))]
    return [(third, slice(third, None, THIRDS)) for third in range(THIRDS)]
