"""The public state: parties in lockstep derive the same plans and hashes; anything out of order stops the
run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Level, StudyFacts
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.mechanisms.measurement import plan_total
from mpc_protocols.mechanisms.selection import plan_selection
from mpc_protocols.public.answers import SPLIT, Answers, PartDigest, dealer_slices, layouts
from mpc_protocols.public.begun import BegunSelect
from mpc_protocols.public.rounded_answers import AnswerChecker, RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import EndStep, MeasureStep, PrepareStep, SelectStep, Step, TotalStep, parse
from tests.mpc_protocols.backends.replicated.trio_run import answers_of, small_groups

F = Fraction
SETTING = StudyFacts({"a": 2, "b": 3, "c": 4}, "add-remove", 1, 10_000, b"session id")
DEALERS = 3
PREPARE = PrepareStep((("a",), ("b",), ("a", "b"), ("c",)))


def prepared(facts: StudyFacts = SETTING) -> PublicState:
    state = PublicState(facts, DEALERS)
    assert state.begin(PREPARE).handles == (0, 1, 2, 3)
    return state


def measured(facts: StudyFacts = SETTING) -> PublicState:
    state = prepared(facts)
    begun = state.begin(MeasureStep(0, (0, 1), F(4)))
    state.learn_counts(begun, [np.array([60, 41]), np.array([30, 40, 28])])
    return state


ANSWERS = [np.full(2, 50.0), np.full(3, 33.4), np.full(6, 16.5)]


def selection(state: PublicState) -> tuple[BegunSelect, RoundedAnswers]:
    return state.begin_select([0, 1, 2], ANSWERS, [F(1), F(1), F(2)], [F(0), F(0), F(3, 2)], F(1, 2))


def test_row_bound_and_total_come_from_the_first_batch() -> None:
    """N^ = (101/2 + 98/3) / (1/2 + 1/3) = 99.8, sigma_N^2 = 4 / (5/6); later releases move neither."""
    state = prepared()
    assert state.row_bound == 10_000 and state.noisy_total is None
    state = measured()
    assert state.noisy_total == pytest.approx(99.8)
    assert state.row_bound == int(99.8 + 9 * (24 / 5) ** 0.5) + 1
    bound = state.row_bound
    total = state.begin(TotalStep(1, F(1)))
    assert total.plan.event == plan_total(SETTING, F(1), bound, first=False).event
    state.learn_total(total, 5000)
    again = state.begin(MeasureStep(2, (0,), F(1)))
    state.learn_counts(again, [np.array([3000, 4000])])
    assert state.row_bound == bound and state.noisy_total == pytest.approx(99.8)


def test_total_as_the_first_release_fixes_the_bound() -> None:
    state = prepared()
    begun = state.begin(TotalStep(0, F(100)))
    assert begun.plan.event == plan_total(SETTING, F(100), state.row_bound, first=True).event
    state.learn_total(begun, 200)
    assert state.row_bound == 291 and state.noisy_total == 200


def test_row_bound_never_exceeds_the_cap() -> None:
    state = prepared()
    state.learn_total(state.begin(TotalStep(0, F(100))), 9_990)
    assert state.row_bound == 10_000


def test_leader_and_follower_agree_at_every_step() -> None:
    """The follower sees bytes only, as on the wire."""
    leader, follower = PublicState(SETTING, DEALERS), PublicState(SETTING, DEALERS)
    assert leader.transcript == follower.transcript

    def both(step: Step) -> Any:
        begun = leader.begin(step)
        assert begun == follower.begin(parse(step.to_bytes()))
        assert begun.inputs == leader.transcript == follower.transcript
        return begun

    begun = both(PREPARE)
    assert begun.fresh == (("a", "b"), ("c",)) and begun.handles == (0, 1, 2, 3)
    begun = both(MeasureStep(0, (0, 3), F(4)))
    for state in (leader, follower):
        state.learn_counts(begun, [np.array([60, 41]), np.array([30, 40, 20, 9])])
    chosen, rounded = selection(leader)
    begun = follower.begin(parse(chosen.step.to_bytes()))
    assert begun == chosen
    begun.answers.checker().check(0, rounded[0])
    for state in (leader, follower):
        state.learn_selection(begun, [begun.plan.contenders[0]])
    begun = both(TotalStep(2, F(9)))
    for state in (leader, follower):
        state.learn_total(begun, 77)
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
        replace(SETTING, leader=0),
    ],
)
def test_transcript_starts_from_every_field_of_the_study_facts(changed: StudyFacts) -> None:
    start = PublicState(SETTING, DEALERS).transcript
    assert PublicState(changed, DEALERS).transcript != start
    reordered = replace(SETTING, sizes=dict(reversed(list(SETTING.sizes.items()))))
    assert PublicState(reordered, DEALERS).transcript == start


def test_inputs_hash_changes_with_every_public_input_and_every_output() -> None:
    """What noise nonces are bound to: another step, table or earlier output never gives the same hash."""
    base = selection(measured())[0].step
    variants = [
        base,
        replace(base, handles=(0, 1, 3)),
        replace(base, weights=(F(1), F(1), F(3))),
        replace(base, penalties=(F(0), F(0), F(5, 2))),
        replace(base, epsilon=F(1, 3)),
        replace(base, answer_sums=(103, 103, 102)),
        replace(base, answers_digests=(bytes(32),)),
        replace(base, picks=2),
        replace(base, picks=2, conflicts=((1,), (), ())),
    ]
    hashes = [measured().begin(step).inputs for step in variants]
    hashes += [
        measured().begin(step).inputs
        for step in (
            MeasureStep(1, (0,), F(2)),
            MeasureStep(1, (0,), F(3)),
            MeasureStep(1, (0, 1), (F(2), F(3))),
            MeasureStep(1, (0, 1), (F(3), F(2))),
            TotalStep(1, F(2)),
            PrepareStep((("a",),)),
            PrepareStep((("a",),), (Level("c/2", "c", (0, 0, 1, 1)),)),
            PrepareStep((("a",),), (Level("c/2", "c", (0, 1, 1, 1)),)),
        )
    ]
    other = prepared()
    other.learn_counts(
        other.begin(MeasureStep(0, (0, 1), F(4))), [np.array([60, 41]), np.array([30, 40, 29])]
    )  # one noisy count differs
    hashes.append(other.begin(base).inputs)
    for position in (0, 1):  # and so does the candidate selected
        other = measured()
        other.learn_selection(other.begin(base), [position])
        hashes.append(other.begin(TotalStep(2, F(2))).inputs)
    assert len(set(hashes)) == len(hashes)
    assert measured().begin(base).inputs == hashes[0]  # and the same inputs give the same hash


def test_transcript_is_a_chain_of_sha256() -> None:
    """Recomputed by hand: the format is part of what versions agree on."""

    def advance(previous: bytes, label: bytes, content: bytes) -> bytes:
        header = len(label).to_bytes(1, "big") + label + len(content).to_bytes(8, "big")
        return hashlib.sha256(previous + header + content).digest()

    start = hashlib.sha256(
        b'cosynth public transcript\0{"adjacency":"add-remove","gumbel":"' + gumbel.SHA256.encode()
        + b'","row_cap":10000,"session":"' + b"session id".hex().encode() + b'","sizes":{"a":2,"b":3,"c":4},"unit_rows":1}'
    ).digest()  # fmt: skip
    state = PublicState(SETTING, DEALERS)
    assert state.transcript == start
    state.begin(PREPARE)
    expected = advance(start, b"step", PREPARE.to_bytes())
    assert state.transcript == expected
    step = TotalStep(0, F(4))
    begun = state.begin(step)
    expected = advance(expected, b"step", step.to_bytes() + sampler(F(4)).digest)
    assert state.transcript == expected
    state.learn_total(begun, -3)
    assert state.transcript == advance(expected, b"total", (-3).to_bytes(16, "big", signed=True))


def test_plans_are_those_of_the_mechanisms() -> None:
    for adjacency, unit_rows, factor in (
        ("add-remove", 1, 1),
        ("add-remove", 3, 3),
        ("replace", 1, 2),
        ("replace", 3, 6),
    ):
        state = measured(replace(SETTING, adjacency=adjacency, unit_rows=unit_rows))  # type: ignore[arg-type]
        begun, rounded = selection(state)
        step, plan = begun.step, begun.plan
        assert plan == plan_selection(
            step.weights, step.penalties, step.epsilon, step.answer_sums, state.row_bound, factor
        )
        [answers] = rounded
        cells = answers.layout.by_range(answers.cells)
        assert all(of.sum() <= step.answer_sums[q] for q, of in zip(plan.contenders, cells, strict=True))


def test_only_the_first_release_is_charged_for_the_row_bound() -> None:
    state = prepared()
    begun = state.begin(MeasureStep(0, (0, 1), F(4)))
    state.learn_counts(begun, [np.array([60, 41]), np.array([30, 40, 28])])
    plan, later = begun.plan, state.begin(MeasureStep(1, (0, 1), F(4))).plan
    assert later.event.rho == plan.event.rho and later.event.beta < plan.event.beta


def test_steps_out_of_order_are_refused() -> None:
    with pytest.raises(ProtocolAborted, match="Step 1 came where step 0 was due"):
        prepared().begin(TotalStep(1, F(1)))
    with pytest.raises(ProtocolAborted, match="Step 0 came where step 1 was due"):
        measured().begin(TotalStep(0, F(1)))
    for step in (MeasureStep(0, (4,), F(1)), SelectStep(0, (9,), (F(1),), (F(0),), F(1), (1,), (bytes(32),))):
        with pytest.raises(ProtocolAborted, match="never prepared"):
            prepared().begin(step)
    state = prepared()
    state.begin(TotalStep(0, F(1)))
    for step in (TotalStep(1, F(1)), PREPARE, EndStep()):  # type: ignore[assignment]
        with pytest.raises(ProtocolAborted, match="before the one before it was finished"):
            state.begin(step)
    state = prepared()
    state.begin(EndStep())
    with pytest.raises(ProtocolAborted, match="after the end"):
        state.begin(PREPARE)


def test_nothing_but_a_promised_measurement_follows_a_selection() -> None:
    state = measured()
    begun, _ = state.begin_select([0, 1, 2], ANSWERS, [F(1)] * 3, [F(0)] * 3, F(1, 2), 2, (), F(4), True)
    state.learn_selection(begun, [2, 0])
    assert state.promised == MeasureStep(2, (2, 0), F(4))
    for step in (
        MeasureStep(2, (0, 2), F(4)),
        MeasureStep(2, (2, 0), F(5)),
        TotalStep(2, F(4)),
        PREPARE,
        EndStep(),
    ):
        before = state.transcript
        with pytest.raises(ProtocolAborted, match="in place of the measurement that the selection before it"):
            state.begin(step)
        assert state.transcript == before and state.promised is not None
    begun_measure = state.begin(state.promised)
    assert begun_measure.promised and state.promised is None
    state.learn_counts(begun_measure, [np.zeros(6, np.int64), np.zeros(2, np.int64)])
    assert not state.begin(MeasureStep(3, (0,), F(4))).promised


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
        assert state.transcript == before


def test_results_that_do_not_fit_are_refused() -> None:
    state = prepared()
    begun = prepared().begin(MeasureStep(0, (0, 1), F(4)))
    with pytest.raises(ProtocolAborted, match="not the current one"):
        state.learn_counts(begun, [np.zeros(2, np.int64), np.zeros(3, np.int64)])
    begun = state.begin(MeasureStep(0, (0, 1), F(4)))
    with pytest.raises(ProtocolAborted, match="other sizes"):
        state.learn_counts(begun, [np.zeros(2, np.int64), np.zeros(4, np.int64)])
    for positions, words in (([3], "no candidate"), ([], "0 positions, 1 were due")):
        state = measured()
        chosen, _ = selection(state)
        with pytest.raises(ProtocolAborted, match=words):
            state.learn_selection(chosen, positions)
    state = measured()
    chosen, _ = selection(state)
    state.learn_selection(chosen, [2])
    with pytest.raises(ProtocolAborted, match="not the current one"):
        state.learn_selection(chosen, [2])


def checker(step: SelectStep) -> AnswerChecker:
    return measured().begin(step).answers.checker()


def refused(step: SelectStep, answers: Answers, group: int = 0) -> None:
    with pytest.raises(ProtocolAborted, match="not those that were announced"):
        checker(step).check(group, answers)


def test_answers_that_were_not_announced_are_refused() -> None:
    state = measured()
    begun, rounded = selection(state)
    step, [layout] = begun.step, begun.answers.groups
    begun.answers.checker().check(0, rounded[0])
    cells = [answer.astype(np.int64) for answer in layout.by_range(rounded[0].cells)]
    for wrong in (
        [cells[0] + 1, *cells[1:]],
        [cells[0] - 1000, *cells[1:]],
        [cells[0] + [1, -1], *cells[1:]],
    ):
        refused(step, Answers.of(layout, wrong))  # type: ignore[arg-type]
    for handles, of in (
        ((1, 0, 2), [cells[1], cells[0], cells[2]]),
        ((0, 1), cells[:-1]),
        ((0, 1, 3), cells),
    ):
        refused(step, answers_of(handles, of))  # other candidates than the step's
    # a true hash of answers outside their public range is no excuse: the widths would not hold
    high = Answers.of(layout, [np.array([state.row_bound + 1, 0]), *cells[1:]])
    lying = replace(
        step, answers_digests=(high.digest(),), answer_sums=(state.row_bound + 1, *step.answer_sums[1:])
    )
    refused(lying, high)
    heavy = Answers.of(layout, [np.array([100, 100]), *cells[1:]])
    refused(replace(step, answers_digests=(heavy.digest(),)), heavy)


def test_answers_in_several_groups() -> None:
    """Each group has its hash; what a candidate's groups add up to is what was announced, not each for
    itself."""
    with small_groups(4, 5, 10):
        begun, rounded = selection(measured())
        step, groups = begun.step, begun.answers.groups
        assert len(rounded) == len(step.answers_digests) == 3
        for wrong in (step.answers_digests[:2], (*step.answers_digests, bytes(32))):
            with pytest.raises(ProtocolAborted, match="another number of groups"):
                measured().begin(replace(step, answers_digests=wrong))
        assert [layout.ranges for layout in groups] == [((0, 0, 2), (1, 0, 3)), ((2, 0, 4),), ((2, 4, 6),)]
        check = begun.answers.checker().check
        for group, answers in enumerate(rounded):
            check(group, answers)
        for group in (1, 2):
            refused(step, rounded[3 - group], group)
        together = np.concatenate([group.cells for group in rounded])
        assert abs(together.sum() - sum(map(np.sum, ANSWERS))) <= 4
        heavy = [
            Answers.of(layout, [np.full(cells.cells, 33) for cells in layout.ranges]) for layout in groups[1:]
        ]
        lying = replace(
            step,
            answers_digests=(step.answers_digests[0], *(group.digest() for group in heavy)),
            answer_sums=(*step.answer_sums[:2], 4 * 33 + 1),
        )
        check = checker(lying).check
        check(0, rounded[0])
        check(1, Answers.of(groups[1], [np.full(4, 33)]))
        with pytest.raises(ProtocolAborted, match="not those that were announced"):
            check(2, heavy[1])


def withheld(answers: Answers, dealer: int, part: PartDigest) -> Answers:
    """Answers as the dealer knows them, if it is told this of its own part."""
    cells = answers.cells.copy()
    cells[answers.layout.places[dealer]] = 0
    return Answers(answers.layout, cells, answers.nonzero, (dealer, part))


@pytest.mark.parametrize("dealer", range(DEALERS))
def test_answers_of_the_own_cells_are_known_by_hash_and_sums_only(dealer: int) -> None:
    """A dealer does not look at its own cells, yet what it is told of them must be what was announced."""
    begun, rounded = selection(measured())
    step, [layout], all_of = begun.step, begun.answers.groups, rounded[0]
    own = all_of.parts[dealer]
    checker(step).check(0, withheld(all_of, dealer, own))
    wrong = [
        replace(own, content=bytes(32)),
        replace(own, sums=own.sums + 1),
        replace(own, sums=own.sums - 10_000),
        replace(own, sums=own.sums + 2**62),
        replace(own, sums=own.sums[:-1]),
        all_of.parts[(dealer + 1) % 3],
    ]
    for part in wrong:
        refused(step, withheld(all_of, dealer, part))
    refused(step, replace(withheld(all_of, dealer, own), withheld=((dealer + 1) % 3, own)))
    other = all_of.nonzero.copy()
    other[layout.places[dealer].start] ^= True  # zeros of the own cells, which a dealer sees of them
    refused(step, replace(withheld(all_of, dealer, own), nonzero=other))
    # true sums beyond what was announced: the hash is right, the bound is not
    heavy = Answers.of(
        layout,
        [
            of + 300 * (handle % 3 == dealer)
            for handle, of in zip(step.handles, layout.by_range(all_of.cells), strict=True)
        ],
    )
    lying = replace(step, answers_digests=(heavy.digest(),))
    refused(lying, withheld(all_of, dealer, heavy.parts[dealer]))


def test_one_dealer_has_all_cells() -> None:
    """A backend without dealers: one part, whatever the handle and the size; order of cells as in the
    marginals."""
    answers = [np.arange(size) % 7 for size in (3 * SPLIT + 1, 5)]
    [layout] = layouts((4, 1), tuple(map(len, answers)), 1)
    of = Answers.of(layout, answers)
    assert layout.places == [slice(0, 3 * SPLIT + 6)] and layout.counts.tolist() == [[3 * SPLIT + 1, 5]]
    assert of.cells.tolist() == [int(cell) for array in answers for cell in array]
    assert len(of.parts) == 1 and of.parts[0].sums.tolist() == [int(array.sum()) for array in answers]
    one, three = PublicState(SETTING, 1), PublicState(SETTING, DEALERS)
    assert one.transcript == three.transcript  # only the digests of answers know of dealers


def test_the_announced_hash_is_that_of_all_cells() -> None:
    """Of large marginals, too, which have three dealers: any cell, any sum, the candidates and their order
    count."""
    rng = np.random.default_rng(2)
    answers = [rng.integers(0, 9, size) for size in (3 * SPLIT + 1, 5, SPLIT, 64)]
    handles = [4, 1, 0, 6]

    def hashed(changed: Sequence[np.ndarray], of: Sequence[int] = handles) -> bytes:
        return answers_of(of, changed).digest()

    for dealer, part in enumerate(answers_of(handles, answers).parts):
        wanted = [
            sum(
                int(cells[piece].sum())
                for owner, piece in dealer_slices(handle, len(cells), DEALERS)
                if owner == dealer
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
    with pytest.raises(ValueError, match="Handle 1 has 3 cells"):
        measured().begin_select([0, 1], [np.zeros(2), np.zeros(2)], [F(1)] * 2, [F(0)] * 2, F(1))


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
        PublicState(replace(SETTING, **changes), DEALERS)  # type: ignore[arg-type]
