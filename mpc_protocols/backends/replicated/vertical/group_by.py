"""Sums over the cells of one owner's joint, without a column per cell: C^T w by an oblivious permutation
(`docs/design/vertical.md` 4, with the protocol and its proof).

One computing party O knows, for each row, which of `cells` cells it is in (or none); w, of shape (n, v), is
shared. Wanted: the sums of w over the rows of each cell, shared. A one-hot matrix C would cost n * cells
elements; here about n (v + 1) travel. O knows two components of w and sums those itself. The third is known
to BOTH others: H sends it to Q in a random order, Q brings it into the order of cells by what O sends it, in
blocks of rows of one cell, and sums. M is the number of blocks, L of places.

    O -> Q      L + cells indices         H -> Q      (L + M) v elements         Q -> O      M v elements          2 rounds

The length of a block is chosen from public sizes so that M is small beside L. An owner that does not compute
(contributor) knows no component: each of the three is shuffled in this way, by the two parties that hold it;
seeds stand for the keys, and O deals its part, of shape (cells, v), once at the end.

Who learns what: nothing; what each receives is uniform, whatever the data. Threat model: semi-honest, one of
three corrupted, with any contributors; assumption `prg`. Q refuses an order that names a place twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.matrices import Matrix
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, Reader, derive
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.ordered_sums import OwnerShuffle, helped, index_type, worked
from mpc_protocols.wire import Wire


@dataclass(frozen=True)
class ComponentShuffle:
    """One shuffle of one component of w, which helper (H) and worker (Q) hold."""

    component: int
    helper: int
    worker: int


def component_shuffles(owner: int, computing: int, helper: int) -> list[ComponentShuffle]:
    """The shuffles that an owner's sums take: of the one component it lacks, or of all three if it does not
    compute."""
    if owner < computing:
        return [ComponentShuffle((owner + 2) % 3, helper, 3 - owner - helper)]
    return [ComponentShuffle(component, component, (component + 2) % 3) for component in range(3)]


@dataclass(frozen=True)
class GroupBySum:
    """One sum over cells. helper: H of a computing owner. cells: at a computing O the cell of each row
    (ABSENT: none).

    reader: at the parties' side of a contributor's sum, the stream that this party as H shares with it; None
    for a computing O.
    """

    owner: int
    helper: int
    layout: Layout
    weights: Matrix
    cells: NDArray[np.int64] | None = None
    reader: Reader | None = None

    def __post_init__(self) -> None:
        if self.helper not in (0, 1, 2) or self.owner == self.helper:
            raise ValueError(
                f"O and H are two different parties, and H computes, got {self.owner} and {self.helper}."
            )
        if self.weights.shape != (self.layout.rows, self.layout.columns):
            raise ValueError(f"Weights of shape {self.weights.shape} do not fit {self.layout}.")


def sums_by_cell(trio: Trio, sums: Sequence[GroupBySum], dtype: UInt) -> list[Elements]:
    """This party's part of each of these sums, shape (cells, v) (`ring.reshare` makes a sharing of it). 2
    rounds for all.

    A contributor's own part is not among them: `contributor` adds it. Raises `ProtocolAborted` for places
    that do not exist or come twice.
    """
    tasks = [
        (query, shuffle, trio.operation(), trio.operation())
        for query in sums
        for shuffle in component_shuffles(query.owner, trio.wire.computing, query.helper)
    ]
    own_shuffles: dict[int, OwnerShuffle] = {}
    for number, (query, shuffle, first, second) in enumerate(tasks):
        if trio.me == query.owner:
            own_shuffle = OwnerShuffle(
                query.cells, query.layout, _between(trio, shuffle.helper, first), dtype
            )
            own_shuffle.add_own(query.weights.local_sum(dtype))
            trio.send(shuffle.worker, own_shuffle.places)
            own_shuffles[number] = own_shuffle
        elif trio.me == shuffle.helper:
            with_owner = _between(trio, query.owner, first) if query.reader is None else query.reader
            trio.send(
                shuffle.worker,
                helped(
                    query.layout,
                    _component(trio, query, shuffle, dtype),
                    with_owner,
                    _between(trio, shuffle.worker, second),
                    dtype,
                ),
            )
    trio.turn()
    parts = {id(query): np.zeros((query.layout.cells, query.layout.columns), dtype) for query in sums}
    for query, shuffle, _, second in tasks:
        if trio.me == shuffle.worker:
            layout = query.layout
            places = trio.receive(query.owner, layout.places + layout.cells, index_type(layout)).astype(
                np.int64
            )
            masked = trio.receive(shuffle.helper, (layout.places + layout.blocks, layout.columns), dtype)
            prefixes, part = worked(
                query.owner, layout, places, masked, _between(trio, shuffle.helper, second)
            )
            trio.send(query.owner, prefixes)
            parts[id(query)] += part
    trio.turn()
    for number, own_shuffle in own_shuffles.items():
        query, shuffle, _, _ = tasks[number]
        parts[id(query)] += own_shuffle.finish(
            trio.receive(shuffle.worker, (query.layout.blocks, query.layout.columns), dtype)
        )
    return [parts[id(query)] for query in sums]


class ShuffleStreams:
    """The streams that a contributor shares with each party as H of its orders; `seeds` has those that are
    known here."""

    def __init__(self, wire: Wire, seeds: Mapping[int, bytes]) -> None:
        self._streams = {
            party: KeyStream(derive(seed, CONTRIBUTION, wire.session_id, b"orders"))
            for party, seed in seeds.items()
        }
        self._number = 0

    def readers(self) -> dict[int, Reader]:
        """The streams of the contributor's next order."""
        self._number += 1
        return {party: stream.reader(self._number) for party, stream in self._streams.items()}


def send_shuffle_seeds(wire: Wire) -> ShuffleStreams:
    """At a contributor: choose and send the seeds."""
    seeds = {party: secrets.token_bytes(SEED_BYTES) for party in range(3)}
    for party, seed in seeds.items():
        wire.send(party, seed)
    return ShuffleStreams(wire, seeds)


def receive_shuffle_seeds(wire: Wire, contributor: int) -> ShuffleStreams:
    """At a computing party: its own seed of a contributor. Blocks."""
    return ShuffleStreams(wire, {wire.me: bytes(wire.receive(contributor, SEED_BYTES))})


def _component(trio: Trio, query: GroupBySum, shuffle: ComponentShuffle, dtype: UInt) -> Elements:
    """At H or Q: the component of w that the shuffle shuffles."""
    component = query.weights.own if trio.me == shuffle.component else query.weights.next
    return np.zeros(query.weights.shape, dtype) if component is None else component


def _between(trio: Trio, peer: int, operation: int) -> Reader:
    """The operation's stream that this party shares with `peer`."""
    return trio.own_reader(operation) if peer == trio.left else trio.next_reader(operation)
