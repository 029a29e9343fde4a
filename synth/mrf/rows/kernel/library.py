"""The kernel as a process has it, and what it is told of rows and targets.

Any processor that LLVM compiles for will do: the code has no instruction of its own (`code.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.process.compiled.library import ADDRESS, WORD, address, functions
from mpc_protocols.process.later import Later
from synth.mrf.rows.cells import AcrossCells, Strides
from synth.mrf.rows.kernel.layout import DIGIT, LANES
from synth.mrf.rows.pairs import AcrossPairs

if TYPE_CHECKING:
    from synth.mrf.rows.kernel import code
else:
    code = Later("synth.mrf.rows.kernel.code")

Codes = NDArray[np.int32]
Rows = NDArray[np.intp]

_WORD_BITS = 64
_SIGNATURES = {
    "exchange": (
        *(ADDRESS, ADDRESS, WORD, WORD, ADDRESS, WORD, ADDRESS, ADDRESS, WORD, WORD, WORD),
        *(ctypes.c_double, ADDRESS, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS, WORD, ADDRESS, ADDRESS),
        *(ADDRESS, WORD, WORD, WORD, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    ),
    "sort": (ADDRESS, ADDRESS, WORD, WORD, WORD, ADDRESS),
}


class Kernel:
    """The compiled functions. Threads may use it at the same time."""

    def __init__(self) -> None:
        self._call = functions(code.module(), _SIGNATURES)

    def exchanger(self, values: Codes) -> Exchanger:
        """For the rows of a table."""
        return Exchanger(self._call["exchange"], values)

    def sorted(self, keys: NDArray[np.int64], known: int) -> NDArray[np.int64]:
        """The numbers in order; they are not negative, and by their lowest `known` bits they are in order
        already. The array may be overwritten."""
        turns = -(-(63 - known) // DIGIT)
        other, places = np.empty_like(keys), np.empty(1 << DIGIT, np.int64)
        self._call["sort"](address(keys), address(other), len(keys), known, turns, address(places))
        return other if turns % 2 else keys


class Exchanger:
    """Rows whose codes lie together, so that a pair's are soon read. values: (columns, rows), contiguous; what is
    exchanged is exchanged there, too."""

    def __init__(self, function: Callable[..., None], values: Codes) -> None:
        self._call, self._values = function, values
        columns, rows = values.shape
        self._by_row = np.zeros((rows, -(-columns // LANES) * LANES), np.int32)
        self._by_row[:, :columns] = values.T

    def make(
        self,
        first: Rows,
        second: Rows,
        side: Sequence[int],
        judges: Sequence[AcrossCells | AcrossPairs],
        together: int,
        batch: int,
        least: float,
    ) -> Rows:
        """Exchange the columns `side` between the rows first[i] and second[i] where that adds less than
        `least` to the distance; of each `together` pairs, `batch` at a time are judged against the same
        counts. No row is in two pairs.

        Returns which pairs.
        """
        rows, columns = self._by_row.shape
        batch = min(batch, max(1, len(first)))
        found = np.zeros(len(first) + 1, np.int64)
        of_cells = [_of_cells(judge, batch) for judge in judges if isinstance(judge, AcrossCells)]
        of_pairs = [_of_pairs(judge) for judge in judges if isinstance(judge, AcrossPairs)]
        given = (
            *(self._by_row, self._values, rows, columns // LANES, np.array(side, np.int64), len(side)),
            *(np.ascontiguousarray(of, dtype=np.int64) for of in (first, second)),
            *(len(first), together, batch, least, np.empty(columns, np.int32)),
            *(np.zeros(batch + 1, np.int64), found),
            *(of_cells[0] if of_cells else _NO_CELLS),
            *(of_pairs[0] if of_pairs else _NO_PAIRS),
        )
        self._call(*(address(each) if isinstance(each, np.ndarray) else each for each in given))
        return found[1 : found[0] + 1]


def _of_cells(judge: AcrossCells, batch: int) -> tuple[Any, ...]:
    """What `code._exchange` is given of targets that are looked up."""
    masks, terms = _changes(judge)
    room = np.empty(4 * (judge.width * batch + 1), np.int64)
    return len(masks), masks, terms, terms.shape[1] // 3, judge.surplus, room


def _of_pairs(judge: AcrossPairs) -> tuple[Any, ...]:
    """And of pairs of columns."""
    of_side = np.searchsorted(judge.cells, judge.starts[:-1])  # where they begin, of columns of the side
    inside = np.isin(judge.starts[:-1], judge.cells)
    told = [
        np.stack([judge.columns[which], begin[which]], axis=1)
        for which, begin in ((~inside, judge.starts[:-1]), (inside, of_side))
    ]
    prices = np.clip(1 + np.multiply.outer(judge.surplus, np.array([-2, 2], np.float32)), -1, 1)
    prices *= judge.is_target[..., None]
    return (
        *(np.concatenate(told).astype(np.int64), len(told[0]), len(told[1]), len(judge.cells)),
        *(judge.surplus, judge.is_target, prices, np.empty((judge.width + 1, 2), np.int64)),
    )


_NOTHING = np.zeros(2, np.int64)
_NO_CELLS = (0, _NOTHING, _NOTHING, 0, _NOTHING, _NOTHING)
_NO_PAIRS = (_NOTHING, 0, 0, 0, _NOTHING, _NOTHING, _NOTHING, _NOTHING)


def _changes(judge: AcrossCells) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """What `code._exchange` calls masks and terms."""
    length = max(len(moved) + len(rest) for _, moved, rest in judge.changed)
    masks = np.zeros((-(-judge.width // LANES), 2, LANES), np.uint64)
    terms = np.zeros((judge.width, 1 + 3 * length), np.int64)
    for number, (first, moved, rest) in enumerate(judge.changed):
        masks[number // LANES, :, number % LANES] = _bits(moved), _bits(rest)
        told = [(column, stride, 0) for column, stride in moved]
        told += [(column, 0, stride) for column, stride in rest]
        terms[number, : 1 + 3 * len(told)] = first, *(part for term in told for part in term)
    return masks, terms


def _bits(part: Strides) -> int:
    """One of each column; some share one if there are more than a word has."""
    return sum({1 << column % _WORD_BITS for column, _ in part})
