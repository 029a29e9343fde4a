"""`paillier` as a dry run has it: the engine of `pair`, a key that encrypts nothing, and how long things
take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mpc_protocols.backends.paillier.marginals import EncryptedMarginals
from mpc_protocols.backends.paillier.oracle import contribute
from mpc_protocols.backends.paillier.packing import Packing, key_bytes, proof_bytes
from mpc_protocols.backends.pair import blank
from mpc_protocols.engine.blank import BlankBytes
from mpc_protocols.in_memory.engine_dry_run import BlankParts, Inputs

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire

DECRYPT_S, CARRY_S, KEY_S = 12e-3, 2e-7, 2.0
"""CPU seconds of the key holder, which has most to do, at 3,072 bits: for a ciphertext, for a cell, for the
key and its proof."""


class _BlankKey:
    """As `keys.PublicKey`; ciphertexts are None."""

    fingerprint = bytes(32)

    def __init__(self, bits: int) -> None:
        self.bits, self.ciphertext_bytes = bits, 2 * key_bytes(bits)

    def to_bytes(self) -> bytes:
        return bytes(key_bytes(self.bits))

    def add(self, left: None, right: None) -> None:
        """Nothing."""

    def encode(self, ciphertexts: Sequence[None]) -> bytes:
        return BlankBytes(len(ciphertexts) * self.ciphertext_bytes)

    def decode(self, encoded: bytes | memoryview, sender: int) -> list[None]:
        return [None] * (len(encoded) // self.ciphertext_bytes)


class _BlankEncryption:
    """As `keys.Encryption`."""

    def __init__(self, key: _BlankKey) -> None:
        self.key = key

    def expect(self, plaintexts: int) -> None:
        """Nothing is made for them."""

    def encrypt(self, plaintexts: Sequence[bytes]) -> list[None]:
        return [None] * len(plaintexts)


class _BlankPrivateKey:
    """As `keys.PrivateKey`."""

    def __init__(self, bits: int) -> None:
        self.public = _BlankKey(bits)

    def decrypt(self, ciphertexts: Sequence[None], size: int) -> list[bytes]:
        return [bytes(size)] * len(ciphertexts)


@dataclass(frozen=True)
class _BlankKeys:
    """As `run_keys.RunKeys`, without the packages that encryption takes."""

    bits: int

    def made(self, session_id: bytes, owner: int) -> tuple[_BlankPrivateKey, bytes]:
        return _BlankPrivateKey(self.bits), bytes(proof_bytes(self.bits))

    def received(self, wire: Wire, leader: int) -> _BlankEncryption:
        wire.receive(leader, key_bytes(self.bits) + proof_bytes(self.bits))
        return _BlankEncryption(_BlankKey(self.bits))


def blank_parts(key_bits: int, contributing: int) -> BlankParts:
    """For a dry run."""
    keys: Any = _BlankKeys(key_bits)
    of_pair = blank.blank_parts()
    seconds = of_pair.seconds
    if contributing:
        seconds = replace(seconds, start=seconds.start + KEY_S)
    return BlankParts(
        blank.blank_roles(partial(EncryptedMarginals, keys=keys)),
        partial(contribute, keys=keys),
        seconds,
        partial(_seconds, key_bits),
        of_pair.repeats,
        beside_bytes=of_pair.beside_bytes,
    )


def _seconds(key_bits: int, inputs: Inputs) -> float:
    """Of what contributors send; of split columns, as `pair`."""
    if inputs.split is not None or not inputs.contributing:
        return blank.table_seconds(inputs)
    packing = Packing.of(key_bits, len(inputs.cliques), inputs.number)
    cells = sum(map(inputs.facts.cells, inputs.cliques))
    ciphertexts = sum(packing.count(place.stop - place.start) for place in packing.messages(cells))
    return ciphertexts * DECRYPT_S + cells * CARRY_S
