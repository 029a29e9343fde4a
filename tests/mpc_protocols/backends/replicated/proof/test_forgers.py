"""Forged proofs in stages, in GF(2^8) with three variables: they pass where a polynomial vanishes, so at the
rate of the bound.

Each prover makes its error look right with probability as large as it can: in the values of the first
message, in those of the second, in the values of a lookup. With the coins of an earlier run of the same keys,
which no run has, it always passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products import products
from mpc_protocols.backends.replicated.proof.bit_products.basis import Challenge, challenge
from mpc_protocols.backends.replicated.proof.bit_products.folding import Fold
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.grid import cube
from mpc_protocols.backends.replicated.proof.bit_products.lookups import Combined, weights_at, weights_of
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.coins import stream
from mpc_protocols.backends.replicated.proof.field import ONE, dots, multiply, read, subfield, write
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import multiplied, outcomes
from tests.mpc_protocols.backends.replicated.proof.test_products import inverse, noting
from tests.mpc_protocols.backends.replicated.proof.test_stages import OUTPUTS, looked_up

VARIABLES, HALVINGS, OUTER_BITS = 3, 1, 2
FIRST, SECOND = 1 + 5, 1 + 10
"""Numbers of the prover's messages, after one of products."""
ROOTS = [subfield(8).element(0x35 + 31 * j) for j in range(4)]


def added(payload: bytes, elements: list[int], start: int = 0) -> bytes:
    """A message with elements added, from one on."""
    message = np.frombuffer(payload, np.uint8).reshape(-1, 16).copy()
    change = np.frombuffer(b"".join(map(write, elements)), np.uint8).reshape(-1, 16)
    message[start : start + len(change)] ^= change
    return message.tobytes()


def tensor(of_variables: list[list[int]]) -> list[int]:
    """A product of polynomials in one variable each, on the grid."""
    values = [ONE]
    for of in of_variables:
        values = [multiply(value, factor) for value in values for factor in of]
    return values


class Prover:
    """A cheating prover. coins: of its proof as they become known."""

    def __init__(self, coins: list[bytes]) -> None:
        self.coins = coins

    @property
    def point(self) -> Challenge:
        return challenge(stream(self.coins[1], b"point"), VARIABLES)

    @property
    def fold(self) -> Fold:
        return Fold.draw(stream(self.coins[2], b"fold"), self.point, HALVINGS)

    def work(self, trio: Trio, transcript: Transcript) -> None:
        """16 words: a word in each half of 8 rows; the first half's first bit is wrong in each."""

        def spoil(part: Any) -> None:
            part[::2] ^= np.uint64(1)

        multiplied(trio, transcript, 16, spoil=spoil if trio.me == 1 else None)

    @property
    def theta(self) -> int:
        """What each of these errors adds to a value on the cube."""
        return read(Functional(self.coins[0], 0, 1).of(np.array([[1]], np.uint64))[0])

    def forged(self, number: int, payload: bytes) -> bytes | None:
        raise NotImplementedError

    def passes(self) -> bool:
        """Whether the forgery is not seen at the coins that came."""
        raise NotImplementedError


class First(Prover):
    """Adds theta q(u_1) q(u_2) q(u_3), q(0) = q(1) = 1, of degree 2, outside the cube: two roots in each
    variable."""

    def on_grid(self) -> list[int]:
        return tensor([[ONE, ONE, inverse(multiply(g, g) ^ g)] for g in ROOTS[:VARIABLES]])

    def forged(self, number: int, payload: bytes) -> bytes | None:
        if number != FIRST:
            return None
        inside, values = set(cube(VARIABLES).tolist()), self.on_grid()
        return added(
            payload, [multiply(self.theta, v) for place, v in enumerate(values) if place not in inside]
        )

    def passes(self) -> bool:
        # its second message is an honest one: what is wrong of G is delta (1 + w) (1 + t)
        return _at(self.point.weights, self.on_grid()) == 0 or ONE in (self.fold.point[0], self.fold.factor)


class Second(Prover):
    """Adds delta (1 + w) (1 + w / s) to G: delta is what is wrong of P(rho, 0), P(rho, 1) is right."""

    root = ROOTS[0]

    @property
    def wrong(self) -> int:
        """delta."""
        weights, found = self.point.weights, 0
        for place in cube(VARIABLES).tolist():
            found ^= multiply(weights[place], self.theta)
        return found

    def forged(self, number: int, payload: bytes) -> bytes | None:
        if number != SECOND:
            return None
        return added(payload, [multiply(self.wrong, inverse(self.root)), self.wrong])

    def passes(self) -> bool:
        return self.wrong == 0 or self.fold.point[0] in (ONE, self.root)


class Knowing(Second):
    """It knows where the halves are folded."""

    def __init__(self, coins: list[bytes], known: int) -> None:
        super().__init__(coins)
        self.root = known


class LookingUp(Prover):
    """One output of a lookup is wrong; adds what sums up to that in the cube and vanishes where a variable is
    1 or a root."""

    def work(self, trio: Trio, transcript: Transcript) -> None:
        def spoil(part: Any) -> None:
            part[2, 0] ^= np.uint64(1)

        looked_up(trio, transcript, 1 << OUTER_BITS, 4, 1, spoil if trio.me == 1 else None)
        if trio.me == 1:
            self.tables = [of.table for of in transcript.proving.lookups]

    def on_grid(self) -> list[int]:
        return tensor([[ONE, 0, inverse(s)] for s in ROOTS[:OUTER_BITS]])

    @property
    def wrong(self) -> int:
        """What the error adds to the sum over the cube."""
        seed, error = self.coins[0], np.zeros((OUTPUTS, 1), np.uint64)
        error[2] = 1
        combined = Combined(self.tables, stream(seed, b"lookups"), VARIABLES)
        return combined.claimed(0, error, [(Functional(seed, 0, 1), slice(0, 1))])

    def forged(self, number: int, payload: bytes) -> bytes | None:
        if number != FIRST:
            return None
        elements = [multiply(self.wrong, value) for value in self.on_grid()[1:]]
        return added(payload, elements, len(payload) // 16 - len(elements))

    def passes(self) -> bool:
        [weight] = weights_of(stream(self.coins[1], b"lookups"), [OUTER_BITS], VARIABLES).values()
        at_point = _at(weights_at(self.point, OUTER_BITS), self.on_grid())
        return 0 in (self.wrong, weight, at_point) or self.fold.factor == ONE  # as above, in both halves


class Shifting(Prover):
    """The same bit of two rows of products is wrong, so the errors add up to 0; adds them to P of a lookup,
    on the same places of the cube, where only their sum is known. Without a weight of P that comes later,
    both would cancel at every point."""

    rows = (1, 2)

    def work(self, trio: Trio, transcript: Transcript) -> None:
        def spoil(part: Any) -> None:
            for row in self.rows:
                part[row] ^= np.uint64(1)

        multiplied(trio, transcript, 64, spoil=spoil if trio.me == 1 else None)
        looked_up(trio, transcript, 64, 2, 1)

    def forged(self, number: int, payload: bytes) -> bytes | None:
        if number != FIRST + 1:  # after a message of products and one of lookups
            return None
        elements, points = [0] * (3**6 - 1), cube(6)
        for row in self.rows:
            elements[points[row] - 1] = self.theta
        return added(payload, elements, len(payload) // 16 - len(elements))

    def passes(self) -> bool:
        return False


def _at(weights: list[int], values: list[int]) -> int:
    [found] = dots(weights, np.frombuffer(b"".join(map(write, values)), np.uint8).reshape(1, -1, 16))
    return found


def forge(prover: Prover, network: MemoryNetwork | None = None, variables: int = VARIABLES) -> bool:
    """Whether the forged proof of party 1 passes at both others; as it should be seen from the coins."""
    prover.coins.clear()

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        prover.work(trio, transcript)
        prove(trio, transcript, variables)
        return "proved"

    found = outcomes(body, 1, lambda number, peer, payload: prover.forged(number, payload), network=network)
    assert (found[0] == "proved") == (found[2] == "proved") == prover.passes()
    return bool(found[0] == "proved")


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Those of party 1, whose proofs are in stages, halved once."""
    noted: list[bytes] = []
    monkeypatch.setattr(products, "toss", noting(noted, 1))
    monkeypatch.setattr(ProofSizes, "form", lambda *_: Form(True, HALVINGS))
    return noted


@pytest.mark.parametrize("kind", [First, Second, LookingUp])
def test_a_forged_proof_passes_where_its_polynomial_vanishes(
    kind: Callable[[list[bytes]], Prover], coins: list[bytes]
) -> None:
    for _ in range(8):
        forge(kind(coins))


def test_errors_of_products_are_not_shifted_to_lookups(
    coins: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProofSizes, "form", lambda *_: Form(True, 0))
    assert not forge(Shifting(coins), variables=6)


def test_a_prover_that_knew_the_last_coin_could_forge(coins: list[bytes]) -> None:
    first, second = (MemoryNetwork(3, session_id=bytes(32)) for _ in range(2))
    second.share_keys(first)
    blind = Second(coins)
    forge(blind, first)
    assert forge(Knowing(coins, blind.fold.point[0]), second)


@pytest.mark.campaign
@pytest.mark.parametrize(("kind", "most"), [(First, 12), (Second, 4), (LookingUp, 12)])
def test_two_thousand_forged_proofs(
    kind: Callable[[list[bytes]], Prover], most: int, coins: list[bytes]
) -> None:
    """Some pass, and fewer than the degree that the bound counts of 256, with 4 sd."""
    passed = sum(forge(kind(coins)) for _ in range(2000))
    print(f"{passed} of 2000 forged proofs pass")
    assert 0 < passed / 2000 < most / 256 + 4 * (most / 256 / 2000) ** 0.5
