"""Helpers of the vertical tests: random owners, and the shares of their marginals put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.vertical.contributor import ProvedVerticalContributor
from mpc_protocols.backends.replicated.proved.vertical.source import ProvedVerticalMarginals
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.contributor import VerticalContributor
from mpc_protocols.backends.replicated.vertical.source import VerticalMarginals
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Traffic, Wire
from tests.mpc_protocols.backends.replicated.trio_run import total

Population = Literal["intersection", "union"]


def facts(sizes: Mapping[str, int], row_cap: int = 1 << 22) -> StudyFacts:
    return StudyFacts(sizes, "replace", 1, row_cap, b"v" * 32)


def partition(
    sizes: Mapping[str, int], columns: Mapping[str, int], population: Population, rows: int
) -> Partition:
    """Owners in the order in which they first own a column; the last code of each column stands for a missing
    value."""
    return Partition(
        tuple(dict.fromkeys(columns.values())),
        columns,
        population,
        {name: sizes[name] - 1 for name in sizes} if population == "union" else {},
        rows,
    )


def random_owners(
    sizes: Mapping[str, int], of: Partition, held: Sequence[float | Sequence[int]], rng: np.random.Generator
) -> dict[int, OwnRows]:
    """Each owner's rows: a random share of the common table's, or these rows, in random order; uniform codes."""
    tables = {}
    for owner, share in zip(of.owners, held, strict=True):
        rows = (
            np.flatnonzero(rng.random(of.rows) < share)
            if isinstance(share, float)
            else np.array(share, np.int64)
        )
        rows = rng.permutation(rows).astype(np.int64)
        dtypes = (np.uint8, np.uint16, np.uint32)
        tables[owner] = OwnRows(
            rows,
            {
                name: rng.integers(0, sizes[name], len(rows)).astype(  # type: ignore[misc]
                    next(d for d in dtypes if sizes[name] <= np.iinfo(d).max + 1)
                )
                for name in of.of(owner)
            },
        )
    return tables


def shared_marginals(
    sizes: Mapping[str, int],
    of: Partition,
    tables: Mapping[int, OwnRows],
    batches: Sequence[Sequence[Clique]],
    tap: Callable[[Frame], None] | None = None,
    proved: bool = False,
) -> tuple[list[NDArray[Any]], list[int], MemoryNetwork]:
    """Share the batches one after the other: every marginal in order, the number of rows after each batch,
    the network.

    proved: whether the parties prove their products.
    """
    network = MemoryNetwork(max(3, max(of.owners) + 1), 3, tap=tap)
    results = _run(network, sizes, of, tables, batches, proved)
    opened = [total(list(shares)) for shares in zip(*results, strict=True)]
    marginals, rows = [], []
    for batch in batches:
        marginals += opened[: len(batch)]
        rows.append(int(opened[len(batch)][0]))
        opened = opened[len(batch) + 1 :]
    return marginals, rows, network


def traffic_without_content(
    sizes: Mapping[str, int], of: Partition, batches: Sequence[Sequence[Clique]], parties: int | None = None
) -> list[Traffic]:
    """What all parties send for the batches, derived: from no row of anybody."""
    network = BlankNetwork(parties or max(3, max(of.owners) + 1), 3)
    nothing = {
        owner: OwnRows(np.empty(0, np.int64), {name: np.empty(0, np.uint8) for name in of.of(owner)})
        for owner in of.owners
    }
    _run(network, sizes, of, nothing, batches, False)
    return [network.traffic(party) for party in range(network.parties)]


def _run(
    network: MemoryNetwork,
    sizes: Mapping[str, int],
    of: Partition,
    tables: Mapping[int, OwnRows],
    batches: Sequence[Sequence[Clique]],
    proved: bool,
) -> list[list[RingShare]]:
    """Of each computing party, its shares of every marginal and of the number of rows after each batch."""

    def party(wire: Wire) -> list[RingShare]:
        data = VerticalData(of, tables.get(wire.me))
        if wire.me >= 3:
            contributor = (ProvedVerticalContributor if proved else VerticalContributor)(
                wire, facts(sizes), data
            )
            for batch in batches:
                contributor.send(batch, ())
            return []
        trio = Trio(wire)
        source = (
            ProvedVerticalMarginals(ProvedGates(trio), facts(sizes), data)
            if proved
            else VerticalMarginals(trio, facts(sizes), data)
        )
        shares = []
        for number, batch in enumerate(batches):
            source.share(batch, (), bytes([number]))
            shares += [source.shared(clique) for clique in batch]
            rows = source.rows()
            assert rows is not None
            shares.append(rows)
        return shares

    return network.run([party] * network.parties)[:3]
