"""Proofs in stages: columns that are halved first, and lookups. Honest ones pass at the stated cost, any
deviation is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.costs import proof_steps
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import (
    check_ended,
    message_bit,
    multiplied,
    outcomes,
)

PRODUCTS = [(300, 1), (7, 3)]
"""Words and entries of each message of products."""
LOOKUPS = [(8, 8, 3), (2, 4, 2), (8, 16, 1)]
"""Outer and inner entries, and words, of each lookup."""
OUTPUTS = 5
MESSAGES = len(PRODUCTS) + len(LOOKUPS)
FORMS = [Form(True, halvings) for halvings in range(3)]
PROVED = ["proved"] * 3
Spoil = Callable[[NDArray[np.uint64]], None]


@pytest.fixture(params=FORMS, ids=lambda form: f"halved {form.halvings} times")
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Form:
    """A form that every proof of the test has."""
    monkeypatch.setattr(ProofSizes, "form", lambda *_: request.param)
    found: Form = request.param
    return found


def looked_up(
    trio: Trio, transcript: Transcript, outer: int, inner: int, words: int, spoil: Spoil | None = None
) -> None:
    """A lookup of random shared vectors in a random table, noted; spoil: alters this party's part before it
    is sent."""
    table = np.random.default_rng(outer).integers(0, 2, (outer, inner, OUTPUTS)).astype(np.uint8)
    vectors = []
    for entries in (outer, inner, OUTPUTS):
        operation, shape = trio.operation(), (entries, words)
        vectors.append(
            (trio.own_mask(shape, np.uint64, operation), trio.next_mask(shape, np.uint64, operation))
        )
    o, i, (own, following) = BitShare(*vectors[0]), BitShare(*vectors[1]), vectors[2]

    def form(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
        result = np.zeros((OUTPUTS, words), np.uint64)
        for h, k, output in np.argwhere(table):
            result[output] ^= a[h] & b[k]
        return result

    mine = form(o.own, i.own)
    part = mine ^ form(o.own, i.next) ^ form(o.next, i.own) ^ own ^ following
    if spoil is not None:
        spoil(part)
    transcript.lookup(o, i, table, own, following, trio.pass_left(part), mine)


def body(
    variables: int = 6, cheat: int | None = None, product: Spoil | None = None, lookup: Spoil | None = None
) -> Any:
    """Multiplies, looks up and proves; `cheat` alters its first message of products or its first lookup."""

    def each(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        for number, (words, entries) in enumerate(PRODUCTS):
            multiplied(trio, transcript, words, entries, product if trio.me == cheat and not number else None)
        for number, sizes in enumerate(LOOKUPS):
            looked_up(trio, transcript, *sizes, lookup if trio.me == cheat and not number else None)
        prove(trio, transcript, variables)
        return "proved"

    return each


def refused(found: list[Any], cheat: int) -> bool:
    """Whether both honest parties name the link on which wrong products went."""
    said = (
        f"Party {(cheat - 1) % 3} says that party {cheat} sent it products that are not those of its shares"
    )
    return all(isinstance(of, str) and said in of for of in found)


@pytest.mark.parametrize("variables", [3, 6])
def test_products_and_lookups_are_proved_at_the_stated_cost(variables: int, form: Form) -> None:
    network = MemoryNetwork(3)

    def each(wire: Any) -> tuple[int, int, int]:
        trio, transcript = Trio(wire), Transcript()
        for words, entries in PRODUCTS:
            multiplied(trio, transcript, words, entries)
        for sizes in LOOKUPS:
            looked_up(trio, transcript, *sizes)
        before = wire.traffic()
        prove(trio, transcript, variables)
        after = wire.traffic()
        messages = after.messages_sent - before.messages_sent
        return after.bytes_sent - before.bytes_sent, messages, after.rounds - before.rounds

    sizes = ProofSizes()
    sizes.gates.update({1: 300, 3: 7})
    sizes.lookups.extend((outer.bit_length() - 1, words) for outer, _, words in LOOKUPS)
    steps = proof_steps([sizes] * 3, 0, variables)
    assert len(steps) == 10
    sent = [size for step in steps for sender, _, size in step if sender == 0]
    expected = sum(sent), len(sent), len(steps)
    assert outcomes(each, network=network) == [expected] * 3


def test_the_cheapest_form_is_chosen() -> None:
    """Small batches at once, the larger ones the more halved; far apart at once; lookups in stages."""

    def chosen(words: int, latency: int = 1 << 16, draws: int = 0) -> Form:
        sizes = ProofSizes()
        sizes.gates[1] = words
        if draws:
            sizes.lookups.append((5, draws))
        return sizes.form(6, latency)

    assert [chosen(1 << exponent) for exponent in (10, 16, 20)] == [Form(), Form(True, 1), Form(True, 2)]
    assert chosen(1 << 16, latency=1 << 22) == Form()
    assert chosen(1 << 10, draws=100) == Form(True, 0)


def one_bit(part: NDArray[np.uint64]) -> None:
    part[5] ^= np.uint64(1 << 17)


def two_segments(part: NDArray[np.uint64]) -> None:
    """300 words in 64 rows of 5 to 8: the same error at the same place of segments of the first row, halves
    or quarters."""
    part[[0, 3, 4]] ^= np.uint64(8)


@pytest.mark.parametrize("spoil", [one_bit, two_segments])
def test_wrong_products_are_refused(spoil: Spoil, form: Form) -> None:
    assert refused(outcomes(body(cheat=1, product=spoil)), 1)


def one_draw(part: NDArray[np.uint64]) -> None:
    part[2, 1] ^= np.uint64(16)


def two_draws(part: NDArray[np.uint64]) -> None:
    """The same output of two draws: with one coefficient for all draws it would cancel."""
    part[2, 0] ^= np.uint64(0b101)


def two_outputs(part: NDArray[np.uint64]) -> None:
    """Two outputs of one draw: with one coefficient for all outputs it would cancel."""
    part[1:3, 0] ^= np.uint64(2)


def two_outputs_of_two_draws(part: NDArray[np.uint64]) -> None:
    part[1:3, 0] ^= np.uint64(0b11)


@pytest.mark.parametrize("spoil", [one_draw, two_draws, two_outputs, two_outputs_of_two_draws])
def test_wrong_lookups_are_refused(spoil: Spoil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProofSizes, "form", lambda *_: FORMS[1])
    cheat = (one_draw, two_draws, two_outputs, two_outputs_of_two_draws).index(spoil) % 3
    assert refused(outcomes(body(6, cheat, lookup=spoil)), cheat)


ALTERED = {
    "the first coin's secret": (3, 5),
    "the prover's values": (5, 100),
    "its values of lookups": (5, -300),
    "the second coin's secret": (8, 3),
    "g, outside the cube or masked": (10, 7),
    "g, the masks' own value": (10, -1),
    "ready for the third coin": (11, 0),
    "the third coin's secret": (13, 3),
    "hidden columns of products": (15, 77),
    "hidden columns of a sum": (18, 77),
    "hidden columns of a lookup": (20, 77),
    "hidden looked up entries": (21, 77),
    "the share of the value": (25, 9),
    "the tag": (26, 15),
    "a verdict": (27, 0),
    "what a verdict is about": (28, 12),
}


@pytest.mark.parametrize("name", ALTERED)
def test_any_message_of_a_proof_that_differs_by_a_bit_ends_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of a party whose products are right; at least one honest party stops, and the other does not
    go on alone."""
    monkeypatch.setattr(ProofSizes, "form", lambda *_: FORMS[1])
    number, byte = ALTERED[name]
    check_ended(name, outcomes(body(6), 2, message_bit(MESSAGES + number, byte))[:2])
