"""Signs of numbers by dealers (`masked_sign`), shared again: the comparisons of an arg max.

The words of a plane are in three parts, each with another dealer (`dealer`), so that no party sends or
computes more than another. In part t the evaluators know b, and the sign is u ^ opened, u known to
the dealer t and `opened` to both evaluators. So `opened` is component t+2 of a sharing, and the dealer inputs
u in the step of the last exchange: component t is the stream F(k_t) of dealer and second evaluator, component
t+1 goes to the first evaluator, who lacks that key.

    rounds   1 for the bits of a, 3 more for 32 planes; by `sharing.sign`, with P0 as the only one who knows a, 7
    sent     (bit_rows(k) + 1) / 3 bits a number and party, and those of `masked_sign.steps`: 9.2 bytes for 32 planes
    wide     where parties are far apart (`sign_form`): a round less, 13 bytes

Numbers are a + b in each dealer's part: of a sharing a = x_t + x_{t+1} and b = x_{t+2}; of keys that no sharing was made of
they are opened to the evaluators in the round of the bits (`masked_numbers`).

Threat model, masking and assumption: `dealer`. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS, DealerRoles
from mpc_protocols.backends.replicated.scores.l1_distance import addend_of
from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedKeys, MaskedNumbers
from mpc_protocols.backends.replicated.scores.masked_sign import (
    Addends,
    Form,
    bit_rows,
    bits_and_products,
    signs,
    steps,
    wide_products,
    wide_rows,
)
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, in_words, to_planes, words_for
from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.latency import FAR

FORMS: tuple[Form, ...] = ("tree", "quads", "wide")
Dealt = Callable[[DealerRoles, Words], None]
"""What the dealer sends besides, given its part of the signs, u, in planes; it may read `to_second`."""


@lru_cache(maxsize=256)
def sign_cost(cells: int, planes: int, form: Form) -> tuple[int, int]:
    """Rounds, and bytes that a party sends."""
    schedule = steps(planes, form)
    shared = wide_rows(planes) if form == "wide" else bit_rows(planes, form == "quads")
    bits = sum(2 * exchanged + dealt for exchanged, dealt in schedule) + shared + 1
    return 1 + len(schedule), 8 * bits * words_for(cells) // DEALERS


def sign_form(cells: int, planes: int, latency_bytes: int) -> Form:
    """The form for so many numbers: where parties are near, that of less computing; else the least rounds *
    latency_bytes + bytes."""

    def cost(form: Form) -> int:
        rounds, sent = sign_cost(cells, planes, form)
        return rounds * latency_bytes + sent

    return min(FORMS if latency_bytes >= FAR else FORMS[:1], key=cost)


def layout(count: int) -> list[slice]:
    """Each dealer's part of so many things."""
    ends = np.cumsum([count // DEALERS + (t < count % DEALERS) for t in range(DEALERS)]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def shared_signs(trio: Trio, x: RingShare, planes: int) -> BitShare:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,)."""
    places = layout(words_for(len(x)))

    def addend(t: int) -> Elements:
        return _cells_of(addend_of(trio, x, t), places[t])

    return dealt_signs(trio, places, addend, planes, len(x))[1]


def shared_less(trio: Trio, left: MaskedKeys, right: MaskedKeys, planes: int, opens: bool) -> BitShare:
    """1 where left is less than right: a plane of shape (words,). Both are of the same numbers. opens: whether these are
    opened to their evaluators now, in the round of the bits."""
    numbers, places = left.numbers, layout(words_for(len(left)))

    def difference(t: int) -> Elements:
        of = numbers.addends[t]
        difference: Elements = of[_cells_of(left.positions, places[t])]
        difference -= of[_cells_of(right.positions, places[t])]
        return difference

    return dealt_signs(trio, places, difference, planes, len(left), numbers if opens else None)[1]


def _cells_of(values: NDArray[Any], words: slice) -> NDArray[Any]:
    """The cells of these words of a plane."""
    return np.ascontiguousarray(in_words(values)[:, 2 * words.start : 2 * words.stop]).reshape(-1)


def dealt_signs(
    trio: Trio,
    places: Sequence[slice],
    addend: Callable[[int], Elements],
    planes: int,
    cells: int,
    opening: MaskedNumbers | None = None,
    also: Dealt | None = None,
) -> tuple[DealerRoles, BitShare]:
    """Signs of the numbers of all dealers: roles whose streams go on after what `also` has read, and a plane.

    places: each dealer's words of the plane. addend: this party's addend of the numbers of a dealer, of those that it
    evaluates after the first exchange, with which `opening` travels. cells: about as many as there are; they decide the
    form. also: runs in the step of the last exchange.
    """
    mine, first, second = trio.me, trio.left, trio.right
    roles = DealerRoles(trio, [place.stop - place.start for place in places])
    form = sign_form(cells, planes, trio.latency_bytes)
    known = to_planes(addend(mine), planes)
    low = known[: planes - 1]
    roles.deal(wide_products(low) if form == "wide" else bits_and_products(low, form == "quads"))
    nothing = np.empty((0, roles.evaluated_words), np.uint64)
    _, shares = roles.exchange(nothing, alone if opening is None else opening.send)
    if opening is not None:
        opening.receive()
    evaluated = np.concatenate([to_planes(addend(t), planes) for t in (first, second)], axis=1)
    own: dict[int, Words] = {}
    following: dict[int, Words] = {}

    def share(bits: Words) -> None:
        own[mine] = roles.to_second.draw(roles.dealt_words, np.uint64)
        following[mine] = bits ^ own[mine]
        trio.send(trio.right, following[mine])
        if also is not None:
            also(roles, bits)

    _, opened = signs(roles, Addends(known, evaluated, shares), planes, form, share)
    own[first], following[first] = (
        trio.receive(trio.left, len(roles.first(opened)), np.uint64),
        roles.first(opened),
    )
    own[second] = roles.second(opened)
    following[second] = roles.as_second.draw(len(own[second]), np.uint64)
    return roles, BitShare(*(np.concatenate([of[t] for t in range(DEALERS)]) for of in (own, following)))
