"""What a leader can make the others compute is limited by public numbers: they stop with 40, and an honest
leader asks less."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.engine import ReplicatedEngine
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.engine.bitwise.argmax import check_size
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.mechanisms.selection import MAX_COMPARISONS, MAX_DRAWS, most_candidates, plan_selection
from mpc_protocols.public.state import MAX_VARIANCES
from mpc_protocols.public.steps import MeasureStep, PrepareStep
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder

SIZES = {f"c{number}": 1 for number in range(MAX_VARIANCES + 1)}
FACTS = StudyFacts(SIZES, "add-remove", 1, 1000, bytes(32))
PICKS = MAX_DRAWS // len(SIZES) + 1
ONE = Fraction(1)
VARIANCES = tuple(ONE + Fraction(number, 1 << 20) for number in range(len(SIZES)))
ANSWERS = [np.full(1, 7.0)] * len(SIZES)


def rows(cliques: Any) -> list[np.ndarray]:
    return [np.full(1, 9, np.int64) for _ in cliques]


def led_by(body: Callable[[ReplicatedOracle, list[int]], None]) -> None:
    """Three parties; `body` gets the leader's oracle and a handle for each of the columns."""

    def party(wire: Wire) -> None:
        if wire.me == FACTS.leader:
            oracle = ReplicatedOracle(wire, FACTS, rows, Recorder())
            body(oracle, oracle.prepare([(name,) for name in SIZES]))
            wire.receive_up_to(0, 1 << 20)
        else:
            follow(wire, FACTS, rows, Recorder())

    MemoryNetwork(3, session_id=FACTS.session).run([party] * 3)


def lies_about_picks(oracle: ReplicatedOracle, handles: list[int]) -> None:
    weights, penalties = [ONE] * len(handles), [Fraction(0)] * len(handles)
    begun, _ = oracle.state.begin_select(handles, ANSWERS, weights, penalties, ONE, PICKS)
    oracle._announce(begun.step)


def lies_about_variances(oracle: ReplicatedOracle, handles: list[int]) -> None:
    oracle._announce(MeasureStep(0, tuple(handles), VARIANCES))


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (lies_about_picks, "draws of noise, at most"),
        (lies_about_variances, "2049 different variances, at most 2048"),
    ],
    ids=["picks", "variances"],
)
def test_followers_stop_at_a_step_that_is_too_large(
    asks: Callable[[ReplicatedOracle, list[int]], None], words: str
) -> None:
    with pytest.raises(ProtocolAborted, match=f"what the study does not allow.*{words}"):
        led_by(asks)


def test_an_honest_leader_refuses_before_it_tells_anybody() -> None:
    def body(oracle: ReplicatedOracle, handles: list[int]) -> None:
        weights, penalties = [ONE] * len(handles), [Fraction(0)] * len(handles)
        with pytest.raises(StudyInvalid, match="different variances"):
            oracle.measure(handles, VARIANCES)
        oracle.select(handles, ANSWERS, weights, penalties, ONE, PICKS)

    with pytest.raises(StudyInvalid, match="draws of noise, at most"):
        led_by(body)


@pytest.mark.parametrize(
    ("candidates", "picks", "fits"), [(40_000, 1, True), (9_459, 12, True), (9_460, 12, False)]
)
def test_comparisons_of_several_picks_are_limited(candidates: int, picks: int, fits: bool) -> None:
    plan = plan_selection(
        [ONE] * candidates, [Fraction(0)] * candidates, ONE, [5] * candidates, 1000, 1, picks
    )
    assert len(plan.contenders) == candidates
    assert fits == (candidates <= most_candidates(picks))
    assert fits == (picks == 1 or picks * candidates * (candidates - 1) // 2 <= MAX_COMPARISONS)
    if fits:
        check_size(plan)
    else:
        with pytest.raises(StudyInvalid, match="comparisons"):
            check_size(plan)


@pytest.mark.parametrize(("candidates", "picks", "fits"), [(59_700, 3, True), (60_000, 18, False)])
def test_where_candidates_are_compared_in_groups_draws_alone_are_limited(
    candidates: int, picks: int, fits: bool
) -> None:
    """All pairs of 200 columns at three resolutions, three of them at a time."""
    plan = plan_selection(
        [ONE] * candidates, [Fraction(0)] * candidates, ONE, [5] * candidates, 1000, 1, picks
    )
    with pytest.raises(StudyInvalid, match="comparisons"):
        check_size(plan)
    assert fits == (picks * candidates <= MAX_DRAWS)
    if fits:
        check_size(plan, in_groups=True)
    else:
        with pytest.raises(StudyInvalid, match="draws of noise"):
            check_size(plan, in_groups=True)
    assert ReplicatedEngine.picks_in_groups and not ProvedEngine.picks_in_groups


def test_what_a_contributor_sends_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc_protocols.engine.oracle.MAX_CONTRIBUTED", 2)

    def party(wire: Wire) -> None:
        if wire.me == FACTS.leader:
            for name in ("c1", "c2", "c1"):
                wire.send(3, PrepareStep(((name,),)).to_bytes())
        elif wire.me == 3:
            contribute(wire, FACTS, rows)

    with pytest.raises(ProtocolAborted, match="not to be shared"):
        MemoryNetwork(4, 3, session_id=FACTS.session).run([party] * 4)
