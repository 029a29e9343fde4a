"""Traps: what makes an owner of `dh2` treat all positions of the other's list alike (`docs/design/psu.md`
1.2).

Whoever wants to know whether the other holds y, without learning it as an ordinary record's, must treat
positions of the other's list in a way of its own, and does not know which position is y's. So each owner
hides t traps among its n records: fake identifiers, 3 | seed | number with a secret seed of the run, which
nobody can tell from records, under DDH. Once both have committed themselves to a treatment of every position,
both show where their traps stand,

    positions of the own full pool (`dummies`; with add-remove) and of the own traps, the seed, a proof (`dleq`) that these
    elements are the hashes of those identifiers under the list's public key

and each must show that it treated the other's traps as it should, before anything is learnt (`matching`). An
owner that gives up the right tests of other positions gains something, and is not caught, with probability at
most 1 / (t + 1) < 1 / 1000.

Cost: 4 bytes for each trap and each entry of the full pool, and a proof per block; `cost`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.dummies import TRAP, full_pool
from mpc_protocols.psu.groups import dleq
from mpc_protocols.psu.groups.group import Elements, Group
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.randomness import Entropy
from mpc_protocols.psu.two_owners.exchange import Exchange

TRAPS = 1024
"""Traps in each list, on top of its announced size."""
SEED_BYTES = 32
POSITION_BYTES = 4


@dataclass(frozen=True)
class Lists:
    """Both lists as one owner holds them.

    own, theirs: elements in the order sent, traps among them. key: of the own list; public, their_public: g
    to the lists' keys. seed: of the own traps. opened_positions: in `own` of the full pool, then of the
    traps, in the order of their numbers.
    """

    own: Elements
    theirs: Elements
    key: int = field(repr=False)
    public: bytes
    their_public: bytes
    seed: bytes = field(repr=False)
    opened_positions: NDArray[np.int64] = field(repr=False)
    traps: int

    @property
    def own_traps(self) -> NDArray[np.int64]:
        """(traps,): positions in `own`."""
        return self.opened_positions[len(self.opened_positions) - self.traps :]


@dataclass(frozen=True)
class Proofs:
    """Proofs of one exponent (`dleq`) between the owners of a run, each bound to the prover and to what is
    proven."""

    exchange: Exchange
    group: Group
    entropy: Entropy

    @property
    def size(self) -> int:
        """Bytes of a proof."""
        return dleq.proof_bytes(self.group)

    def prove(
        self, what: bytes, start: int, key: int, public: bytes, inputs: Elements, outputs: Elements
    ) -> bytes:
        """Prove that outputs = inputs^key. what: names the list; start: the block's place in it."""
        context = self._context(self.exchange.side, what, start)
        return dleq.prove(
            self.group, key, self.group.generator, public, inputs, outputs, context, self.entropy
        )

    def hold(
        self, what: bytes, start: int, public: bytes, inputs: Elements, outputs: Elements, proof: memoryview
    ) -> bool:
        """Whether the other's proof does."""
        context = self._context(1 - self.exchange.side, what, start)
        return dleq.verify(self.group, self.group.generator, public, inputs, outputs, context, bytes(proof))

    def _context(self, prover: int, what: bytes, start: int) -> bytes:
        return digest(b"psu dh2 proof", self.exchange.sid, bytes([prover]), what, start.to_bytes(8, "big"))


def trap_identifiers(seed: bytes, count: int) -> list[bytes]:
    """The fake identifiers of one owner's traps. seed: 32 secret bytes."""
    return [TRAP + seed + number.to_bytes(4, "big") for number in range(count)]


def show(proofs: Proofs, lists: Lists) -> NDArray[np.int64]:
    """Both owners show their pools and traps. Result: (traps,), positions of the other's traps in its list.

    Raises `ProtocolAborted` if the other's list does not hold what it must where the other says.
    """
    exchange, group = proofs.exchange, proofs.group
    pools = [full_pool(exchange.spec, exchange.sid, side) for side in (0, 1)]
    own = [*pools[exchange.side], *trap_identifiers(lists.seed, lists.traps)]
    theirs = pools[1 - exchange.side]
    positions = np.empty(len(theirs) + lists.traps, np.int64)

    def produce(part: slice) -> bytes:
        places = lists.opened_positions[part]
        hashed = group.hash_many(own[part], exchange.sid)
        proof = proofs.prove(b"shown", part.start, lists.key, lists.public, hashed, lists.own[places])
        return places.astype(f"<u{POSITION_BYTES}").tobytes() + lists.seed + proof

    def consume(part: slice, payload: memoryview) -> None:
        end = POSITION_BYTES * (part.stop - part.start)
        places = np.frombuffer(payload[:end], f"<u{POSITION_BYTES}").astype(np.int64)
        claimed = [*theirs, *trap_identifiers(bytes(payload[end : end + SEED_BYTES]), lists.traps)][part]
        if places.max() >= len(lists.theirs) or not proofs.hold(
            b"shown",
            part.start,
            lists.their_public,
            group.hash_many(claimed, exchange.sid),
            lists.theirs[places],
            payload[end + SEED_BYTES :],
        ):
            exchange.abort("could not show the pool and the traps that its list must hold")
        positions[part] = places

    exchange.stream(len(own), len(positions), produce, consume, POSITION_BYTES, SEED_BYTES + proofs.size)
    return positions[len(theirs) :]
