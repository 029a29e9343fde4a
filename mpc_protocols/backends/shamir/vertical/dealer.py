"""Shamir shares modulo p of a matrix that one party knows: the dealer's polynomial of degree t, cell by cell.

Shares are held by the EVALUATORS, parties 0..2t, party i at the point i + 1. t of them, those after the
dealer in a circle, draw their shares from a stream they share with the dealer; secret and draws determine the
polynomial, and the dealer sends the others theirs, two bytes a cell: to t, or to t + 1 if it is no evaluator
itself.

    streams    of two computing parties from their key; a contributor sends each of its t a seed, anew for each request

Any t evaluators see shares that are uniform whatever the secret is: the polynomial is uniform among those
with this value at 0. A share that is no residue modulo p aborts the run. Threat model: semi-honest.
Assumption: AES-CTR (`engine.prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np

from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.vertical.prime import PRIME, Residues, combination, lagrange, uniform
from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.prg import CONTRIBUTION, MASK, KeyStream, derive
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.wire import Wire


def evaluators(threshold: int) -> range:
    """The parties that hold shares modulo p: 2t + 1, as many as a product of two shares takes."""
    return range(2 * threshold + 1)


def drawing(dealer: int, threshold: int) -> tuple[int, ...]:
    """The evaluators that draw their shares of what this party deals."""
    return tuple((dealer + 1 + place) % (2 * threshold + 1) for place in range(threshold))


def receiving(dealer: int, threshold: int) -> tuple[int, ...]:
    """The evaluators to which it sends them."""
    drawn = drawing(dealer, threshold)
    return tuple(peer for peer in evaluators(threshold) if peer != dealer and peer not in drawn)


class Dealer:
    """A dealer's side. Each matrix takes new places of the streams."""

    def __init__(self, wire: Wire, streams: Sequence[KeyStream]) -> None:
        """streams: those shared with the parties that draw, in their order."""
        self._wire, self._streams = wire, streams
        self._threshold = threshold_of(wire.computing)
        self._number = 0

    @classmethod
    def computing(cls, wire: Wire) -> Dealer:
        """Of a computing party."""
        peers = drawing(wire.me, threshold_of(wire.computing))
        return cls(wire, [KeyStream(_key(wire, peer, wire.me)) for peer in peers])

    @classmethod
    def contributing(cls, wire: Wire) -> Dealer:
        """Of a contributor: sends a fresh seed to each party that draws."""
        streams = []
        for peer in drawing(wire.me, threshold_of(wire.computing)):
            seed = secrets.token_bytes(SEED_BYTES)
            wire.send(peer, seed)
            streams.append(_of_seed(wire, seed))
        return cls(wire, streams)

    def deal(self, values: Residues) -> Residues | None:
        """Send the others their shares; returns its own, None at a party that evaluates nothing."""
        wire, threshold = self._wire, self._threshold
        drawn = [uniform(stream.reader(self._number), values.shape) for stream in self._streams]
        self._number += 1
        points = [0, *(peer + 1 for peer in drawing(wire.me, threshold))]

        def share(party: int) -> Residues:
            return combination(lagrange(points, party + 1), [values, *drawn])

        for peer in receiving(wire.me, threshold):
            send_array(wire, peer, share(peer))
        return share(wire.me) if wire.me in evaluators(threshold) else None


class Shares:
    """An evaluator's side of what all others deal."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._threshold = threshold_of(wire.computing)
        self._streams = {
            peer: KeyStream(_key(wire, peer, peer))
            for peer in range(wire.computing)
            if peer != wire.me and wire.me in drawing(peer, self._threshold)
        }
        self._numbers: dict[int, int] = {}

    def hear(self, contributor: int) -> None:
        """Receive the seed of a contributor's next request, if this party draws its shares."""
        self._numbers[contributor] = 0
        if self._wire.me in drawing(contributor, self._threshold):
            self._streams[contributor] = _of_seed(
                self._wire, bytes(self._wire.receive(contributor, SEED_BYTES))
            )

    def receive(self, dealer: int, shape: tuple[int, int]) -> Residues:
        """The own share of the dealer's next matrix; read-only if it was sent. Raises `ProtocolAborted`,
        `PeerLost`."""
        if dealer in self._streams:
            number = self._numbers.get(dealer, 0)
            self._numbers[dealer] = number + 1
            return uniform(self._streams[dealer].reader(number), shape)
        return receive_residues(self._wire, dealer, shape)


def receive_residues(wire: Wire, peer: int, shape: tuple[int, ...]) -> Residues:
    """The peer's next array of residues modulo p. Raises `ProtocolAborted` (size; an element that is none),
    `PeerLost`."""
    residues = receive_array(wire, peer, shape, np.uint16)
    if residues.size and int(residues.max()) >= PRIME:
        raise ProtocolAborted(
            f"Party {peer} sent a share that is no residue modulo {PRIME}; see its log, and start the run again."
        )
    return residues


def zero_shares(wire: Wire, streams: Mapping[int, KeyStream], number: int, cells: int) -> Residues:
    """This evaluator's part of a fresh sum of zeros over all of them. streams: shared with each other one."""
    drawn = [uniform(stream.reader(number), (cells,)) for stream in streams.values()]
    return combination([1 if wire.me < peer else PRIME - 1 for peer in streams], drawn)


def zero_streams(wire: Wire) -> dict[int, KeyStream]:
    """An evaluator's streams of `zero_shares`."""
    return {
        peer: KeyStream(derive(wire.key(peer), MASK, b"zero modulo p", wire.session_id))
        for peer in evaluators(threshold_of(wire.computing))
        if peer != wire.me
    }


def _key(wire: Wire, peer: int, dealer: int) -> bytes:
    return derive(wire.key(peer), MASK, b"dealt modulo p", wire.session_id, bytes([dealer]))


def _of_seed(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, b"dealt modulo p", wire.session_id))
