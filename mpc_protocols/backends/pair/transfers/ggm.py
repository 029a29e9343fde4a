"""Many binary trees of seeds at once, and trees of which all leaves but one are known (GGM; a punctured PRF).

    owner     a seed grows by two public permutations, left = H_0(s), right = H_1(s) (`fixed_key`), to `leaves` leaves;
              per level it also gets the XOR of all left and of all right nodes
    holder    knows, per level, the XOR of the side that the path to leaf p does NOT take: with it every node but those on the
              path, so every leaf but p

Goldreich, Goldwasser, Micali 1986; the side sums: Gilboa and Ishai 2014, Boyle et al. 2017, Schoppmann et al.
2019. What the holder lacks is pseudorandom to it; the owner learns p from nobody (the holder gets its sums by
oblivious transfer). A tree is for one use: the same leaves must not mask two messages.

Arrays are leaf by leaf, then tree by tree: (leaves, trees, 2) words, so that every operation is one pass over
many trees. A tree of fewer leaves than a power of two lacks its last nodes. A holder indexes its own memory
with its own path: that is seen, if at all, by who runs on its machine.

Cost per tree: 2 `leaves` hashes, and 32 bytes a level for whoever transfers the sums. Threat model:
semi-honest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.fixed_key import Blocks, PublicPermutation


def levels_of(leaves: int) -> int:
    """Levels below the root of a tree with so many leaves, at least 2."""
    return (leaves - 1).bit_length()


class Trees:
    """The two halves of a doubling under public keys, for one batch of trees with `leaves` >= 2 leaves."""

    def __init__(self, context: bytes, leaves: int) -> None:
        """context: 32 public bytes that belong to this batch alone."""
        self.leaves = leaves
        self.levels = levels_of(leaves)
        self._children = (PublicPermutation(context[:16]), PublicPermutation(context[16:32]))

    def grow(self, seeds: Blocks) -> tuple[Blocks, Blocks]:
        """Owner: from seeds (trees, 2) all leaves (leaves, trees, 2), and the sums (levels, 2 sides, trees,
        2)."""
        nodes = np.ascontiguousarray(seeds[np.newaxis])
        sums = np.empty((self.levels, 2, len(seeds), 2), np.uint64)
        for level in range(self.levels):
            nodes = self._below(nodes, level)
            for side in range(2):
                np.bitwise_xor.reduce(nodes[side::2], axis=0, out=sums[level, side])
        return nodes, sums

    def puncture(self, paths: NDArray[np.intp], sums: Blocks) -> Blocks:
        """Holder: from paths (trees,) and the sums away from them (levels, trees, 2) all leaves, that of the
        path as 0."""
        trees = np.arange(len(paths))
        nodes = np.zeros((1, len(paths), 2), np.uint64)
        for level in range(self.levels):
            nodes = self._below(nodes, level)
            here = paths >> (self.levels - 1 - level)
            for place in (here & ~1, here | 1):  # grown from the parent that is not known
                exists = place < len(nodes)
                nodes[place[exists], trees[exists]] = 0
            known = np.stack([np.bitwise_xor.reduce(nodes[side::2], axis=0) for side in range(2)])
            missing = sums[level] ^ known[(here & 1) ^ 1, trees]
            exists = (here ^ 1) < len(nodes)
            nodes[(here ^ 1)[exists], trees[exists]] = missing[exists]
        return nodes

    def _below(self, nodes: Blocks, level: int) -> Blocks:
        """The nodes of the next level, as many as lead to a leaf."""
        below = np.empty((2 * len(nodes), *nodes.shape[1:]), np.uint64)
        for side, permutation in enumerate(self._children):
            below[side::2] = permutation.hash(nodes)
        return below[: -(-self.leaves >> (self.levels - 1 - level))]
