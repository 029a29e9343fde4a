"""The state of an elimination in machine code (`code.py`), as it lies in memory.

A *state* is a block of words: `HEAD` of them (columns left, steps taken, cells, whether cells are known), and
then, by the place and `rows` words each, neighbourhoods and `marks`; by the place, one word each, where its key
stands, and behind them keys, whose they are, how many columns each step left, one word of each; and `rows`
words of steps of which nothing that they left is gone (`pending`). Keys of columns that are left come first;
`NO_KEY` stands behind them.

    key       cells * 2^16 + the column's place: of two equals the earlier goes first. Cells above `MAX_WORD_CELLS`
              are told as these: whoever meets them asks for the size otherwise, for a table of so many cells has no model
    marks     of a column, the steps that left it, bit by bit. A step's clique lies in an earlier one exactly if a pending step
              left this column, and as many columns as the clique has: then nothing of what it left is gone, so all of it is in
              the clique
"""

from __future__ import annotations

from typing import Final

PLACE_BITS: Final = 16
MAX_WORD_CELLS: Final = 1 << 43
MAX_VALUES: Final = 1 << 20
"""Of a column: the product with `MAX_WORD_CELLS` is a word."""
MAX_PLACES: Final = 1 << 12
"""Of a state, which then has 4 MB."""
NO_KEY: Final = (1 << 63) - 1
LANES, KEY_LANES = 4, 8
"""Words of a row are a multiple of the first, places for keys of the second."""
HEAD: Final = 8
LEFT, TAKEN, CELLS, UNKNOWN = range(4)
"""Words of a state's head."""
