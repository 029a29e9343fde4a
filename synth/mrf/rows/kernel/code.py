"""The code of the kernel, as LLVM's intermediate representation: pairs of rows judged one after the other, a
batch against the same counts, and exchanged.

`exchange` does what `balance.Exchanges` does with `cells.AcrossCells` and `pairs.AcrossPairs`. It sums and
counts in another order, of which nothing shows. Of cells: a price is a multiple of 2^-24, so that float64 sums of
prices are exact; of all changes to one cell, those by -1 come before those by 1, as in NumPy; and the four
prices of one target are summed in float32, in NumPy's order. Of pairs, all sums are exact (`synth.mrf.rows.pairs`). Their
cells are looked up, too, and their prices kept, as there are hundreds to an exchange.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from mpc_protocols.process.compiled.builder import WORD, Function, word
from synth.mrf.rows.kernel.layout import DIGIT, LANES

CODE, SINGLE, DOUBLE, BIT = ir.IntType(32), ir.FloatType(), ir.DoubleType(), ir.IntType(1)
CODES, WORDS = (ir.VectorType(kind, LANES) for kind in (CODE, WORD))
NONE = ir.Constant(WORDS, [0] * LANES)
_AHEAD = 8
"""Pairs: their rows lie anywhere."""


def module() -> str:
    """All functions."""
    made = ir.Module("rows")
    _exchange(made)
    _sort(made)
    return str(made)


def _exchange(made: Any) -> None:
    """exchange(codes, values, rows, blocks, of_side, sides, first, second, pairs, together, batch, least, more, ends,
    found; groups, masks, terms, length, surplus, room; columns, of_others, of_sides, cells,
    pair_surplus, is_target, prices, unlike).

    codes: row by row, `blocks` blocks of LANES columns each; values: the same, column by column, `rows` of
    them each. of_side: numbers of the `sides` columns that are exchanged. first, second: the rows of each
    pair. together: pairs of which each begins a batch. least: what a cost is to be less than. more: for the
    differences of a pair's codes. ends: for where the cells of each pair of a batch end, after a 0.
    found: how many pairs were exchanged, then which; 0 at first.

    Of targets that are looked up: masks: of each of the groups of LANES targets, LANES words with a bit of each
    column that is exchanged, and LANES with a bit of each that is not; column i has bit i % 64. terms: of each
    target its first cell, then `length` times a column and how many cells lie between two of its values: if it
    is exchanged, and if not. surplus: of each cell. room: for four cells of each target and pair of a batch,
    and four more.

    Of pairs of columns: columns: of each of `of_others` columns that are not exchanged, and then of each of
    `of_sides` that are, its number, and where its values begin among all values, or among the side's, which are
    `cells`. pair_surplus, is_target: of (all values, the side's values); prices: of each of these cells what
    one row less adds to the distance, and one more. unlike: for two places of each column.
    """
    words, codes, singles = (kind.as_pointer() for kind in (WORD, CODE, SINGLE))
    code = Function(
        made,
        "exchange",
        {"codes": codes, "values": codes, "rows": WORD, "blocks": WORD, "of_side": words, "sides": WORD}
        | {"first": words, "second": words, "pairs": WORD, "together": WORD, "batch": WORD}
        | {"least": DOUBLE, "more": codes, "ends": words, "found": words}
        | {"groups": WORD, "masks": words, "terms": words, "length": WORD}
        | {"surplus": singles, "room": words}
        | {"columns": words, "of_others": WORD, "of_sides": WORD, "cells": WORD}
        | {"pair_surplus": singles, "is_target": singles, "prices": singles, "unlike": words},
    )
    given, build = code.arguments, code.builder
    stretches = _upwards(code, given["pairs"], given["together"])
    with code.loop(stretches) as stretch:
        begin = build.mul(stretch, given["together"])
        size = _least(code, given["together"], build.sub(given["pairs"], begin))
        with code.loop(_upwards(code, size, given["batch"])) as number:
            start = build.add(begin, build.mul(number, given["batch"]))
            count = _least(code, given["batch"], build.sub(build.add(begin, size), start))
            with code.carrying(count, word(0)) as pair:
                end = _looked(code, build.add(start, pair.index), pair.values[0])
                build.store(end, code.at(given["ends"], pair.index, word(1)))
                pair.following = [end]
            before = build.load(given["found"])
            with code.loop(count) as pair_number:
                cost = build.fadd(
                    _cost(code, pair_number), _cost_of_pairs(code, build.add(start, pair_number))
                )
                good = build.fcmp_ordered("<", cost, given["least"])
                with build.if_then(good):
                    after = build.add(build.load(given["found"]), word(1))
                    build.store(after, given["found"])
                    build.store(build.add(start, pair_number), code.at(given["found"], after))
            made = build.sub(build.load(given["found"]), before)
            for entered, step in ((0, -1.0), (1, 1.0)):
                with code.loop(made) as one:
                    place = build.load(code.at(given["found"], before, one, word(1)))
                    _counted(code, build.sub(place, start), entered, step)
            with code.loop(made) as one:
                place = build.load(code.at(given["found"], before, one, word(1)))
                _count_pairs(code, place)
                _swap(code, place)
    build.ret_void()


def _upwards(code: Function, number: Any, by: Any) -> Any:
    """The quotient, rounded up."""
    build = code.builder
    return build.udiv(build.sub(build.add(number, by), word(1)), by)


def _least(code: Function, one: Any, other: Any) -> Any:
    return code.builder.select(code.builder.icmp_unsigned("<", one, other), one, other)


def _row(code: Function, name: str, place: Any) -> tuple[Any, Any]:
    """A row of a pair, and the address of its codes."""
    given, build = code.arguments, code.builder
    row = build.load(code.at(given[name], place))
    return row, code.at(given["codes"], build.mul(row, code.times(LANES, given["blocks"])))


def _looked(code: Function, place: Any, begin: Any) -> Any:
    """Where the cells end that exchanging a pair would change, of which the first is noted at `begin`."""
    given, build = code.arguments, code.builder
    last = build.sub(given["pairs"], word(1))
    for name in ("first", "second"):
        _, ahead = _row(code, name, _least(code, build.add(place, word(_AHEAD)), last))
        code.prefetch(ahead)
    (_, of_a), (_, of_b) = (_row(code, name, place) for name in ("first", "second"))
    with code.carrying(given["blocks"], word(0)) as block:
        start = code.times(LANES, block.index)
        a, b = (_vector(code, of, start, CODES) for of in (of_a, of_b))
        more = build.sub(b, a)
        build.store(more, build.bitcast(code.at(given["more"], start), CODES.as_pointer()), align=4)
        unlike = build.icmp_unsigned("!=", more, ir.Constant(CODES, [0] * LANES))
        bits = build.shl(_bits(code, unlike), build.and_(start, word(63)))
        block.following = [build.or_(block.values[0], bits)]
    of_pair = build.insert_element(ir.Constant(WORDS, ir.Undefined), block.values[0], ir.Constant(CODE, 0))
    everywhere = ir.Constant(ir.VectorType(CODE, LANES), [0] * LANES)
    of_pair = build.shuffle_vector(of_pair, of_pair, everywhere)
    with code.carrying(given["groups"], begin) as group:
        start = code.times(2 * LANES, group.index)
        touched = [
            build.icmp_unsigned("!=", build.and_(_vector(code, given["masks"], at, WORDS), of_pair), NONE)
            for at in (start, build.add(start, word(LANES)))
        ]
        bits = _bits(code, build.and_(*touched))
        with code.carrying(build.ctpop(bits), group.values[0], bits) as one:
            end, left = one.values
            number = build.cttz(left, ir.Constant(BIT, 1))
            end = _changed(code, build.add(code.times(LANES, group.index), number), of_a, end)
            one.following = [end, build.and_(left, build.sub(left, word(1)))]
        group.following = one.values[:1]
    return group.values[0]


def _vector(code: Function, base: Any, start: Any, kind: Any) -> Any:
    build = code.builder
    address = build.bitcast(code.at(base, start), kind.as_pointer())
    return build.load(address, align=kind.element.width // 8)


def _bits(code: Function, of_lanes: Any) -> Any:
    """A word with a bit of each lane."""
    build = code.builder
    return build.zext(build.bitcast(of_lanes, ir.IntType(LANES)), WORD)


def _changed(code: Function, target: Any, of_a: Any, end: Any) -> Any:
    """Note the cells of a target at `end`, two that would be left and two that would be entered; behind them,
    if that is a change. of_a: the codes of a pair's first row."""
    given, build = code.arguments, code.builder
    terms = build.mul(target, build.add(code.times(3, given["length"]), word(1)))
    offset = build.load(code.at(given["terms"], terms))
    zero = word(0)
    with code.carrying(given["length"], offset, zero, zero) as term:
        at = build.add(terms, code.times(3, term.index))
        column, by_side, by_others = (build.load(code.at(given["terms"], at, word(i))) for i in (1, 2, 3))
        value = build.zext(build.load(code.at(of_a, column)), WORD)
        more = build.sext(build.load(code.at(given["more"], column)), WORD)
        steps = (
            build.mul(value, build.add(by_side, by_others)),
            build.mul(more, by_side),
            build.mul(more, by_others),
        )
        term.following = [build.add(old, step) for old, step in zip(term.values, steps, strict=True)]
    left, side, others = term.values
    entered = build.add(left, side)
    cell = (left, build.add(entered, others), entered, build.add(left, others))
    for number, one in enumerate(cell):
        build.store(one, code.at(given["room"], code.times(4, end), word(number)))
    moved = build.and_(*(build.icmp_unsigned("!=", step, zero) for step in (side, others)))
    return build.add(end, build.zext(moved, WORD))


def _cost(code: Function, pair: Any) -> Any:
    """What exchanging a pair of the batch would add to the distance."""
    given, build = code.arguments, code.builder
    begin, end = (build.load(code.at(given["ends"], pair, word(i))) for i in (0, 1))
    with code.carrying(build.sub(end, begin), ir.Constant(DOUBLE, 0.0)) as target:
        start = code.times(4, build.add(begin, target.index))
        prices = []
        for number, factor in enumerate((-2.0, -2.0, 2.0, 2.0)):
            cell = build.load(code.at(given["room"], start, word(number)))
            twice = build.fmul(build.load(code.at(given["surplus"], cell)), ir.Constant(SINGLE, factor))
            prices.append(_clipped(code, build.fadd(twice, ir.Constant(SINGLE, 1.0))))
        total = prices[0]
        for price in prices[1:]:
            total = build.fadd(total, price)
        target.following = [build.fadd(target.values[0], build.fpext(total, DOUBLE))]
    return target.values[0]


def _counted(code: Function, pair: Any, entered: int, step: float) -> None:
    """Count a pair's rows out of the cells that they leave, or into those that they enter."""
    given, build = code.arguments, code.builder
    begin, end = (build.load(code.at(given["ends"], pair, word(i))) for i in (0, 1))
    with code.loop(build.sub(end, begin)) as changed:
        start = code.times(4, build.add(begin, changed))
        for number in (0, 1):
            cell = build.load(code.at(given["room"], start, word(2 * entered + number)))
            address = code.at(given["surplus"], cell)
            build.store(build.fadd(build.load(address), ir.Constant(SINGLE, step)), address)


def _clipped(code: Function, price: Any) -> Any:
    build = code.builder
    for sign, bound in ((">", -1.0), ("<", 1.0)):
        limit = ir.Constant(SINGLE, bound)
        price = build.select(build.fcmp_ordered(sign, price, limit), price, limit)
    return price


def _unlike(code: Function, place: Any) -> tuple[Any, Any, Any]:
    """How many columns of the others, and of the side, differ in a pair, and where the side's stand in `unlike`:
    of each the two values' places."""
    given, build = code.arguments, code.builder
    of_rows = [_row(code, name, place)[1] for name in ("first", "second")]
    counts, begin, number = [], word(0), word(0)
    for side in ("of_others", "of_sides"):
        with code.carrying(given[side], begin) as column:
            told = code.at(given["columns"], code.times(2, build.add(number, column.index)))
            which, start = (build.load(code.at(told, word(i))) for i in (0, 1))
            values = [build.zext(build.load(code.at(of, which)), WORD) for of in of_rows]
            for i, value in enumerate(values):
                room = code.at(given["unlike"], code.times(2, column.values[0]), word(i))
                build.store(build.add(start, value), room)
            differ = build.icmp_unsigned("!=", *values)
            column.following = [build.add(column.values[0], build.zext(differ, WORD))]
        counts.append(build.sub(column.values[0], begin))
        begin, number = column.values[0], given[side]
    return counts[0], counts[1], code.at(given["unlike"], code.times(2, counts[0]))


def _cost_of_pairs(code: Function, place: Any) -> Any:
    """What exchanging a pair would add to the distance of pairs of columns."""
    build = code.builder
    others, sides, of_side = _unlike(code, place)
    none = ir.Constant(SINGLE, 0.0)
    with code.carrying(others, *[none] * 4) as other:
        a, b = _price_rows(code, other.index)
        with code.carrying(sides, *other.values) as side:
            to_a, to_b = (
                code.times(2, build.load(code.at(of_side, code.times(2, side.index), word(i))))
                for i in (0, 1)
            )
            addresses = (
                code.at(a, to_a),
                code.at(b, to_b),
                code.at(a, to_b, word(1)),
                code.at(b, to_a, word(1)),
            )
            side.following = [
                build.fadd(total, build.load(address))
                for total, address in zip(side.values, addresses, strict=True)
            ]
        other.following = side.values
    first, second, third, fourth = other.values
    return build.fpext(build.fadd(build.fadd(first, second), build.fadd(third, fourth)), DOUBLE)


def _price_rows(code: Function, number: Any) -> list[Any]:
    """The prices of all the side's values beside the two values of a column of the others."""
    given, build = code.arguments, code.builder
    values = (build.load(code.at(given["unlike"], code.times(2, number), word(i))) for i in (0, 1))
    return [code.at(given["prices"], build.mul(value, code.times(2, given["cells"]))) for value in values]


def _count_pairs(code: Function, place: Any) -> None:
    """Count the exchange of a pair in the pairs of columns, and price their cells anew."""
    given, build = code.arguments, code.builder
    others, sides, of_side = _unlike(code, place)
    with code.loop(others) as other:
        rows = [
            build.mul(build.load(code.at(given["unlike"], code.times(2, other), word(i))), given["cells"])
            for i in (0, 1)
        ]
        with code.loop(sides) as side:
            columns = [build.load(code.at(of_side, code.times(2, side), word(i))) for i in (0, 1)]
            target = build.load(code.at(given["is_target"], rows[0], columns[0]))
            with build.if_then(build.fcmp_ordered("!=", target, ir.Constant(SINGLE, 0.0))):
                for i in (0, 1):
                    for j in (0, 1):
                        cell = build.add(rows[i], columns[j])
                        address = code.at(given["pair_surplus"], cell)
                        step = ir.Constant(SINGLE, -1.0 if i == j else 1.0)
                        value = build.fadd(build.load(address), step)
                        build.store(value, address)
                        for number, factor in enumerate((-2.0, 2.0)):
                            price = build.fmul(value, ir.Constant(SINGLE, factor))
                            price = _clipped(code, build.fadd(price, ir.Constant(SINGLE, 1.0)))
                            build.store(price, code.at(given["prices"], code.times(2, cell), word(number)))


def _swap(code: Function, place: Any) -> None:
    """Exchange the columns of one side."""
    given, build = code.arguments, code.builder
    (a, of_a), (b, of_b) = (_row(code, name, place) for name in ("first", "second"))
    with code.loop(given["sides"]) as number:
        column = build.load(code.at(given["of_side"], number))
        addresses = [code.at(of, column) for of in (of_a, of_b)]
        exchanged = [build.load(address) for address in reversed(addresses)]
        addresses_too = [code.at(given["values"], build.mul(column, given["rows"]), row) for row in (a, b)]
        for value, address, too in zip(exchanged, addresses, addresses_too, strict=True):
            build.store(value, address)
            build.store(value, too)


def _sort(made: Any) -> None:
    """sort(keys, other, count, shift, turns, places): sort words by their bits from `shift` on, DIGIT at each
    turn; words that are the same there stay as they stand. other: of the same length, where they are after an
    odd number of turns. places: for 2^DIGIT words.
    """
    words = WORD.as_pointer()
    arguments = {"keys": words, "other": words, "count": WORD, "shift": WORD, "turns": WORD, "places": words}
    code = Function(made, "sort", arguments)
    given, build = code.arguments, code.builder
    zero, digits = word(0), word(1 << DIGIT)

    def place(key: Any, shift: Any) -> Any:
        return code.at(given["places"], build.and_(build.lshr(key, shift), word((1 << DIGIT) - 1)))

    with code.carrying(given["turns"], given["keys"], given["other"], given["shift"]) as turn:
        source, target, shift = turn.values
        with code.loop(digits) as digit:
            build.store(zero, code.at(given["places"], digit))
        with code.loop(given["count"]) as number:
            counted = place(build.load(code.at(source, number)), shift)
            build.store(build.add(build.load(counted), word(1)), counted)
        with code.carrying(digits, zero) as digit:
            first = code.at(given["places"], digit.index)
            digit.following = [build.add(digit.values[0], build.load(first))]
            build.store(digit.values[0], first)
        with code.loop(given["count"]) as number:
            key = build.load(code.at(source, number))
            free = place(key, shift)
            at = build.load(free)
            build.store(key, code.at(target, at))
            build.store(build.add(at, word(1)), free)
        turn.following = [target, source, build.add(shift, word(DIGIT))]
    build.ret_void()
