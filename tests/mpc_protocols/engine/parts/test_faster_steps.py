"""What a backend of the algebra does by a protocol of its own is declared, and comes to the same as the
general step.

A step runs twice at the parties of a backend: with its own gates, and with the same gates less all that they
override.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.backend import BACKEND as ADDITIVE
from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.engine import AdditiveEngine
from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.circuits.l1_distance import l1_sums
from mpc_protocols.backends.pair.engine import PairEngine, PairL1Sums
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import to_bits
from mpc_protocols.engine.parts.engine import ArrayEngine, ArrayL1Sums
from mpc_protocols.engine.parts.gates import PartGates
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.extras import skip_unless_installed
from tests.mpc_protocols.backends.additive.dealt_run import run_three
from tests.mpc_protocols.backends.pair.pair_run import run_pair
from tests.toys.dealt_backend import DealtEngine, DealtGates, DealtLink
from tests.worlds.words import random_words

Values = list[NDArray[Any]]
Step = Callable[[PartGates, Values], NDArray[Any]]
"""What a party gets, of its parts of some values; all of them XORed, or added up, are what is computed."""


def general(gates: type[PartGates]) -> Any:
    """The backend's three operations, and everything else as it is written once."""
    return type("General", (gates,), {name: vars(PartGates)[name] for name in gates.faster})


def run_dealt(own: type[DealtGates], body: Callable[[PartGates], Any]) -> list[Any]:
    def party(wire: Wire) -> Any:
        return body(own(DealtLink(wire), bytes([wire.me]) * 32))

    return MemoryNetwork(2, 2).run([party] * 2)


def of_pair(own: type[PairGates], body: Callable[[PartGates], Any]) -> list[Any]:
    return run_pair(lambda transfers: body(own(transfers, bytes([transfers.link.me]) * 32))).results


def of_additive(own: type[AdditiveGates], body: Callable[[PartGates], Any]) -> list[Any]:
    return run_three(lambda gates: body(own(gates.operations, bytes([gates.link.me]) * 32))).results


BACKENDS: dict[type[PartGates], Callable[[Any, Callable[[PartGates], Any]], list[Any]]] = {
    PairGates: of_pair,
    AdditiveGates: of_additive,
    DealtGates: run_dealt,
}


def and_sums(gates: PartGates, parts: Values) -> NDArray[Any]:
    """Two terms at the same words and one at others; x (2, 5), y (4, 2, 5)."""
    x, y = Bits(parts[0]), gates.factor(Bits(parts[1]))

    def terms() -> Iterator[tuple[Any, Bits, Iterator[NDArray[Any]]]]:
        for words, rows in (
            (slice(0, 3), slice(0, 2)),
            (slice(0, 3), slice(2, 4)),
            (slice(3, 5), slice(0, 4)),
        ):
            factor = (part[rows, ..., words].copy() for part in y.parts)
            yield (rows, words), x[:, words], factor

    return gates.and_sums((4, 5), terms()).parts[0]


def zero_rows(gates: PartGates, parts: Values) -> NDArray[Any]:
    """Opened alike at all: at one party only it is counted."""
    found = gates.zero_rows((2, 4), iter([(slice(0, 4), Bits(parts[0]))]))
    return found.astype(np.uint8) if gates.link.adds_public else np.zeros((2, 4), np.uint8)


def l1(gates: PartGates, parts: Values) -> NDArray[Any]:
    lengths = np.array([3, 0, len(parts[0]) - 3])
    if type(gates) is PairGates:
        return l1_sums(gates.transfers, parts[0], lengths, 18, "tree")
    return sum_segments(gates.absolute(parts[0], 18), lengths)


RNG = np.random.default_rng(11)
ZEROS = np.concatenate([np.zeros((2, 2, 5), np.uint8), np.ones((2, 2, 5), np.uint8)], axis=1)
SMALL = np.array([-5, 0, 70000, *RNG.integers(-(1 << 16), 1 << 16, 67)])
SIGNED = RNG.integers(-(1 << 31), 1 << 31, 70)
PLANES, MORE = random_words(3, 2), random_words(9, 2)
CHOSEN, STRINGS = random_words(2, 5), random_words(4, 2, 5)
WEIGHTS = (3, -1, 1 << 30)


@dataclass(frozen=True)
class Case:
    """A step, the values of which the parties hold parts, how parts and results are put together, and what
    comes out."""

    step: Step
    values: Values
    by: np.ufunc
    wanted: NDArray[Any]


XOR, SUM = np.bitwise_xor, np.add
STEPS = {
    "and_bits": Case(
        lambda gates, parts: gates.and_bits(Bits(parts[0]), Bits(parts[1])).parts[0],
        [PLANES[:1], MORE],
        XOR,
        PLANES[:1] & MORE,
    ),
    "and_pairs": Case(
        lambda gates, parts: np.concatenate(
            [of.parts[0] for of in gates.and_pairs([(Bits(part), Bits(part)) for part in parts])]
        ),
        [PLANES, MORE],
        XOR,
        np.concatenate([PLANES, MORE]),
    ),
    "and_sums": Case(and_sums, [CHOSEN, STRINGS], XOR, XOR.reduce(CHOSEN & STRINGS, axis=1)),
    "zero_rows": Case(zero_rows, [ZEROS], XOR, 1 - ZEROS.max(axis=2)),
    "weighted_sum": Case(
        lambda gates, parts: gates.weighted_sum(Bits(parts[0]), WEIGHTS, 100, np.uint32),
        [PLANES],
        SUM,
        (np.array(WEIGHTS) @ to_bits(PLANES, 100, np.uint64).astype(np.int64)).astype(np.uint32),
    ),
    "negative": Case(
        lambda gates, parts: to_bits(gates.negative(parts[0]).parts[0], 70, np.uint8),
        [SIGNED.astype(np.uint32)],
        XOR,
        (SIGNED < 0).astype(np.uint8),
    ),
    "widened": Case(
        lambda gates, parts: gates.widened(parts[0]),
        [SMALL.astype(np.uint32)],
        SUM,
        SMALL.astype(np.uint32).astype(np.uint64),
    ),
    "absolute": Case(
        lambda gates, parts: gates.absolute(parts[0], 18),
        [SMALL.astype(np.uint32)],
        SUM,
        np.abs(SMALL).astype(np.uint32),
    ),
    "distances": Case(
        l1,
        [SMALL.astype(np.uint32)],
        SUM,
        sum_segments(np.abs(SMALL).astype(np.uint32), np.array([3, 0, 67])),
    ),
}
COVERED_BY = {"factor": "and_sums", "test_factor": "zero_rows"}
"""Steps that say nothing by themselves."""


def shares(value: NDArray[Any]) -> list[NDArray[Any]]:
    """Bits (words, flags) under XOR, 32-bit integers as sums: of parties 0 and 1, and zeros for one that
    holds no parts."""
    top = 2 if value.dtype == np.uint8 else np.iinfo(value.dtype).max
    mask = np.random.default_rng().integers(0, top, value.shape, value.dtype)
    return [mask, value - mask if value.dtype == np.uint32 else value ^ mask, np.zeros_like(value)]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("gates", BACKENDS, ids=lambda of: of.__name__)
def test_a_step_of_its_own_comes_to_the_general_one(gates: type[PartGates], name: str) -> None:
    if gates is AdditiveGates:
        skip_unless_installed(ADDITIVE)
    case = STEPS[name]
    for form in (gates, general(gates)):
        parts = [shares(value) for value in case.values]

        def body(of: PartGates, parts: list[list[NDArray[Any]]] = parts) -> NDArray[Any]:
            return case.step(of, [part[of.link.me] for part in parts])

        first, second = BACKENDS[gates](form, body)[:2]
        np.testing.assert_array_equal(case.by(first, second), case.wanted)


@pytest.mark.parametrize("gates", BACKENDS, ids=lambda of: of.__name__)
def test_what_is_overridden_is_declared_and_compared(gates: type[PartGates]) -> None:
    steps = {name for name, of in vars(PartGates).items() if callable(of) and not name.startswith("_")}
    own = {name for name in vars(gates) if name in steps - PartGates.__abstractmethods__}
    assert own == gates.faster
    assert {COVERED_BY.get(name, name) for name in own} <= set(STEPS)


def test_engines_that_replace_a_step() -> None:
    """`distances` is compared above, `largest` in `tests/mpc_protocols/backends/pair/test_gates.py`."""
    for engine in (AdditiveEngine, DealtEngine):
        assert engine.sums is ArrayL1Sums and not {"largest", "picks", "keys", "reveal"} & set(vars(engine))
    assert PairEngine.sums is PairL1Sums and PairEngine.largest is not ArrayEngine.largest
    assert not {"picks", "keys", "reveal"} & set(vars(PairEngine))
