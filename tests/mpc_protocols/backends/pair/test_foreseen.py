"""Transfers that are foreseen: made beside the exchanges of whatever is computed before they are taken, each taken
once, without a round of their own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.pair.backend import BACKEND
from mpc_protocols.backends.pair.circuits.argmax import picks_demand
from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.circuits.gmw import and_bits
from mpc_protocols.backends.pair.transfers import random_ot, transfer_pool
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.sampling import gaussian_noise, gumbel_noise
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.mechanisms.gaussian import sampler
from tests.mpc_protocols.backends.pair.pair_run import Ran, run_pair, share_ring, share_words
from tests.mpc_protocols.backends.pair.test_costs import CLIQUES, WHOLE, counts
from tests.worlds.words import random_words

BOTH = st.tuples(st.integers(0, 40), st.integers(0, 40))
DEMANDS = st.builds(Demand, bits=BOTH, shorts=BOTH, rows=BOTH)
KINDS = ("bits", "shorts", "rows")
Step = tuple[str, Any]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["foresee", "hasten", "reserve"]), DEMANDS),
        st.tuples(st.sampled_from(KINDS), st.tuples(st.integers(0, 1), st.integers(0, 30))),
        st.tuples(st.just("exchange"), st.none()),
        st.tuples(st.just("choose"), BOTH),
    ),
    max_size=14,
)


def carried_out(transfers: Transfers, steps: Sequence[Step]) -> list[Any]:
    """What this party has of the transfers that are taken, in order: its side, and arrays."""
    me, taken = transfers.link.me, []
    for name, of in steps:
        if name == "exchange":
            transfers.link.exchange(np.zeros(3, np.uint64))
        elif name == "choose":
            taken.append((name, own := random_words(of[me]), transfers.choose(own, of[1 - me])))
        elif name in KINDS:
            chooser, words = of
            role = "chosen" if chooser == me else "offered"
            taken.append((role, *vars(getattr(transfers, f"{role}_{name}")(words)).values()))
        else:
            getattr(transfers, name)(of)
    return taken


def selected(choices: Any, difference: Any) -> Any:
    """The difference where a choice is 1, in the form of its kind."""
    if difference.ndim == 1:
        return choices & difference
    flags = choices[np.newaxis] >> np.arange(64, dtype=np.uint64)[:, np.newaxis] & np.uint64(1)
    flags = flags.reshape(*flags.shape, *[1] * (difference.ndim - 2))
    return difference * flags.astype(difference.dtype)


@settings(max_examples=30, deadline=None)
@given(STEPS, st.sampled_from([3, 640]), st.sampled_from([7, random_ot.BATCH]))
@example([("foresee", Demand(bits=(9, 9))), ("shorts", (0, 30))], 3, 7)
def test_whatever_is_foreseen_both_parties_take_the_same_transfers_and_each_once(
    steps: list[Step], piece: int, batch: int
) -> None:
    """Also what was foreseen in vain, too little, or taken before it was made; asked for in one batch or in several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_ot, "BATCH", batch)
        patch.setattr(transfer_pool, "PIECE_BESIDE", piece)
        ran = run_pair(lambda transfers: carried_out(transfers, steps))
    strings: list[bytes] = []
    for zero, one in zip(*ran.results, strict=True):
        if zero[0] == "choose":
            for own, other in ((zero, one), (one, zero)):
                first, second = other[2][1]
                np.testing.assert_array_equal(own[2][0], first ^ selected(own[1], first ^ second))
                strings += [row.tobytes() for half in (first, second) for row in half.reshape(-1, 2)]
            continue
        chosen, offered = (zero, one) if zero[0] == "chosen" else (one, zero)
        np.testing.assert_array_equal(chosen[2], offered[1] ^ selected(chosen[1], offered[2]))
        if offered[1].ndim == 3:
            strings += [row.tobytes() for row in offered[1].reshape(-1, 2)]
    assert len(set(strings)) == len(strings)


def test_what_is_foreseen_takes_no_round() -> None:
    def after(exchanges: int, foreseen: bool) -> Ran[Any]:
        def party(transfers: Transfers) -> Any:
            if foreseen:
                transfers.foresee(Demand(bits=(1000, 1000)))
            for _ in range(exchanges):
                transfers.link.exchange(np.zeros(1, np.uint64))
            return and_bits(transfers, x[transfers.link.me], y[transfers.link.me])

        x, y = share_words(words[0]), share_words(words[1])
        return run_pair(party)

    words = random_words(2, 1000)
    for exchanges, foreseen, rounds in ((2, True, 3), (2, False, 4), (1, True, 3), (0, True, 2)):
        ran = after(exchanges, foreseen)
        np.testing.assert_array_equal(ran.results[0] ^ ran.results[1], words[0] & words[1])
        assert ran.rounds == rounds
    assert after(2, True).sent == after(2, False).sent


def test_what_is_being_made_is_not_made_again_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In several batches, beside each of which pieces of what is foreseen could leave."""
    monkeypatch.setattr(random_ot, "BATCH", 7)
    demand = Demand(bits=(9, 4), shorts=(30, 0))

    def party(transfers: Transfers) -> int:
        transfers.foresee(demand)
        transfers.reserve(demand)
        for _ in range(3):
            transfers.link.exchange(np.zeros(1, np.uint64))
        return sum(pool.level.words_left for pool in transfers._chosen.all + transfers._offered.all)

    assert run_pair(party).results == [43, 43]


def test_no_more_than_a_piece_travels_beside_an_exchange_unless_it_is_hastened() -> None:
    def party(transfers: Transfers) -> None:
        transfers.foresee(Demand(bits=(900, 100), rows=(1000, 0)))
        transfers.link.exchange(np.zeros(1, np.uint64))
        transfers.hasten(Demand(rows=(990, 0)))
        for _ in range(3):
            transfers.link.exchange(np.zeros(1, np.uint64))

    frames = run_pair(party).frames
    sent = [
        [len(of.payload) // 200 for of in frames if of.sender == sender and of.stream.endswith("transfers")]
        for sender in (0, 1)
    ]
    assert sent == [[640, 990, 270], [100]]


@pytest.mark.parametrize(("count", "element"), [(2, 4), (7, 4), (40, 4), (9, 8)])
def test_comparing_and_opening_take_exactly_what_is_foreseen(count: int, element: int) -> None:
    """The largest of random and extreme keys, equal ones among them."""
    dtype: Any = np.uint32 if element == 4 else np.uint64
    top = (1 << 8 * element - 2) - 1
    keys = np.random.default_rng().choice([0, 1, top, top - 1, 5], count).astype(dtype)
    parts = share_ring(keys)

    def party(transfers: Transfers) -> tuple[int, list[int]]:
        transfers.foresee(picks_demand(count, 1, element, transfers.link.latency_bytes))
        while any(pool.level.lacking for pool in transfers._chosen.all + transfers._offered.all):
            transfers.link.exchange(np.zeros(1, np.uint64))
        row: Any = parts[transfers.link.me].reshape(1, -1)
        found = int(argmax_rows(PairGates(transfers, bytes(32)), row)[0])
        left = [pool.level.words_left for pool in transfers._chosen.all + transfers._offered.all]
        return found, left

    for found, left in run_pair(party).results:
        assert found == int(keys.argmax()) and not any(left)


@pytest.mark.parametrize("latency_bytes", [LATENCY_BYTES, 1 << 30])
@pytest.mark.parametrize("sigma2", [4, 10_000])
def test_noise_makes_its_transfers_in_one_round_and_no_more_of_them(sigma2: int, latency_bytes: int) -> None:
    def party(transfers: Transfers) -> list[int]:
        transfers.link.latency_bytes = latency_bytes
        gates: Any = PairGates(transfers, bytes(32))
        gaussian_noise(gates, gates.release_bits(b"x"), sampler(Fraction(sigma2)), 100, np.uint32)
        return [pool.level.words_left for pool in transfers._chosen.all + transfers._offered.all]

    assert not any(run_pair(party).results[0])

    def made(transfers: Transfers) -> None:
        gates: Any = PairGates(transfers, bytes(32))
        transfers.link.latency_bytes = 1 << 30
        gumbel_noise(gates, gates.release_bits(b"y"), 50, 3, np.uint32)

    assert run_pair(made).rounds == 16


@pytest.mark.parametrize(("delay_us", "rounds"), [(0, [13, 14, 14]), (20_000, [14, 14, 14])])
def test_rounds_of_a_selection_and_its_measurement(delay_us: int, rounds: list[int]) -> None:
    """Of one that follows others, near and at 20 ms; the leader asks for cells that are new."""
    presumed = PresumedRun(WHOLE, lambda cliques: [2 * of for of in counts(cliques)], 2, 0, delay_us=delay_us)
    dry = BACKEND.dry_run(presumed)
    handles = dry.prepare(CLIQUES)
    dry.expect_keys(30)
    dry.measure(handles[:1], Fraction(100))
    clocks = []
    for number in range(4):
        answers = [np.full(WHOLE.cells(clique), 7.0) for clique in CLIQUES]
        answers[1][: 100 - 20 * number] = 0
        dry.expect(Fraction(100), promised=True)
        [picked] = dry.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1))
        dry.measure([handles[picked]], Fraction(100))
        clocks.append(dry.rounds)
    dry.close()
    assert np.diff(clocks).tolist() == rounds
