"""The largest key of every family, and who lost to whom in it, in the rounds of one comparison
(`docs/design/engine.md` 2.11, `docs/design/mechanisms.md` 1.6).

A family is one dealer's (`dealer`): it knows a of every member's key a + b, both evaluators know b (`masked_numbers`).
Of a comparison of two members it knows u, they know `opened` of the sign u ^ opened. Whether a member lost nothing is a
function of the bits of its comparisons, and has one pattern v of `opened` for which it holds, which follows from
u alone. So the dealer deals, in the step of the last exchange, for each member and each pattern v

    T[v] = 1 where `opened` = v says that the member lost nothing, else 0             U[v] = T[v] a

each as a stream F(k_t) with the second evaluator and the rest, sent to the first. Both look up what they opened, v:

    largest = sum over members of U[v] + T[v] b          the parts of the two evaluators; the dealer's is 0

    rounds   those of `shared_sign`; where losses were multiplied, and keys chosen by the result, 3 or 4 more
    sent     2^w elements for each of w members of a family besides, by its dealer

Who learns what: nothing. Tables are masked by F(k_t), which the first evaluator lacks, and which entry of its own an
evaluator reads follows from what is masked already. Threat model and assumption: `dealer`. Nothing is opened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS, DealerRoles
from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedNumbers
from mpc_protocols.backends.replicated.scores.shared_sign import dealt_signs, layout
from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.engine.bitwise.argmax import duels
from mpc_protocols.engine.bitwise.bits import on_parts
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, to_bits, words_for
from mpc_protocols.engine.by_shape import by_shape


def table_bytes(families: int, width: int, element: int) -> int:
    """Sent by a party for so many families of `width` members."""
    return element * families * width * (1 << width) // DEALERS


@by_shape(lambda gates, keys: (keys.shape, keys.dtype))
def largest_of_families(gates: TrioBitGates, keys: Parts) -> tuple[Parts, BitShare]:
    """Of families of at least two members: parts of the largest key of each, shape (families,), and
    [member p lost to member q], p < q in ascending order, uint8 of shape (families, pairs). Of equal keys the first is larger.

    keys: of shape (families, width).
    """
    trio = gates.trio
    families, width = keys.shape
    places, planes = layout(families), 8 * keys.own.itemsize
    members = np.ascontiguousarray(np.moveaxis(keys.own, 1, 0))
    numbers = MaskedNumbers(trio, [members[:, place] for place in places])
    low, high = np.triu_indices(width, 1)
    lengths = [words_for(len(low) * (place.stop - place.start)) for place in places]
    ends = np.cumsum(lengths).tolist()
    words = [slice(end - length, end) for length, end in zip(lengths, ends, strict=True)]

    def difference(dealer: int) -> Elements:
        addends = numbers.addends[dealer]
        return (addends[low] - addends[high]).reshape(-1)

    def deal_tables(roles: DealerRoles, signs: Words) -> None:
        table = _tables(_of_members(_bits(signs, mine, len(low)), width), numbers.addends[trio.me])
        trio.send(trio.right, table - roles.to_second.draw(table.shape, keys.dtype))

    mine = places[trio.me].stop - places[trio.me].start
    cells = len(low) * families
    roles, lost = dealt_signs(trio, words, difference, planes, cells, numbers, deal_tables)

    def looked_up(dealer: int, opened: Words) -> Elements:
        """This evaluator's parts of the largest keys that the dealer deals for."""
        several = places[dealer].stop - places[dealer].start
        shape = (2, width, 1 << width - 1, several)
        table = (
            trio.receive(dealer, shape, keys.dtype)
            if dealer == trio.left
            else roles.as_second.draw(shape, keys.dtype)
        )
        patterns = _patterns(_of_members(_bits(opened[words[dealer]], several, len(low)), width))
        flags, chosen = np.take_along_axis(table, patterns[np.newaxis, :, np.newaxis], axis=2)[:, :, 0]
        found: Elements = (chosen + flags * numbers.addends[dealer]).sum(axis=0, dtype=keys.dtype)
        return found

    largest = {
        trio.me: np.zeros_like(numbers.addends[trio.me][0]),
        trio.left: looked_up(trio.left, lost.next),
        trio.right: looked_up(trio.right, lost.own),
    }

    def by_family(plane: Words) -> NDArray[np.uint8]:
        bits = [
            _bits(plane[of], place.stop - place.start, len(low))
            for of, place in zip(words, places, strict=True)
        ]
        return np.moveaxis(np.concatenate(bits, axis=1), 1, 0)

    return Parts(np.concatenate([largest[dealer] for dealer in range(DEALERS)])), on_parts(by_family, lost)


def _bits(plane: Words, families: int, pairs: int) -> NDArray[np.uint8]:
    """A dealer's words as bits of its families: uint8 of shape (pairs, families)."""
    bits: NDArray[np.uint8] = to_bits(plane, pairs * families, np.uint8).reshape(pairs, families)
    return bits


def _of_members(bits: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Of each member, the bits of its comparisons with the others in ascending order: (width, width - 1, families)."""
    members: NDArray[np.uint8] = bits[duels(width)[0]]
    return members


def _patterns(bits: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The bits of each member's comparisons as a number: shape (width, families)."""
    places = np.arange(bits.shape[1]).reshape(1, -1, 1)
    patterns: NDArray[np.intp] = (bits.astype(np.intp) << places).sum(axis=1)
    return patterns


def _tables(signs: NDArray[np.uint8], addends: Elements) -> Elements:
    """At the dealer: T, then U, of shape (2, width, patterns, families). signs: the dealer's, of each member's comparisons;
    addends: of shape (width, families)."""
    width, losses, _ = signs.shape
    lost_nothing = duels(width)[1][
        :, :, np.newaxis
    ]  # its sign with a member before it is 1, as that one lost
    holds = _patterns(signs ^ lost_nothing)[:, np.newaxis] == np.arange(1 << losses).reshape(1, -1, 1)
    flags: Elements = holds.astype(addends.dtype)
    return np.stack((flags, flags * addends[:, np.newaxis]))
