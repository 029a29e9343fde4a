"""One computing party of an engine whose numbers are the sums of parts, arrays, and whose bits are their XOR
(`parts.gates`).

    shares        additive modulo 2^32 at the holders: everybody's counts or owners' tables, whatever `Marginals` a backend has
    distances     c subtracted from the leader's part, cells with c = 0 by local sums, the others by `PartGates.absolute`
    noise         the shared draws over `gates`; on a fork of the link with masks of its own when made beside the scores
    arg max       all pairs at once (`engine.argmax`)

Who learns what: all computing parties the releases, the model's answers, and sizes. Threat model and
assumption: the backend's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, words_for
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.part_engine import PartEngine, PartL1Sums
from mpc_protocols.engine.parts.gates import PartGates
from mpc_protocols.engine.parts.sign import score_adder
from mpc_protocols.functionality import StudyFacts

CHUNK = 1 << 18
"""Cells that are computed with at a time: bounds the memory at some 150 bytes a cell of a chunk."""
P = TypeVar("P", bound=PartGates)
"""A backend's gates."""


def chunks(cells: int) -> list[int]:
    """Cells of each chunk."""
    return [min(CHUNK, cells - start) for start in range(0, cells, CHUNK)]


class ArrayL1Sums(PartL1Sums[P, Elements, Elements]):
    """See `engine.interface.L1Sums`."""

    def _distances(self, differences: Elements, lengths: NDArray[np.int64]) -> Elements:
        terms, start = np.empty_like(differences), 0
        for count in chunks(len(differences)):
            piece = slice(start, start + count)
            self._forms[score_adder(self._planes, words_for(count), self._gates.latency_bytes)] = None
            terms[piece] = self._gates.absolute(differences[piece], self._planes)
            start += count
        return sum_segments(terms, lengths)

    def _total(self, sums: Elements, distances: Sequence[tuple[slice, Elements]]) -> Elements:
        for place, added in distances:
            sums[place] += added
        return sums if self._ring is np.uint32 else self._gates.widened(sums)


class ArrayEngine(PartEngine[P, Elements], Generic[P]):
    """Shares, arithmetic and openings of one computing party."""

    sums: ClassVar[type[PartL1Sums[Any, Any, Any]]] = ArrayL1Sums

    def __init__(self, facts: StudyFacts, gates: P, beside: P, marginals: AdditiveMarginals) -> None:
        """beside: gates over a fork of the link of `gates`. marginals: everybody's data."""
        self.wire, self._leader, self._session = gates.link.wire, facts.leader, facts.session
        self.gates, self.beside, self._marginals = gates, beside, marginals

    def numbers(self, shares: Elements) -> Elements:
        return shares

    def keys(self, sums: Elements, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> Elements:
        """See `engine.interface.Engine`."""
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors, offsets = (
            np.array([value % modulus for value in values], ring)
            for values in (weights, [-bias for bias in biases])
        )
        return self.gates.add_public(sums * factors, offsets)

    def pack(self, numbers: Elements) -> bytes:
        """See `engine.interface.Engine`."""
        return pack([numbers])

    def unpack(self, packed: bytes) -> Elements:
        """See `engine.interface.Engine`."""
        (numbers,) = unpack(packed)
        return numbers

    def largest(self, keys: Elements) -> int:
        """See `engine.interface.Engine`."""
        row: Any = keys.reshape(
            1, -1
        )  # arrays are Numbers, which the overloads of their methods hide from a type checker
        return int(argmax_rows(self.gates, row)[0])

    def reveal(self, numbers: Elements) -> NDArray[np.int64]:
        """See `engine.interface.Engine`; 1 round, and that of `PartLink.tell`."""
        opened = self.gates.link.tell(self.gates.link.combine(numbers, np.add))
        signed: NDArray[np.int64] = opened.view(f"i{opened.dtype.itemsize}").astype(np.int64)
        return signed
