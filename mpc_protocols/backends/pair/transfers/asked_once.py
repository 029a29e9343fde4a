"""Lookups of numbers that stay: asked once, answered USES times (`docs/design/pair.md` 1).

A choosing party that looks up the same y again and again, each time beside another b, need not choose again: it
knows of each transfer the same string K_i[y_i], and a string is a seed of as much mask as is wanted. Of use u, four
uses to 128 bits,

    K_i^(u)     32 bits of H(K_i) in the first four uses, then of H'(K_i), H''(K_i)    H of `fixed_key`, public keys of their own

so that use u is a lookup (`lookup`) with the transfers (y_i, K_i^(u)), in which e is 0. It costs its entries, one
message. The choices are the bits of y themselves (`Transfers.choose`).

Who learns what: nothing. y is masked as all choices are, once. Of each use the reader knows K_i^(u)[y_i] alone, which
makes entries but that of y uniform to it, whatever it has seen of other uses: hashes of a string that it lacks, under
public keys of their own, are as good as so many strings, as long as the string itself masks nothing. What it reads
are its own shares, masked by the offering party's r of each use. The caller sees to it that nothing is looked up
twice in one use. Assumption: `fixed_key`. Threat model: `ot_extension`.

Cost: to ask, m transfers in one direction, in the round in which others are made. A use: a round and 2^m w bits from
the offering party. Memory of either party: 4 USES bytes a cell and field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.bit_matrix import cells_of
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks, PublicPermutation
from mpc_protocols.backends.pair.transfers.lookup import (
    Field,
    PublicTable,
    bits_of,
    mask_of_all,
    offer,
    read,
    xor_of_strings,
)
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Shorts
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, words_for

USES = 12
"""Lookups that a question serves, a multiple of four: asking costs a use a twelfth of what it costs."""
_OF_A_STRING = 4  # uses of 128 bits

Masks = NDArray[np.uint32]
"""(USES, fields, cells): of entry y in its chunk, or of all entries."""


def no_masks(fields: Sequence[Field]) -> Masks:
    """Those of no cell."""
    return np.empty((USES, len(fields), 0), np.uint32)


def ask(
    transfers: Transfers, fields: Sequence[Field], planes: Words, cells: tuple[int, int]
) -> tuple[Masks, Masks]:
    """Ask for this party's cells in all fields while the peer asks for its own: the masks of entries y of this party's,
    and of all entries of the peer's. 1 round; none where one party asks alone.

    fields: one above the other, from the lowest bit; their `chooser` does not matter. planes: the bits of this party's
    numbers in them. cells: for how many this party asks, and the peer.
    """
    link, (own, others), bits = transfers.link, cells, bits_of(fields)
    chosen, (base, other) = transfers.choose(planes.reshape(-1), bits * words_for(others))
    keys = [[transfers.operation(b"uses") for _ in range(USES // _OF_A_STRING)] for _ in range(2)]

    def of_entry(table: PublicTable, strings: Shorts) -> Shorts:
        return xor_of_strings(strings, table.bits)

    def of_all(table: PublicTable, first: Shorts, second: Shorts) -> Shorts:
        return mask_of_all(table, first, first ^ second)

    return (
        _masks(fields, own, [chosen], keys[link.me], of_entry),
        _masks(fields, others, [base, other], keys[link.peer], of_all),
    )


def look_up(
    transfers: Transfers,
    fields: Sequence[Field],
    own: tuple[Elements, Masks],
    others: tuple[Elements, Masks],
) -> list[tuple[Elements, Elements]]:
    """Shares of F(y, b) in each field, of cells that this party asked for, and of cells that the peer did. 1 round.

    own, others: this party's elements there, and the masks of one use, (fields, cells): cells in the same order at both
    parties.
    """
    link, (y, mine), (b, theirs) = transfers.link, own, others
    offered = [offer(link, of, b, masks) for of, masks in zip(fields, theirs, strict=True)]
    link.give_way()
    found = []
    for of, masks, share in zip(fields, mine, offered, strict=True):
        number = y >> y.dtype.type(of.start) & y.dtype.type(len(of.table.values) - 1)
        found.append((read(link, of, masks, number), share))
    return found


def _masks(
    fields: Sequence[Field],
    cells: int,
    strings: Sequence[Blocks],
    keys: Sequence[bytes],
    mask: Callable[..., Shorts],
) -> Masks:
    """Of some transfers. strings: one or both of each, (64, bits words, 2). mask: of a field's table and the strings of
    its transfers in one use, (64, m words) each, to (64, words)."""
    words = words_for(cells)
    ends = np.cumsum([0, *(of.table.bits * words for of in fields)]).tolist()
    pieces = [slice(*of) for of in pairwise(ends)]
    return np.stack(
        [
            np.stack(
                [
                    cells_of(mask(of.table, *(part[:, piece] for part in parts)), cells)
                    for of, piece in zip(fields, pieces, strict=True)
                ]
            )
            for parts in _of_uses(strings, keys)
        ]
    )


def _of_uses(strings: Sequence[Blocks], keys: Sequence[bytes]) -> Iterator[list[Shorts]]:
    """The strings of each use: (64, n) for each of (64, n, 2)."""
    for key in keys:
        hashed = [PublicPermutation(key).hash(of) for of in strings]
        for part in range(_OF_A_STRING):
            yield [of.view(np.uint32)[:, :, part] for of in hashed]
