"""The paper's group: quadratic residues modulo a safe prime p = 2 q + 1 (FLORIST; `docs/design/psu.md` 1.1).
Conformance and benchmarks.

The subgroup of squares has prime order q; decisional Diffie-Hellman is assumed hard in it. Encodings are
big-endian integers of the prime's length. A received element must be a non-zero residue below p other than 1
(Jacobi symbol 1), else it is refused. Hash-to-group: expand_message_xmd to 128 surplus bits, reduced,
squared. (The paper encodes identifiers directly; that keeps multiplicative relations between them and breaks
its own argument, `docs/design/psu.md` 1.1.)

Python's integers only: not constant time and one core, 20 ms per exponentiation at 2,048 bits against 0.05 ms
for ristretto255. Use it to compare, not to protect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.psu.groups.group import Elements, Group, InvalidElement
from mpc_protocols.psu.groups.hashing import expander

DOMAIN = b"cosynth-psu-v1-residues_XMD:SHA-512_SQUARE_RO_"

RFC3526_2048 = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B"
    "302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE6"
    "49286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D"
    "670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718"
    "3995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
"""Group 14 of RFC 3526: a safe prime of 2,048 bits."""


def jacobi(a: int, n: int) -> int:
    """The Jacobi symbol (a / n) of an odd n > 0: for a prime n, 1 for squares, -1 for others, 0 for
    multiples."""
    a %= n
    sign = 1
    while a:
        twos = (a & -a).bit_length() - 1
        a >>= twos
        if twos & 1 and n & 7 in (3, 5):
            sign = -sign
        if a & n & 3 == 3:
            sign = -sign
        a, n = n % a, a
    return sign if n == 1 else 0


class Residues(Group):
    """Quadratic residues modulo a safe prime (which the caller vouches for)."""

    def __init__(self, prime: int = RFC3526_2048) -> None:
        super().__init__()
        if prime < 23 or prime & 3 != 3:
            raise ValueError("A safe prime above 7 leaves the remainder 3 modulo 4.")
        self.prime = prime
        self.order = prime >> 1
        self.element_bytes = -(-prime.bit_length() // 8)
        self.name = f"residues-{prime.bit_length()}"
        self.generator = (4).to_bytes(
            self.element_bytes, "big"
        )  # a square other than 1 generates a group of prime order

    def hash_many(self, entries: Sequence[bytes], sid: bytes) -> Elements:
        expand = expander(DOMAIN + sid, self.element_bytes + 16)
        self.operations.hashes += len(entries)
        # 0 and +-1 would be no element to work with; 2 .. p - 2 are spread evenly, each square being hit
        # twice.
        return self._write(
            [pow(int.from_bytes(expand(e), "big") % (self.prime - 3) + 2, 2, self.prime) for e in entries]
        )

    def power(self, elements: Elements, exponent: int) -> Elements:
        return self.power_each(elements, [exponent] * len(elements))

    def power_each(self, elements: Elements, exponents: Sequence[int]) -> Elements:
        bases = self._read(elements)
        if len(exponents) != len(bases):
            raise ValueError(f"{len(exponents)} exponents were given for {len(bases)} elements.")
        self._check_exponents(exponents)
        self.operations.powers += len(bases)
        return self._write([pow(base, e, self.prime) for base, e in zip(bases, exponents, strict=True)])

    def generate(self, exponents: Sequence[int]) -> Elements:
        self._check_exponents(exponents)
        self.operations.generated += len(exponents)
        base = int.from_bytes(self.generator, "big")
        return self._write([pow(base, e, self.prime) for e in exponents])

    def product(self, elements: Elements) -> Elements:
        total = 1
        for row in elements:
            value = int.from_bytes(row.tobytes(), "big")
            if value != 1:
                self.check(row.reshape(1, -1))
            total = total * value % self.prime
        self.operations.products += len(elements)
        return self._write([total])

    def check(self, elements: Elements) -> None:
        self._read(elements)

    def _check_exponents(self, exponents: Sequence[int]) -> None:
        if not all(0 < e < self.order for e in exponents):
            raise ValueError("An exponent must lie between 1 and the group's order minus 1.")

    def _read(self, elements: Elements) -> list[int]:
        if elements.ndim != 2 or elements.shape[1] != self.element_bytes:
            raise InvalidElement(f"elements are not rows of {self.element_bytes} bytes")
        values = [int.from_bytes(row.tobytes(), "big") for row in elements]
        if not all(1 < value < self.prime and jacobi(value, self.prime) == 1 for value in values):
            raise InvalidElement("an element is 0, 1, not below the prime or not a quadratic residue")
        return values

    def _write(self, values: Sequence[int]) -> Elements:
        raw = b"".join(value.to_bytes(self.element_bytes, "big") for value in values)
        return np.frombuffer(raw, np.uint8).reshape(-1, self.element_bytes)
