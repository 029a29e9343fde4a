"""What a selection is made of: sum |x - c| of every candidate, x secret, c public (`replicated.scores.l1_distance`).

Measured as in any selection of a run but the first that compares a cell: the shared bits of x, (k-1)/2 bits a cell and party, are
made in the preparation, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.public.answers import MAX_GROUP
from mpc_protocols.replicated.scores.dealer import DEALERS
from mpc_protocols.replicated.scores.l1_distance import DealerCells, add_l1_sums, addend_of
from mpc_protocols.replicated.scores.masked_sign import share_bits
from mpc_protocols.replicated.sharing.ring import RingShare, open_ring, reshare, sum_segments
from mpc_protocols.replicated.sharing.trio import Trio
from mpc_protocols.wire import Wire
from runner.bench.inputs import expect, ring_of, shared, trio_of, vector
from runner.bench.parameters import BITS, CANDIDATES, CELLS, Params
from runner.bench.registry import Kernel, Task


class Scores(Kernel):
    """L1 distances of all candidates; differences of `bits` bits, the sign included; sums modulo 2^32 or 2^64."""

    name, purpose, counts = "scores", "sum |x - c| of all candidates of a selection, x secret", "cells"
    parameters = (CELLS, BITS, CANDIDATES)

    def problem(self, params: Params) -> str | None:
        fits = int(params["candidates"]) <= int(params["cells"])
        return (
            None
            if fits
            else f"{params['candidates']} candidates need at least as many cells, got {params['cells']}"
        )

    def prepare(self, wire: Wire, params: Params) -> Task:
        trio, bits = trio_of(wire), int(params["bits"])
        x, c, lengths = _input(params)
        whole, edges = shared(trio, x), np.append(0, np.cumsum(lengths))
        groups = [
            _by_dealer(trio, whole, c, edges, slice(start, start + MAX_GROUP), bits)
            for start in range(0, len(x), MAX_GROUP)
        ]

        def run() -> RingShare:
            parts = np.zeros(len(lengths), x.dtype)
            for cells in groups:
                add_l1_sums(trio, cells, bits, None, parts)
            return reshare(trio, parts)

        def check(sums: Any) -> None:
            expect(self.name, open_ring(trio, sums), _plain(x, c, lengths))

        return Task(run, check)

    def floor(self, params: Params) -> Task:
        x, c, lengths = _input(params)
        return Task(lambda: _plain(x, c, lengths))

    def peer(self, params: Params) -> Params:
        return {"cells": 1000, "bits": min(int(params["bits"]), 32), "candidates": 1}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        secure = mpc.SecInt(32)
        x, c, _ = _input(params)
        secret = mpc.input(secure.array(x.astype(np.int64).astype(object)), senders=0)
        public = c.astype(np.int64).astype(object)
        mpc.run(mpc.gather(secret))

        def run() -> Any:
            total = mpc.np_sum(mpc.np_absolute(secret - public))
            mpc.run(mpc.gather(total))
            return total

        def check(total: Any) -> None:
            wanted = np.abs(x.astype(np.int64) - c.astype(np.int64)).sum()
            expect("scores (MPyC)", np.asarray([mpc.run(mpc.output(total))], np.int64), np.array([wanted]))

        return Task(run, check)


def _input(params: Params) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """x and c from 0 to 2^(bits-1) - 1, so that their differences have `bits` bits; cells of each candidate."""
    cells, bits, candidates = int(params["cells"]), int(params["bits"]), int(params["candidates"])
    ring = ring_of(bits)
    lengths = np.diff(np.arange(candidates + 1) * cells // candidates)
    return np.abs(vector(cells, bits, 1)).astype(ring), np.abs(vector(cells, bits, 2)).astype(ring), lengths


def _by_dealer(
    trio: Trio, x: RingShare, c: NDArray[Any], edges: NDArray[np.int64], group: slice, bits: int
) -> list[DealerCells]:
    """The cells of a group by their dealers, with their answers, the bits of x shared; edges: bounds of the candidates."""
    x, c, where = x[group], c[group], np.arange(group.start, min(group.stop, len(c)))
    known = [addend_of(trio, x[dealer::DEALERS], dealer) for dealer in range(DEALERS)]
    counts = [np.diff(np.searchsorted(where[dealer::DEALERS], edges)) for dealer in range(DEALERS)]
    once = share_bits(trio, known, bits)
    public = [0 if dealer == trio.me else c[dealer::DEALERS] for dealer in range(DEALERS)]
    return [DealerCells(own - of, *rest) for own, of, *rest in zip(known, public, once, counts, strict=True)]


def _plain(x: NDArray[Any], c: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[Any]:
    return sum_segments(np.where(x > c, x - c, c - x), lengths)


BENCH = Scores()
