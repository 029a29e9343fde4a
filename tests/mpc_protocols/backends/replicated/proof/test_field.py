"""The algebra of a proof: the field, linear functionals of rows, products on a grid, coordinates at a point."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products import functional as functionals
from mpc_protocols.backends.replicated.proof.bit_products.basis import challenge, plus_times
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.grid import (
    Grid,
    cube,
    cube_weights,
    grid_weights,
    members,
)
from mpc_protocols.backends.replicated.proof.field import (
    ONE,
    dots,
    independent,
    multiply,
    read,
    read_all,
    subfield,
    write,
    write_all,
)
from mpc_protocols.engine.prg import KeyStream


def slow_product(a: bytes, b: bytes) -> bytes:
    """Algorithm 1 of NIST SP 800-38D, bit by bit."""
    x, v, z = int.from_bytes(a, "big"), int.from_bytes(b, "big"), 0
    for i in range(128):
        if x >> (127 - i) & 1:
            z ^= v
        v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
    return z.to_bytes(16, "big")


def test_products_are_those_of_the_standard() -> None:
    for _ in range(20):
        a, b = secrets.token_bytes(16), secrets.token_bytes(16)
        assert write(multiply(read(a), read(b))) == slow_product(a, b)
    assert write(ONE) == b"\x80" + bytes(15)


@pytest.mark.parametrize("number", [0, 2, 35])
def test_sums_of_products(number: int) -> None:
    """Of few vectors, and of more than are computed at a time."""
    vectors = np.frombuffer(secrets.token_bytes(number * 9 * 16), np.uint8).reshape(number, 9, 16)
    coefficients = [read(secrets.token_bytes(16)) for _ in range(9)]
    for vector, found in zip(vectors, dots(coefficients, vectors), strict=True):
        expected = 0
        for coefficient, block in zip(coefficients, vector, strict=True):
            expected ^= multiply(coefficient, read(block.tobytes()))
        assert found == expected


def test_elements_are_written_as_they_are_read() -> None:
    blocks = np.frombuffer(secrets.token_bytes(3 * 16), np.uint8).reshape(3, 16)
    assert read_all(blocks) == [read(block.tobytes()) for block in blocks]
    assert (write_all(read_all(blocks)) == blocks).all() and write_all([]).shape == (0, 16)


def test_rows_whose_sum_is_at_a_point_of_the_grid() -> None:
    """One row at a point of the cube, in the order of rows; at infinity in a variable, both of its halves."""
    assert members(0) == [[0]] and members(1) == [[0], [1], [0, 1]]
    of_two = members(2)
    assert [of_two[place] for place in cube(2)] == [[0], [1], [2], [3]]
    assert of_two[2] == [0, 1] and of_two[6] == [0, 2] and of_two[8] == [0, 1, 2, 3]


@pytest.mark.parametrize("degree", [8, 64])
def test_a_subfield_is_closed_and_has_its_order(degree: int) -> None:
    field = subfield(degree)
    assert independent(field.powers)
    assert not independent([*field.powers, multiply(field.powers[-1], field.powers[1])])
    element = square = field.element(secrets.randbits(degree) | 1)
    for _ in range(degree):
        square = multiply(square, square)
    assert square == element  # a to the power 2^degree


def test_a_functional_is_linear_and_is_ghash() -> None:
    rows = np.frombuffer(secrets.token_bytes(2 * 48), np.uint64).reshape(2, 6)
    seed = secrets.token_bytes(32)
    of = Functional(seed, 3, 6)
    together = of.of(np.concatenate([rows, (rows[0] ^ rows[1])[np.newaxis], np.zeros((1, 6), np.uint64)]))
    assert (together[0] ^ together[1] == together[2]).all()
    assert not together[3].any()
    assert (Functional(seed, 4, 6).of(rows) != together[:2]).any()
    # one bit of the last block counts H^2 times its place, the same bit a block earlier H^3: so their
    # quotient is H
    unit = np.zeros((3, 6), np.uint64)
    unit[0, 4], unit[1, 2], unit[2, 0] = (
        128,
        128,
        128,
    )  # the coefficient of x^0: the highest bit of a first byte
    last, middle, first = (read(block.tobytes()) for block in of.of(unit))
    assert multiply(middle, middle) == multiply(last, first)


@pytest.mark.parametrize("variables", [3, 6])
@pytest.mark.parametrize("entries", [1, 3])
def test_products_on_the_grid_give_the_product_at_a_point(variables: int, entries: int) -> None:
    """Against sums over all pairs of rows: <x(rho), y(rho)> = sum eq_r eq_q L(x_r y_q)."""
    rng = np.random.default_rng(variables)
    count, words = 1 << variables, 4
    x, y, z = rng.integers(0, 2**64 - 1, (3, count, entries, words), dtype=np.uint64, endpoint=True)
    of = Functional(secrets.token_bytes(32), 0, words)
    point = challenge(KeyStream(secrets.token_bytes(16)).reader(0), variables)

    def form(x: np.ndarray, y: np.ndarray) -> int:
        values = np.zeros((3**variables, 16), np.uint8)
        Grid(variables, entries, words).add_products(x, y, of, values)
        assert (values[cube(variables)] == of.of(np.bitwise_xor.reduce(x & y, axis=1))).all()
        [found] = dots(point.weights, values[np.newaxis])
        return found

    if variables == 3:
        rho = [read(secrets.token_bytes(16)) for _ in range(variables)]
        eq = cube_weights(rho)
        slow = 0
        for r in range(count):
            pairs = of.of(np.bitwise_xor.reduce(x[r] & y, axis=1))
            for weight, block in zip(eq, pairs, strict=True):
                slow ^= multiply(multiply(eq[r], weight), read(block.tobytes()))
        values = np.zeros((3**variables, 16), np.uint8)
        Grid(variables, entries, words).add_products(x, y, of, values)
        assert dots(grid_weights(rho), values[np.newaxis]) == [slow]
    # x + t z in coordinates is bilinear with t outside
    hidden = plus_times(x, point.times_factor, z)
    assert form(hidden, y) == form(x, y) ^ multiply(point.factor, form(z, y))


def test_long_rows_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x, z = rng.integers(0, 2**64 - 1, (2, 64, 2, 37), dtype=np.uint64, endpoint=True)
    point = challenge(KeyStream(bytes(16)).reader(1), 6)
    whole = plus_times(x, point.times_factor, z)
    monkeypatch.setattr(functionals, "PIECE", 8)
    monkeypatch.setattr("mpc_protocols.backends.replicated.proof.bit_products.basis.PIECE", 8)
    assert (plus_times(x, point.times_factor, z) == whole).all()
    assert [(piece.start, piece.stop) for piece in functionals.pieces(9, 2)] == [(0, 4), (4, 8), (8, 9)]
