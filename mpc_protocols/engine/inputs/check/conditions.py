"""What counts of at most R rows satisfy, as numbers that must not be negative: a public linear function of a
contributor's cells.

A contributor's cells x are known modulo 2^32, shared. All its marginals count the same at most R rows only
if, read as signed integers of 32 bits,

    0 <= x <= R                                 each cell
    0 <= s <= R                                 each sum of a marginal's cells up to the end of a block of m
    0 <= z and 0 <= -z                          COMBINATIONS sums of random subsets of all differences between links

Blocks have m = floor((2^32 - 1) / R) - 1 cells, one at least. With cells and the sum before in 0..R, the sum
after a block is below 2^32 as an integer, so no sum wraps unseen: each is what it says, the last of a
marginal its number of rows. If a difference d is not 0 modulo 2^32, a sum of a random subset is 0 with a
chance of at most 1/2, for it has two values that differ by d with and without it; all are 0 with
2^-COMBINATIONS. Subsets are drawn when the contributor's cells are fixed.

Conversely, whoever counts at most R rows satisfies all of this, whatever the subsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.check.relations import Link, links
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.functionality import Clique
from mpc_protocols.public.cliques import CliqueRegister

COMBINATIONS: Final = 64
"""Random sums; differences that are not all 0 pass with probability 2^-64."""
WORD_CELLS = 64
_LINK_CELLS = 1 << 14  # cells of a link whose subsets are unpacked at a time: 4 MB
Subsets = list[NDArray[np.uint8]]
"""Of each link, a bit for each of its cells and each combination, packed: (cells, COMBINATIONS / 8)."""


@dataclass(frozen=True)
class Conditions:
    """What marginals that are shared together must satisfy, beside those shared before.

    fresh: the cliques shared now, each with its cells. rows: R. links: also with earlier cliques.
    """

    fresh: Mapping[Clique, int]
    rows: int
    links: Sequence[Link]

    @classmethod
    def of(
        cls, register: CliqueRegister, agreed: Sequence[Clique], fresh: Sequence[Clique], rows: int
    ) -> Conditions:
        """agreed: shared before, and found to be consistent. Raises `StudyInvalid` (`links`)."""
        cells = {clique: register.facts.cells(clique) for clique in fresh}
        return cls(cells, rows, tuple(links(register, agreed, fresh)))

    @property
    def bounded(self) -> int:
        """Cells and sums that must lie in 0..R."""
        return sum(cells + -(-cells // self._block) for cells in self.fresh.values())

    @property
    def size(self) -> int:
        """Numbers that must not be negative, filled up to whole words."""
        return -(-2 * (self.bounded + COMBINATIONS) // WORD_CELLS) * WORD_CELLS

    @property
    def offsets(self) -> Elements:
        """What is added to `values`, in public."""
        offsets = np.zeros(self.size, np.uint32)
        offsets[self.bounded : 2 * self.bounded] = self.rows
        return offsets

    def subsets(self, coins: KeyStream) -> Subsets:
        """Which cells of each link's difference are in which combination. coins: public, the same at all
        parties; used once."""
        found = []
        for operation, link in enumerate(self.links):
            drawn = np.empty((link.cells, COMBINATIONS // 8), np.uint8)
            coins.reader(operation).fill(drawn)
            found.append(drawn)
        return found

    def values(self, marginals: Mapping[Clique, Elements], subsets: Subsets) -> Elements:
        """Of one contributor's cells, or of a share of them: linear modulo 2^32. With `offsets`, none may be
        negative.

        marginals: of all cliques shared so far.
        """
        values = np.zeros(self.size, np.uint32)
        start = 0
        for clique in self.fresh:
            cells = marginals[clique]
            for part in (cells, self._sums(cells)):
                values[start : start + len(part)] = part
                start += len(part)
        np.negative(values[:start], out=values[start : 2 * start])
        combined = self._combined(marginals, subsets)
        values[2 * start : 2 * start + COMBINATIONS] = combined
        values[2 * start + COMBINATIONS : 2 * (start + COMBINATIONS)] = np.negative(combined)
        return values

    @property
    def _block(self) -> int:
        return max(1, (2**32 - 1) // self.rows - 1)

    def _sums(self, cells: Elements) -> Elements:
        """Sums of the cells up to the end of each block."""
        starts = np.arange(0, len(cells), self._block)
        sums: Elements = np.cumsum(np.add.reduceat(cells, starts, dtype=np.uint32), dtype=np.uint32)
        return sums

    def _combined(self, marginals: Mapping[Clique, Elements], subsets: Subsets) -> Elements:
        combined = np.zeros(COMBINATIONS, np.uint32)
        for link, chosen in zip(self.links, subsets, strict=True):
            difference = link.difference(marginals)
            for start in range(0, link.cells, _LINK_CELLS):
                bits = np.unpackbits(chosen[start : start + _LINK_CELLS], axis=1).astype(np.uint32)
                combined += difference[start : start + _LINK_CELLS] @ bits
        return combined
