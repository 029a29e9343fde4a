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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@lru_cache(maxsize=256)
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


@dataclass(frozen=True)
class _Sum:
    """What adds up to a generate, or a propagate, of the groups from `first` on. Rows are named by their numbers in
    `_Group`, each with how many of them come before the first group: (number, skipped).

    products: a mask, or a product of masks, and what the evaluators know of the term's other factors (None: it has no
    others). public: the terms, as both evaluators know them.
    """

    products: tuple[tuple[tuple[int, int], tuple[int, int] | None], ...]
    public: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Group:
    """Groups of one size in a merge, all the same for all of them and worked out once (`_plan`).

    factors: of which rows each factor's are taken (0: generate, 1: propagate), a row for each group; they have the
    numbers 0, 1, .. products: the dealt ones, whose numbers follow, each of two rows of numbers before it, with the first
    group that takes it. sums: of generate (0) and of propagate (1).
    """

    groups: int
    factors: tuple[tuple[int, slice], ...]
    products: tuple[tuple[int, int, int], ...]
    sums: tuple[tuple[int, _Sum], ...]

    def rows(self, of: Rows) -> list[Words]:
        """Of each factor."""
        return [of[kind][place] for kind, place in self.factors]

    def multiplied(self, factors: Rows) -> list[Words]:
        """All products of factors after these themselves, of all groups."""
        known = self.rows(factors)
        for most, last, _ in self.products:
            known.append(known[most] & known[last])
        return known


@lru_cache(maxsize=256)
def _plan(count: int, radix: int) -> tuple[_Group, ...]:
    return tuple(_planned(*group) for group in _groups(count, radix))


def _planned(start: int, size: int, groups: int) -> _Group:
    stop = start + size * groups
    names = [(kind, place) for kind in "gp" for place in range(size)]
    number: dict[Product, int] = {(name,): n for n, name in enumerate(names)}
    skipped = [0] * len(names)
    products = []
    for product in _dealt(start, size, groups):
        products.append((number[product[:-1]], number[product[-1:]], _first(start, product)))
        number[product] = len(number)
        skipped.append(_first(start, product))

    def summed(terms: Sequence[Product], first: int) -> _Sum:
        chosen = [
            (
                (number[some], first - skipped[number[some]]),
                (number[others], first) if (others := tuple(f for f in term if f not in some)) else None,
            )
            for term in terms
            for several in range(1, len(term) + 1)
            for some in combinations(term, several)
        ]
        return _Sum(tuple(chosen), tuple((number[term], first) for term in terms))

    of_kinds = ((_generate(size), 0), ([_propagate(size)], int(start == 0)))
    return _Group(
        groups,
        tuple(("gp".index(kind), slice(start + place, stop, size)) for kind, place in names),
        tuple(products),
        tuple((kind, summed(terms, first)) for kind, (terms, first) in enumerate(of_kinds) if first < groups),
    )


def dealt(generate: Words, propagate: Words, radix: int) -> Words:
    """At the dealer: the products of masks for the next merge."""
    rows = []
    for group in _plan(len(generate), radix):
        known = group.multiplied((generate, propagate))
        rows += [
            product[first:]
            for product, (_, _, first) in zip(known[len(group.factors) :], group.products, strict=True)
        ]
    return np.concatenate(rows)


def parts(opened: Rows, share: Rows, dealt_shares: Words, radix: int) -> tuple[Words, Words]:
    """At an evaluator: its shares of the products that merge (all generates, then all propagates), and what
    both know of them, which one of the two adds. dealt_shares: of `dealt`."""
    mine: list[list[Words]] = [[], []]
    public: list[list[Words]] = [[], []]
    at = 0
    for group in _plan(len(opened[0]), radix):
        known, masks = group.multiplied(opened), group.rows(share)
        for _, _, first in group.products:
            masks.append(dealt_shares[at : at + group.groups - first])
            at += group.groups - first
        for kind, added in group.sums:
            mine[kind].append(_sum(_expanded(added, known, masks)))
            public[kind].append(_sum(known[term][skipped:] for term, skipped in added.public))
    return np.concatenate([*mine[0], *mine[1]]), np.concatenate([*public[0], *public[1]])


def _expanded(added: _Sum, known: Sequence[Words], masks: Sequence[Words]) -> Iterator[Words]:
    """What adds up to shares of the terms but for their public part."""
    for (chosen, skipped), others in added.products:
        mask = masks[chosen][skipped:] if skipped else masks[chosen]
        if others is None:
            yield mask
        else:
            number, skipped = others
            yield mask & (known[number][skipped:] if skipped else known[number])


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
