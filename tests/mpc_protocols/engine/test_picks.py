"""Several picks from one pass of scores, and noise of several variances, on shares: the references bit for
bit, exact rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.gates import TrioGates, pick_by_families, pick_several, picks_form
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import centred
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.argmax import peel
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise import sampling
from mpc_protocols.engine.noise.alias import alias_table
from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event, StudyFacts
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame
from mpc_protocols.mechanisms import gaussian, gumbel, selection
from mpc_protocols.mechanisms.selection import SelectionPlan, plan_selection
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.test_oracle import serve
from tests.mpc_protocols.backends.replicated.trio_run import (
    deal_bits,
    deal_ring,
    parity,
    run_trio,
    to_values,
    total,
)
from tests.mpc_protocols.engine.test_sampling import GUMBEL, chosen_uniforms, injected, ordered, planes_of
from tests.worlds.tables import CONTRIBUTORS, PARTS, counter, facts

F = Fraction


def leaving(
    conflicts: Sequence[tuple[int, int]], members: Sequence[int]
) -> Callable[[Sequence[int]], list[int]]:
    """The candidates that some picks leave."""

    def candidates(picked: Sequence[int]) -> list[int]:
        gone = {*picked, *(q for p in picked for q in members if (min(p, q), max(p, q)) in conflicts)}
        return [q for q in members if q not in gone]

    return candidates


@pytest.mark.parametrize(("picks", "count"), [(2, 2), (3, 5), (4, 64), (6, 65), (5, 3)])
def test_picks_equal_the_reference_on_each_list(picks: int, count: int) -> None:
    """Each pick is the integer reference on what the earlier ones leave, given the same random bits; ties,
    conflicts, gaps."""
    rng = np.random.default_rng(100 * picks + count)
    members = [3 * q + 1 for q in range(count)]  # positions of the candidates kept, among others
    a = 4
    for variant in range(3):
        uniforms = [chosen_uniforms(GUMBEL, count, rng) for _ in range(picks)]
        dithers = rng.integers(0, 1 << a, (picks, count))
        scores = rng.integers(-5 << a, 5 << a, count) if variant else np.zeros(count, np.int64)
        if variant == 2:  # equal keys in every row: the lower position must win
            uniforms, dithers = [[uniforms[0][0]] * count] * picks, np.zeros((picks, count), np.int64)
            scores[:] = 7
        conflicts = [(p, q) for q in members for p in members if p < q and rng.random() < 0.3 * (variant > 0)]
        flat = [u for row in uniforms for u in row]
        draws = [
            deal_bits(planes_of(flat, 80), rng),
            deal_bits(planes_of(dithers.reshape(-1).tolist(), a), rng),
        ]
        scored = deal_ring(scores.astype(np.uint32), rng)
        candidates = leaving(conflicts, members)

        def body(
            trio: Trio, draws: Any = draws, scored: Any = scored, candidates: Any = candidates
        ) -> list[int]:
            gates = TrioGates(trio)
            noise = sampling.gumbel_noise(gates, injected(draws, trio.me), picks * count, a, np.uint32)
            keys = scored[trio.me] + noise.reshape(picks, count)
            return peel(gates, keys, candidates, members)

        expected: list[int] = []
        while len(expected) < picks and (left := candidates(expected)):
            row, places = len(expected), [members.index(q) for q in left]
            expected.append(
                left[
                    selection.reference(
                        [int(scores[q]) for q in places],
                        ordered(GUMBEL, [uniforms[row][q] for q in places]),
                        [int(dithers[row][q]) for q in places],
                        a,
                    )
                ]
            )
        results, _ = run_trio(body)
        assert results == [expected] * 3


@pytest.mark.parametrize(("picks", "count"), [(1, 64), (4, 64), (6, 423)])
def test_each_further_pick_costs_one_round(picks: int, count: int) -> None:
    """4 rounds for the comparisons of all vectors, 1 for each pick; 9.5 bytes a pair, party and pick, and 32
    a candidate."""
    keys = np.random.default_rng(1).integers(0, 2**20, (picks, count)).astype(np.uint32)
    shares = deal_ring(keys, np.random.default_rng(2))
    candidates = leaving([], range(count))
    _, traffic = run_trio(lambda trio: peel(TrioGates(trio), shares[trio.me], candidates, range(count)))
    assert max(of.rounds for of in traffic) == 4 + picks
    assert [of.bytes_sent for of in traffic] == {
        1: [21184, 21184, 20352],
        4: [82256] * 3,
        6: [5012832, 5012000, 5012000],
    }[picks]
    assert traffic[1].bytes_sent <= picks * (9.5 * count * (count - 1) // 2 + 32 * count + 200)


def test_a_list_of_one_needs_no_opening() -> None:
    """Whom the earlier picks leave alone is public."""
    shares = deal_ring(np.array([[5, 1], [1, 5]], np.uint32), np.random.default_rng(2))
    _, traffic = run_trio(
        lambda trio: peel(TrioGates(trio), shares[trio.me], leaving([], range(2)), range(2))
    )
    assert max(of.rounds for of in traffic) == 5 and [of.bytes_sent for of in traffic] == [1208, 376, 376]


def test_picks_open_random_words_of_their_own_list_only() -> None:
    """Frames of the openings: as many words as the lists have candidates; no word twice but the winner's
    zeros; half the bits set (5 sigma): a loser's words, and what candidates outside a list would show, are
    not to be told from random ones."""
    count, picks = 200, 4
    keys = np.tile(np.arange(count, dtype=np.uint32), (picks, 1))
    shares = deal_ring(keys, np.random.default_rng(4))
    frames: list[Frame] = []
    results, _ = run_trio(
        lambda trio: peel(
            TrioGates(trio), shares[trio.me], leaving([(198, 199)], range(count)), range(count)
        ),
        tap=frames.append,
    )
    assert results == [[199, 197, 196, 195]] * 3
    left = [200, 198, 197, 196]  # 198 left with 199
    for several in left:
        sent = [np.frombuffer(f.payload, np.uint64) for f in frames if len(f.payload) == 16 * several]
        parts = {part.tobytes(): part for part in sent}
        assert len(sent) == 6 and len(parts) == 3  # each party's part, to both others
        opened = np.bitwise_xor.reduce(list(parts.values())).reshape(several, 2)
        losers = opened[(opened != 0).any(axis=1)]
        assert len(losers) == several - 1 and len(np.unique(losers)) == losers.size
        ones = int(np.unpackbits(losers.view(np.uint8)).sum())
        assert abs(ones - 64 * len(losers)) < 5 * (32 * len(losers)) ** 0.5


def rounds_of(picks: int) -> int:
    """Of a run with one selection of so many picks among four candidates."""

    def body(oracle: ReplicatedOracle) -> list[int]:
        handles = oracle.prepare([("a", "b"), ("c",), ("d", "c"), ("b",)])
        answers = [np.full(oracle.state.cells(handle), 30.0) for handle in handles]
        return oracle.select(handles, answers, [F(1)] * 4, [F(0)] * 4, F(1), picks)

    picked, network = serve(body, PARTS)
    assert len(set(picked)) == picks
    return max(network.traffic(party).rounds for party in range(3))


def test_a_selection_of_several_takes_one_more_round_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores and the comparisons are made once; the last of four candidates is left alone."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: 1 << 16)
    first = rounds_of(1)
    assert [rounds_of(picks) - first for picks in (2, 3, 4)] == [1, 2, 2]


def test_every_pick_is_on_record_at_every_party() -> None:
    """Events as the ideal ones, before anything is opened; a party that refuses the second pick stops all of
    it."""
    handles, answers = [0, 1, 2], [np.full(12, 80.0), np.full(5, 190.0), np.full(10, 90.0)]

    def body(oracle: Any) -> list[int]:
        oracle.prepare([("a", "b"), ("c",), ("c", "d")])
        return oracle.select(handles, answers, [F(1)] * 3, [F(0)] * 3, F(1), 3, [(0, 2)])

    guards = [Recorder() for _ in range(3)]
    picked, _ = serve(body, PARTS, guards=guards)
    assert sorted(picked) in ([0, 1], [1, 2])
    ideal = Recorder()
    body(IdealOracle(facts(), counter(np.concatenate(PARTS)), ideal))
    assert [event.detail["pick"] for event, _ in ideal.asked] == [1, 2, 3]
    assert [guard.asked for guard in guards] == [ideal.asked] * 3
    frames: list[Frame] = []
    with pytest.raises(BudgetRefused):
        serve(body, PARTS, guards=[Recorder(), Recorder(), Recorder(refuse_from=1)], tap=frames.append)
    assert not any(len(frame.payload) in (32, 48) and frame.sender == 2 for frame in frames[-1:])


def whatever(oracle: Any, of: StudyFacts) -> list[Any]:
    """Levels, several variances and distances; at tiny variances the answers do not depend on the noise."""
    from mpc_protocols.functionality import Level

    levels = [
        Level("b/2", "b", (0, 0, 1, 1)),
        Level("c/3", "c", (2, 0, 0, 1, 2)),
        Level("c/2", "c", (1, 0, 0, 0, 1)),
    ]
    handles = oracle.prepare([("a",), ("b",)])
    seen: list[Any] = [[list(x) for x in oracle.measure(handles, F(1, 64))]]
    coarse = oracle.prepare([("a", "b/2", "c/3"), ("c/2", "a"), ("b/2",), ("d", "b")], levels)
    seen.append([list(x) for x in oracle.measure(coarse, [F(1, 64), F(1, 60), F(1, 60), F(1, 55)])])
    answers = [np.full(oracle.state.cells(handle), 40.0) for handle in coarse]
    seen.append(oracle.distances(coarse, answers, F(1, 64)).tolist())
    fine = oracle.prepare([("b", "c")], [levels[0]])
    seen.append([list(x) for x in oracle.measure([*fine, coarse[0]], [F(1, 50), F(1, 64)])])
    return [*seen, list(oracle.state.shared), oracle.state.transcript]


@pytest.mark.parametrize("contributors", [0, 2])
def test_shares_answer_the_new_questions_like_the_ideal_oracle(contributors: int) -> None:
    parts = [*PARTS, *CONTRIBUTORS[:contributors]]
    of = facts()
    expected = whatever(IdealOracle(of, counter(np.concatenate(parts)), Recorder()), of)
    guards = [Recorder() for _ in range(3)]
    got, _ = serve(lambda oracle: whatever(oracle, of), parts, guards=guards)
    assert got == expected
    events: list[Event] = [event for event, _ in guards[0].asked]
    assert [event.what for event in events] == ["measure", "measure", "distances", "measure"]


SAMPLERS = [
    [(F(1), 3), (F(100), 65)],
    [(F(10_000), 64), (F(1, 64), 1), (F(100), 130), (F(10_000), 5)],
    [(F(10**6), 70), (F(4), 10), (F(40_000), 64)],
]


@pytest.mark.parametrize("asked", SAMPLERS)
def test_noise_of_several_variances_equals_the_references(asked: list[tuple[Fraction, int]]) -> None:
    """Every cell follows its own sampler's reference on the bits it was made of; the rounds are those of the
    widest alone."""
    samplers = [(gaussian.sampler(sigma2), count) for sigma2, count in asked]

    def body(trio: Trio) -> tuple[Any, list[BitShare]]:
        gates = TrioGates(trio)
        source, seen = gates.release_bits(b"release"), []

        def draw(shape: tuple[int, ...]) -> BitShare:
            seen.append(source(shape))
            return seen[-1]

        return sampling.gaussian_noises(gates, draw, samplers, np.uint32), seen

    results, traffic = run_trio(body)
    noise = centred(total([shares for shares, _ in results]))
    drawn = [parity([bits[part] for _, bits in results]) for part in range(len(results[0][1]))]
    expected = np.zeros(len(noise), np.int64)
    for part, planes in enumerate(drawn):
        runs = [(of.parts[part], count) for of, count in samplers if part < len(of.parts)]
        tables = sampling.joint_tables([half for (_, half), _ in runs])
        first = 0
        starts = np.cumsum([0, *(count for _, count in samplers)])
        places = [start for (of, _), start in zip(samplers, starts, strict=False) if part < len(of.parts)]
        for ((multiplier, half), count), table, place in zip(runs, tables, places, strict=True):
            words = -(-count // 64)
            piece = planes[:, first : first + words]
            first += words
            uniforms = [int(u) for u in to_values(piece[:64], count)]
            signs = to_values(piece[64:], count)
            values = [half.invert(table.table_order(u)) for u in uniforms]
            expected[place : place + count] += [
                multiplier * (1 - 2 * int(s)) * k for k, s in zip(values, signs, strict=True)
            ]
    np.testing.assert_array_equal(noise, expected)
    assert traffic == run_trio(body, network=BlankNetwork(3))[1]


def test_more_columns_do_not_change_a_law() -> None:
    """A table widened to a larger one's columns gives every value the same mass."""
    half = gaussian.half_table(F(4))
    small, wide = (alias_table(half.thresholds, gaussian.BITS, bits) for bits in (2, 9))
    for table in (small, wide):
        gets = [0] * len(table.thresholds)
        for column, (threshold, alias) in enumerate(zip(table.thresholds, table.aliases, strict=True)):
            gets[column] += threshold
            gets[alias] += (1 << table.rest_bits) - threshold
        masses = np.diff(np.array([0, *half.thresholds, 1 << 64], object))
        assert gets[: len(masses)] == masses.tolist() and not any(gets[len(masses) :])
    assert gumbel.BITS == 80 and wide.index_bits == 9


def test_tables_of_different_shapes_are_not_drawn_together() -> None:
    half = gaussian.half_table(F(4))
    tables = [(alias_table(half.thresholds, 64, bits), 1) for bits in (2, 9)]
    uniform: NDArray[np.uint64] = np.zeros((64, 2), np.uint64)
    from mpc_protocols.engine.noise.alias import draw_runs

    with pytest.raises(ValueError, match="as many index bits"):
        run_trio(lambda trio: draw_runs(TrioGates(trio), BitShare(uniform, uniform), tables, "tree"))


@pytest.mark.parametrize(("picks", "count"), [(2, 700), (3, 1100)])
def test_many_candidates_are_picked_one_after_the_other(picks: int, count: int) -> None:
    """The same picks, ties and conflicts included, at some 250 bytes or fewer a candidate and pick."""
    rng = np.random.default_rng(count)
    keys = rng.integers(0, 50, (picks, count)).astype(np.uint32)  # many ties
    shares = deal_ring(keys, np.random.default_rng(2))
    plan = even_plan(count, picks, [[p + 2] if p % 3 == 0 and p + 2 < count else [] for p in range(count)])
    expected = chosen(plan, keys)
    assert picks_form(picks, count, [1] * count, 4, LATENCY_BYTES) == "one by one"
    assert picks_form(picks, 64, [1] * 64, 4, LATENCY_BYTES) == "at once"
    results, traffic = run_trio(lambda trio: pick_several(TrioGates(trio), shares[trio.me], plan))
    assert results == [expected] * 3
    assert (max(of.rounds for of in traffic), [of.bytes_sent for of in traffic]) == {
        2: (20, [351024, 348880, 348880]),
        3: (42, [239840, 237104, 236624]),
    }[picks]
    assert traffic[1].bytes_sent <= 251 * picks * count


def even_plan(count: int, picks: int, conflicts: Sequence[Sequence[int]]) -> SelectionPlan:
    """Of candidates that are alike but for what leaves with them."""
    return plan_selection([F(1)] * count, [F(0)] * count, F(1, 20), [900] * count, 1000, 1, picks, conflicts)


def chosen(plan: SelectionPlan, keys: NDArray[Any]) -> list[int]:
    """The picks that these keys of the contenders make."""
    column = {member: place for place, member in enumerate(plan.contenders)}
    picked: list[int] = []
    while len(picked) < plan.picks and (left := plan.candidates(picked)):
        picked.append(left[int(keys[len(picked), [column[q] for q in left]].argmax())])
    return picked


BY_FAMILIES = [
    (14, 48152),
    (10, 35992),
    (12, 43136),
    (10, 23856),
    (13, 68664),
    (10, 23328),
    (12, 47000),
    (11, 39080),
    (13, 58432),
    (10, 52944),
    (12, 52896),
    (10, 18776),
]
"""Rounds and bytes of the three, by seed."""


@pytest.mark.parametrize("seed", range(len(BY_FAMILIES)))
def test_picks_by_families_are_the_same_picks(seed: int) -> None:
    """Families of every size up to the limit, conflicts between them, ties, candidates that cannot win on
    some list, lists that run out."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(9), rng.integers(1, 7, 9))
    count, picks = len(family), int(rng.integers(2, 7))
    together = rng.random((9, 9)) < (0.2, 0.6)[seed % 2]
    conflicts = [
        [p for p in range(q + 1, count) if family[p] == family[q] or together[family[q], family[p]]]
        for q in range(count)
    ]
    penalties = [F(int(p)) for p in rng.choice([0, 100, 4000, 9000] if seed % 3 else [0], count)]
    plan = plan_selection([F(1)] * count, penalties, F(2), [900] * count, 1000, 1, picks, conflicts)
    assert max(map(len, plan.families)) == selection.MAX_FAMILY
    low, high = (np.array([of[q] for q in plan.contenders]) for of in (plan.lowest, plan.highest))
    keys = rng.integers(low, high + 1, (picks, len(low)))
    if seed % 4 == 0:  # ties wherever the ranges allow
        keys = np.clip(np.full_like(keys, int(low.max())), low, high)
    shares = deal_ring(keys.astype(np.uint32), rng)
    expected = chosen(plan, keys)
    results, traffic = run_trio(lambda trio: pick_by_families(TrioGates(trio), shares[trio.me], plan))
    assert results == [expected] * 3
    assert (max(of.rounds for of in traffic), sum(of.bytes_sent for of in traffic)) == BY_FAMILIES[seed]


def test_families_open_random_words_but_for_the_winners() -> None:
    """Words of all members of the families on each list: one is 0, that of the pick; none twice, half of the bits set
    (5 sigma)."""
    count, picks, width = 300, 4, 3
    apart = [[p for p in range(q + 1, count) if p // width == q // width] for q in range(count)]
    plan = even_plan(count, picks, apart)
    assert picks_form(picks, count, [width] * 100, 4, LATENCY_BYTES) == "families"
    keys = np.tile(np.arange(count, dtype=np.uint32), (picks, 1))
    shares = deal_ring(keys, np.random.default_rng(4))
    frames: list[Frame] = []
    results, traffic = run_trio(
        lambda trio: pick_several(TrioGates(trio), shares[trio.me], plan), tap=frames.append
    )
    assert results == [[299, 296, 293, 290]] * 3
    assert max(of.rounds for of in traffic) == 8 + picks
    for several in [width * (100 - number) for number in range(picks)]:
        sent = [np.frombuffer(f.payload, np.uint64) for f in frames if len(f.payload) == 16 * several][-6:]
        parts = {part.tobytes(): part for part in sent}
        assert len(sent) == 6 and len(parts) == 3
        opened = np.bitwise_xor.reduce(list(parts.values())).reshape(several, 2)
        losers = opened[(opened != 0).any(axis=1)]
        assert len(losers) == several - 1 and len(np.unique(losers)) == losers.size
        ones = int(np.unpackbits(losers.view(np.uint8)).sum())
        assert abs(ones - 64 * len(losers)) < 5 * (32 * len(losers)) ** 0.5


def test_families_are_contenders_that_leave_together() -> None:
    """Neighbours in conflict with one another and with the same others, at most MAX_FAMILY of them; none
    where keys of different lists might not be told apart in the ring."""
    conflicts: list[list[int]] = [[1, 2, 7], [2, 7], [7], [], [5, 6], [6], [], [], [9, 10, 11, 12, 13]]
    conflicts += [list(range(q + 1, 14)) for q in range(9, 14)]
    plan = even_plan(14, 3, conflicts)
    assert plan.families == ((0, 1, 2), (3,), (4, 5, 6), (7,), (8, 9, 10, 11), (12, 13))
    assert plan.families_of([1, 2, 7, 12]) == (0, 3, 5)
    far = replace(plan, lowest=(-(1 << 31), *plan.lowest[1:]))
    assert far.families == tuple((q,) for q in range(14))
