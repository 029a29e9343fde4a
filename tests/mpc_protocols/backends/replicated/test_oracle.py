"""ReplicatedOracle against IdealOracle, and everything that must stop a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.gates import TrioGates
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.scores import answer_codec
from mpc_protocols.engine.latency import LATENCY_BYTES, MAX_DELAY_US, TOKENS, agree_on_delay, latency_bytes_of
from mpc_protocols.errors import BudgetRefused, DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.public.answers import Answers, dealer_slices
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import EndStep, MeasureStep, PrepareStep, SelectStep, TotalStep
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.arena import apart
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.trio_run import answers_of, small_groups
from tests.worlds.questions import wide_keys, work
from tests.worlds.tables import CONTRIBUTORS, ONE_WAY, PARTS, SIZES, SMALL, counter, facts, table


def serve(
    body: Callable[[ReplicatedOracle], Any],
    parts: Sequence[NDArray[np.int64] | None],
    of: StudyFacts | None = None,
    guards: Sequence[Recorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
    network: MemoryNetwork | None = None,
    observe: Callable[..., None] | None = None,
    delay_us: int = 0,
) -> tuple[Any, MemoryNetwork]:
    """Run `body` at P1 with everybody else following; parts[i] is party i's table (None: no data). delay_us: how far
    `apart` they are."""
    of = of or facts()
    guards = guards or [Recorder() for _ in range(3)]
    network = network or MemoryNetwork(len(parts), 3, tap=tap, session_id=of.session)
    counts = [None if part is None else counter(part, of.sizes) for part in parts]

    def party(wire: Wire) -> Any:
        mine = counts[wire.me]
        if wire.me == 1:
            with ReplicatedOracle(wire, of, mine, guards[1], observe) as oracle:
                return body(oracle)
        if wire.me < 3:
            return follow(wire, of, mine, guards[wire.me], observe)
        assert mine is not None
        return contribute(wire, of, mine)

    with apart(delay_us):
        results = network.run([party] * len(parts))
    assert len(results[0]) == len(results[2])
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(results[0], results[2], strict=True))
    assert results[3:] == [None] * (len(parts) - 3)
    return results[1], network


@pytest.mark.parametrize("contributors", [0, 1, 4])
def test_noise_free_answers_and_transcript_equal_the_ideal_ones(contributors: int) -> None:
    parts = [*PARTS, *CONTRIBUTORS[:contributors]]
    ideal_guard = Recorder()
    ideal = IdealOracle(facts(), counter(np.concatenate(parts)), ideal_guard)
    expected = work(ideal)
    guards = [Recorder() for _ in range(3)]

    def body(oracle: ReplicatedOracle) -> tuple[list[Any], bytes]:
        return work(oracle), oracle.state.transcript

    (answers, transcript), _ = serve(body, parts, guards=guards)
    assert answers == expected
    assert transcript == ideal.state.transcript
    for guard in guards:
        assert guard.asked == ideal_guard.asked


@pytest.mark.parametrize("keep", [20, 40, 1000])
def test_candidates_in_several_groups(keep: int) -> None:
    """A candidate in three groups, several in one; what is kept between groups and selections is dropped, or not."""
    with small_groups(8, 20, keep):
        ideal = IdealOracle(facts(), counter(np.concatenate(PARTS)), Recorder())
        expected = work(ideal)
        (answers, transcript), _ = serve(lambda oracle: (work(oracle), oracle.state.transcript), PARTS)
    assert (answers, transcript) == (expected, ideal.state.transcript)


def test_parties_without_data_and_custodians_that_only_contribute() -> None:
    parts = [None, None, None, *CONTRIBUTORS]
    expected = work(IdealOracle(facts(), counter(np.concatenate(CONTRIBUTORS)), Recorder()))
    answers, _ = serve(work, parts)
    assert answers == expected


def test_total_before_anything_is_shared() -> None:
    everything = np.concatenate([*PARTS, *CONTRIBUTORS])

    def body(oracle: MarginalOracle) -> list[Any]:
        first = oracle.total(SMALL)
        return [
            first,
            oracle.row_bound,
            [list(x) for x in oracle.measure(oracle.prepare([("d", "a"), ("d",)]), SMALL)],
        ]

    answers, _ = serve(body, [*PARTS, *CONTRIBUTORS])
    assert answers == body(IdealOracle(facts(), counter(everything), Recorder()))
    assert answers[0] == len(everything)


@pytest.mark.parametrize("rows", [40_000_000, 1_000_000_000])
def test_large_row_bounds_take_keys_of_64_bits(rows: int) -> None:
    """Above 2^22 rows the sums are lifted to Z_2^64; the answers stay the ideal ones."""
    of = facts(row_cap=rows)
    body = partial(wide_keys, rows=930.0)
    guard = Recorder()
    expected = body(IdealOracle(of, counter(np.concatenate(PARTS)), guard))
    plans: list[int] = []
    answers, _ = serve(
        body, PARTS, of, observe=lambda phase, event, **fields: plans.append(fields.get("kept", 0))
    )
    assert answers == expected == [0, 1, 2]
    assert max(plans) > 1


def test_a_single_surviving_candidate_is_selected_without_a_protocol() -> None:
    def body(oracle: MarginalOracle) -> list[int]:
        handles = oracle.prepare([("a",), ("b",)])
        return oracle.select(
            handles, [np.ones(3), np.ones(4)], [Fraction(1)] * 2, [Fraction(0), Fraction(10**7)], Fraction(1)
        )

    assert serve(body, PARTS)[0] == [0]


def test_noise_is_fresh_and_of_the_right_size() -> None:
    """Two measurements of one marginal differ, and 600 draws at sigma 10 have a variance of 100 (false alarm 2.2e-6)."""

    def body(oracle: MarginalOracle) -> list[NDArray[np.int64]]:
        handle = oracle.prepare([("a", "b", "c")])
        return [oracle.measure(handle, Fraction(100))[0] for _ in range(10)]

    noise = np.array(serve(body, PARTS)[0]) - counter(np.concatenate(PARTS))([("a", "b", "c")])[0]
    assert len({tuple(row) for row in noise.tolist()}) == 10
    # sum of squares / 100 is about chi-square with 600 degrees of freedom: sd 34.6; 5 sd are 173
    assert abs(float((noise**2).sum()) / 100 - 600) < 173


def releases(
    monkeypatch: pytest.MonkeyPatch, body: Callable[[ReplicatedOracle], Any], of: StudyFacts | None = None
) -> list[bytes]:
    """The names that the noise of a run's releases is bound to, at P1; all parties must agree on them."""
    seen: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    original = TrioGates.release_bits

    def spy(gates: TrioGates, release: bytes) -> Any:
        seen[gates.trio.me].append(release)
        return original(gates, release)

    with monkeypatch.context() as patch:
        patch.setattr(TrioGates, "release_bits", spy)
        serve(body, PARTS, of)
    assert seen[0] == seen[1] == seen[2]
    return seen[1]


def test_noise_is_bound_to_every_public_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same questions give the same names; one changed public input changes the name of its release and of all later ones."""

    def body(
        sigma2: int = 100,
        epsilon: int = 1,
        answer: float = 75.0,
        weight: int = 1,
        penalty: int = 0,
        order: int = 1,
        more: bool = False,
        first: bool = False,
    ) -> Callable[[ReplicatedOracle], None]:
        def ask(oracle: ReplicatedOracle) -> None:
            handles = oracle.prepare([("a", "b"), ("c", "d")][::order])
            if first:
                oracle.total(Fraction(100))
            if more:
                oracle.prepare([("a", "c")])
            guesses = [np.full(oracle.state.cells(h), answer) for h in handles]
            oracle.select(
                handles,
                guesses,
                [Fraction(weight), Fraction(1)],
                [Fraction(penalty), Fraction(0)],
                Fraction(epsilon),
            )
            oracle.measure(handles[:1], Fraction(sigma2))
            oracle.measure(handles[:1], Fraction(sigma2))

        return ask

    base = releases(monkeypatch, body())
    assert len(base) == len(set(base)) == 3
    selected = releases(monkeypatch, body())
    assert base[0] == selected[0]  # later ones follow the position that was opened, too
    changes: list[dict[str, Any]] = [
        {"sigma2": 101},
        {"epsilon": 2},
        {"answer": 76.0},
        {"weight": 2},
        {"penalty": 1},
        {"order": -1},
        {"more": True},
        {"first": True},
    ]
    names = set(base)
    for change in changes:
        changed = releases(monkeypatch, body(**change))
        assert not set(changed[1 if "sigma2" in change else 0 :]) & names
        names |= set(changed)
    other_session = releases(monkeypatch, body(), facts(session=b"t" * 32))
    other_cap = releases(monkeypatch, body(), facts(row_cap=99_999))
    assert not (set(other_session) | set(other_cap)) & names


def test_the_same_release_opens_to_the_same_values() -> None:
    """Same keys, session and inputs: a repeat is free. A changed sigma gives other noise in most of 60 cells."""

    def measured(keys: MemoryNetwork, sigma2: Fraction, session: bytes = b"s" * 32) -> NDArray[np.int64]:
        network = MemoryNetwork(3, session_id=session)
        network.share_keys(keys)
        counts, _ = serve(
            lambda oracle: oracle.measure(oracle.prepare([("a", "b", "c")]), sigma2),
            PARTS,
            facts(session=session),
            network=network,
        )
        noise: NDArray[np.int64] = counts[0] - counter(np.concatenate(PARTS))([("a", "b", "c")])[0]
        return noise

    keys = MemoryNetwork(3)
    base = measured(keys, Fraction(10_000))
    np.testing.assert_array_equal(base, measured(keys, Fraction(10_000)))
    for other in (
        measured(keys, Fraction(10_001)),
        measured(keys, Fraction(10_000), b"t" * 32),
        measured(MemoryNetwork(3), Fraction(10_000)),
    ):
        assert int((base == other).sum()) < 12  # cells agree by chance with probability 1/350 each


# -- stops ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refuser", [0, 1, 2])
@pytest.mark.parametrize("step", [0, 1])
def test_a_refusing_guard_stops_everybody_before_anything_opens(refuser: int, step: int) -> None:
    class EnoughError(Exception):
        pass

    def run(steps: int, guards: Sequence[Recorder]) -> list[Frame]:
        frames: list[Frame] = []

        def body(oracle: ReplicatedOracle) -> None:
            handles = oracle.prepare(ONE_WAY)
            if steps > 0:
                oracle.measure(handles, Fraction(100))
            if steps > 1:
                answers = [np.full(n, 9.0) for n in SIZES.values()]
                oracle.select(handles, answers, [Fraction(1)] * 4, [Fraction(0)] * 4, Fraction(1))
            raise EnoughError

        with pytest.raises(
            BudgetRefused if any(guard.refuse_from is not None for guard in guards) else EnoughError
        ):
            serve(body, PARTS, guards=guards, tap=frames.append)
        return frames

    before = run(step, [Recorder() for _ in range(3)])
    refused = run(step + 1, [Recorder(step if i == refuser else None) for i in range(3)])
    for party in range(3):
        own = [len(frame.payload) for frame in refused if frame.sender == party]
        added = own[sum(frame.sender == party for frame in before) :]
        # the leader announces the step (and the answers); whoever authorised says so in 32 bytes to both others; beside that, the
        # first exchange of a selection's scores, masked (`docs/design/engine.md` 5); of a measurement nothing else
        announced = 2 * (step + 1) if party == 1 else 0
        said, exchanged = added[announced:][:2], added[announced:][2:]
        assert said == ([] if party == refuser else [32, 32])
        assert len(exchanged) <= (2 if step and party != refuser else 0)


def _to_both(message: bytes) -> Callable[[Wire, PublicState], None]:
    def send(wire: Wire, state: PublicState) -> None:
        for peer in (0, 2):
            wire.send(peer, message)

    return send


def _leader(
    script: Callable[[Wire, PublicState], None],
    parts: Sequence[NDArray[np.int64]] = PARTS,
    heard: Sequence[int] = (0, 2),
) -> None:
    """A leader that sends what it likes to honest followers, and then hears them in this order: the one that
    ends first, since the other may wait for the leader."""
    of = facts()

    def party(wire: Wire) -> None:
        if wire.me == 1:
            agree_on_delay(wire, 1)
            script(wire, PublicState(of, 3))
            for peer in heard:  # whatever the followers still say
                while True:
                    wire.receive_up_to(peer, 1 << 24)
        follow(wire, of, counter(parts[wire.me]), Recorder())

    MemoryNetwork(3, session_id=of.session).run([party] * 3)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{}",
        b"\x80\x04N.",
        b'{"step": "end"}',
        EndStep().to_bytes() + b" ",
        b'{"step":"jump"}',
        MeasureStep(0, (0,), Fraction(1)).to_bytes(),  # a handle that was never prepared
        TotalStep(3, Fraction(1)).to_bytes(),  # out of order
        b"[" * 100_000,
    ],
)
def test_followers_refuse_messages_that_are_no_step(message: bytes) -> None:
    with pytest.raises(ProtocolAborted):
        _leader(_to_both(message))


@pytest.mark.parametrize(
    "step",
    [
        PrepareStep((("nobody",),)),  # a column that the study does not have
        PrepareStep((("a", "a"),)),
        TotalStep(0, Fraction(1, 10**60)),  # so little noise that the budget's arithmetic refuses it
    ],
    ids=["column", "twice", "noise"],
)
def test_what_the_leader_asks_against_the_study_is_the_leaders_doing(step: Any) -> None:
    """Code 40 and not 10: the study of those who follow is in order."""
    with pytest.raises(ProtocolAborted):
        _leader(_to_both(step.to_bytes()))


def test_different_steps_for_the_two_followers_are_noticed() -> None:
    def script(wire: Wire, state: PublicState) -> None:
        wire.send(0, PrepareStep((("a",),)).to_bytes())
        wire.send(2, PrepareStep((("b",),)).to_bytes())

    with pytest.raises(ProtocolAborted, match="other public inputs"):
        _leader(script, heard=(2, 0))


def test_a_step_too_long_is_refused() -> None:
    with pytest.raises(ProtocolAborted, match="at most"):
        _leader(lambda wire, state: wire.send(0, bytes((1 << 22) + 1)))


def _tamper(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes, int], bytes], words: str | None = None
) -> None:
    """Let the leader send something else than `answer_codec.encode` gave, to each receiver."""
    original = answer_codec.encode
    monkeypatch.setattr(
        answer_codec,
        "encode",
        lambda answers, receivers: [
            change(payload, to) for payload, to in zip(original(answers, receivers), receivers, strict=True)
        ],
    )
    with pytest.raises(ProtocolAborted, match=words):
        serve(_select_once, PARTS)


def _select_once(oracle: MarginalOracle) -> int:
    handles = oracle.prepare([("a", "b"), ("c",)])
    [position] = oracle.select(
        handles, [np.full(12, 80.0), np.full(5, 190.0)], [Fraction(1)] * 2, [Fraction(0)] * 2, Fraction(1)
    )
    return position


def test_untampered_selection_passes() -> None:
    assert serve(_select_once, PARTS)[0] in (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values + 1,  # another content: digest and sums
        lambda values: np.roll(values, 1) + np.eye(1, len(values), 3, dtype=np.int64)[0],
        lambda values: np.where(np.arange(len(values)) == 0, 4_000_000_000, values),  # beyond the row bound
    ],
    ids=["other", "moved", "out of range"],
)
def test_answers_that_are_not_the_announced_ones(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    original = answer_codec.encode

    def changed(answers: Answers, receivers: Sequence[int]) -> list[bytes]:
        cells = [part.astype(np.int64) for part in answers.layout.by_range(answers.cells)]
        return original(
            Answers.of(answers.layout, np.split(change(np.concatenate(cells)), [len(cells[0])])), receivers
        )

    monkeypatch.setattr(answer_codec, "encode", changed)
    with pytest.raises(ProtocolAborted):
        serve(_select_once, PARTS)


VALUES_AT = 3 + 32 + 2 * 8
"""Where the values of `_select_once`'s 17 cells begin: after the bitmap and the hash and sums of the receiver's own cells."""


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: b"",
        lambda raw: raw[:-3],
        lambda raw: raw + b"x",
        lambda raw: raw[:2],
        lambda raw: raw[:20],
        lambda raw: raw[:2] + bytes([raw[2] | 1]) + raw[3:],
        lambda raw: raw[:VALUES_AT] + b"\xff" + raw[VALUES_AT + 1 :],
        lambda raw: bytes(3) + raw[3:],
        lambda raw: bytes(10_000),
        lambda raw: raw[:3] + bytes([raw[3] ^ 1]) + raw[4:],
        lambda raw: raw[:35] + bytes([raw[35] ^ 1]) + raw[36:],
        lambda raw: raw[:42] + b"\x80" + raw[43:],
    ],
    ids=[
        "empty",
        "cut",
        "trailing",
        "bitmap cut",
        "part cut",
        "padding",
        "escape",
        "all zero",
        "too long",
        "own hash",
        "own sum",
        "own sum negative",
    ],
)
@pytest.mark.parametrize("receivers", [(0, 2), (0,), (2,)])
def test_answers_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, receivers: tuple[int, ...], change: Callable[[bytes], bytes]
) -> None:
    _tamper(monkeypatch, lambda payload, to: change(payload) if to in receivers else payload)


def test_zeros_of_the_own_cells_that_others_see_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dealer does not know its own cells, but the hash that was announced covers where they are 0."""
    _tamper(
        monkeypatch,
        lambda payload, to: bytes([payload[0] ^ 0x80]) + payload[1:] if to == 0 else payload,
        "not those that were announced",
    )


@pytest.mark.parametrize("receiver", [0, 1, 2])
def test_answers_as_each_party_gets_them(receiver: int) -> None:
    rng = np.random.default_rng(receiver)
    handles, sizes = [7, 2, 0, 5, 1], [1, 64, 2000, 1024, 300]
    for high in (2, 254, 255, 256, 2**32 - 1):
        answers = [rng.integers(0, high, size, endpoint=True) * (rng.random(size) < 0.6) for size in sizes]
        known = answers_of(handles, answers)
        [payload] = answer_codec.encode(known, [receiver])
        assert len(payload) <= answer_codec.encoded_limit(known.layout)
        got = answer_codec.decode(payload, known.layout, receiver)
        assert got.bitmap == known.bitmap and got.withheld is not None
        np.testing.assert_array_equal(got.nonzero, known.layout.by_dealer(answers) != 0)
        for handle, answer, value in zip(handles, answers, got.layout.by_range(got.cells), strict=True):
            own = np.zeros(len(answer), bool)
            for third, piece in dealer_slices(handle, len(answer), 3):
                own[piece] = third == receiver
            np.testing.assert_array_equal(value, np.where(own, 0, answer))
        assert got.withheld[0] == receiver and got.withheld[1].content == known.parts[receiver].content
        assert got.digest() == known.digest()


def test_a_contributor_shares_only_what_is_to_be_shared() -> None:
    of = facts()
    for message in (
        SelectStep(0, (0,), (Fraction(1),), (Fraction(0),), Fraction(1), (5,), (bytes(32),)),
        PrepareStep((("a",), ("a", "b"))),
        PrepareStep((("nobody",),)),
    ):

        def party(wire: Wire, encoded: bytes = message.to_bytes()) -> None:
            if wire.me == 1:
                wire.send(3, encoded)
            elif wire.me == 3:
                contribute(wire, of, counter(PARTS[0]))

        with pytest.raises(ProtocolAborted):
            MemoryNetwork(4, 3, session_id=of.session).run([party] * 4)


@pytest.mark.parametrize("culprit", [0, 1, 2, 3])
def test_data_that_does_not_fit_is_refused_without_naming_a_value(culprit: int) -> None:
    parts = [PARTS[0], PARTS[1], PARTS[2], CONTRIBUTORS[0]]
    parts[culprit] = table(1234, 9)
    with pytest.raises(DataRefused) as caught:
        serve(lambda oracle: oracle.prepare([("a", "b")]), parts, facts(row_cap=1000))
    assert "1234" not in caught.value.sentence


def test_only_the_second_computing_party_leads_and_a_closed_oracle_answers_nothing() -> None:
    def lead(wire: Wire) -> None:
        ReplicatedOracle(wire, facts(), None, Recorder())

    with pytest.raises(StudyInvalid, match="cannot lead"):
        MemoryNetwork(3).run([lead] * 3)

    def body(oracle: ReplicatedOracle) -> None:
        oracle.close()
        oracle.close()
        with pytest.raises(ProtocolAborted, match="closed"):
            oracle.prepare([("a",)])

    serve(body, PARTS)


@pytest.mark.parametrize("delay_us", [0, 20_000])
def test_observers_get_public_sizes_only(delay_us: int) -> None:
    seen: list[tuple[str, str, dict[str, Any]]] = []
    serve(
        work,
        [*PARTS, CONTRIBUTORS[0]],
        observe=lambda phase, event, **fields: seen.append((phase, event, fields)),
        delay_us=delay_us,
    )
    assert {(phase, event) for phase, event, _ in seen} == {
        ("agree", "paced"),
        ("input", "shared"),
        ("measure", "opened"),
        ("select", "selected"),
    }
    forms = ("tree", "quads" if delay_us else "ripple", "ahead")
    assert all(isinstance(value, int) or value in forms for _, _, fields in seen for value in fields.values())


@pytest.mark.parametrize("leader", [0, 2])
def test_any_computing_party_can_lead(leader: int) -> None:
    """The study says who; the transcript says it too."""
    of = replace(facts(), leader=leader)

    def party(wire: Wire) -> Any:
        mine = counter(PARTS[wire.me]) if wire.me < 3 else counter(CONTRIBUTORS[0])
        if wire.me == leader:
            with ReplicatedOracle(wire, of, mine, Recorder()) as oracle:
                return work(oracle), oracle.state.transcript
        return follow(wire, of, mine, Recorder()) if wire.me < 3 else contribute(wire, of, mine)

    results = MemoryNetwork(4, 3, session_id=of.session).run([party] * 4)
    ideal = IdealOracle(of, counter(np.concatenate([*PARTS, CONTRIBUTORS[0]])), Recorder())
    assert results[leader] == (work(ideal), ideal.state.transcript)
    assert ideal.state.transcript != PublicState(facts(), 3).transcript


# -- pace ----------------------------------------------------------------------------------------------------------------


class Slow:
    """A wire on which every message takes `delay_s` longer."""

    def __init__(self, wire: Wire, delay_s: float) -> None:
        self._wire, self._delay = wire, delay_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def fork(self, name: str) -> Slow:
        return Slow(self._wire.fork(name), self._delay)

    def receive(self, peer: int, size: int) -> memoryview:
        payload = self._wire.receive(peer, size)
        time.sleep(self._delay)
        return payload


@pytest.mark.parametrize("delay_ms", [0, 20])
def test_all_parties_agree_on_the_measured_delay(delay_ms: int) -> None:
    found = MemoryNetwork(3).run([lambda wire: agree_on_delay(Slow(wire, delay_ms / 1000), 1)] * 3)
    assert len(set(found)) == 1 and found[0] >= delay_ms * 1000  # no more than it: `engine.test_latency`
    assert latency_bytes_of(0) == LATENCY_BYTES < latency_bytes_of(found[0] + 1)


def test_a_delay_beyond_belief_is_refused() -> None:
    def party(wire: Wire) -> None:
        if wire.me != 1:
            agree_on_delay(wire, 1)
            return
        stream = wire.fork("pace")
        for _ in range(1 + TOKENS):
            for peer in (0, 2):
                stream.send(peer, b"x")
            for peer in (0, 2):
                stream.receive(peer, 1)
        for peer in (0, 2):
            stream.send(peer, (MAX_DELAY_US + 1).to_bytes(4, "little"))

    with pytest.raises(ProtocolAborted, match="delay"):
        MemoryNetwork(3).run([party] * 3)


def test_different_delays_for_the_two_followers_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would take different forms of a protocol and misread each other."""
    monkeypatch.setattr("mpc_protocols.engine.step.agree_on_delay", lambda wire, leader: 100 + (wire.me == 2))
    with pytest.raises(ProtocolAborted, match="other public inputs"):
        serve(lambda oracle: oracle.prepare(ONE_WAY), PARTS)


@pytest.mark.parametrize("delay_us", [0, 20_000])
def test_the_form_follows_the_delay_and_is_told(monkeypatch: pytest.MonkeyPatch, delay_us: int) -> None:
    """A far network takes trees, of quads for scores, a near one ripples where they save bytes; the answers are the same, all
    parties say which."""
    monkeypatch.setattr("mpc_protocols.engine.step.agree_on_delay", lambda wire, leader: delay_us)
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay: 1 + 64 * delay)
    told: list[tuple[str, str, dict[str, Any]]] = []
    expected = work(IdealOracle(facts(), counter(np.concatenate(PARTS)), Recorder()))
    assert (
        serve(work, PARTS, observe=lambda phase, event, **fields: told.append((phase, event, fields)))[0]
        == expected
    )
    form, scores = ("tree", "quads") if delay_us else ("ripple", "ripple")
    assert {fields["delay_us"] for _, event, fields in told if event == "paced"} == {delay_us}
    assert {fields["scores"] for _, event, fields in told if event == "selected"} == {scores}
    assert {fields["noise"] for _, event, fields in told if event in ("selected", "opened")} - {"ahead"} == {
        form
    }
