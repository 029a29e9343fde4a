"""A toy backend on the algebra of `engine.parts`: two parties on XOR and additive shares, and a trusted
dealer that is played.

IT PROTECTS NOTHING. What a dealer would send to each of the two is drawn here by both, from the key that they
have in common: each could compute the masks of the other, and so its data. It shows what a backend brings,
and that all else comes with it.

    and_words, integers, bits_times    by triples a, b, ab of the dealer (Beaver 1991): x - a and y - b are opened
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.backend import EngineBackend, OracleParts
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_bits
from mpc_protocols.engine.inputs.held_marginals import Split
from mpc_protocols.engine.link import PartLink
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.engine.parts.engine import ArrayEngine
from mpc_protocols.engine.parts.gates import PartGates
from mpc_protocols.engine.prg import MASK, KeyStream, derive, own_key
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical import part_tables
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.in_memory.engine_dry_run import BlankParts

SPLIT = Split(2)


class DealtLink(PartLink):
    """The other party's end."""

    engine = "The toy of two parties"

    def _check(self, wire: Wire) -> None:
        if wire.computing != 2:
            raise StudyInvalid(f"The toy needs two computing parties, the study names {wire.computing}.")


class DealtGates(PartGates):
    """What the algebra asks for, by triples."""

    def __init__(self, link: DealtLink, secret: bytes) -> None:
        super().__init__(secret)
        self._link, self._triples = link, 0
        key = link.wire.key(1 - link.me)
        self._dealer = KeyStream(derive(key, MASK, b"toy", link.wire.session_id, link.stream.encode()))

    @property
    def link(self) -> DealtLink:
        return self._link

    def and_words(self, x: Words, y: Words) -> Words:
        shape = np.broadcast_shapes(x.shape, y.shape)
        wide = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        return self._product(*wide, np.bitwise_xor, np.bitwise_xor, np.bitwise_and)

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        """b_0 ^ b_1 = b_0 + b_1 - 2 b_0 b_1, of which each party knows one factor."""
        own = to_bits(bits, cells, ring)
        mine, nothing = own, np.zeros_like(own)
        both = self._times(*((mine, nothing) if self.link.me == 0 else (nothing, mine)))
        return own - both - both

    def bits_times(self, bits: Words, x: Elements) -> Elements:
        return self._times(self.integers(bits[np.newaxis], len(x), x.dtype.type)[0], x)

    def _times(self, x: Elements, y: Elements) -> Elements:
        return self._product(x, y, np.add, np.subtract, np.multiply)

    def _product(
        self, x: Elements, y: Elements, plus: np.ufunc, minus: np.ufunc, times: np.ufunc
    ) -> Elements:
        """xy = de + db + ae + ab with d = x - a, e = y - b opened. 1 round."""
        a, b, ab = self._triple(x.shape, x.dtype.type, plus, minus, times)
        d, e = self.link.combine(np.stack([minus(x, a), minus(y, b)]), plus)
        share = plus(plus(times(d, b), times(a, e)), ab)
        return plus(share, times(d, e)) if self.link.adds_public else share

    def _triple(
        self, shape: tuple[int, ...], ring: UInt, plus: np.ufunc, minus: np.ufunc, times: np.ufunc
    ) -> tuple[Elements, Elements, Elements]:
        """This party's parts of a triple: the dealer's part."""
        self._triples += 1
        a0, a1, b0, b1, c0 = self._dealer.draw((5, *shape), ring, self._triples)
        c1 = minus(times(plus(a0, a1), plus(b0, b1)), c0)
        return (a0, b0, c0) if self.link.me == 0 else (a1, b1, c1)


class DealtEngine(ArrayEngine[DealtGates]):
    """Party 0 or 1."""

    def __init__(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None) -> None:
        link, secret = DealtLink(wire), own_key(wire)
        gates, beside = DealtGates(link, secret), DealtGates(link.fork("noise"), secret)
        super().__init__(facts, gates, beside, part_tables.marginals_of(gates, facts, data, SPLIT))


ROLES = Roles(DealtEngine)
contribute = partial(part_tables.contribute, split=SPLIT)


class Dealt(EngineBackend):
    """Two parties that trust each other."""

    name = "dealt"
    summary = "two parties on shares and a dealer that they play, to show what the algebra asks of a backend"
    computing = (2, 2)
    by_default = 2
    unchecked = ""
    together = "both are honest"
    assumption = "nothing else"
    shows = "random-looking shares, and the key of their masks"
    how = "Two parties added up everybody's counts under masks that both could compute."

    @property
    def claim(self) -> str:
        return "no privacy claim between the two computing parties"

    def coalition(self, computing: int) -> int:
        return 1

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return ("Either computing party could compute the other's masks.",)

    def parts(self) -> OracleParts:
        return OracleParts.of(ROLES, contribute)

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        from mpc_protocols.in_memory.engine_dry_run import BlankParts, Seconds

        return BlankParts(ROLES, contribute, Seconds())


BACKEND = Dealt()
