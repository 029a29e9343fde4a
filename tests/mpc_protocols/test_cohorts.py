"""Cohorts: the functionality in the clear, and the three-party protocol against it, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import methodcaller
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from mpc_protocols.backends.ideal.cohorts import IdealCohorts
from mpc_protocols.backends.replicated.cohorts import ReplicatedCohorts, answer, follow
from mpc_protocols.errors import BudgetRefused, DataRefused, PeerLost, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Asking, Cohorts, Event, LocalVector, Question
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.public.cohorts.public import CohortState
from mpc_protocols.public.cohorts.steps import CohortStep, parse
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import StepRecorder, refusing
from tests.worlds.tables import SMALL

LEADER = 1
SESSION = b"s" * 32
COSTS = Event("choices", Fraction(1, 100), Fraction(0), {"charged": [0]})
VOTES = {0: 2, 1: 2, 2: 0, 3: 2, 4: 1, 5: 1, 6: 4}
"""What each of seven clients chooses of five candidates."""


def votes(of: Mapping[int, int] = VOTES) -> dict[int, LocalVector]:
    def vector(choice: int) -> LocalVector:
        return lambda question: np.eye(1, question.length, choice, dtype=np.int64)[0]

    return {client: vector(choice) for client, choice in of.items()}


def constant(vector: NDArray[np.int64]) -> LocalVector:
    return lambda question: vector


def question(content: bytes = b"q", length: int = 5, bound: int = 1) -> Question:
    return Question(content, length, bound, 1)


def secure(
    body: Callable[[Cohorts], Any],
    vectors: Mapping[int, LocalVector],
    guards: Sequence[StepRecorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
    parties: int = 7,
) -> Any:
    """Run `body` at the leader of three parties that compute and four that do not; (its result, guards)."""
    guards = guards or [StepRecorder() for _ in range(3)]
    network = MemoryNetwork(parties, 3, tap=tap, session_id=SESSION)
    holders = sorted(vectors)

    def party(wire: Wire) -> Any:
        if wire.me == LEADER:
            cohorts = ReplicatedCohorts(wire, vectors.get(wire.me), holders, guards[LEADER])
            result = body(cohorts)
            cohorts.close()
            return result
        if wire.me < 3:
            return follow(wire, vectors.get(wire.me), holders, guards[wire.me], LEADER)
        return answer(wire, vectors[wire.me], LEADER, StepRecorder())

    results = network.run([party] * parties)
    assert len(results[0]) == len(results[2])
    for (asked, ours), (also, theirs) in zip(results[0], results[2], strict=True):
        assert asked == also and np.array_equal(ours, theirs)
    return results[LEADER], guards


def ideal(body: Callable[[Cohorts], Any], vectors: Mapping[int, LocalVector]) -> Any:
    guard = StepRecorder()
    return body(IdealCohorts(vectors, guard, SESSION)), [guard]


def numbers(client: int) -> LocalVector:
    return lambda question: np.arange(question.length) * (client + 1) - 7


def work(cohorts: Cohorts) -> list[Any]:
    """Questions whose answers do not depend on the noise."""
    everybody = cohorts.clients
    found: list[Any] = [list(everybody)]
    found.append(cohorts.sum(question(b"sum", 40, 400), everybody, SMALL).tolist())
    found.append(cohorts.sum(question(b"sum", 3, 400), (5, 0), SMALL).tolist())
    found.append(cohorts.reveal(question(b"reveal", 1, 400), (1, 4, 6), COSTS).tolist())
    return found


def test_the_protocol_answers_as_the_functionality_does() -> None:
    vectors = {client: numbers(client) for client in range(7)}
    (found, guards), (expected, [reference]) = secure(work, vectors), ideal(work, vectors)
    assert found == expected
    assert expected[1] == (np.arange(40) * 28 - 49).tolist()
    for guard in guards:
        assert guard.asked == reference.asked  # the same events, bound to the same transcript
    assert [event.detail["charged"] for event in reference.events] == [list(range(7)), [5, 0], [0]]
    assert reference.events[0].rho == 1 / (2 * SMALL)


@pytest.mark.parametrize("run", [secure, ideal])
@pytest.mark.parametrize(("least", "expected"), [(1, (0, 1, 2, 4)), (2, (1, 2)), (3, (2,)), (4, ()), (8, ())])
def test_what_enough_clients_chose_is_listed(run: Any, least: int, expected: tuple[int, ...]) -> None:
    found, _ = run(lambda cohorts: cohorts.popular(question(), range(7), least, COSTS), votes())
    assert found == expected


@pytest.mark.parametrize("run", [secure, ideal])
def test_a_list_is_made_again_without_those_who_left_and_charges_nothing_more(run: Any) -> None:
    asked: list[int] = []

    def noted(client: int, of: LocalVector) -> LocalVector:
        def vector(question: Question) -> NDArray[np.int64]:
            asked.append(client)
            return of(question)

        return vector

    def body(cohorts: Cohorts) -> list[tuple[int, ...]]:
        first = cohorts.popular(question(), range(7), 2, COSTS)
        again = cohorts.popular(question(), (0, 2, 3, 4, 6), 2, COSTS, first)
        other = cohorts.popular(question(b"other"), (2, 3), 1, COSTS)
        return [first, again, other]

    found, guards = run(body, {client: noted(client, of) for client, of in votes().items()})
    assert found == [(1, 2), (2,), (0, 2)]
    assert sorted(asked) == [0, 1, 2, 2, 3, 3, 4, 5, 6]
    assert all(len(guard.events) == 2 for guard in guards)


@pytest.mark.parametrize("run", [secure, ideal])
def test_a_list_is_a_function_of_the_votes_alone(run: Any) -> None:
    """Whoever chose what: every arrangement of the same votes gives the same list."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        moved = dict(zip(VOTES, rng.permutation(list(VOTES.values())).tolist(), strict=True))
        found, _ = run(lambda cohorts: cohorts.popular(question(), range(7), 2, COSTS), votes(moved))
        assert found == (1, 2)


def test_what_one_computing_party_gets_of_a_vote_is_uniform_whatever_it_is() -> None:
    """The masked vectors' bytes, of zeros and of ones alike: chi-square of 256 values, false alarm 1e-10
    each."""
    for choice in (0, 4):
        seen: list[Frame] = []
        wide = votes(dict.fromkeys(VOTES, choice))
        secure(
            lambda cohorts: cohorts.popular(question(length=4096), range(7), 2, COSTS), wide, tap=seen.append
        )
        sent = [bytes(frame.payload) for frame in seen if frame.sender >= 3]
        masked = [payload[:-32] for payload in sent if len(payload) == 4 * 4096 + 32]
        assert len(masked) == 4  # each of the four clients sends its masked vector once
        counts = np.bincount(np.frombuffer(b"".join(masked), np.uint8), minlength=256)
        statistic = float((np.square(counts - counts.mean()) / counts.mean()).sum())
        assert statistic < chi2.isf(1e-10, 255)


@pytest.mark.parametrize("me", range(3))
def test_what_a_computing_party_receives_of_a_round_is_simulated_from_the_list_alone(me: int) -> None:
    """Two rounds with other choosers and other sums, and the same list: the lengths are the same, and
    whatever is not public is uniform bytes in both, which a simulator draws. Chi-square of 256 values, false
    alarm 1e-10 each."""
    shapes, lists = [], []
    for of in (VOTES, {0: 1, 1: 1, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2}):
        seen: list[Frame] = []
        asked = question(length=4096)
        found, _ = secure(methodcaller("popular", asked, range(7), 2, COSTS), votes(of), tap=seen.append)
        steps = {CohortStep("popular", asked, tuple(range(7)), least=2, event=COSTS).to_bytes()}
        got = [frame for frame in seen if frame.receiver == me]
        secret = [
            bytes(frame.payload)
            for frame in got
            if len(frame.payload) != 32  # hashes of the transcript
            and bytes(frame.payload) not in steps
            and not bytes(frame.payload).startswith(b"{")  # the end
        ]
        counts = np.bincount(np.frombuffer(b"".join(secret), np.uint8), minlength=256)
        assert counts.sum() > 100_000
        statistic = float((np.square(counts - counts.mean()) / counts.mean()).sum())
        assert statistic < chi2.isf(1e-10, 255)
        shapes.append(sorted((frame.sender, len(frame.payload)) for frame in got))
        lists.append(found)
    assert shapes[0] == shapes[1] and lists == [(1, 2), (1, 2)]


def test_messages_do_not_depend_on_who_chose() -> None:
    """The same senders, receivers and sizes in each direction for any votes."""
    shapes = []
    for of in (VOTES, dict.fromkeys(VOTES, 2)):
        seen: list[Frame] = []
        secure(lambda cohorts: cohorts.popular(question(), range(7), 2, COSTS), votes(of), tap=seen.append)
        shapes.append(sorted((frame.sender, frame.receiver, len(frame.payload)) for frame in seen))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("refuses", range(3))
def test_nothing_is_opened_when_one_guard_refuses(refuses: int) -> None:
    guards = [refusing() if number == refuses else StepRecorder() for number in range(3)]
    with pytest.raises(BudgetRefused):
        secure(work, {client: numbers(client) for client in range(7)}, guards)
    assert guards[refuses].refused == 1


@pytest.mark.parametrize("client", [0, 5])
@pytest.mark.parametrize("run", [secure, ideal])
def test_a_vector_of_another_form_is_refused_where_it_lies(run: Any, client: int) -> None:
    for wrong in (np.zeros(4, np.int64), np.array([0, 2, 0, 0, 0]), np.array([0, -2, 0, 0, 0])):
        vectors = votes() | {client: constant(wrong)}
        with pytest.raises(DataRefused, match=f"Client {client} must answer"):
            run(lambda cohorts: cohorts.popular(question(), range(7), 2, COSTS), vectors)


@pytest.mark.parametrize(
    "ask",
    [
        lambda cohorts: cohorts.sum(question(), (), SMALL),
        lambda cohorts: cohorts.sum(question(), (1, 1), SMALL),
        lambda cohorts: cohorts.sum(question(), (11,), SMALL),
        lambda cohorts: cohorts.sum(question(bound=1 << 31), (1, 2), SMALL),
        lambda cohorts: cohorts.reveal(question(bound=1 << 31), (1, 2), COSTS),
        lambda cohorts: cohorts.popular(question(), (1, 2), 0, COSTS),
        lambda cohorts: cohorts.popular(question(), (1, 2), 1, COSTS, (5,)),
        lambda cohorts: cohorts.popular(question(), (1, 2), 1, COSTS, (2, 1)),
    ],
)
def test_what_cannot_be_asked_is_refused_before_it_is_charged(ask: Callable[[Cohorts], Any]) -> None:
    guard = StepRecorder()
    with pytest.raises(StudyInvalid):
        ask(IdealCohorts(votes(), guard, SESSION))
    assert guard.asked == []


def test_sums_have_the_noise_that_is_charged() -> None:
    """4,000 entries of sigma^2 = 50: the sum of squares within its bounds, false alarm 1e-10."""

    def body(cohorts: Cohorts) -> Any:
        return cohorts.sum(question(b"noise", 4000, 20_000), (0, 3), Fraction(50))

    vectors = {client: numbers(client) for client in range(7)}
    (noisy, _), exact = secure(body, vectors), np.arange(4000) * 5 - 14
    statistic = float(np.square(noisy - exact).sum() / 50)
    assert chi2.ppf(5e-11, 4000) < statistic < chi2.isf(5e-11, 4000)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}\n",
        b"[]\nq",
        b"\xff\n",
        CohortStep("sum", question()).to_bytes().replace(b'"sum"', b'"all"'),
        CohortStep("sum", question()).to_bytes().replace(b'"least":0', b'"least":Infinity'),
    ],
)
def test_what_is_no_step_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolAborted, match="no question"):
        parse(payload)


@pytest.mark.parametrize(
    "number", ["1e999999999", "0.5", "-1", "9" * 700, "1/" + "9" * 700, "1/0", "٣", " 1"]
)
def test_a_number_of_a_step_is_read_by_its_digits_alone(number: str) -> None:
    payload = CohortStep("sum", question()).to_bytes()
    with pytest.raises(ProtocolAborted, match="no question"):
        parse(payload.replace(b'"sigma2":"0"', f'"sigma2":"{number}"'.encode()))


def test_the_transcript_binds_the_event_and_where_each_part_of_it_ends() -> None:
    """A leader cannot show two parties other charges of one question, nor move bytes from one number into the
    next."""

    def transcripts(ask: Callable[[CohortState], object]) -> bytes:
        state = CohortState(SESSION, StepRecorder())
        ask(state)
        return state.transcript

    dearer = replace(COSTS, rho=Fraction(1, 50))
    asked = question(length=2)
    assert transcripts(lambda of: of.begin_reveal((0, 1), asked, (0,), COSTS)) != transcripts(
        lambda of: of.begin_reveal((0, 1), asked, (0,), dearer)
    )
    again = []
    for event in (COSTS, dearer):
        state = CohortState(SESSION, StepRecorder())
        state.begin_popular((0, 1), asked, (0, 1), 1, COSTS, None)
        state.begin_popular(
            (0, 1), asked, (0,), 1, event, None
        )  # compared again: nothing is charged, and still it is bound
        again.append(state.transcript)
    assert again[0] != again[1]
    # as bare numbers, one after the other, both are 1, 1, 2, 3, 5, 1, 0
    listed = Question(b"q", 2, 3, 5), Question(b"q", 1, 1, 2)
    found = {
        transcripts(lambda of: of.begin_popular((0,), listed[0], (0,), 1, COSTS, (1,))),
        transcripts(lambda of: of.begin_reveal((0, 1, 5), listed[1], (5, 1, 0), COSTS)),
    }
    assert len(found) == 2


def test_a_second_object_on_one_wire_is_refused() -> None:
    """It would use the first one's masks and noise again. A session's wire takes a stream's name once."""

    def party(wire: Wire) -> bool:
        once = OnceWire(wire)
        for expected in (None, ValueError):
            try:
                ReplicatedCohorts(once, None, (3,), StepRecorder())
            except ValueError as error:
                assert expected is type(error)
            else:
                assert expected is None
        return once.forked == {"cohorts"}

    assert all(MemoryNetwork(3, 3, session_id=SESSION).run([party] * 3))


class OnceWire:
    """A wire that takes a stream's name once, as a session's does."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self.forked = wire, set[str]()

    def fork(self, name: str) -> Wire:
        if name in self.forked:
            raise ValueError(f"Stream name {name!r} is in use already.")
        self.forked.add(name)
        return self._wire.fork(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def test_a_leader_that_asks_clients_something_else_than_the_others_is_found() -> None:
    """Their answers would be opened as those to another question: counts as if they were votes, say."""
    vectors, found = {client: numbers(client) for client in (3, 4)}, list[int]()

    def party(wire: Wire) -> None:
        if wire.me == LEADER:
            with pytest.raises((ProtocolAborted, PeerLost)):
                lying: Any = LyingWire(wire)
                cohorts = ReplicatedCohorts(lying, None, (3, 4), StepRecorder())
                cohorts.popular(question(bound=400), (3, 4), 2, COSTS)
        elif wire.me < 3:
            with pytest.raises(ProtocolAborted, match=r"Client [34] was asked something else"):
                follow(wire, None, (3, 4), StepRecorder(), LEADER)
            found.append(wire.me)
        else:
            with pytest.raises((ProtocolAborted, PeerLost)):
                answer(wire, vectors[wire.me], LEADER, StepRecorder())

    MemoryNetwork(5, 3, session_id=SESSION).run([party] * 5)
    assert sorted(found) == [0, 2]


def test_what_a_client_does_not_admit_it_neither_counts_nor_charges() -> None:
    guard = Refusing()

    def unasked(question: Question) -> NDArray[np.int64]:
        raise AssertionError("A vector was counted.")

    def party(wire: Wire) -> None:
        if wire.me == LEADER:
            wire.fork("cohorts").send(3, CohortStep("reveal", question(), (3,), event=COSTS).to_bytes())
        elif wire.me == 3:
            with pytest.raises(ProtocolAborted, match="not the study's"):
                answer(wire, unasked, LEADER, guard)

    MemoryNetwork(4, 3, session_id=SESSION).run([party] * 4)
    assert guard.asked == []


class Refusing(StepRecorder):
    """Admits nothing."""

    def admit(self, step: Asking) -> None:
        raise ProtocolAborted("This step is not the study's.")


class LyingWire:
    """A leader's wire that asks clients for a noisy sum, whatever the others are told, and hides it from its
    own party."""

    def __init__(self, wire: Any) -> None:
        self._wire, self._told = wire, b""

    def fork(self, name: str) -> LyingWire:
        return LyingWire(self._wire.fork(name))

    def send(self, peer: int, payload: bytes) -> None:
        if peer >= 3:
            asked = parse(payload)
            self._told = asked.digest
            payload = CohortStep("sum", asked.question, asked.clients, sigma2=SMALL).to_bytes()
        self._wire.send(peer, payload)

    def receive(self, peer: int, size: int) -> bytes:
        payload = bytes(self._wire.receive(peer, size))
        return payload[:-32] + self._told if peer >= 3 else payload

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def test_steps_have_one_encoding() -> None:
    step = CohortStep("popular", question(b"x\ny"), (0, 4), False, least=3, among=(1, 2), event=COSTS)
    assert parse(step.to_bytes()) == step
    with pytest.raises(ProtocolAborted):
        parse(step.to_bytes().replace(b'"least":3', b'"least":03'))
    with pytest.raises(ProtocolAborted):
        parse(step.to_bytes().replace(b'"1/100"', b'"2/200"'))
