"""A custodian's counts on their way into the sharing (`docs/design/engine.md` 2.3).

A custodian that computes inputs its own counts. One that only contributes splits them between two of m computing parties, which
must not collude: with index j among the contributors,

    a fresh 16-byte seed           to party  j mod m
    counts - stream(seed) mod 2^32 to party (j + 1) mod m         4 bytes a cell

Each of the two sees uniform bytes. Both add over all contributors to their own counts and input the sums once, so the number of
contributors costs the computing parties no further traffic among themselves.

Threat model: semi-honest computing parties, of which the two do not collude; semi-honest contributors (a liar can spoil its own
contribution, and with false counts the sign bound; `docs/design/mechanisms.md` 5). A contributor learns which marginals are
shared; nothing is opened. Assumption: AES-CTR (`prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, derive
from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.cliques import counts_at_levels
from mpc_protocols.wire import Wire

SEED_BYTES = 16
BLOCK_CELLS = 1 << 22
"""Cells of one message: larger inputs go in blocks of whole cliques."""


def blocks(facts: StudyFacts, cliques: Sequence[Clique]) -> Iterator[slice]:
    """Consecutive cliques that travel together: at most BLOCK_CELLS cells, or a single clique."""
    start, cells = 0, 0
    for position, clique in enumerate(cliques):
        size = facts.cells(clique)
        if position > start and cells + size > BLOCK_CELLS:
            yield slice(start, position)
            start, cells = position, 0
        cells += size
    if cliques:
        yield slice(start, len(cliques))


def local_cells(
    facts: StudyFacts, counts: LocalCounts | None, cliques: Sequence[Clique], levels: Sequence[Level]
) -> list[NDArray[np.uint32]]:
    """This custodian's marginals as ring elements, zeros for a party without data. levels: those that the cliques name.

    Raises `DataRefused` for negative counts, arrays of another size, or more rows than the study's cap.
    """
    coarse = facts.with_levels(levels)
    if counts is None:
        return [np.zeros(coarse.cells(clique), np.uint32) for clique in cliques]
    cells: list[NDArray[np.uint32]] = []
    at_levels = counts_at_levels(counts, facts, levels)
    for clique, array in zip(cliques, at_levels(cliques), strict=True):
        if array.shape != (coarse.cells(clique),) or int(array.min()) < 0:
            raise DataRefused(
                f"The counts of {', '.join(clique)} are not {coarse.cells(clique)} numbers of at least 0."
            )
        if int(array.sum(dtype=np.int64)) > facts.row_cap:
            raise DataRefused(
                f"The data has more rows than the study's bound of {facts.row_cap}; raise max_rows in the study."
            )
        cells.append(array.astype(np.uint32))
    return cells


def send_contribution(
    wire: Wire, facts: StudyFacts, counts: LocalCounts, cliques: Sequence[Clique], levels: Sequence[Level]
) -> None:
    """At a contributor: seed to one computing party, masked counts to the next."""
    first, second = _holders(wire, wire.me)
    cells = local_cells(facts, counts, cliques, levels)
    seed = secrets.token_bytes(SEED_BYTES)
    stream = _stream(wire, seed)
    wire.send(first, seed)
    for number, block in enumerate(blocks(facts.with_levels(levels), cliques)):
        vector = np.concatenate(cells[block])
        vector -= stream.draw(len(vector), np.uint32, number)
        wire.send(second, vector.view(np.uint8).data)


class Received:
    """At a computing party: what the contributors sent for one sharing, block by block."""

    def __init__(self, wire: Wire) -> None:
        """Receives the seeds that are due here. Blocks."""
        self._wire = wire
        self._number = 0
        self._streams = [
            _stream(wire, bytes(wire.receive(peer, SEED_BYTES)))
            for peer in wire.contributors
            if _holders(wire, peer)[0] == wire.me
        ]
        self._senders = [peer for peer in wire.contributors if _holders(wire, peer)[1] == wire.me]

    def add_block(self, vector: NDArray[np.uint32]) -> None:
        """Add the next block of all contributors to this party's own cells, in place. Blocks."""
        for stream in self._streams:
            vector += stream.draw(len(vector), np.uint32, self._number)
        for peer in self._senders:
            vector += np.frombuffer(self._wire.receive(peer, vector.nbytes), np.uint32)
        self._number += 1


def _holders(wire: Wire, contributor: int) -> tuple[int, int]:
    """The computing parties that get a contributor's seed and its masked counts."""
    index = list(wire.contributors).index(contributor)
    return index % wire.computing, (index + 1) % wire.computing


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, wire.session_id))
