"""The code of the kernel, as LLVM's intermediate representation: eight words of a row at a time.

    fold          the sums of a block's streams                                 `ot_extension._fold`
    transpose     64 rows of bits                                               `bit_matrix.transpose`

**fold.** Streams are summed two and two, k times; before that, of every two the second goes into the sum for
that bit. All of it happens in registers: each word of a stream is read once.

**transpose.** Warren's masked swaps: three between rows whose numbers differ by a multiple of 8, into a room
that stays in the first-level cache, then three between rows whose numbers differ by less, and back. Each row
is read and written once.

No branch and no address depends on what rows hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from mpc_protocols.backends.pair.transfers.kernel.layout import SWAPS, WIDTH
from mpc_protocols.process.compiled.builder import WORD, Function, word

VECTOR = ir.VectorType(WORD, WIDTH)
_GROUP = 8
"""Rows that are in registers together: the square root of all 64."""


def module(levels: int) -> str:
    """All functions. levels: k, of `fold`."""
    made = ir.Module("transfers")
    _fold(made, levels)
    _transpose(made)
    return str(made)


def _fold(made: Any, levels: int) -> None:
    """fold(streams, pitch, words, rows, row, step, sum): of one block; words >= WIDTH.

    streams: 2^k of `words` each; pitch: words from one to the next. rows: where the first of the k rows begins;
    row: words from one to the next; step: words from one of a row's words to the next. sum: of all streams.
    """
    words = WORD.as_pointer()
    code = Function(
        made,
        "fold",
        {"streams": words, "pitch": WORD, "words": WORD}
        | {"rows": words, "row": WORD, "step": WORD, "sum": words},
    )
    given, build = code.arguments, code.builder
    last = build.sub(given["words"], word(WIDTH))
    count = build.udiv(build.add(given["words"], word(WIDTH - 1)), word(WIDTH))
    with code.loop(count) as index:
        full = code.times(WIDTH, index)
        start = build.select(build.icmp_unsigned("<", full, last), full, last)  # the last words twice
        streams = [
            _load(code, code.at(given["streams"], code.times(number, given["pitch"]), start))
            for number in range(1 << levels)
        ]
        for bit in range(levels):
            total, *others = streams[1::2]
            for other in others:
                total = build.xor(total, other)
            row = code.at(given["rows"], code.times(bit, given["row"]), build.mul(given["step"], start))
            for lane in range(WIDTH):
                one = build.extract_element(total, ir.Constant(ir.IntType(32), lane))
                build.store(one, code.at(row, code.times(lane, given["step"])))
            streams = [build.xor(*pair) for pair in zip(streams[0::2], streams[1::2], strict=True)]
        _store(code, streams[0], code.at(given["sum"], start))
    build.ret_void()


def _transpose(made: Any) -> None:
    """transpose(matrix, words, count, room): the first `count` times WIDTH words of 64 rows in place, of which
    one begins `words` behind the other. room: for 64 times WIDTH words."""
    words = WORD.as_pointer()
    code = Function(made, "transpose", {"matrix": words, "words": WORD, "count": WORD, "room": words})
    given, build = code.arguments, code.builder

    def inside(row: Any) -> Any:
        return code.at(given["room"], code.times(WIDTH, row))

    with code.loop(given["count"]) as index:
        start = code.times(WIDTH, index)

        def outside(row: Any) -> Any:
            return code.at(given["matrix"], build.mul(given["words"], row), start)

        with code.loop(word(_GROUP)) as first:
            rows = [build.add(first, word(_GROUP * number)) for number in range(_GROUP)]
            values = _swapped(code, [_load(code, outside(row)) for row in rows], _GROUP, SWAPS[:3])
            for value, row in zip(values, rows, strict=True):
                _store(code, value, inside(row))
        with code.loop(word(_GROUP)) as group:
            rows = [build.add(code.times(_GROUP, group), word(number)) for number in range(_GROUP)]
            values = _swapped(code, [_load(code, inside(row)) for row in rows], 1, SWAPS[3:])
            for value, row in zip(values, rows, strict=True):
                _store(code, value, outside(row))
    build.ret_void()


def _swapped(code: Function, values: list[Any], apart: int, swaps: Sequence[tuple[int, int]]) -> list[Any]:
    """Rows whose numbers are `apart`, after some of the swaps."""
    build, values = code.builder, list(values)
    for step, mask in swaps:
        by, bits = (ir.Constant(VECTOR, [value] * WIDTH) for value in (step, mask))
        for number in range(_GROUP):
            partner = number + step // apart
            if not number & step // apart:
                low, high = values[number], values[partner]
                moved = build.and_(build.xor(build.lshr(low, by), high), bits)
                values[number] = build.xor(low, build.shl(moved, by))
                values[partner] = build.xor(high, moved)
    return values


def _load(code: Function, address: Any) -> Any:
    return code.builder.load(code.builder.bitcast(address, VECTOR.as_pointer()), align=8)


def _store(code: Function, value: Any, address: Any) -> None:
    code.builder.store(value, code.builder.bitcast(address, VECTOR.as_pointer()), align=8)
