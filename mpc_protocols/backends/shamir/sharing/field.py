"""GF(8) and GF(16), and what m parties with threshold t compute in them from public numbers alone:
coefficients, no secrets.

A secret bit has shares in GF(2^e), e planes of bits each: e = 3 up to seven parties, GF(2)[z]/(z^3 + z + 1);
e = 4 above, GF(2)[z]/(z^4 + z + 1). Party i stands at the point i + 1. An element is an integer whose bit p
is the coefficient of z^p.

    lambda_i    Lagrange coefficients at 0 of the first 2t + 1 points; 0 for a party beyond them
    phi         the coefficient of 1, a linear map onto GF(2) with phi(1) = 1. What a product opens to lies in GF(2), so the image
                of each party's term under phi is enough: one bit travels, not e
    f_A         of a set A of m - t parties: the polynomial of degree t that is 1 at 0 and 0 at the parties outside A

Source: Shamir (1979); Cramer, Damgard, Ishai (2005) for f_A; `docs/design/shamir.md` 2. Nothing here is
secret.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations

from mpc_protocols.errors import StudyInvalid

MIN_PARTIES, MAX_PARTIES = 3, 9
_REDUCED = {3: 0b1011, 4: 0b10011}
Members = tuple[int, ...]


def threshold_of(parties: int) -> int:
    """t: the largest minority of so many computing parties; as many may work together and learn nothing."""
    return (parties - 1) // 2


class Field:
    """GF(2^degree)."""

    def __init__(self, degree: int) -> None:
        self.degree = degree
        self._modulus = _REDUCED[degree]

    def product(self, x: int, y: int) -> int:
        """x * y."""
        result = 0
        while y:
            if y & 1:
                result ^= x
            x <<= 1
            if x >> self.degree:
                x ^= self._modulus
            y >>= 1
        return result

    def inverse(self, x: int) -> int:
        """1 / x, of x that is not 0."""
        return next(y for y in range(1, 1 << self.degree) if self.product(x, y) == 1)


class Scheme:
    """Public coefficients of party `me` of `parties`."""

    def __init__(self, me: int, parties: int) -> None:
        """Raises `StudyInvalid` unless 3 to 9 parties compute and `me` is one of them."""
        if not MIN_PARTIES <= parties <= MAX_PARTIES or not 0 <= me < parties:
            raise StudyInvalid(
                f"Shamir sharing needs {MIN_PARTIES} to {MAX_PARTIES} computing parties, the study names {parties}."
            )
        self.me, self.parties = me, parties
        self.threshold = threshold_of(parties)
        self.field = Field(3 if parties <= 7 else 4)

    @property
    def planes(self) -> int:
        """Bits of a share."""
        return self.field.degree

    @cached_property
    def sets(self) -> list[Members]:
        """The sets of m - t parties to which this party belongs: each has a key of its own."""
        every = combinations(range(self.parties), self.parties - self.threshold)
        return [members for members in every if self.me in members]

    def at_me(self, members: Members) -> int:
        """f_A of these members at this party's point."""
        value, product = 1, self.field.product
        for other in range(self.parties):
            if other not in members:
                value = product(value, product((self.me + 1) ^ (other + 1), self.field.inverse(other + 1)))
        return value

    @cached_property
    def weight(self) -> int:
        """lambda_me."""
        points = range(1, 2 * self.threshold + 2)
        if self.me + 1 not in points:
            return 0
        value, product = 1, self.field.product
        for other in points:
            if other != self.me + 1:
                value = product(value, product(other, self.field.inverse(other ^ (self.me + 1))))
        return value

    def opened(self, share: int) -> int:
        """phi(lambda_me * share)."""
        return self.field.product(self.weight, share) & 1

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The planes of a share whose XOR is phi(lambda_me * share)."""
        return tuple(p for p in range(self.planes) if self.opened(1 << p))

    @cached_property
    def bilinear(self) -> tuple[tuple[int, ...], ...]:
        """For each plane a of x the planes of y whose XOR, ANDed with it and summed over a, is phi(lambda_me
        * x * y)."""
        product = self.field.product
        return tuple(
            tuple(b for b in range(self.planes) if self.opened(product(1 << a, 1 << b)))
            for a in range(self.planes)
        )
