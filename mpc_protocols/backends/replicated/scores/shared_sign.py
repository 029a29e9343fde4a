"""Signs of shared numbers by dealers (`masked_sign`), shared again: the comparisons of an arg max.

The words of a plane are in three parts, each with another dealer (`dealer`), so that no party sends or
computes more than another. In part t the evaluators know b = x_{t+2}, and the sign is u ^ opened, u known to
the dealer t and `opened` to both evaluators. So `opened` is component t+2 of a sharing, and the dealer inputs
u in the step of the last exchange: component t is the stream F(k_t) of dealer and second evaluator, component
t+1 goes to the first evaluator, who lacks that key.

    rounds   1 for the bits of a, 3 more for 32 planes; by `sharing.sign`, with P0 as the only one who knows a, 7
    sent     (bit_rows(k) + 1) / 3 bits a number and party, and those of `masked_sign.steps`: 9.2 bytes for 32 planes
    quads    where parties are far apart (`sign_form`): a round less, 21 bytes

Threat model, masking and assumption: `dealer`. Nothing is opened.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mpc_protocols.backends.replicated.scores.dealer import DEALERS, DealerRoles
from mpc_protocols.backends.replicated.scores.l1_distance import addend_of
from mpc_protocols.backends.replicated.scores.masked_sign import (
    Addends,
    Form,
    bit_rows,
    bits_and_products,
    signs,
    steps,
)
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words, in_words, to_planes, words_for
from mpc_protocols.engine.latency import FAR

FORMS: tuple[Form, ...] = ("tree", "quads")


@lru_cache(maxsize=256)
def sign_cost(cells: int, planes: int, form: Form) -> tuple[int, int]:
    """Rounds, and bytes that a party sends."""
    schedule = steps(planes, form)
    bits = sum(2 * exchanged + dealt for exchanged, dealt in schedule) + bit_rows(planes, form == "quads") + 1
    return 1 + len(schedule), 8 * bits * words_for(cells) // DEALERS


def sign_form(cells: int, planes: int, latency_bytes: int) -> Form:
    """The form for so many numbers: where parties are near, that of less computing; else the least rounds *
    latency_bytes + bytes."""

    def cost(form: Form) -> int:
        rounds, sent = sign_cost(cells, planes, form)
        return rounds * latency_bytes + sent

    return min(FORMS if latency_bytes >= FAR else FORMS[:1], key=cost)


def parts_of(cells: int) -> list[int]:
    """Words of each dealer's part."""
    words = words_for(cells)
    return [words // DEALERS + (t < words % DEALERS) for t in range(DEALERS)]


def shared_signs(trio: Trio, x: RingShare, planes: int) -> BitShare:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,)."""
    lengths = parts_of(len(x))
    ends = np.cumsum(lengths)
    places = [slice(end - length, end) for length, end in zip(lengths, ends.tolist(), strict=True)]
    mine, first, second = trio.me, trio.left, trio.right
    roles, form = DealerRoles(trio, lengths), sign_form(len(x), planes, trio.latency_bytes)

    def addend(t: int) -> Words:
        """Planes of this party's addend of part t."""
        cells = in_words(addend_of(trio, x, t))[:, 2 * places[t].start : 2 * places[t].stop]
        return to_planes(np.ascontiguousarray(cells).reshape(-1), planes)

    known = addend(mine)
    roles.deal(bits_and_products(known[: planes - 1], form == "quads"))
    _, shares = roles.exchange(np.empty((0, roles.evaluated_words), np.uint64))
    total = Addends(known, np.concatenate((addend(first), addend(second)), axis=1), shares)
    component = np.empty(roles.dealt_words, np.uint64)
    dealt: list[Words] = []

    def share(bits: Words) -> None:
        roles.to_second.fill(component)
        dealt.append(bits ^ component)
        trio.send(trio.right, dealt[0])

    _, opened = signs(roles, total, planes, form, share)
    as_first = trio.receive(trio.left, lengths[first], np.uint64)
    as_second = np.empty(lengths[second], np.uint64)
    roles.as_second.fill(as_second)
    own, following = np.empty((2, words_for(len(x))), np.uint64)
    own[places[mine]], following[places[mine]] = component, dealt[0]
    own[places[first]], following[places[first]] = as_first, roles.first(opened)
    own[places[second]], following[places[second]] = roles.second(opened), as_second
    return BitShare(own, following)
