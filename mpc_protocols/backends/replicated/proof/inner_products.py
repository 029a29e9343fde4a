"""The proof that long inner products over GF(2^64) are what their sender says, each operand of which is held
by one verifier.

Problem. Prover i claims <L, R> = w_left + w_right for words L that its left neighbour i-1 holds and R that
its right neighbour i+1 holds, each with its part of the claim; the prover knows both. Both neighbours are
honest if it is not. This is the last step of `products` where one operand is nobody's secret from the left
verifier, so that only the other is masked.

    prover   v = <L, E>, E a stream of prover and right verifier; masked by a stream of prover and left verifier, to the right one
    coin     t, not zero
    right    B = R + t E, and w_right + t v_right, to the left verifier
    prover   a tag on B under a key of prover and left verifier, to the left one
    left     B as the tag says?  <L, B> = w_left + w_right + t (v_left + v_right)?        then `verdict`

Without the tag a right verifier could add an error to B and correct its share for a guess of L; with it a
verdict tells no more than that somebody deviated. The left verifier sees B, which E hides, and a share that
follows from B; the right one a masked word. Soundness: if <L, R> is not the claim, the equation is one of
degree 1 in t that is not 0 at 0: it holds for one t of 2^64 - 1 at most. The argument:
`docs/design/malicious.md` 9.3.

5 rounds; 8 bytes a product and 130 more from each party; about 0.2 us of CPU a product in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.functional import message_tag
from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.field import BLOCK
from mpc_protocols.backends.replicated.proof.verdict import Finding, exchange
from mpc_protocols.backends.replicated.proof.word_field import inner, product, times
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words

PIECE = 1 << 18
"""Words of one message."""
ELEMENT = 8
"""Bytes of an element."""


@dataclass(frozen=True)
class Claims:
    """One party's part of the claims of all three, each of `count` products.

    left, right: of its own claim, as the prover. held_left, left_share: of its right neighbour's, as left
    verifier; held_right, right_share: of its left neighbour's, as right verifier. Operands have shape
    (count,).
    """

    left: Words
    right: Words
    held_left: Words
    left_share: int
    held_right: Words
    right_share: int


def prove(trio: Trio, claims: Claims, public: bytes, wrong: str) -> None:
    """Prove this party's claim and verify the others'. Raises `ProtocolAborted` at all honest parties if one
    is wrong.

    public: names the claims. wrong: what a sender did whose claim is (`verdict.exchange`). What is proved was
    fixed before the coins of which the claims are made.
    """
    count = len(claims.left)
    masking, sharing, tagging = (trio.operation() for _ in range(3))
    mask = trio.next_mask(count, np.uint64, masking)
    value = np.array([inner(claims.left, mask)], np.uint64)
    trio.send(trio.right, value ^ trio.own_mask(1, np.uint64, sharing))
    trio.turn()
    given = int(trio.receive(trio.left, 1, np.uint64)[0])

    factor = _factor(toss(trio, public))
    hidden = claims.held_right ^ times(factor, trio.own_mask(count, np.uint64, masking))
    trio.send(trio.right, np.array([claims.right_share ^ product(factor, given)], np.uint64))
    tag_key = trio.own_mask(BLOCK, np.uint8, tagging).tobytes()
    trio.wire.send(trio.left, message_tag(tag_key, [claims.right ^ times(factor, mask)]))
    seen = np.empty_like(claims.held_left)
    pieces = list(message_pieces(count))
    trio.send(trio.right, hidden[pieces[0]])
    trio.turn()
    claimed = int(trio.receive(trio.left, 1, np.uint64)[0])
    tag = bytes(trio.wire.receive(trio.right, BLOCK))
    for number, piece in enumerate(pieces):  # both ways in turn: neither side waits for the other's window
        if number:
            trio.send(trio.right, hidden[piece])
        seen[piece] = trio.receive(trio.left, len(seen[piece]), np.uint64)
    tag_key = trio.next_mask(BLOCK, np.uint8, tagging).tobytes()
    kept = int(trio.next_mask(1, np.uint64, sharing)[0])
    holds = inner(claims.held_left, seen) == claimed ^ claims.left_share ^ product(factor, kept)
    exchange(trio, Finding.of(tag == message_tag(tag_key, [seen]), holds), public, wrong)


def message_pieces(count: int) -> Iterator[slice]:
    """The messages of so many words; one, empty, for none."""
    return (slice(start, min(start + PIECE, count)) for start in range(0, max(count, 1), PIECE))


def _factor(coin: bytes) -> int:
    """A uniform element that is not zero, but of a blank coin."""
    reader = stream(coin, b"factor")
    while not (factor := int(reader.draw(1, np.uint64)[0])) and not reader.is_blank:
        pass
    return factor
