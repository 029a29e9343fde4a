"""Helpers of the tests of owners' columns on Shamir shares: the holders' parts of marginals put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.vertical.source import VerticalContributor, VerticalMarginals
from mpc_protocols.functionality import Clique
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.vertical.owners import facts


def held_marginals(
    sizes: Mapping[str, int],
    of: Partition,
    tables: Mapping[int, OwnRows],
    batches: Sequence[Sequence[Clique]],
    computing: int,
    tap: Callable[[Frame], None] | None = None,
    blank: bool = False,
) -> tuple[list[NDArray[Any]], MemoryNetwork]:
    """Share the batches one after the other: every marginal in order, and the network. blank: over keys
    without content, which gives no marginals."""
    parties = max(computing, max(of.owners) + 1)
    network = (BlankNetwork if blank else MemoryNetwork)(parties, computing, tap=tap)

    def party(wire: Wire) -> list[NDArray[Any]]:
        data = VerticalData(of, tables.get(wire.me))
        if wire.me >= computing:
            contributor = VerticalContributor(wire, facts(sizes), data)
            for batch in batches:
                contributor.send(batch, ())
            return []
        source = VerticalMarginals(ShamirGates(Mesh(wire)), facts(sizes), data)
        shares: list[NDArray[Any]] = []
        for number, batch in enumerate(batches):
            source.share(batch, (), bytes([number]))
            shares += [source.shared(clique) for clique in batch]
        return shares

    results = network.run([party] * parties)[:computing]
    if blank:
        return [], network
    return [np.sum(shares, 0, np.uint32).reshape(-1) for shares in zip(*results, strict=True)], network
