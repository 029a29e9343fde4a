"""Up to RADIX neighbours of a carry tree merged with one exchange, where a dealer knows all masks
(`docs/design/engine.md` 2.5).

Neighbours generate g_i and propagate p_i, lowest first; together, for s of them,

    g = g_{s-1} ^ p_{s-1} g_{s-2} ^ p_{s-1} p_{s-2} g_{s-3} ^ ..          p = p_{s-1} .. p_0, which the lowest of all needs not

Each is a masked bit z = o ^ m: both evaluators know o, the dealer knows m, and the evaluators share it. A
product over a set T of them is the XOR over its subsets S of (product of o outside S) (product of m in S).
The dealer knows the products of masks and shares those of two and more factors; what is left is linear, so
the evaluators hold shares of the product without a message, and open it under a fresh mask. For s = 4: 22
dealt bits (15 without p) and 2 opened ones, one round in place of two. For s = 8 without p: 367, one round in place
of three. How many are merged at once is an argument, the radix, at most MAX_RADIX.

Rows of generate and of propagate are given for all chunks, the lowest first; propagate has a row of zeros for
the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Words

RADIX: Final = 4
MAX_RADIX: Final = 8
Factor = tuple[str, int]
"""Whether a chunk of a group generates ("g") or propagates ("p"), and its place in the group, from the
lowest."""
Product = tuple[Factor, ...]
Rows = tuple[Words, Words]
"""Of all chunks: generate, propagate."""


def _groups(count: int, radix: int) -> list[tuple[int, int, int]]:
    """Groups of so many chunks: (first chunk, chunks of each, groups). A single one at the top waits."""
    whole, rest = divmod(count, radix)
    return [(0, radix, whole)] * (whole > 0) + [(radix * whole, rest, 1)] * (rest > 1)


def widest_radix(count: int) -> int:
    """The least radix by which so many chunks become one in the fewest merges of at most MAX_RADIX."""
    merges = 1
    while MAX_RADIX**merges < count:
        merges += 1
    return next(radix for radix in range(2, MAX_RADIX + 1) if radix**merges >= count)


def left(count: int, radix: int) -> int:
    """Chunks that so many become."""
    return -(-count // radix)


def merged_rows(count: int, radix: int) -> int:
    """Rows that are opened to merge so many chunks: of generate for each group, of propagate for each but the
    lowest."""
    return 2 * sum(groups for _, _, groups in _groups(count, radix)) - 1


def dealt_rows(count: int, radix: int) -> int:
    """Rows that are dealt for it."""
    return sum(
        groups - _first(start, product)
        for start, size, groups in _groups(count, radix)
        for product in _dealt(start, size, groups)
    )


def _generate(size: int) -> list[Product]:
    """What is added to the generate of a group's highest chunk."""
    return [(("g", i), *(("p", j) for j in range(i + 1, size))) for i in range(size - 1)]


def _propagate(size: int) -> Product:
    return tuple(("p", i) for i in range(size))


@lru_cache
def _products(size: int) -> tuple[Product, ...]:
    """The products of masks that are dealt for a group, each once."""
    found: dict[Product, None] = {}
    for term in [*_generate(size), _propagate(size)]:
        for number in range(2, len(term) + 1):
            found |= dict.fromkeys(combinations(term, number))
    return tuple(found)


def _dealt(start: int, size: int, groups: int) -> Sequence[Product]:
    """Those of them that any of such groups takes."""
    return [product for product in _products(size) if groups > _first(start, product)]


def _first(start: int, product: Product) -> int:
    """The first group that takes a product: the lowest of all chunks has no propagate."""
    return int(start == 0 and ("p", 0) in product)


def _factors(rows: Rows, start: int, size: int, groups: int) -> dict[Factor, Words]:
    """Each factor's rows, one for each group."""
    stop = start + size * groups
    return {
        (kind, place): of[start + place : stop : size]
        for kind, of in zip("gp", rows, strict=True)
        for place in range(size)
    }


def dealt(generate: Words, propagate: Words, radix: int) -> Words:
    """At the dealer: the products of masks for the next merge."""
    rows = []
    for start, size, groups in _groups(len(generate), radix):
        masks, products = _factors((generate, propagate), start, size, groups), _dealt(start, size, groups)
        known = _multiplied(masks, products)
        rows += [known[product][_first(start, product) :] for product in products]
    return np.concatenate(rows)


def _multiplied(factors: Mapping[Factor, Words], products: Sequence[Product]) -> dict[Product, Words]:
    """Products of factors; each from one of a factor less, which comes before it or is a factor."""
    known: dict[Product, Words] = {(factor,): rows for factor, rows in factors.items()}
    for product in products:
        known[product] = known[product[:-1]] & known[product[-1:]]
    return known


def parts(opened: Rows, share: Rows, dealt_shares: Words, radix: int) -> tuple[Words, Words]:
    """At an evaluator: its shares of the products that merge (all generates, then all propagates), and what
    both know of them, which one of the two adds. dealt_shares: of `dealt`."""
    mine: list[list[Words]] = [[], []]
    public: list[list[Words]] = [[], []]
    at = 0
    for start, size, groups in _groups(len(opened[0]), radix):
        products = _dealt(start, size, groups)
        known = _multiplied(_factors(opened, start, size, groups), products)
        masks: dict[Product, Words] = {
            (factor,): rows for factor, rows in _factors(share, start, size, groups).items()
        }
        for product in products:
            length = groups - _first(start, product)
            masks[product] = dealt_shares[at : at + length]
            at += length
        lowest = int(start == 0)
        for place, (terms, first) in enumerate(((_generate(size), 0), ([_propagate(size)], lowest))):
            if groups == first:
                continue
            mine[place].append(_sum(_expanded(terms, known, masks, groups - first)))
            public[place].append(_sum(known[term][first:] for term in terms))
    return np.concatenate([*mine[0], *mine[1]]), np.concatenate([*public[0], *public[1]])


def _expanded(
    terms: Sequence[Product], known: Mapping[Product, Words], masks: Mapping[Product, Words], groups: int
) -> Iterator[Words]:
    """What adds up to shares of the terms but for their public part, for the last so many groups."""
    for term in terms:
        for number in range(1, len(term) + 1):
            for chosen in combinations(term, number):
                mask = masks[chosen][len(masks[chosen]) - groups :]
                others = tuple(factor for factor in term if factor not in chosen)
                yield mask & known[others][len(known[others]) - groups :] if others else mask


def _sum(rows: Iterator[Words]) -> Words:
    total = next(rows).copy()
    for row in rows:
        total ^= row
    return total


def merged(generate: Words, propagate: Words, products: Words, radix: int) -> Rows:
    """The chunks after a merge: a group's highest generate and the products; a single chunk at the top waits."""
    count = len(generate)
    groups = _groups(count, radix)
    tops = [generate[start + size - 1 : start + size * many : size] for start, size, many in groups]
    several = sum(map(len, tops))
    waits = slice(count - (count % radix == 1), count)
    return (
        np.concatenate((np.concatenate(tops) ^ products[:several], generate[waits])),
        np.concatenate((propagate[:1], products[several:], propagate[waits])),
    )
