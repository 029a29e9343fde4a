"""A custodian's counts on their way into the sharing (`docs/design/engine.md` 2.3).

A custodian splits its counts among computing parties that must not all collude:

    a fresh 16-byte seed               to each of them but one
    counts - all streams, mod 2^32     to that one                      4 bytes a cell

Whoever misses a part sees uniform bytes. They add over all custodians to their own counts, so that the number
of custodians costs the computing parties no traffic among themselves. Who gets which part: `held_marginals`;
of three parties of whom two are enough (`replicated`), the contributor with index j splits between parties j
and j + 1, modulo 3: `send_contribution`, `contributions`.

Threat model: the computing parties are semi-honest, and those that get parts do not all collude; semi-honest
contributors (a liar can spoil its own contribution, and with false counts the sign bound;
`docs/design/mechanisms.md` 5). A contributor learns which marginals are shared; nothing is opened.
Assumption: AES-CTR (`prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, derive
from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.cliques import blocks, counts_at_levels
from mpc_protocols.wire import Wire

SEED_BYTES = 16


def block_cells(facts: StudyFacts, cliques: Sequence[Clique]) -> list[int]:
    """Cells of each message of counts."""
    return [sum(map(facts.cells, cliques[block])) for block in blocks(facts, cliques)]


def ranges(facts: StudyFacts, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, slice]]:
    """Where the cells of each clique stand when those of all follow each other."""
    ends = accumulate(map(facts.cells, cliques), initial=0)
    return ((clique, slice(*place)) for clique, place in zip(cliques, pairwise(ends), strict=True))


def local_cells(
    facts: StudyFacts, counts: LocalCounts | None, cliques: Sequence[Clique], levels: Sequence[Level]
) -> list[NDArray[np.uint32]]:
    """This custodian's marginals as ring elements, zeros for a party without data. levels: those that the
    cliques name.

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


def send_masked(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | None,
    cliques: Sequence[Clique],
    levels: Sequence[Level],
    seeds_to: Sequence[int],
    masked_to: int,
) -> None:
    """At a custodian: a seed to each of some parties, masked counts to one. Raises `DataRefused` before
    anything is sent."""
    cells = local_cells(facts, counts, cliques, levels)
    streams = []
    for peer in seeds_to:
        seed = secrets.token_bytes(SEED_BYTES)
        wire.send(peer, seed)
        streams.append(_stream(wire, seed))
    for number, block in enumerate(blocks(facts.with_levels(levels), cliques)):
        vector = np.concatenate(cells[block])
        for stream in streams:
            vector -= stream.draw(len(vector), np.uint32, number)
        send_array(wire, masked_to, vector)


def receive_masked(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | None,
    cliques: Sequence[Clique],
    levels: Sequence[Level],
    seeds_from: Sequence[int],
    masked_from: Sequence[int],
    apart: Sequence[int] = (),
) -> Iterator[tuple[Sequence[Clique], Elements]]:
    """At a computing party: cliques that travel together, and their cells, its own plus what these custodians
    sent it. Blocks.

    apart: custodians whose parts are not added: then cells come as (1 + apart, cells), theirs in their order
    after all others' together, zeros where this party gets no part. Raises `DataRefused` before anything is
    received.
    """
    cells = local_cells(facts, counts, cliques, levels)
    streams = {peer: _stream(wire, bytes(wire.receive(peer, SEED_BYTES))) for peer in seeds_from}
    row = {peer: place for place, peer in enumerate(apart, start=1)}
    for number, block in enumerate(blocks(facts.with_levels(levels), cliques)):
        vector = np.concatenate(cells[block])
        rows = np.zeros_like(vector, shape=(1 + len(apart), len(vector)))
        rows[0] = vector
        for peer, stream in streams.items():
            rows[row.get(peer, 0)] += stream.draw(len(vector), np.uint32, number)
        for peer in masked_from:
            rows[row.get(peer, 0)] += receive_array(wire, peer, vector.shape, np.uint32)
        yield cliques[block], rows if apart else rows[0]


def send_contribution(
    wire: Wire, facts: StudyFacts, counts: LocalCounts, cliques: Sequence[Clique], levels: Sequence[Level]
) -> None:
    """At a contributor: seed to one computing party, masked counts to the next. Errors as of `send_masked`."""
    seed_to, masked_to = _pair_of(wire, wire.me)
    send_masked(wire, facts, counts, cliques, levels, [seed_to], masked_to)


def contributions(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | None,
    cliques: Sequence[Clique],
    levels: Sequence[Level],
    apart: Sequence[int] = (),
) -> Iterator[tuple[Sequence[Clique], Elements]]:
    """At a computing party: its own counts plus what contributors sent it with `send_contribution`; see
    `receive_masked`."""
    pairs = {peer: _pair_of(wire, peer) for peer in wire.contributors}
    seeds_from, masked_from = ([peer for peer in pairs if pairs[peer][part] == wire.me] for part in (0, 1))
    return receive_masked(wire, facts, counts, cliques, levels, seeds_from, masked_from, apart)


def checked(wire: Wire, facts: StudyFacts) -> tuple[int, ...]:
    """The contributors whose input is checked (`inputs.check`)."""
    return () if facts.inputs is None else tuple(wire.contributors)


def _pair_of(wire: Wire, contributor: int) -> tuple[int, int]:
    """The computing parties that get a contributor's seed and its masked counts."""
    index = list(wire.contributors).index(contributor)
    return index % wire.computing, (index + 1) % wire.computing


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, wire.session_id))
