"""The owner of a public key proves that gcd(n, phi(n)) = 1 (Goldberg, Reyzin, Sagga, Baldimtsi, ASIACRYPT
2019).

    challenges   r_i = SHAKE256(session, owner, n, i) modulo n, of |n| + 128 bits, i = 1 .. ROOTS
    proof        s_i = r_i^(1 / n mod phi(n)) mod n
    check        n has no factor below MIN_FACTOR, as `PublicKey.parse` sees; gcd(r_1 .. r_ROOTS, n) = 1; s_i^n = r_i mod n

Statement. n is a product of different primes of 17 bits and more, none of which divides another one minus 1;
then (x, r) -> (1 + n x) r^n is a bijection, and every ciphertext has one plaintext. How many primes there
are, and how long they are beyond that, is not proved.

Soundness. If a prime t divides both n and phi(n), raising to n is no bijection of the units, and at most 1 /
t of them have a root: with a random oracle and t > 2^16 each attempt of an owner that lies passes with a
probability below 2^-(16 ROOTS) = 2^-128. Zero knowledge: who may program the oracle draws s_i first and sets
r_i = s_i^n, a uniform unit. Bound to the run: the session id is fresh in each attempt, so no proof is of use
in another.
"""

from __future__ import annotations

import hashlib

from mpc_protocols.backends.paillier.keys import PrivateKey, PublicKey
from mpc_protocols.backends.paillier.packing import ROOTS, key_bytes
from mpc_protocols.errors import ProtocolAborted

_PURPOSE = b"cosynth-paillier-v1-key-proof"


def prove(key: PrivateKey, session_id: bytes, owner: int) -> bytes:
    """The proof of this run's owner: ROOTS integers, big-endian."""
    size = key_bytes(key.public.bits)
    return b"".join(
        root.to_bytes(size, "big") for root in key.roots(_challenges(key.public, session_id, owner))
    )


def check(key: PublicKey, proof: bytes | memoryview, session_id: bytes, owner: int) -> None:
    """Raises `ProtocolAborted` for what is no proof for this key, run and owner. proof: of `proof_bytes`."""
    size = key_bytes(key.bits)
    roots = [int.from_bytes(proof[start : start + size], "big") for start in range(0, len(proof), size)]
    if not key.are_roots(roots, _challenges(key, session_id, owner)):
        raise ProtocolAborted(
            f"Party {owner} has not proved that its public key is a product of different primes above 2^16; stop the run."
        )


def _challenges(key: PublicKey, session_id: bytes, owner: int) -> list[int]:
    size = key_bytes(key.bits) + 16
    fixed = [session_id, owner.to_bytes(4, "big"), key.to_bytes()]
    said = _PURPOSE + b"".join(len(part).to_bytes(4, "big") + part for part in fixed)
    drawn = hashlib.shake_256(said).digest(ROOTS * size)
    return [int.from_bytes(drawn[start : start + size], "big") for start in range(0, len(drawn), size)]
