"""Sealing a part of a bundle to one receiver: HPKE (RFC 9180), base mode, one shot.

Suite: ML-KEM-768 with X25519 (X-Wing), HKDF-SHA256, AES-256-GCM. Hybrid because a bundle is a ciphertext of
raw counts that may lie about for a long time: it stays closed as long as either of the two problems is hard.
What HPKE calls info binds a part to its bundle and place. Receiver keys are made for one study and deleted
when its collection is closed: what was sealed to them is closed for good.

A receiver also has an Ed25519 key (RFC 8032), with which it signs the result that goes back to contributors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric import ed25519, mlkem, x25519
else:  # who reads a study with [contributors] reads keys of this size, and no more
    exceptions = Later("cryptography.exceptions")
    hpke = Later("cryptography.hazmat.primitives.hpke")
    ed25519, mlkem, x25519 = (
        Later(f"cryptography.hazmat.primitives.asymmetric.{name}") for name in ("ed25519", "mlkem", "x25519")
    )
KEM_PUBLIC, X25519_BYTES, SIGNING_BYTES, KEM_SEED = 1184, 32, 32, 64
SEALING_BYTES = KEM_PUBLIC + X25519_BYTES
"""A receiver's public key for sealing: of ML-KEM-768, then of X25519."""
SECRET_BYTES = KEM_SEED + X25519_BYTES + SIGNING_BYTES
OVERHEAD = 1136
"""Bytes by which a sealed message is longer: the encapsulated key, 1,120, and the tag, 16."""
SIGNATURE_BYTES = 64


@dataclass(frozen=True)
class ReceiverKey:
    """What a computing party publishes. sealing: SEALING_BYTES; signing: of Ed25519, 32 bytes."""

    sealing: bytes
    signing: bytes

    @property
    def fingerprint(self) -> str:
        """For people to compare: the first 128 bits of SHA-256 of both keys, in groups of four digits."""
        digits = hashlib.sha256(self.sealing + self.signing).hexdigest()[:32]
        return " ".join(digits[at : at + 4] for at in range(0, len(digits), 4))


@dataclass(frozen=True)
class ReceiverSecret:
    """A computing party's secret for one study: seed of ML-KEM-768, X25519 key, Ed25519 seed. SECRET_BYTES."""

    secret: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> ReceiverSecret:
        """A fresh one."""
        parts = (
            mlkem.MLKEM768PrivateKey.generate(),
            x25519.X25519PrivateKey.generate(),
            ed25519.Ed25519PrivateKey.generate(),
        )
        return cls(b"".join(part.private_bytes_raw() for part in parts))

    @property
    def public(self) -> ReceiverKey:
        """Its public half."""
        kem, curve, signing = self._parts
        return ReceiverKey(
            mlkem.MLKEM768PrivateKey.from_seed_bytes(kem).public_key().public_bytes_raw()
            + x25519.X25519PrivateKey.from_private_bytes(curve).public_key().public_bytes_raw(),
            ed25519.Ed25519PrivateKey.from_private_bytes(signing).public_key().public_bytes_raw(),
        )

    def open(self, sealed: bytes, info: bytes) -> bytes:
        """What was sealed to this receiver under this info. Raises `ProtocolAborted` for anything else."""
        try:
            return _suite().decrypt(sealed, self._sealing_key, info)
        except (exceptions.InvalidTag, ValueError):
            raise ProtocolAborted("It was not sealed to the key that this party has for the study.") from None

    def signing_only(self) -> ReceiverSecret:
        """The same without what opens sealed parts, which is zeros."""
        return ReceiverSecret(bytes(SECRET_BYTES - SIGNING_BYTES) + self.secret[-SIGNING_BYTES:])

    @property
    def opens(self) -> bool:
        """Whether it can open what is sealed to it."""
        return any(self.secret[:-SIGNING_BYTES])

    def sign(self, message: bytes) -> bytes:
        """An Ed25519 signature, 64 bytes."""
        return ed25519.Ed25519PrivateKey.from_private_bytes(self._parts[2]).sign(message)

    @property
    def _parts(self) -> tuple[bytes, bytes, bytes]:
        kem, curve = self.secret[:KEM_SEED], self.secret[KEM_SEED : KEM_SEED + X25519_BYTES]
        return kem, curve, self.secret[KEM_SEED + X25519_BYTES :]

    @property
    def _sealing_key(self) -> hpke.MLKEM768X25519PrivateKey:
        kem, curve, _ = self._parts
        return hpke.MLKEM768X25519PrivateKey(
            mlkem.MLKEM768PrivateKey.from_seed_bytes(kem), x25519.X25519PrivateKey.from_private_bytes(curve)
        )


def seal(message: bytes, receiver: ReceiverKey, info: bytes) -> bytes:
    """The message for one receiver, OVERHEAD bytes longer. Raises `ValueError` for a key that is none."""
    kem, curve = receiver.sealing[:KEM_PUBLIC], receiver.sealing[KEM_PUBLIC:]
    key = hpke.MLKEM768X25519PublicKey(
        mlkem.MLKEM768PublicKey.from_public_bytes(kem), x25519.X25519PublicKey.from_public_bytes(curve)
    )
    return _suite().encrypt(message, key, info)


def verifies(signing: bytes, signature: bytes, message: bytes) -> bool:
    """Whether this Ed25519 key has signed the message."""
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(signing).verify(signature, message)
    except (exceptions.InvalidSignature, ValueError):
        return False
    return True


def _suite() -> hpke.Suite:
    return hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
