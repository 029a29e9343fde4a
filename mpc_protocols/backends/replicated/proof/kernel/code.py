"""The code of the kernel, as LLVM's intermediate representation: columns of 512 bits at a time, nothing
leaves the cache between.

Two functions, on rows of words that lie `stride` words apart; what they compute is said by their NumPy
counterparts:

    products    L of the products of sums of 64 rows on {0, 1, inf}^6          `grid.Grid.add_products`
    times       64 rows times a matrix of 64 x 64 bits                         `basis.plus_times`

**products.** A block of columns is expanded in three variables by a list of sums of rows (`plan`), into 216
rows; for each of 27 groups of 8 of these, the other three variables are expanded in registers, and each of 27
products is multiplied by a power of H at once. In a word turned round byte by byte, the coefficient of x^k of
a block of GHASH is bit 63 - k % 64 of word k // 64. So the carry-less product of two words has the
coefficient of x^k at bit 126 - k; four such make up a product of blocks, of which low, middle and high part
are summed apart over all blocks and reduced once, in the end:

    (a_0 + a_1 x^64) (b_0 + b_1 x^64) = a_0 b_0  +  (a_0 b_1 + a_1 b_0) x^64  +  a_1 b_1 x^128

**times.** For every four rows the 16 sums of some of them are tabulated; a row of the product is a sum of 16
tabulated ones.

No branch and no address depends on what rows hold; the matrix and H are public when they are used.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from mpc_protocols.backends.replicated.proof.kernel.builder import (
    BLOCK,
    DOUBLE,
    PAIR,
    VECTOR,
    Code,
    lanes,
)
from mpc_protocols.backends.replicated.proof.kernel.layout import (
    GROUP,
    INNER,
    LANES,
    OUTER,
    ROWS,
    TABULATED,
    VECTORS,
)
from mpc_protocols.process.compiled.builder import WORD, word


def module(clmul_bits: int) -> str:
    """All functions. clmul_bits: of the widest instruction for carry-less products that the processor has."""
    made = ir.Module("kernel")
    _products(made, clmul_bits)
    _reduced(made)
    _powers(made)
    _times(made)
    return str(made)


def _products(made: Any, clmul_bits: int) -> None:
    """products(x, x_stride, y, y_stride, powers, vectors, plan, steps, room, sums): one block of up to
    VECTORS columns.

    plan: triples of places, each of a row of `room` and the two of which it becomes the sum, then the places
    of the 64 rows. room: 2 x 216 rows of a block. sums: of every product low, middle and high part, one
    column each, added to.
    """
    words = WORD.as_pointer()
    code = Code(
        made,
        "products",
        {"x": words, "x_stride": WORD, "y": words, "y_stride": WORD, "powers": words, "vectors": WORD}
        | {"plan": words, "steps": WORD, "room": words, "sums": words},
    )
    arguments, builder = code.arguments, code.builder
    width = VECTORS * LANES
    room, plan, steps, vectors = (arguments[name] for name in ("room", "plan", "steps", "vectors"))
    sides = [room, code.at(room, word(OUTER * GROUP * width))]
    for name, into in zip("xy", sides, strict=True):
        places = code.at(plan, code.times(3, steps))
        with code.loop(word(ROWS)) as row:
            place = code.times(width, code.load(code.at(places, row), WORD))
            start = builder.mul(row, arguments[f"{name}_stride"])
            with code.loop(vectors) as column:
                offset = code.times(LANES, column)
                code.store(code.load(code.at(arguments[name], start, offset)), code.at(into, place, offset))
        with code.loop(steps) as step:
            triple = [
                code.times(width, code.load(code.at(plan, code.times(3, step), word(i)), WORD))
                for i in range(3)
            ]
            with code.loop(vectors) as column:
                offset = code.times(LANES, column)
                parts = [code.load(code.at(into, place, offset)) for place in triple[1:]]
                code.store(code.xor(*parts), code.at(into, triple[0], offset))
    turned = code.intrinsic("llvm.bswap.v8i64", VECTOR, [VECTOR])
    with code.loop(word(OUTER)) as outer, code.loop(vectors) as column:
        start = builder.add(code.times(GROUP * width, outer), code.times(LANES, column))
        left, right = (
            _expanded(code, [code.load(code.at(of, start, word(width * row))) for row in range(GROUP)])
            for of in sides
        )
        power = code.load(code.at(arguments["powers"], code.times(LANES, column)))
        for number in range(INNER):
            product = builder.call(turned, [builder.and_(left[number], right[number])])
            low, first, second, high = (
                code.carry_less(product, power, which, clmul_bits) for which in (0x00, 0x01, 0x10, 0x11)
            )
            for part, value in enumerate((low, code.xor(first, second), high)):
                place = code.times(INNER * 3 * LANES, outer)
                address = code.at(arguments["sums"], place, word((number * 3 + part) * LANES))
                code.store(code.xor(code.load(address), value), address)
    builder.ret_void()


def _expanded(code: Code, rows: list[Any]) -> list[Any]:
    """8 rows at the 27 points of three variables, the first variable as the highest digit."""
    if len(rows) == 1:
        return rows
    half = len(rows) // 2
    low, high = _expanded(code, rows[:half]), _expanded(code, rows[half:])
    return low + high + [code.xor(a, b) for a, b in zip(low, high, strict=True)]


def _element(code: Code, low: Any, middle: Any, high: Any) -> Any:
    """The block of low + middle x^64 + high x^128, carry-less products as two words each; the coefficient of
    x^k at 127 - k."""
    builder = code.builder

    def up(value: Any, places: int) -> Any:
        return builder.shl(value, ir.Constant(DOUBLE, places))

    def down(value: Any, places: int) -> Any:
        return builder.lshr(value, ir.Constant(DOUBLE, places))

    parts = (builder.zext(builder.bitcast(part, BLOCK), DOUBLE) for part in (low, middle, high))
    value = code.xor(*(up(part, places) for part, places in zip(parts, (129, 65, 1), strict=True)))
    for _ in range(2):  # x^128 = 1 + x + x^2 + x^7; what this moves beyond x^127 is moved again
        beyond = up(value, 128)
        value = code.xor(up(down(value, 128), 128), *(down(beyond, places) for places in (0, 1, 2, 7)))
    return builder.trunc(down(value, 128), BLOCK)


def _reduced(made: Any) -> None:
    """reduced(sums, into): add what `products` has summed up to 729 blocks of 16 bytes."""
    words = WORD.as_pointer()
    code = Code(made, "reduced", {"sums": words, "into": words})
    arguments, builder = code.arguments, code.builder
    turned = code.intrinsic("llvm.bswap.i128", BLOCK, [BLOCK])
    with code.loop(word(OUTER * INNER)) as number:
        parts = []
        for part in range(3):
            place = code.times(3 * LANES, number)
            vector = code.load(code.at(arguments["sums"], place, word(part * LANES)))
            parts.append(
                code.xor(
                    *(builder.shuffle_vector(vector, vector, lanes([i, i + 1])) for i in range(0, LANES, 2))
                )
            )
        address = code.at(arguments["into"], code.times(2, number))
        block = builder.call(turned, [_element(code, *parts)])
        code.store(code.xor(code.load(address, BLOCK), block), address)
    builder.ret_void()


def _powers(made: Any) -> None:
    """powers(point, count, into): the words of H^(count + 1), .., H^3, H^2, each turned round; so are those
    of H at `point`."""
    words = WORD.as_pointer()
    code = Code(made, "powers", {"point": words, "count": WORD, "into": words})
    arguments, builder = code.arguments, code.builder
    point = code.load(arguments["point"], PAIR)
    swap = lanes([1, 0])
    last = code.at(arguments["into"], code.times(2, arguments["count"]))
    code.store(point, last)
    with code.loop(arguments["count"]) as number:
        place = code.times(2, builder.sub(arguments["count"], number))
        before = code.load(code.at(arguments["into"], place), PAIR)
        low, first, second, high = (
            code.carry_less(before, point, which, 128) for which in (0x00, 0x01, 0x10, 0x11)
        )
        block = builder.bitcast(_element(code, low, code.xor(first, second), high), PAIR)
        address = code.at(arguments["into"], builder.sub(place, word(2)))
        code.store(builder.shuffle_vector(block, block, swap), address)
    builder.ret_void()


def _times(made: Any) -> None:
    """times(rows, stride, picks, room, into, into_stride, columns): add to the rows `into`, columns of 8
    words each.

    picks: of every row of the result and every four rows, the place of a sum in its table, in words. room:
    the tables.
    """
    words = WORD.as_pointer()
    code = Code(
        made,
        "times",
        {"rows": words, "stride": WORD, "picks": words, "room": words}
        | {"into": words, "into_stride": WORD, "columns": WORD},
    )
    arguments, builder = code.arguments, code.builder
    size, groups = 1 << TABULATED, ROWS // TABULATED
    with code.loop(arguments["columns"]) as column:
        start = code.times(LANES, column)
        with code.loop(word(groups)) as group:
            first = builder.mul(code.times(TABULATED, group), arguments["stride"])
            table = code.times(size * LANES, group)
            sums = [ir.Constant(VECTOR, [0] * LANES)]
            for row in range(TABULATED):
                offset = builder.mul(word(row), arguments["stride"])
                address = code.at(arguments["rows"], first, offset, start)
                code.ahead(address)
                of_row = code.load(address)
                sums += [code.xor(of_row, one) if number else of_row for number, one in enumerate(sums)]
            for number, one in enumerate(sums):
                code.store(one, code.at(arguments["room"], table, word(number * LANES)))
        with code.loop(word(ROWS)) as row:
            address = code.at(arguments["into"], builder.mul(row, arguments["into_stride"]), start)
            code.ahead(address)
            result = code.load(address)
            for group in range(groups):
                place = code.load(code.at(arguments["picks"], code.times(groups, row), word(group)), WORD)
                result = code.xor(result, code.load(code.at(arguments["room"], place)))
            code.store(result, address)
    builder.ret_void()
