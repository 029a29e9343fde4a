"""Secret shuffle: shared rows in a uniformly random order that no party knows (Araki et al., CCS 2021,
semi-honest; `docs/design/psu.md` 2.2).

Every pair of parties draws a uniform permutation from its common key; the order is the composition of the
three, and each party lacks one. With roles A, B, C = first, first + 1, first + 2 modulo 3, A and B hold x as
a = x_A ^ x_B (A) and b = x_C (B):

    A   X = pi_CA( pi_AB(a ^ Z_AB) ^ Z_CA )  -> B           Z_AB, Z_CA: masks from the keys of A and B, of C and A
    B   Y = pi_AB(b ^ Z_AB)                  -> C           C: Y' = pi_CA(Y ^ Z_CA); X ^ Y' = the rows in the order of two
    B   y_B = F(k_B),  X' = pi_BC(X)  ^ y_B  -> C
    C   y_A = F(k_A),  Y' = pi_BC(Y') ^ y_A  -> B           y_C = X' ^ Y';  (y_A, y_B, y_C) shares the result

X is masked towards B by Z_CA, Y towards C by Z_AB, X' towards C by F(k_B), Y' towards B by F(k_A): keys that
the receiver lacks, so all that anybody receives is uniform whatever the rows are (threat model and
assumption: `trio`). A never learns pi_BC, B never pi_CA, C never pi_AB.

Permutations are exactly uniform given a uniform stream (`permutation`). Rounds: 2 a block of rows and column;
sent: A and C 8 bytes a row and column, B 16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.noise.permutation import permutation_of

BLOCK = 1 << 19
"""Words of one message."""


def shuffle(trio: Trio, columns: Sequence[BitShare], first: int = 0) -> list[BitShare]:
    """Columns of shape (n,), all in the same new order. `first`: the party in the role of A; B sends most."""
    count = len(columns[0])
    a, b, c = ((first + i) % 3 for i in range(3))
    orders, masks, results = trio.operation(), trio.operation(), trio.operation()
    by_own, by_next = (
        permutation_of(count, reader) for reader in (trio.own_reader(orders), trio.next_reader(orders))
    )
    own_mask, next_mask = trio.own_reader(masks), trio.next_reader(masks)
    own_new, next_new = trio.own_reader(results), trio.next_reader(results)
    shuffled = []
    for x in columns:
        if trio.me == a:  # own: the key of C and A, next: of A and B
            mixed = (x.own ^ x.next ^ next_mask.draw(count, np.uint64))[by_next]
            _send(trio, b, (mixed ^ own_mask.draw(count, np.uint64))[by_own])
            trio.turn()
            trio.turn()
            shuffled.append(BitShare(own_new.draw(count, np.uint64), next_new.draw(count, np.uint64)))
        elif trio.me == b:  # own: the key of A and B, next: of B and C
            _send(trio, c, (x.next ^ own_mask.draw(count, np.uint64))[by_own])
            trio.turn()
            mine = own_new.draw(count, np.uint64)
            shuffled.append(BitShare(mine, _joined(trio, c, _receive(trio, a, x.own)[by_next] ^ mine)))
        else:  # own: the key of B and C, next: of C and A
            trio.turn()
            mine = next_new.draw(count, np.uint64)
            mixed = (_receive(trio, b, x.own) ^ next_mask.draw(count, np.uint64))[by_next]
            shuffled.append(BitShare(_joined(trio, b, mixed[by_own] ^ mine), mine))
    return shuffled


def _send(trio: Trio, peer: int, words: Words) -> None:
    for start in range(0, len(words), BLOCK):
        trio.send(peer, words[start : start + BLOCK])


def _receive(trio: Trio, peer: int, like: Words) -> Words:
    """As many words as another array has."""
    words = np.empty_like(like)
    for start in range(0, len(words), BLOCK):
        part = words[start : start + BLOCK]
        part[:] = trio.receive(peer, len(part), np.uint64)
    return words


def _joined(trio: Trio, peer: int, half: Words) -> Words:
    """This party's half XOR the peer's; blocks go both ways in turn, so that neither side waits for the
    other's window."""
    out = np.empty_like(half)
    for start in range(0, max(len(half), 1), BLOCK):
        block = slice(start, start + BLOCK)
        trio.send(peer, half[block])
        if start == 0:
            trio.turn()
        np.bitwise_xor(half[block], trio.receive(peer, len(half[block]), np.uint64), out=out[block])
    return out
