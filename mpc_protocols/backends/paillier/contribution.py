"""Contributors' counts on their way into two parties' shares, encrypted (`docs/design/paillier.md` 4).

    contributor -> aggregator    64 bytes that say for which key and what; ciphertexts of its packed counts
    aggregator -> key holder     ciphertexts of the sum over all contributors plus a fresh mask
    both                         shares of the carries between slots (`carries`)
    shares                       what the key holder decrypts; minus the masks, at the aggregator; minus the carries, at both

The leader holds the private key, the other computing party aggregates: it sees ciphertexts only, which may
wait there until it comes to them. They travel in pieces, so that all work at the same time.

Who learns what: the key holder masked sums, over a whole run within 2^-40 of what is independent of the data
(`packing`); the aggregator the contributors' ciphertexts. Threat model: semi-honest, these two do not
collude; contributors and recipients may, with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.backends.paillier.carries import carries_of_masks, carries_of_sums
from mpc_protocols.backends.paillier.packing import HEADER_BYTES, Packing
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import local_cells
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey, PublicKey

_FINGERPRINT = slice(32)


class Sharing:
    """What all who take part know of one sharing: its name under a key, and how its cells are packed and cut
    into messages."""

    def __init__(
        self,
        session_id: bytes,
        facts: StudyFacts,
        number: int,
        cliques: Sequence[Clique],
        levels: Sequence[Level],
    ) -> None:
        """number: of the run's sharings, from 1. levels: those that the cliques name."""
        coarse = facts.with_levels(levels)
        self.cells = sum(map(coarse.cells, cliques))
        self._session_id, self._number, self._cliques = session_id, number, len(cliques)
        self._step = PrepareStep(tuple(cliques), tuple(levels)).to_bytes()

    def packing(self, key_bits: int) -> Packing:
        """How its cells are packed."""
        return Packing.of(key_bits, self._cliques, self._number)

    def header(self, key: PublicKey, contributor: int) -> bytes:
        """With what a contributor says for which key and sharing its ciphertexts are."""
        slots = self.packing(key.bits).slots
        numbers = (part.to_bytes(4, "big") for part in (contributor, self._number, slots))
        return key.fingerprint + binding(b"paillier contribution", self._session_id, self._step, *numbers)


def send_encrypted(
    wire: Wire, aggregator: int, sharing: Sharing, encryption: Encryption, cells: Elements
) -> None:
    """At a contributor: everything that it sends for a sharing. cells: uint32, its counts."""
    key = encryption.key
    packing = sharing.packing(key.bits)
    encryption.expect(packing.count(sharing.cells))
    wire.send(aggregator, sharing.header(key, wire.me))
    for place in packing.messages(sharing.cells):
        wire.send(aggregator, key.encode(encryption.encrypt(packing.pack(cells[place]))))


def add_encrypted(transfers: Transfers, sharing: Sharing, encryption: Encryption) -> Elements:
    """At the aggregator: its share of the contributors' sum. Raises `ProtocolAborted` for what is no honest
    contribution.

    transfers: with the key holder. A piece's mask is drawn after its last ciphertext has come; its encryption
    makes the sum's random number a fresh one.
    """
    key, wire = encryption.key, transfers.link.wire
    packing = sharing.packing(key.bits)
    encryption.expect(packing.count(sharing.cells))
    for contributor in wire.contributors:
        _check_header(
            bytes(wire.receive(contributor, HEADER_BYTES)), sharing.header(key, contributor), contributor
        )
    drawn = np.empty(sharing.cells, np.uint32)
    for place in packing.messages(sharing.cells):
        cells = place.stop - place.start
        size = packing.count(cells) * key.ciphertext_bytes
        received = [
            key.decode(wire.receive(contributor, size), contributor) for contributor in wire.contributors
        ]
        masks = packing.masks(packing.count(cells))
        sums = encryption.encrypt(masks)
        for ciphertexts in received:
            sums = list(map(key.add, sums, ciphertexts))
        wire.send(transfers.link.peer, key.encode(sums))
        drawn[place] = packing.unpack(masks, cells)
    share = np.uint32(0) - drawn
    packing.take_off(share, carries_of_masks(transfers, drawn))
    return share


def decrypt_masked(transfers: Transfers, sharing: Sharing, key: PrivateKey) -> Elements:
    """At the key holder: its share of the contributors' sum. Raises `ProtocolAborted` for what is no
    ciphertext.

    transfers: with the aggregator.
    """
    packing, aggregator = sharing.packing(key.public.bits), transfers.link.peer
    share = np.empty(sharing.cells, np.uint32)
    for place in packing.messages(sharing.cells):
        cells = place.stop - place.start
        size = packing.count(cells) * key.public.ciphertext_bytes
        encoded = transfers.link.wire.receive(aggregator, size)
        plaintexts = key.decrypt(key.public.decode(encoded, aggregator), packing.plaintext_bytes)
        share[place] = packing.unpack(plaintexts, cells)
    packing.take_off(share, carries_of_sums(transfers, share))
    return share


def own_cells(
    facts: StudyFacts, counts: LocalCounts | None, cliques: Sequence[Clique], levels: Sequence[Level]
) -> Elements:
    """A party's own counts of a sharing, one after the other. Errors as of `local_cells`."""
    return np.concatenate(local_cells(facts, counts, cliques, levels))


def _check_header(header: bytes, expected: bytes, contributor: int) -> None:
    if header[_FINGERPRINT] != expected[_FINGERPRINT]:
        raise ProtocolAborted(
            f"Party {contributor} has encrypted to another public key than the key holder's; stop the run."
        )
    if header != expected:
        raise ProtocolAborted(
            f"Party {contributor} has encrypted other marginals than those asked for; check that versions agree."
        )
