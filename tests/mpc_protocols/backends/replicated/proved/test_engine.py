"""The engine with proofs: its answers are the ideal ones, and a party that deviates is stopped before
anything is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.proved import addends
from mpc_protocols.backends.replicated.proved.dry_run import ProvedDryRun
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.backends.replicated.proved.oracle import contribute
from mpc_protocols.backends.replicated.proved.scores import ProvedL1Sums
from mpc_protocols.engine import oracle as oracles
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.pools import NoisePools
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import InputRule, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.public.steps import MeasureStep, SelectStep, parse
from mpc_protocols.wire import Traffic
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire, flipped, outcomes
from tests.mpc_protocols.backends.replicated.trio_run import small_groups
from tests.worlds.questions import work
from tests.worlds.streams import Streams
from tests.worlds.tables import CONTRIBUTORS, PARTS, SMALL, counter, facts, table


def party(
    wire: Any,
    body: Callable[[Any], Any],
    of: StudyFacts,
    ahead: bool = True,
    counts: LocalCounts | None = None,
) -> Any:
    """One computing party with its part of the rows, or with these counts; P1 leads."""
    own = ComputingParty(
        ProvedEngine(wire, of, counts or counter(PARTS[wire.me])), of, Recorder(), None, ahead
    )
    if wire.me == of.leader:
        with oracles.LeadingOracle(own) as oracle:
            return body(oracle)
    return [values.tolist() for values in oracles.follow(own)]


def serve(
    body: Callable[[Any], Any],
    of: StudyFacts | None = None,
    contributors: int = 0,
    tables: Sequence[NDArray[np.int64]] = CONTRIBUTORS,
    traffic: list[Traffic] | None = None,
) -> Any:
    """Answers at the leader; no keyed stream is begun twice. tables: of contributors. traffic: takes what
    each party has sent."""
    of = of or facts()
    own = [counter(part) for part in tables[:contributors]]
    network = MemoryNetwork(3 + contributors, 3, session_id=of.session)

    def each(wire: Any) -> Any:
        return party(wire, body, of) if wire.me < 3 else contribute(wire, of, own[wire.me - 3])

    streams = Streams()
    with streams.watched():
        found = network.run([each] * (3 + len(own)))[1]
    streams.check()
    if traffic is not None:
        traffic += map(network.traffic, range(3 + len(own)))
    return found


def ideal(body: Callable[[MarginalOracle], Any], of: StudyFacts | None = None, contributors: int = 0) -> Any:
    rows = np.concatenate([*PARTS, *CONTRIBUTORS[:contributors]])
    return body(IdealOracle(of or facts(), counter(rows), Recorder()))


@pytest.mark.parametrize("worth", [LATENCY_BYTES, 64 * LATENCY_BYTES])
def test_noise_free_answers_equal_the_ideal_ones_and_are_counted(
    worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everybody's counts checked, near and far apart. A dry run on the same table gives each party's bytes, and
    the rounds."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: worth)
    of, traffic = replace(facts(), inputs=InputRule(500)), list[Traffic]()
    assert serve(work, of, 2, traffic=traffic) == ideal(work, None, 2)
    dry = ProvedDryRun(PresumedRun(of, counter(np.concatenate([*PARTS, *CONTRIBUTORS[:2]])), 3, 2))
    work(dry)
    dry.close()
    assert list(dry.sent) == [each.bytes_sent for each in traffic]
    assert dry.rounds == max(each.rounds for each in traffic)
    assert [each.proofs for each in traffic] == [dry.proofs] * 3 + [0] * 2 and dry.proofs > 0
    assert 0 < dry.input_checks[0] < dry.rounds and 0 < dry.input_checks[1] < sum(dry.sent)
    assert dry.seconds > 0 and dry.beside_bytes > 0


def test_contributors_counts_are_checked_with_proofs_too() -> None:
    """One contributor has just as many rows as are allowed, the other one more."""

    def body(oracle: MarginalOracle) -> list[int]:
        return oracle.measure(oracle.prepare([("a",)]), SMALL)[0].tolist()

    tables = [CONTRIBUTORS[0], table(500, 8)]  # more rows than any party that computes
    for rows, left in ((500, 2), (499, 1)):
        of = replace(facts(), inputs=InputRule(rows, exclude=True))
        others = [*PARTS, *tables[:left]]
        expected = body(IdealOracle(facts(), counter(np.concatenate(others)), Recorder()))
        assert serve(body, of, 2, tables) == expected


def test_candidates_in_several_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate in three groups; bits that were dealt are dropped in between."""
    monkeypatch.setattr(addends, "MAX_CACHED", 40)
    with small_groups(8, 20, 40):
        assert serve(several) == ideal(several)


def several(oracle: Any) -> Any:
    """Picks of several, distances, and keys of 64 bits where the bound on rows is large."""
    handles = oracle.prepare([("a", "b"), ("b", "c"), ("c", "d")])
    answers = [np.full(n, float(930 // n)) for n in (12, 20, 10)]
    weights = [Fraction(w) for w in (50, 1, 20)]
    found = [
        oracle.total(SMALL),
        oracle.select(handles, answers, weights, [Fraction(0)] * 3, Fraction(40), 2),
    ]
    found.append(oracle.select(handles, answers, weights[::-1], [Fraction(0)] * 3, Fraction(40)))
    found.append(oracle.distances(handles, answers, SMALL).tolist())
    return found


@pytest.mark.parametrize("rows", [100_000, 40_000_000])
def test_picks_of_several_and_distances(rows: int) -> None:
    assert serve(several, facts(row_cap=rows)) == ideal(several, facts(row_cap=rows))


def test_shares_are_not_kept_for_another_run() -> None:
    def body(wire: Any) -> None:
        engine = ProvedEngine(wire, facts(), None)
        with pytest.raises(UsageError, match="keeps no shares"):
            engine.pack(engine.marginals)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no earlier one"):
            engine.unpack(b"")

    outcomes(body)


# -- a party that deviates
# -----------------------------------------------------------------------------------------------------


def questions(oracle: Any) -> Any:
    """A selection and a measurement; what is opened before is noted."""
    handles = oracle.prepare([("a", "b"), ("c", "d")])
    answers = [np.full(12, 70.0), np.full(10, 60.0)]
    picked = oracle.select(handles, answers, [Fraction(9), Fraction(1)], [Fraction(0)] * 2, Fraction(40))
    return [picked, [x.tolist() for x in oracle.measure([handles[0]], SMALL)]]


def attacked(cheat: int, number: int, change: Callable[[bytes], bytes]) -> list[Any]:
    """The parties' outcomes when one message of one party is changed."""
    of = facts()

    def body(wire: Any) -> Any:
        return party(wire, questions, of, ahead=False)

    network = MemoryNetwork(3, session_id=of.session)
    return outcomes(body, cheat, lambda n, peer, p: change(p) if n == number else None, network=network)


def messages(cheat: int) -> tuple[int, int]:
    """Of how many messages a party's run consists, and how many of them come before the counts are shared."""
    wires: list[CheatingWire] = []
    sizes: list[int] = []

    def body(wire: Any) -> Any:
        if isinstance(wire, CheatingWire):
            wires.append(wire)
        return party(wire, questions, facts(), ahead=False)

    def note(number: int, peer: int, payload: bytes) -> None:
        sizes.append(len(payload))

    outcomes(body, cheat, note, network=MemoryNetwork(3, session_id=facts().session))
    return wires[0].counter[0], sizes.index(4 * 22) + 1


def no_wrong_answer(found: list[Any], cheat: int) -> None:
    """Every honest party stops or has the right answer, and one of them at least stops."""
    right = ideal(questions)
    honest = [said for me, said in enumerate(found) if me != cheat]
    assert any(isinstance(said, str) for said in honest), found
    for said in honest:
        assert isinstance(said, str) or said in (right, right[1]), found


def sweep(cheat: int, every: int) -> int:
    """Flip a bit of each of a party's messages after its counts were shared, or of every so many; how many
    runs."""
    total, shared = messages(cheat)
    numbers = range(shared + 1, total + 1, every)
    for number in numbers:
        # a bit of a count of a cell that exists, not of padding: the lowest of the first word
        no_wrong_answer(attacked(cheat, number, flipped), cheat)
    return len(numbers)


def test_a_leader_that_tells_two_parties_different_steps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the noise is ahead, so that nothing is compared before the result is there: nothing of it is
    opened."""
    ahead, opened = list[bool](), list[int]()
    has_counts, reveal = NoisePools.has_counts, ProvedEngine.reveal

    def noted(self: Any, samplers: Any) -> bool:
        ahead.append(has_counts(self, samplers))
        return ahead[-1]

    def counted(self: Any, numbers: Any) -> Any:
        opened.append(self.wire.me)
        return reveal(self, numbers)

    monkeypatch.setattr(NoisePools, "has_counts", noted)
    monkeypatch.setattr(ProvedEngine, "reveal", counted)

    def measured(oracle: MarginalOracle) -> None:
        handles = oracle.prepare([("a", "b"), ("c", "d")])
        for _ in range(3):
            oracle.measure([handles[0]], SMALL)

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        told = MeasureStep(2, (0,), SMALL).to_bytes()
        return MeasureStep(2, (1,), SMALL).to_bytes() if (peer, payload) == (2, told) else None

    network = MemoryNetwork(3, session_id=facts().session)
    found = outcomes(lambda wire: party(wire, measured, facts()), 1, alter, network=network)
    assert sorted(ahead) == [False] * 6 + [True] * 3
    assert all("has seen other public inputs" in found[honest] for honest in (0, 2)), found
    assert sorted(opened) == [0, 0, 1, 1, 2, 2]  # of the first two measurements


def test_nothing_is_computed_with_answers_that_two_parties_were_told_differently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What both hold of a share would differ where one of them takes the answer for 0."""
    computed, compute = list[int](), ProvedL1Sums.compute

    def noted(self: Any) -> Any:
        computed.append(self._gates.trio.me)
        return compute(self)

    monkeypatch.setattr(ProvedL1Sums, "compute", noted)

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        if peer != 2 or b'"step":"select"' not in payload:
            return None
        step = parse(payload)
        assert isinstance(step, SelectStep)
        return replace(step, epsilon=step.epsilon / 2).to_bytes()

    network = MemoryNetwork(3, session_id=facts().session)
    found = outcomes(lambda wire: party(wire, questions, facts()), 1, alter, network=network)
    assert all("has seen other public inputs" in found[honest] for honest in (0, 2)), found
    assert not computed


@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_never_gives_a_wrong_answer(cheat: int) -> None:
    assert sweep(cheat, 61) >= 2


@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_never_gives_a_wrong_answer_far_away(
    cheat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rounds are dear: carries by prefix trees, comparisons in parts, losses that are multiplied."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: 1 << 40)
    assert sweep(cheat, 61) >= 2


@pytest.mark.campaign
@pytest.mark.parametrize("latency", [LATENCY_BYTES, 1 << 40])
@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_of_any_message_never_gives_a_wrong_answer(
    cheat: int, latency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency)
    assert sweep(cheat, 1) > 90
