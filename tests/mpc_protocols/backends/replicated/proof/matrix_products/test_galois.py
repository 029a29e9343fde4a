"""The Galois ring and polynomials over it, against plain integer arithmetic."""

from __future__ import annotations

import secrets
from itertools import product
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products.grid import cube
from mpc_protocols.backends.replicated.proof.matrix_products.folding import at, folded, grid, multilinear_at
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING, GaloisRing, Products
from mpc_protocols.engine.prg import KeyStream


def slow(ring: GaloisRing, a: Any, b: Any) -> list[int]:
    """a b modulo z^d + z^4 + z^3 + z + 1 and modulo 2^K."""
    degree = ring.degree
    found = [0] * (2 * degree - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += int(x) * int(y)
    for k in range(2 * degree - 2, degree - 1, -1):
        top, found[k] = found[k], 0
        for tap in (0, 1, 3, 4):
            found[k - degree + tap] -= top
    return [value % (1 << 16) for value in found[:degree]]


def elements(ring: GaloisRing, *shape: int) -> Any:
    drawn = np.frombuffer(secrets.token_bytes(int(np.prod(shape)) * ring.degree * 2), RING)
    return drawn.reshape(*shape, ring.degree)


@pytest.mark.parametrize("degree", [8, 64])
def test_products_are_those_of_polynomials(degree: int) -> None:
    ring = GaloisRing(degree)
    x, y = elements(ring, 2, 3)
    top = np.full((1, degree), -1).astype(RING)
    x, y = np.concatenate([x, top]), np.concatenate([y, top])
    expected = np.array([slow(ring, a, b) for a, b in zip(x, y, strict=True)], RING)
    assert (Products(ring).dot(x, y) == expected.sum(axis=0, dtype=RING)).all()
    assert (ring.scaled(x[:1], y[0])[0] == expected[0]).all()
    lift = ring.lifts(KeyStream(secrets.token_bytes(16)).reader(0), 1)[0]
    assert set(lift.tolist()) <= {0, 1}
    assert (ring.plus_times(x, y, lift)[1] == (x[1] + np.array(slow(ring, y[1], lift), RING))).all()


@pytest.mark.parametrize("degree", [8, 64])
def test_the_polynomial_is_irreducible_modulo_two(degree: int) -> None:
    """Rabin: f divides z^(2^d) - z and is prime to z^(2^(d/2)) - z (d a power of two)."""
    f = 1 << degree | 0b11011

    def reduced(a: int) -> int:
        while a.bit_length() > degree:
            a ^= f << a.bit_length() - 1 - degree
        return a

    def squared(a: int) -> int:
        return reduced(int("0".join(f"{a:b}"), 2))

    powers = [2]
    for _ in range(degree):
        powers.append(squared(powers[-1]))
    assert powers[degree] == 2
    a, b = f, powers[degree // 2] ^ 2
    while b:
        while a.bit_length() >= b.bit_length():
            a ^= b << a.bit_length() - b.bit_length()
        a, b = b, a
    assert a == 1


def test_long_inner_products_and_combinations_are_exact() -> None:
    """Also of the largest and smallest signed elements, over more rows than one piece."""
    ring, half = GaloisRing(64), 1 << 15
    random = elements(ring, 700)
    for x, y in ((random, random[::-1].copy()), *((np.full_like(random, a),) * 2 for a in (half, half - 1))):
        wide = (x.astype(np.uint64)[:, :, np.newaxis] * y.astype(np.uint64)[:, np.newaxis, :]).sum(axis=0)
        assert (Products(ring).dot(x, y) == ring.reduced(wide)).all()
        factors = np.concatenate([ring.lifts(KeyStream(bytes(16)).reader(1), 63), np.ones((1, 64), np.int64)])
        factors[:, 7] = 1
        assert (
            ring.combine(x, factors) == (x.astype(np.uint64) @ factors.astype(np.uint64)).astype(RING)
        ).all()
        wide, sign = np.tile(x, 9), np.tile(1 - 2 * (np.arange(64) % 2), 9)  # sums beyond what float32 holds
        many = np.stack([sign, -sign, sign * 0 + 1], axis=1)
        assert (ring.combine(wide, many) == (wide.astype(np.int64) @ many).astype(RING)).all()
    with pytest.raises(ValueError, match="too large to be exact"):
        ring.combine(random, np.full((64, 64), 1 << 40))


@pytest.mark.parametrize("variables", [0, 1, 3])
def test_the_grid_gives_the_inner_product_of_folded_rows(variables: int) -> None:
    ring = GaloisRing(64)
    x, y = elements(ring, 2, 1 << variables, 5)
    products = Products(ring)
    values = np.array([products.dot(*pair) for pair in grid(x, y)])
    assert [tuple(values[place]) for place in cube(variables)] == [
        tuple(products.dot(*pair)) for pair in zip(x, y, strict=True)
    ]
    rho = list(ring.lifts(KeyStream(secrets.token_bytes(16)).reader(0), variables))
    one = np.zeros(64, np.int64)
    one[0] = 1
    weights = []
    for bits in product((0, 1), repeat=variables):
        weight = one.astype(RING)
        for bit, u in zip(bits, rho, strict=True):
            weight = ring.scaled(weight, u if bit else one - u)
        weights.append(weight)
    at_rho = []
    for rows in (x, y):
        slow_fold = sum(ring.scaled(row, weight) for row, weight in zip(rows, weights, strict=True))
        assert (folded(ring, rows, rho) == slow_fold).all()
        at_rho.append(folded(ring, rows, rho))
    assert (at(ring, values, rho) == products.dot(*at_rho)).all()
    assert (multilinear_at(ring, x[:, 0], rho) == at_rho[0][0]).all()


def test_other_rings_are_refused() -> None:
    with pytest.raises(ValueError, match="No Galois ring"):
        GaloisRing(32)
