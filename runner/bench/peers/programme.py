"""The programme that MP-SPDZ's virtual machines run: one text, and arguments that say which step.

It takes the step twice: the first is a warm-up, as ours have one, or makes what both need (`PeerProtocol.ahead`). Timers 1
and 2 are MP-SPDZ's own: they tell seconds, bytes and rounds of each party. Between them every party waits for a number of its
public input, a pipe (`machines`): nobody computes then. Inputs are secret values of P0 and, of P1, values that are opened
before anything is timed.

What keeps it fast is as MP-SPDZ's documentation has it: whole vectors, sums as dot products (one element each on the wire),
comparisons of no more bits than the numbers have.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "cosynth_peers"
READY: Final = 10
"""The timer whose end says that the inputs are there."""
REPETITIONS: Final = 2
RESULT: Final = "cosynth result"

TEXT: Final = f"""\
# Written by `cosynth bench peers`: NAME STEP CELLS CANDIDATES BITS REPEATED OPENED
from Compiler.util import tree_reduce

step = program.args[1]
cells, candidates, bits, repeated, opened = map(int, program.args[2:7])
owners = [q * cells // candidates for q in range(candidates + 1)]


def gate():
    break_point()
    public_input()
    break_point()


def scores():
    d = x - c
    signs = 1 - 2 * d.less_than(0, bits - 1)
    return [
        sint.dot_product(signs.get_vector(first, after - first), d.get_vector(first, after - first))
        for first, after in zip(owners, owners[1:])
    ]


def larger(a, b):
    second = a[1].less_than(b[1], bits + 1)
    return second.if_else(b[0], a[0]), second.if_else(b[1], a[1])


def select():
    return [tree_reduce(larger, list(enumerate(scores())))[0].reveal()]


def multiply():
    return [x * y]


def rounds():
    power = sint(0, size=cells)
    power.update(x)

    @for_range(repeated)
    def _(_):
        power.update(power * x)

    return [power]


x, y = (sint.get_input_from(party, size=cells, binary=True) for party in (0, 1))
c = y.reveal() if step in ("scores", "select") else None
take = {{"scores": scores, "select": select, "multiply": multiply, "rounds": rounds}}[step]
break_point()
start_timer({READY})
stop_timer({READY})
for timer in range(1, {REPETITIONS} + 1):
    gate()
    start_timer(timer)
    results = take()
    if opened:
        results = [result.reveal() if isinstance(result, sint) else result for result in results]
    stop_timer(timer)
gate()
if step == "multiply":
    results = [sint.dot_product(results[0], x)]
if step == "rounds":
    results = list(results[0])
for result in results:
    print_ln("{RESULT} %s", result.reveal() if isinstance(result, sint) else result)
"""
