"""The public state: parties in lockstep derive the same plans and hashes; anything out of order stops the run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Setting
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.mechanisms.measurement import plan_total
from mpc_protocols.mechanisms.selection import plan_selection
from mpc_protocols.public import answers as thirds
from mpc_protocols.public.rounded_answers import RoundedAnswers
from mpc_protocols.public.state import (
    EndStep,
    MeasureStep,
    PrepareStep,
    PublicState,
    SelectStep,
    Step,
    TotalStep,
    parse,
)
from tests.mpc_protocols.replicated.trio_run import answers_of, small_groups

F = Fraction
SETTING = Setting({"a": 2, "b": 3, "c": 4}, "add-remove", 1, 10_000, b"session id")
PREPARE = PrepareStep((("a",), ("b",), ("a", "b"), ("c",)))


def prepared(setting: Setting = SETTING) -> PublicState:
    state = PublicState(setting)
    state.begin(PREPARE)
    assert state.prepare(PREPARE) == [0, 1, 2, 3]
    return state


def measured(setting: Setting = SETTING) -> PublicState:
    state = prepared(setting)
    step = MeasureStep(0, (0, 1), F(4))
    state.begin(step)
    state.learn_counts(step, [np.array([60, 41]), np.array([30, 40, 28])])
    return state


ANSWERS = [np.full(2, 50.0), np.full(3, 33.4), np.full(6, 16.5)]


def selection(state: PublicState) -> tuple[SelectStep, RoundedAnswers]:
    return state.select_step([0, 1, 2], ANSWERS, [F(1), F(1), F(2)], [F(0), F(0), F(3, 2)], F(1, 2))


def test_row_bound_and_total_come_from_the_first_batch() -> None:
    """N^ = (101/2 + 98/3) / (1/2 + 1/3) = 99.8, sigma_N^2 = 4 / (5/6); later releases move neither."""
    state = prepared()
    assert state.row_bound == 10_000 and state.noisy_total is None
    state = measured()
    assert state.noisy_total == pytest.approx(99.8)
    assert state.row_bound == int(99.8 + 9 * (24 / 5) ** 0.5) + 1
    bound = state.row_bound
    step = TotalStep(1, F(1))
    state.begin(step)
    assert state.plan_total(step).event == plan_total(SETTING, F(1), bound, first=False).event
    state.learn_total(step, 5000)
    again = MeasureStep(2, (0,), F(1))
    state.begin(again)
    state.learn_counts(again, [np.array([3000, 4000])])
    assert state.row_bound == bound and state.noisy_total == pytest.approx(99.8)


def test_total_as_the_first_release_fixes_the_bound() -> None:
    state = prepared()
    step = TotalStep(0, F(100))
    state.begin(step)
    assert state.plan_total(step).event == plan_total(SETTING, F(100), state.row_bound, first=True).event
    state.learn_total(step, 200)
    assert state.row_bound == 291 and state.noisy_total == 200


def test_row_bound_never_exceeds_the_cap() -> None:
    state = prepared()
    step = TotalStep(0, F(100))
    state.begin(step)
    state.learn_total(step, 9_990)
    assert state.row_bound == 10_000


def test_leader_and_follower_agree_at_every_step() -> None:
    """The follower sees bytes only, as on the wire."""
    leader, follower = PublicState(SETTING), PublicState(SETTING)
    assert leader.transcript == follower.transcript

    def both(step: Step) -> tuple[Any, Any]:
        other = parse(step.to_bytes())
        assert leader.begin(step) == follower.begin(other) == leader.transcript
        return step, other

    step, other = both(PREPARE)
    assert leader.to_share(step) == follower.to_share(other) == [("a", "b"), ("c",)]
    assert leader.prepare(step) == follower.prepare(other)
    step, other = both(MeasureStep(0, (0, 3), F(4)))
    assert leader.plan_measure(step) == follower.plan_measure(other)
    counts = [np.array([60, 41]), np.array([30, 40, 20, 9])]
    for state, s in ((leader, step), (follower, other)):
        state.learn_counts(s, counts)
    chosen, rounded = selection(leader)
    step, other = both(chosen)
    plan = follower.plan_select(other)
    assert plan == leader.plan_select(step)
    follower.check_answers(other, 0, rounded[0])
    for state, s in ((leader, step), (follower, other)):
        state.learn_selection(s, plan.kept[0])
    step, other = both(TotalStep(2, F(9)))
    for state, s in ((leader, step), (follower, other)):
        state.learn_total(s, 77)
    both(EndStep())
    assert leader.transcript == follower.transcript


@pytest.mark.parametrize(
    "changed",
    [
        replace(SETTING, session=b"another id"),
        replace(SETTING, adjacency="replace"),
        replace(SETTING, unit_rows=2),
        replace(SETTING, row_cap=10_001),
        replace(SETTING, sizes={"a": 2, "b": 3, "c": 5}),
        replace(SETTING, sizes={"a": 2, "b": 3, "d": 4}),
    ],
)
def test_transcript_starts_from_every_field_of_the_setting(changed: Setting) -> None:
    assert PublicState(changed).transcript != PublicState(SETTING).transcript
    reordered = replace(SETTING, sizes=dict(reversed(SETTING.sizes.items())))
    assert PublicState(reordered).transcript == PublicState(SETTING).transcript


def test_inputs_hash_changes_with_every_public_input_and_every_output() -> None:
    """What noise nonces are bound to: another step, table or earlier output never gives the same hash."""
    base, _ = selection(measured())
    variants = [
        base,
        replace(base, handles=(0, 1, 3)),
        replace(base, weights=(F(1), F(1), F(3))),
        replace(base, penalties=(F(0), F(0), F(5, 2))),
        replace(base, epsilon=F(1, 3)),
        replace(base, answer_sums=(103, 103, 102)),
        replace(base, answers_digests=(bytes(32),)),
    ]
    hashes = [measured().begin(step) for step in variants]
    hashes += [
        measured().begin(step)
        for step in (MeasureStep(1, (0,), F(2)), MeasureStep(1, (0,), F(3)), TotalStep(1, F(2)))
    ]
    other = prepared()
    step = MeasureStep(0, (0, 1), F(4))
    other.begin(step)
    other.learn_counts(step, [np.array([60, 41]), np.array([30, 40, 29])])  # one noisy count differs
    hashes.append(other.begin(base))
    for position in (0, 1):  # and so does the candidate selected
        other = measured()
        other.begin(base)
        other.learn_selection(base, position)
        hashes.append(other.begin(TotalStep(2, F(2))))
    assert len(set(hashes)) == len(hashes)
    assert measured().begin(base) == hashes[0]  # and the same inputs give the same hash


def test_transcript_is_a_chain_of_sha256() -> None:
    """Recomputed by hand: the format is part of what versions agree on."""

    def advance(previous: bytes, label: bytes, content: bytes) -> bytes:
        header = len(label).to_bytes(1, "big") + label + len(content).to_bytes(8, "big")
        return hashlib.sha256(previous + header + content).digest()

    start = hashlib.sha256(
        b'cosynth public transcript\0{"adjacency":"add-remove","gumbel":"' + gumbel.SHA256.encode()
        + b'","row_cap":10000,"session":"' + b"session id".hex().encode() + b'","sizes":{"a":2,"b":3,"c":4},"unit_rows":1}'
    ).digest()  # fmt: skip
    state = PublicState(SETTING)
    assert state.transcript == start
    state.begin(PREPARE)
    expected = advance(start, b"step", PREPARE.to_bytes())
    assert state.transcript == expected
    state.prepare(PREPARE)
    step = TotalStep(0, F(4))
    state.begin(step)
    expected = advance(expected, b"step", step.to_bytes() + sampler(F(4)).digest)
    assert state.transcript == expected
    state.learn_total(step, -3)
    assert state.transcript == advance(expected, b"total", (-3).to_bytes(16, "big", signed=True))


def test_plans_are_those_of_the_mechanisms() -> None:
    for adjacency, unit_rows, factor in (
        ("add-remove", 1, 1),
        ("add-remove", 3, 3),
        ("replace", 1, 2),
        ("replace", 3, 6),
    ):
        state = measured(replace(SETTING, adjacency=adjacency, unit_rows=unit_rows))
        step, rounded = selection(state)
        state.begin(step)
        plan = state.plan_select(step)
        assert plan == plan_selection(
            step.weights, step.penalties, step.epsilon, step.answer_sums, state.row_bound, factor
        )
        [answers] = rounded
        cells = answers.cut.of_spans(answers.cells)
        assert all(of.sum() <= step.answer_sums[q] for q, of in zip(plan.kept, cells, strict=True))


def test_only_the_first_release_is_charged_for_the_row_bound() -> None:
    state = prepared()
    step = MeasureStep(0, (0, 1), F(4))
    state.begin(step)
    plan = state.plan_measure(step)
    state.learn_counts(step, [np.array([60, 41]), np.array([30, 40, 28])])
    again = MeasureStep(1, (0, 1), F(4))
    state.begin(again)
    later = state.plan_measure(again)
    assert later.event.rho == plan.event.rho and later.event.beta < plan.event.beta


def test_steps_out_of_order_are_refused() -> None:
    with pytest.raises(ProtocolAborted, match="step 1 came where step 0 was due"):
        prepared().begin(TotalStep(1, F(1)))
    with pytest.raises(ProtocolAborted, match="step 0 came where step 1 was due"):
        measured().begin(TotalStep(0, F(1)))
    for step in (MeasureStep(0, (4,), F(1)), SelectStep(0, (9,), (F(1),), (F(0),), F(1), (1,), (bytes(32),))):
        with pytest.raises(ProtocolAborted, match="never prepared"):
            prepared().begin(step)
    state = prepared()
    state.begin(TotalStep(0, F(1)))
    for step in (TotalStep(1, F(1)), PREPARE, EndStep()):
        with pytest.raises(ProtocolAborted, match="before the one before it was finished"):
            state.begin(step)
    state = prepared()
    state.begin(EndStep())
    with pytest.raises(ProtocolAborted, match="after the end"):
        state.begin(PREPARE)


def test_a_refused_step_leaves_the_transcript_as_it_was() -> None:
    state = measured()
    before = state.transcript
    for step, error in (
        (TotalStep(1, F(1, 1000)), StudyInvalid),
        (PrepareStep((("a", "z"),)), StudyInvalid),
        (SelectStep(1, (0,), (F(1),), (F(0),), F(500), (1,), (bytes(32),)), StudyInvalid),
        (MeasureStep(1, (44,), F(1)), ProtocolAborted),
    ):
        with pytest.raises(error):
            state.begin(step)
        assert state.transcript == before and state.next_number == 1


def test_results_that_do_not_fit_are_refused() -> None:
    state = prepared()
    step = MeasureStep(0, (0, 1), F(4))
    with pytest.raises(ProtocolAborted, match="not the current one"):
        state.learn_counts(step, [np.zeros(2, np.int64), np.zeros(3, np.int64)])
    state.begin(step)
    with pytest.raises(ProtocolAborted, match="other sizes"):
        state.learn_counts(step, [np.zeros(2, np.int64), np.zeros(4, np.int64)])
    state = measured()
    step, _ = selection(state)
    state.begin(step)
    with pytest.raises(ProtocolAborted, match="no candidate"):
        state.learn_selection(step, 3)
    state.learn_selection(step, 2)
    with pytest.raises(ProtocolAborted, match="not the current one"):
        state.learn_selection(step, 2)


def refused(state: PublicState, step: SelectStep, answers: thirds.Answers, group: int = 0) -> None:
    with pytest.raises(ProtocolAborted, match="not those that were announced"):
        state.check_answers(step, group, answers)


def test_answers_that_were_not_announced_are_refused() -> None:
    state = measured()
    step, rounded = selection(state)
    state.begin(step)
    [cut] = state.cuts(step)
    state.check_answers(step, 0, rounded[0])
    cells = [answer.astype(np.int64) for answer in cut.of_spans(rounded[0].cells)]
    for wrong in (
        [cells[0] + 1, *cells[1:]],
        [cells[0] - 1000, *cells[1:]],
        [cells[0] + [1, -1], *cells[1:]],
    ):
        refused(state, step, thirds.Answers.of(cut, wrong))
    for handles, of in (
        ((1, 0, 2), [cells[1], cells[0], cells[2]]),
        ((0, 1), cells[:-1]),
        ((0, 1, 3), cells),
    ):
        refused(state, step, answers_of(handles, of))  # other candidates than the step's
    # a true hash of answers outside their public range is no excuse: the widths would not hold
    high = thirds.Answers.of(cut, [np.array([state.row_bound + 1, 0]), *cells[1:]])
    lying = replace(
        step, answers_digests=(high.digest(),), answer_sums=(state.row_bound + 1, *step.answer_sums[1:])
    )
    refused(state, lying, high)
    heavy = thirds.Answers.of(cut, [np.array([100, 100]), *cells[1:]])
    refused(state, replace(step, answers_digests=(heavy.digest(),)), heavy)


def test_answers_in_several_groups() -> None:
    """Each group has its hash; what a candidate's groups add up to is what was announced, not each for itself."""
    with small_groups(4, 5, 10):
        state = measured()
        step, rounded = selection(state)
        assert len(rounded) == len(step.answers_digests) == 3
        for wrong in (step.answers_digests[:2], (*step.answers_digests, bytes(32))):
            with pytest.raises(ProtocolAborted, match="another number of groups"):
                measured().begin(replace(step, answers_digests=wrong))
        state.begin(step)
        cuts = state.cuts(step)
        assert [cut.spans for cut in cuts] == [((0, 0, 2), (1, 0, 3)), ((2, 0, 4),), ((2, 4, 6),)]
        for group, answers in enumerate(rounded):
            state.check_answers(step, group, answers)
        for group in (1, 2):
            refused(state, step, rounded[3 - group], group)
        together = np.concatenate([group.cells for group in rounded])
        assert abs(together.sum() - sum(map(np.sum, ANSWERS))) <= 4
        heavy = [thirds.Answers.of(cut, [np.full(span.cells, 33) for span in cut.spans]) for cut in cuts[1:]]
        lying = replace(
            step,
            answers_digests=(step.answers_digests[0], *(group.digest() for group in heavy)),
            answer_sums=(*step.answer_sums[:2], 4 * 33 + 1),
        )
        state = measured()
        state.begin(lying)
        state.check_answers(lying, 0, rounded[0])
        state.check_answers(lying, 1, thirds.Answers.of(state.cuts(lying)[1], [np.full(4, 33)]))
        refused(state, lying, heavy[1], 2)


def told(answers: thirds.Answers, dealer: int, part: thirds.Part) -> thirds.Answers:
    """Answers as the dealer knows them, if it is told this part of its own."""
    cells = answers.cells.copy()
    cells[answers.cut.places[dealer]] = 0
    return thirds.Answers(answers.cut, cells, answers.nonzero, (dealer, part))


@pytest.mark.parametrize("dealer", range(3))
def test_answers_of_the_own_cells_are_known_by_hash_and_sums_only(dealer: int) -> None:
    """A dealer does not look at its own cells, yet what it is told of them must be what was announced."""
    state = measured()
    step, rounded = selection(state)
    state.begin(step)
    [cut], all_of = state.cuts(step), rounded[0]
    own = all_of.parts[dealer]
    state.check_answers(step, 0, told(all_of, dealer, own))
    wrong = [
        replace(own, content=bytes(32)),
        replace(own, sums=own.sums + 1),
        replace(own, sums=own.sums - 10_000),
        replace(own, sums=own.sums + 2**62),
        replace(own, sums=own.sums[:-1]),
        all_of.parts[(dealer + 1) % 3],
    ]
    for part in wrong:
        refused(state, step, told(all_of, dealer, part))
    refused(state, step, replace(told(all_of, dealer, own), told=((dealer + 1) % 3, own)))
    other = all_of.nonzero.copy()
    other[cut.places[dealer].start] ^= True  # zeros of the own cells, which a dealer sees of them
    refused(state, step, replace(told(all_of, dealer, own), nonzero=other))
    # true sums beyond what was announced: the hash is right, the bound is not
    heavy = thirds.Answers.of(
        cut,
        [
            of + 300 * (handle % 3 == dealer)
            for handle, of in zip(step.handles, cut.of_spans(all_of.cells), strict=True)
        ],
    )
    lying = replace(step, answers_digests=(heavy.digest(),))
    refused(state, lying, told(all_of, dealer, heavy.parts[dealer]))


def test_the_announced_hash_is_that_of_all_cells() -> None:
    """Of large marginals, too, which have three dealers: any cell, any sum, the candidates and their order count."""
    rng = np.random.default_rng(2)
    answers = [rng.integers(0, 9, size) for size in (3 * thirds.SPLIT + 1, 5, thirds.SPLIT, 64)]
    handles = [4, 1, 0, 6]

    def hashed(changed: Sequence[np.ndarray], of: Sequence[int] = handles) -> bytes:
        return answers_of(of, changed).digest()

    for third, part in enumerate(answers_of(handles, answers).parts):
        wanted = [
            sum(
                int(cells[piece].sum())
                for owner, piece in thirds.pieces(handle, len(cells))
                if owner == third
            )
            for handle, cells in zip(handles, answers, strict=True)
        ]
        assert part.sums.tolist() == wanted and len(part.content) == 32
    seen = {
        hashed(answers),
        hashed(answers, [4, 2, 0, 6]),
        hashed([answers[0], answers[1] + 1, *answers[2:]]),
    }
    for q, place in ((0, 0), (0, 1), (0, 2), (0, -1), (2, 7), (3, 0)):
        changed = [cells.copy() for cells in answers]
        changed[q][place] += 1
        seen.add(hashed(changed))
    assert len(seen) == 9


def test_answers_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="handle 1 has 3 cells"):
        measured().select_step([0, 1], [np.zeros(2), np.zeros(2)], [F(1)] * 2, [F(0)] * 2, F(1))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": {"a": 0}}, "'a' has size 0"),
        ({"sizes": {"a": True}}, "'a' has size True"),
        ({"adjacency": "swap"}, "swap"),
        ({"unit_rows": 0}, "0 rows"),
        ({"row_cap": 0}, "max_rows is 0"),
        ({"row_cap": 2**31}, "max_rows is 2147483648"),
    ],
)
def test_settings_outside_the_ranges_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(StudyInvalid, match=words):
        PublicState(replace(SETTING, **changes))  # type: ignore[arg-type]
