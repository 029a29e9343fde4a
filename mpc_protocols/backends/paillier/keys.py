"""Keys of Paillier's cryptosystem, and its three operations on integers (Paillier, EUROCRYPT 1999;
`docs/design/paillier.md` 3).

    encrypt   c = (1 + n X) h_s^a mod n^2    Damgard, Jurik, Nielsen (International Journal of Information Security 9, 2010)
              x = SHAKE256(n), h = -x^2 mod n, h_s = h^n mod n^2, a uniform of |n|/2 bits; by a table of powers of h_s
    add       c d mod n^2
    decrypt   modulo p^2 and q^2, by exponentiations whose time does not depend on the exponent

h_s is a function of n, so that nobody need believe a false one. Key objects are those of `phe`; random
numbers are not, they come from `secrets`. This is the only file that imports `phe` (GPL-3.0) and `gmpy2`: an
optional part of the installation.

Assumption: deciding n-th residues modulo n^2 is hard (DCR), also with exponents of half the length, for which
factoring n is what is known to break them (Goldreich, Rosen, Journal of Cryptology 2003). That n is well made
is up to its owner, but for what `parse` sees and `key_proof` proves.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import gmpy2
from gmpy2 import mpz
from phe.paillier import PaillierPrivateKey, PaillierPublicKey

from mpc_protocols.errors import ProtocolAborted

DERIVATION = b"cosynth-paillier-v1-base"
MIN_FACTOR = 1 << 16
"""Of a factor of n: smaller ones are looked for. That n has no more than two factors nobody proves."""
THREADS = min(4, os.cpu_count() or 1)
WINDOWS = (1, 2, 4, 8)
"""Bits of an exponent's digits that a table may have; they divide a byte's."""


@cache
def _small_primes() -> mpz:
    """The product of the primes below MIN_FACTOR."""
    return gmpy2.primorial(MIN_FACTOR - 1)


class PublicKey:
    """n, and what follows from it. Its encoding is n alone, big-endian."""

    def __init__(self, n: int) -> None:
        self.n = mpz(n)
        self.bits = self.n.bit_length()
        self.square = self.n * self.n
        self.ciphertext_bytes = -(-2 * self.bits // 8)
        self.fingerprint = hashlib.sha256(self.to_bytes()).digest()

    @classmethod
    def parse(cls, encoded: bytes | memoryview, bits: int) -> PublicKey:
        """The key of so many bits. Raises `ProtocolAborted` for an n that no honest owner makes, as far as
        that is seen: it is prime, a power, or has a factor below MIN_FACTOR."""
        n = mpz(int.from_bytes(encoded, "big"))
        if (
            n.bit_length() != bits
            or n % 4 != 1
            or gmpy2.is_prime(n)
            or gmpy2.is_power(n)
            or gmpy2.gcd(n, _small_primes()) != 1
        ):
            raise ProtocolAborted(
                "The key holder sent a public key that is too short, a prime, a power or has a small factor; stop the run."
            )
        return cls(int(n))

    def to_bytes(self) -> bytes:
        """The encoding, of one length for all keys of the same number of bits."""
        return int(self.n).to_bytes(-(-self.bits // 8), "big")

    def base(self) -> mpz:
        """h_s, whose powers hide plaintexts."""
        digest = hashlib.shake_256(DERIVATION + self.to_bytes()).digest(self.bits // 8 + 16)
        x = mpz(int.from_bytes(digest, "big")) % self.n
        return gmpy2.powmod(self.n - x * x % self.n, self.n, self.square)

    def are_roots(self, roots: Sequence[int], of: Sequence[int]) -> bool:
        """Whether these are n-th roots modulo n, one of each number, of which none shares a divisor with n."""
        product = mpz(1)
        for number in of:
            product = product * number % self.n
        return gmpy2.gcd(product, self.n) == 1 and all(
            0 < root < self.n and gmpy2.powmod(root, self.n, self.n) == number % self.n
            for root, number in zip(roots, of, strict=True)
        )

    def add(self, left: mpz, right: mpz) -> mpz:
        """A ciphertext of the sum of two plaintexts."""
        return left * right % self.square

    def refreshed(self, ciphertext: mpz) -> mpz:
        """A ciphertext of the same plaintext, uniform among all of them: who knows p and q reads nothing else
        in it."""
        residue = gmpy2.powmod(secrets.randbelow(int(self.n) - 1) + 1, self.n, self.square)
        return ciphertext * residue % self.square

    def encode(self, ciphertexts: Iterable[mpz]) -> bytes:
        """Ciphertexts for the wire: big-endian integers of `ciphertext_bytes` each."""
        size = self.ciphertext_bytes
        return b"".join(int(value).to_bytes(size, "big") for value in ciphertexts)

    def decode(self, encoded: bytes | memoryview, sender: int) -> list[mpz]:
        """What `encode` made. Raises `ProtocolAborted` for 0, for n^2 or more, and for what shares a divisor
        with n."""
        size, product, found = self.ciphertext_bytes, mpz(1), []
        for start in range(0, len(encoded), size):
            value = mpz(int.from_bytes(encoded[start : start + size], "big"))
            if not 0 < value < self.square:
                raise _no_ciphertext(sender)
            product = product * value % self.n
            found.append(value)
        if gmpy2.gcd(product, self.n) != 1:
            raise _no_ciphertext(sender)
        return found


def _no_ciphertext(sender: int) -> ProtocolAborted:
    return ProtocolAborted(
        f"Party {sender} sent a number that is no ciphertext under the agreed public key; stop the run."
    )


class Encryption:
    """Encrypts under one key, with a table of powers of h_s whose size follows from what it is for."""

    def __init__(self, key: PublicKey) -> None:
        self.key = key
        self._exponent_bytes = -(-key.bits // 16)
        self._lift = mpz(1) << key.bits - 1
        self._lowered = (1 - key.n * self._lift) % key.square
        self._window = 0
        self._table: list[list[mpz]] = []

    def expect(self, plaintexts: int) -> None:
        """Make a larger table if it pays for so many plaintexts that are to come."""
        bits = 8 * self._exponent_bytes
        window = min(WINDOWS, key=lambda of: bits // of * ((1 << of) + plaintexts))
        if window > self._window:
            self._window = window
            self._table = self._powers(bits // window)

    def encrypt(self, plaintexts: Sequence[bytes]) -> list[mpz]:
        """Ciphertexts of little-endian plaintexts below n, with fresh random numbers."""
        self.expect(len(plaintexts))
        key, size = self.key, self._exponent_bytes
        exponents = secrets.token_bytes(size * len(plaintexts))
        found = []
        for number, plaintext in enumerate(plaintexts):
            hidden = self._power(exponents[number * size : (number + 1) * size])
            found.append(self._lifted(plaintext) * hidden % key.square)
        return found

    def _lifted(self, plaintext: bytes) -> mpz:
        """1 + n (X + 2^(|n|-1)): as long for no counts as for many, since whoever waits for ciphertexts sees
        how long a multiplication takes. The exponentiation takes the 2^(|n|-1) off again."""
        return 1 + self.key.n * (mpz(int.from_bytes(plaintext, "little")) + self._lift)

    def _powers(self, digits: int) -> list[list[mpz]]:
        """For every digit of an exponent, h_s to the digit's values."""
        square, step, table = self.key.square, self.key.base(), []
        for _ in range(digits):
            row = [mpz(1)]
            for _ in range((1 << self._window) - 1):
                row.append(row[-1] * step % square)
            table.append(row)
            step = row[-1] * step % square
        return table

    def _power(self, exponent: bytes) -> mpz:
        square, result = self.key.square, self._lowered
        for powers, digit in zip(self._table, self._digits(exponent), strict=True):
            result = result * powers[digit] % square
        return result

    def _digits(self, exponent: bytes) -> Iterable[int]:
        """The exponent's digits, the lowest first."""
        if self._window == 8:
            return exponent
        shifts, mask = range(0, 8, self._window), (1 << self._window) - 1
        return (byte >> shift & mask for byte in exponent for shift in shifts)


class PrivateKey:
    """The two primes, at the key holder; without a printed form."""

    def __init__(self, p: int, q: int) -> None:
        """p, q: primes of one length that are 3 modulo 4."""
        self.public = PublicKey(p * q)
        self._key = PaillierPrivateKey(PaillierPublicKey(p * q), p, q)
        self._parts = [
            (mpz(prime), mpz(square), mpz(factor))
            for prime, square, factor in (
                (self._key.p, self._key.psquare, self._key.hp),
                (self._key.q, self._key.qsquare, self._key.hq),
            )
        ]

    @classmethod
    def generate(cls, bits: int) -> PrivateKey:
        """A fresh key whose n has exactly so many bits; gcd(p - 1, q - 1) = 2."""
        while True:
            p, q = _prime(bits // 2), _prime(bits // 2)
            if p != q and (p * q).bit_length() == bits and gmpy2.gcd(p - 1, q - 1) == 2:
                return cls(int(p), int(q))

    def decrypt(self, ciphertexts: Sequence[mpz], size: int, threads: int = THREADS) -> list[bytes]:
        """The lowest `size` bytes of each plaintext, little-endian."""
        with ThreadPoolExecutor(threads, initializer=_release_lock) as pool:
            return [
                int(x).to_bytes(-(-self.public.bits // 8), "little")[:size]
                for x in pool.map(self._open, ciphertexts)
            ]

    def roots(self, numbers: Sequence[int]) -> list[int]:
        """The n-th root of each number modulo n."""
        primes = [prime for prime, _, _ in self._parts]
        exponents = [gmpy2.invert(self.public.n, prime - 1) for prime in primes]
        return [
            int(
                self._key.crt(
                    *(
                        int(gmpy2.powmod_sec(number, exponent, prime))
                        for exponent, prime in zip(exponents, primes, strict=True)
                    )
                )
            )
            for number in numbers
        ]

    def _open(self, ciphertext: mpz) -> mpz:
        of_p, of_q = (
            (gmpy2.powmod_sec(ciphertext, prime - 1, square) - 1) // prime * factor % prime
            for prime, square, factor in self._parts
        )
        return mpz(self._key.crt(int(of_p), int(of_q)))


def _release_lock() -> None:
    """Let other threads run during this thread's exponentiations."""
    gmpy2.get_context().allow_release_gil = True


def _prime(bits: int) -> mpz:
    """A uniform prime of exactly so many bits, its two highest 1, that is 3 modulo 4."""
    while True:
        drawn = secrets.randbits(bits) | 3 << bits - 2 | 3
        if gmpy2.is_prime(drawn, 40):
            return mpz(drawn)
