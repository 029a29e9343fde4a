"""The model's rounded answers on their way from the leader to the other parties (`public.answers`), which
check them.

The leader alone subtracts c from its shares; the other parties must know which answers are 0, for those cells
take no part in the sign protocol, and check ranges, sums and the announced hash of all of them. Answers are
post-processing of released counts; they travel compactly, not secretly, cells in the order of the layout of
one dealer:

    the bitmap   one bit per cell, 1 where c is not 0, first cell in the highest bit; padding bits are 0
    bytes        of each cell that is not 0: c itself below 255, else 255
    wide ones    4 little-endian bytes of c for each byte of 255

A message that does not have exactly the length that its bitmap and its bytes give aborts.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.public.answers import Answers, DealerLayout

_ESCAPE = 255


def encoded_limit(layout: DealerLayout) -> int:
    """The most bytes that `encode` gives."""
    return -(-layout.size // 8) + 5 * layout.size


def encode(answers: Answers) -> bytes:
    """The answers of a group."""
    cells = answers.cells[answers.nonzero]
    wide = cells >= _ESCAPE
    narrow = np.where(wide, np.uint32(_ESCAPE), cells).astype(np.uint8)
    return answers.bitmap + narrow.tobytes() + cells[wide].astype("<u4").tobytes()


def decode(payload: bytes | memoryview, layout: DealerLayout) -> Answers:
    """The answers of a group. Raises `ProtocolAborted` on anything odd."""
    raw = np.frombuffer(payload, np.uint8)
    bitmap = -(-layout.size // 8)
    bits = np.unpackbits(raw[:bitmap])
    if len(raw) < bitmap or bits[layout.size :].any():
        raise ProtocolAborted(f"The leading party sent a bitmap that is not exactly {layout.size} cells.")
    nonzero = bits[: layout.size].view(np.bool_)
    count = int(np.count_nonzero(nonzero))
    narrow = raw[bitmap : bitmap + count]
    wide = narrow == _ESCAPE
    if len(raw) != bitmap + count + 4 * int(np.count_nonzero(wide)):
        raise ProtocolAborted(
            f"The leading party sent model answers that are not exactly {layout.size} cells."
        )
    values = narrow.astype(np.uint32)
    values[wide] = np.frombuffer(raw[bitmap + count :].tobytes(), "<u4")
    cells = np.zeros(layout.size, np.uint32)
    cells[nonzero] = values
    return Answers(layout, cells, nonzero)
