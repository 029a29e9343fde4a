"""One computing party of two parties and a dealer (`engine.interface.Engine`).

    shares        additive modulo 2^32 at parties 0 and 1: everybody's counts or two owners' tables (`marginals`, `vertical`)
    distances     c subtracted from the leader's share, cells with c = 0 by local sums, the others by `gates.absolute`
    noise         the shared draws over `gates`, on a fork of the link with masks of its own when made beside the scores
    arg max       all pairs at once (`engine.argmax`)

The dealer runs the same code on zeros, which makes it deal what the two others need, in their order (`dealer`).

Who learns what: all three the releases, the model's answers, and sizes; the dealer what is opened only when it is open. Threat
model: semi-honest, no two of the three collude; recipients and contributors may collude with any. Assumption: AES (`masks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.additive.circuits.gates import AdditiveGates
from mpc_protocols.additive.circuits.sign import score_adder
from mpc_protocols.additive.dealing.dealer import DealerOperations
from mpc_protocols.additive.dealing.operations import Operations
from mpc_protocols.additive.link import DEALER, Link
from mpc_protocols.additive.marginals import SharedMarginals
from mpc_protocols.additive.vertical.marginals import JoinedMarginals
from mpc_protocols.engine.bitwise.argmax import argmax_rows, peel
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, words_for
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.part_engine import PartEngine, PartL1Sums
from mpc_protocols.engine.prg import own_key
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.answers import Answers, DealerLayout
from mpc_protocols.wire import Wire

DEALERS = 1
CHUNK = 1 << 18
"""Cells that are computed with at a time: bounds the memory at some 150 bytes a cell of a chunk."""


def chunks(cells: int) -> list[int]:
    """Cells of each chunk."""
    return [min(CHUNK, cells - start) for start in range(0, cells, CHUNK)]


class AdditiveL1Sums(PartL1Sums[AdditiveGates, Elements]):
    """See `engine.interface.L1Sums`."""

    def compute(self) -> Elements:
        sums: Elements = np.zeros(self._answers.candidates, np.uint32)
        forms = dict[str, None]()
        for layout, answers in self._answers:
            sums[layout.candidates] += self._distances(layout, answers, forms)
        self.form = "+".join(forms) or "sums"
        return sums if self._ring is np.uint32 else self._gates.widened(sums)

    def _distances(self, layout: DealerLayout, answers: Answers, forms: dict[str, None]) -> Elements:
        """Shares of the sums of a group's candidates."""
        cells = self._cells(layout)
        places = np.flatnonzero(answers.nonzero)
        start = 0
        for count in chunks(len(places)):
            compared = places[start : start + count]
            known = cells[compared]
            if self._answers.leads:
                known -= answers.cells[compared]
            forms[score_adder(self._planes, words_for(count), self._gates.latency_bytes)] = None
            cells[compared] = self._gates.absolute(known, self._planes)
            start += count
        self.signs += len(places)
        total: Elements = layout.sums(0, cells, np.uint32)
        return total


class AdditiveEngine(PartEngine[AdditiveGates, Elements]):
    """Shares, arithmetic and openings of party 0 or 1; what the dealer deals for them at party 2."""

    dealers = DEALERS
    sums = AdditiveL1Sums

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        operations: Callable[[Link], Operations] | None = None,
    ) -> None:
        """data: this party's own; None if it only computes. operations: at either end, CrypTen's and the dealer's if not named.

        Raises `StudyInvalid` (number of parties, a dealer that would lead, CrypTen is not installed, other owners than two of the
        three), `DataRefused` (rows that do not fit).
        """
        self.wire, self._leader, self._session = wire, facts.leader, facts.session
        if facts.leader == DEALER:
            raise StudyInvalid(
                "The dealer cannot lead: the model's answers are subtracted from the leader's shares."
            )
        link, secret, made = Link(wire), own_key(wire), operations or _operations
        self.gates = AdditiveGates(made(link), secret)
        self.beside = AdditiveGates(made(link.fork("noise")), secret)
        self._marginals: AdditiveMarginals = (
            JoinedMarginals(self.gates, facts, data)
            if isinstance(data, VerticalData)
            else SharedMarginals(wire, facts, data)
        )

    def numbers(self, shares: Elements) -> Elements:
        return shares

    def set_latency(self, latency_bytes: int) -> None:
        self.gates.link.latency_bytes = self.beside.link.latency_bytes = latency_bytes

    def keys(self, sums: Elements, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> Elements:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors, offsets = (
            np.array([value % modulus for value in values], ring)
            for values in (weights, [-bias for bias in biases])
        )
        return self.gates.add_public(sums * factors, offsets)

    def pack(self, numbers: Elements) -> bytes:
        return pack([numbers])

    def unpack(self, packed: bytes) -> Elements:
        (numbers,) = unpack(packed)
        return numbers

    def largest(self, keys: Elements) -> int:
        row: Any = keys.reshape(
            1, -1
        )  # arrays are Numbers, but the overloads of their methods say it to no type checker
        return int(argmax_rows(self.gates, row)[0])

    def picks(self, keys: Elements, plan: SelectionPlan) -> list[int]:
        rows: Any = keys  # see `largest`
        return peel(self.gates, rows, plan.candidates, plan.contenders)

    def reveal(self, numbers: Elements) -> NDArray[np.int64]:
        """See `engine.interface.Engine`; 1 round, and 1 to tell the dealer."""
        opened = self.gates.link.tell(numbers + self.gates.link.exchange(numbers))
        signed: NDArray[np.int64] = opened.view(f"i{opened.dtype.itemsize}").astype(np.int64)
        return signed


def _operations(link: Link) -> Operations:
    return DealerOperations(link) if link.deals else CrypTenOperations(link)
