"""What follows from the parties' offers, and that the public part of a run can be repeated from what was opened."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.backend import BACKENDS
from mpc_protocols.backends.additive.oracle import ROLES as ADDITIVE
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.pair.oracle import ROLES as PAIR
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, follow
from mpc_protocols.backends.shamir.oracle import ROLES as SHAMIR
from mpc_protocols.errors import BudgetRefused, PeerIdentity, ProtocolAborted, UsageError
from mpc_protocols.functionality import Event, StudyFacts, unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from parties.budget.journal import Header, Journal, read
from parties.budget.run_state import RunState
from runner.party.resume.attempt import Attempt
from runner.party.resume.earlier_attempt import EarlierAttempt, Recorder, journal_path, state_digest
from runner.party.resume.resumption import FACT, Offer, continuation, offers_of
from runner.results.outdir import RUN as RUN_JSON
from runner.review.conformance.guards import Recorder as Guard
from runner.study import load
from runner.version import VERSION
from tests.extras import skip_unless_installed
from tests.runner import small
from tests.worlds.streams import Streams

NAMES = ("north", "south", "west")
RUN = b"r" * 32
D = [bytes([n]) * 32 for n in range(9)]
"""Hashes of the first 0, 1, 2, ... results."""


def offer(opened: int, held: int | None = None, session: bytes = b"s" * 32, **more: Any) -> Offer:
    return Offer(
        RUN,
        opened,
        D[opened],
        D[max(0, opened - 1)],
        None if held is None else (held, b"i" * 32, session),
        **more,
    )


def going_on(*offers: Offer | None, more: Mapping[str, Offer] | None = None) -> Any:
    named = {name: of for name, of in zip(NAMES, offers, strict=True) if of is not None}
    return continuation({**named, **(more or {})}, NAMES, "south")


def test_without_offers_the_run_is_new() -> None:
    assert going_on(None, None, None) is None
    assert going_on(None, None, None, more={"east": offer(0)}) is None


def test_an_offer_travels_as_json() -> None:
    for each in (offer(3, 3, released=True), offer(0), offer(2, finished=True)):
        assert offers_of({"north": {FACT: each.to_facts()}, "west": {"data": True}}) == {"north": each}


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {},
        {**offer(1).to_facts(), "opened": -1},
        {**offer(1).to_facts(), "run": "x"},
        {**offer(1).to_facts(), "run": ""},
        {**offer(1).to_facts(), "digest": "ab"},
        {**offer(1).to_facts(), "held": [1, "ab", "cd"]},
    ],
)
def test_an_offer_that_is_none_is_refused(facts: object) -> None:
    with pytest.raises(ProtocolAborted, match="Party north announced"):
        offers_of({"north": {FACT: facts}})


def test_all_hold_the_same_shares_and_finish_from_them() -> None:
    found = going_on(offer(2, 2), offer(2, 2), offer(2, 2))
    assert (found.opened, found.giver, found.finish_held, found.released) == (2, None, True, False)


@pytest.mark.parametrize(
    "third",
    [offer(2), offer(2, 1), offer(2, 2, b"t" * 32), replace(offer(2), held=(2, b"j" * 32, b"s" * 32))],
    ids=["none", "older", "of another session", "of other inputs"],
)
def test_shares_that_not_all_hold_are_not_opened(third: Offer) -> None:
    assert not going_on(offer(2, 2), offer(2, 2), third).finish_held


def test_what_may_have_been_opened_is_never_computed_again() -> None:
    """A party's files were set back, say: the result may be known somewhere, and cannot be had."""
    maybe = offer(2, 2, may_be_open=True)
    assert going_on(maybe, offer(2, 2), offer(2, 2)).finish_held
    with pytest.raises(ProtocolAborted, match="Party north knows of a result that may have been opened"):
        going_on(maybe, offer(2, 2), offer(2, 2, b"t" * 32))
    assert going_on(maybe, offer(2, 2), offer(3)).giver == "west"


def test_who_lacks_the_last_result_is_given_it() -> None:
    found = going_on(offer(2, 2), offer(3, 2), offer(2, 2))
    assert (found.opened, found.giver, found.lacking) == (3, "south", ("north", "west"))
    assert not found.finish_held  # it is opened


def test_a_party_without_state_comes_back_to_a_run_that_computed_nothing() -> None:
    assert going_on(offer(0), None, offer(0)).run == RUN
    for late in (offer(1), offer(0, 0)):
        with pytest.raises(
            ProtocolAborted, match="Party south does not resume the run that party north holds"
        ):
            going_on(late, None, late)
    with pytest.raises(ProtocolAborted, match="Party north does not resume the run that party south holds"):
        going_on(None, offer(0, released=True), offer(0))  # what it hands out could not be checked


@pytest.mark.parametrize(
    ("offers", "words"),
    [
        ((offer(1), offer(1), replace(offer(1), run=b"q" * 32)), "north and west hold different"),
        ((offer(2), offer(2), replace(offer(2), digest=D[8])), "recorded different results"),
        ((offer(2), offer(3), replace(offer(2), digest=D[8])), "recorded different results"),
        ((offer(1), offer(3), offer(3)), "recorded different results"),
        ((offer(3, finished=True), offer(3), offer(3)), "Party north has the results"),
    ],
)
def test_offers_that_do_not_fit_together_end_the_run(offers: tuple[Offer, ...], words: str) -> None:
    with pytest.raises(ProtocolAborted, match=words):
        going_on(*offers)


def test_what_was_released_is_handed_out() -> None:
    found = going_on(
        offer(3, finished=True), offer(3, released=True), offer(3), more={"east": offer(0, finished=True)}
    )
    assert found.released


@given(data=st.data())
def test_a_crash_at_any_moment_can_be_gone_on_with(data: st.DataObject) -> None:
    """A model of the steps with their two agreements, stopped anywhere: whatever was opened is known or held by all; what is
    computed again was opened nowhere."""
    state = {name: [0, -1] for name in NAMES}  # results known, the last step held
    sent: set[int] = set()  # steps of which an opening message left a party
    place = dict.fromkeys(NAMES, 0)
    for _ in range(data.draw(st.integers(0, 40))):
        name = data.draw(st.sampled_from(NAMES))
        step, phase = divmod(place[name], 3)
        others = [place[other] for other in NAMES if other != name]
        if phase == 0 and min(others) >= 3 * step:  # computing needs all others at this step
            state[name][1] = step
        elif phase == 1 and min(others) >= 3 * step + 1:  # all hold
            sent.add(step)
        elif phase == 2 and min(others) >= 3 * step + 2:  # all have sent
            state[name][0] = step + 1
        else:
            continue
        place[name] += 1
    found = going_on(*(offer(opened % 9, None if held < 0 else held) for opened, held in state.values()))
    if max(opened for opened, _ in state.values()) < 9:
        for step in sent:
            assert step < found.opened or (step == found.opened and found.finish_held)


# -- a run repeated ----------------------------------------------------------------------------------------------------

SIZES = {"a": 3, "b": 2, "c": 4}
FACTS = StudyFacts(SIZES, "add-remove", 1, 4096, RUN)
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]


def table(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, size, 200) for name, size in SIZES.items()}

    def counts(cliques: Any) -> list[Any]:
        return [
            np.bincount(
                np.ravel_multi_index([codes[name] for name in clique], [SIZES[name] for name in clique]),
                minlength=int(np.prod([SIZES[name] for name in clique])),
            ).astype(np.int64)
            for clique in cliques
        ]

    return counts


FURTHEST = 2
"""The candidate whose answers are three times its counts: another one is picked with probability below 10^-100."""


def questions(oracle: Any) -> list[Any]:
    """What depends on all that was opened before."""
    oracle.expect_keys(6)
    told: list[Any] = [oracle.total(Fraction(4))]
    oracle.expect_counts(Fraction(9), 12)
    one_way = oracle.measure(oracle.prepare([(name,) for name in SIZES]), Fraction(9))
    told += [each.tolist() for each in one_way]
    handles = oracle.prepare(CLIQUES)
    for _ in range(2):
        answers = [
            np.full(oracle.facts.cells(clique), max(0.0, sum(told[1]) / oracle.facts.cells(clique)))
            for clique in CLIQUES
        ]
        answers[FURTHEST] *= 3
        picked = oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(5)] * 3, Fraction(1))
        oracle.expect_counts(Fraction(9), 12)
        told += [picked, oracle.measure([handles[picked[0]]], Fraction(9))[0].tolist()]
    told.append(oracle.distances(handles[:2], answers[:2], Fraction(16)).tolist())
    return told


class CrashError(Exception):
    """The party is gone."""


class Crashing(RunState):
    """Dies at a call of a kind; or at none."""

    place, left = "", 0

    def _at(self, place: str) -> None:
        if place == self.place:
            self.left -= 1
            if self.left == 0:
                raise CrashError

    def hold(self, *arguments: Any) -> None:
        self._at("hold")
        super().hold(*arguments)
        self._at("held")

    def learn(self, *arguments: Any) -> None:
        self._at("learn")
        super().learn(*arguments)
        self._at("learnt")


def state_of(folder: Path, name: str, place: str = "", left: int = 0) -> Crashing:
    folder.mkdir(exist_ok=True)
    state = Crashing.create(folder, b"d" * 32, RUN, name, "1")
    assert isinstance(state, Crashing)
    state.place, state.left = place, left
    return state


def reopened(folder: Path, name: str) -> RunState:
    [path] = folder.glob("state-*")
    return RunState.reopen(path, b"d" * 32, name)


def ideal(state: RunState) -> list[Any]:
    """Seeded, so that a test can compare; each draw is bound to how many results are known, as an attempt's noise is not."""

    def randomness(count: int) -> bytes:
        return random.Random(f"{len(state.results)} {count}").randbytes(count)

    return questions(IdealOracle(FACTS, table(1), Guard(), randomness, history=state))


@settings(deadline=None, max_examples=15)
@given(place=st.sampled_from(["hold", "held", "learn", "learnt"]), left=st.integers(1, 7))
def test_a_resumed_run_in_the_clear_tells_what_an_uninterrupted_one_tells(
    tmp_path_factory: pytest.TempPathFactory, place: str, left: int
) -> None:
    folder = tmp_path_factory.mktemp("ideal")
    whole = state_of(folder / "whole", "north")
    expected = ideal(whole)
    with pytest.raises(CrashError), state_of(folder / "cut", "north", place, left) as cut:
        cut.attempt(b"s" * 32)
        ideal(cut)
    with reopened(folder / "cut", "north") as again:
        again.attempt(b"t" * 32, finish_held=True)
        assert ideal(again) == expected
        assert again.digests == whole.digests


ENGINES: dict[str, Any] = {
    "replicated": (ReplicatedOracle, follow, 3),
    "pair": (PAIR.lead, PAIR.follow, 2),
    "shamir": (SHAMIR.lead, SHAMIR.follow, 3),
    "additive": (ADDITIVE.lead, ADDITIVE.follow, 3),
}


def compute(
    engine: str, states: list[RunState], keys: MemoryNetwork | None = None, streams: Streams | None = None
) -> list[Any]:
    """All parties; each with a guard that must be asked the same events every time. keys: whose they share, if not their own."""
    oracle, follows, parties = ENGINES[engine]
    network = MemoryNetwork(parties, parties)
    if keys is not None:
        network.share_keys(keys)

    def body(wire: Wire) -> Any:
        history, own = states[wire.me], table(wire.me)
        if wire.me == FACTS.leader:
            with oracle(wire, FACTS, own, Guard(), history=history) as leading:
                return questions(leading)
        return follows(wire, FACTS, own, Guard(), unobserved, history=history)

    with (streams or Streams()).watched():
        return network.run([body] * parties)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("place", "left"), [("held", 2), ("held", 3), ("hold", 4), ("learn", 2), ("learn", 7)]
)
def test_a_run_on_shares_goes_on_from_what_was_opened(
    tmp_path: Path, engine: str, place: str, left: int
) -> None:
    """What was known stays, what all held opens to what it would have, and every result is opened once. Counts have a
    standard deviation of 3 and are within 60 of the truth.

    Neither attempt begins a stream of the other one, although the parties have the same keys in both.
    """
    skip_unless_installed(BACKENDS[engine])
    names = NAMES[: ENGINES[engine][2]]
    keys, streams = MemoryNetwork(len(names), len(names)), Streams()
    states: list[RunState] = [
        state_of(tmp_path / name, name, place if name == "south" else "", left) for name in names
    ]
    for state in states:
        state.attempt(b"s" * 32)
    with pytest.raises(Exception, match=r".*"):
        compute(engine, states, keys, streams)
    for state in states:
        state.close()
    again = [reopened(tmp_path / name, name) for name in names]
    offers = {name: Offer.of(state, False) for name, state in zip(names, again, strict=True)}
    found = continuation(offers, names, "south")
    assert found is not None
    before = max((state.results for state in again), key=len)
    held = [state.last_held for state in again]
    for state in again:
        state.attempt(b"t" * 32, found.finish_held)
        if len(state.results) < found.opened:
            state.learn(len(state.results), before[-1].inputs, before[-1].values)
    assert not (place == "hold" and found.finish_held)
    told = compute(engine, again, keys, streams)[FACTS.leader]
    streams.check()
    assert streams.parties == {f"party-{number}" for number in range(len(names))}
    assert told[0] == int(again[0].results[0].values[0])
    assert len({state.digests[-1] for state in again}) == 1 and len(again[0].results) == 7
    for old, new in zip(before, again[0].results, strict=False):
        assert old.inputs == new.inputs and old.values.tolist() == new.values.tolist()
    assert told[4] == told[6] == [FURTHEST]
    whole = [
        sum(parts)
        for parts in zip(*(table(of)([(name,) for name in SIZES]) for of in range(len(names))), strict=True)
    ]
    for counts, true in zip(told[1:4], whole, strict=True):
        assert np.abs(np.array(counts) - true).max() < 60
    if found.finish_held:  # nothing was computed again
        assert [state.last_held for state in again] != [None] * len(names)
        assert all(each is not None and each.session == b"s" * 32 for each in held)


def test_a_result_that_is_given_in_another_length_ends_the_run(tmp_path: Path) -> None:
    states = [RunState.create(tmp_path, b"d" * 32, bytes([n]) * 32, NAMES[n], "1") for n in range(2)]
    with pytest.raises(Exception, match=r".*"):  # the first step's inputs, which everybody can tell
        compute("pair", [Stopping(state) for state in states])  # type: ignore[misc]
    for state in states:
        assert len(state.results) == 1
        state.results[0] = replace(state.results[0], values=np.zeros(0, np.int64))
    with pytest.raises(ProtocolAborted, match="Step 0 is on record with 0 values, and it opens to 1"):
        compute("pair", states)


class Stopping:
    """A history that ends with its first result."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def learn(self, *arguments: Any) -> None:
        self._state.learn(*arguments)
        raise CrashError


# -- what is on record -------------------------------------------------------------------------------------------------

EVENTS = [Event("total", Fraction(1, 100 + n), Fraction(1, 10**9), {"sigma2": "4/1"}) for n in range(3)]


def test_what_is_on_record_is_not_recorded_again(tmp_path: Path) -> None:
    path, begun = tmp_path / "journal", list[tuple[Event, int]]()
    journal = Journal(path, Header(b"d" * 32, RUN, "north", "1"))
    recorder = Recorder(journal, None, begun.extend, lambda: None)
    for event in EVENTS[:2]:
        recorder.record(event, b"inputs")
    journal.close()
    known = read(path)
    assert [release.opened for release in known.releases] == [True, False]
    journal = Journal.reopen(path, known)
    recorder = Recorder(journal, known, begun.extend, lambda: None)
    for event in EVENTS:
        recorder.record(event, b"inputs")
    recorder.opened()
    journal.end(0)
    found = read(path)
    assert (found.attempts, found.code, [release.event for release in found.releases]) == (2, 0, EVENTS)
    assert all(release.opened for release in found.releases)
    assert [number for _, number in begun] == [1, 2, 1, 2, 3]


@given(st.integers(0, 5), st.lists(st.integers(1, 3), max_size=3))
def test_releases_of_one_step_are_recorded_together_whatever_is_on_record(
    kept: int, steps: list[int]
) -> None:
    """A crash may have kept some of a step's lines: the others follow, and the ledger hears of all."""
    count = sum(steps)
    releases = [(Event("select", Fraction(1, 100 + n), Fraction(0)), bytes([n])) for n in range(count)]
    with TemporaryDirectory() as folder:
        path, begun = Path(folder) / "journal", list[list[tuple[Event, int]]]()
        journal = Journal(path, Header(b"d" * 32, RUN, "north", "1"))
        journal.events(releases[:kept])
        journal.close()
        known = read(path)
        journal = Journal.reopen(path, known)
        recorder, at = Recorder(journal, known, lambda told: begun.append(list(told)), lambda: None), 0
        for step in steps:
            recorder.record_all(releases[at : at + step])
            at += step
            opened = [release.opened for release in read(path).releases]
            assert not any(opened[at - step :]) and all(opened[: at - step])  # the step's are not known yet
        recorder.opened()
        journal.close()
        found = read(path).releases
    assert [(release.event, release.inputs) for release in found] == releases
    assert all(release.opened for release in found)
    numbered = [(event, number) for number, (event, _) in enumerate(releases, start=1)]
    assert [one for told in begun for one in told] == numbered and list(map(len, begun)) == steps


def test_a_release_authorised_for_other_inputs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, Header(b"d" * 32, RUN, "north", "1"))
    journal.events([(EVENTS[0], b"inputs")])
    journal.close()
    for event, inputs in ((EVENTS[1], b"inputs"), (EVENTS[0], b"others")):
        known = read(path)
        journal = Journal.reopen(path, known)
        with pytest.raises(BudgetRefused, match="Release 1 was authorised for other public inputs"):
            Recorder(journal, known, lambda releases: None, lambda: None).record(event, inputs)
        journal.close()


def test_what_may_not_be_released_is_put_on_no_record(tmp_path: Path) -> None:
    path, begun = tmp_path / "journal", list[tuple[Event, int]]()
    journal = Journal(path, Header(b"d" * 32, RUN, "north", "1"))

    def admit() -> None:
        raise PeerIdentity("The certificate of party west has expired.")

    with pytest.raises(PeerIdentity):
        Recorder(journal, None, begun.extend, admit).record(EVENTS[0], b"inputs")
    journal.close()
    assert not begun and not read(path).releases


# -- one party's directory, and what others say --------------------------------------------------------------------------


def test_a_party_that_does_not_resume_takes_no_run_from_others(tmp_path: Path) -> None:
    """One peer's word would name a run that this party's account has charged already."""
    trial = small.write(tmp_path)
    study = load(trial.path)
    names = [party.name for party in study.numbered]
    wire = SimpleNamespace(
        announcements={names[0]: {FACT: offer(0).to_facts()}}, computing=3, session_id=D[1]
    )
    options = SimpleNamespace(resume=False, out=tmp_path)

    def agree() -> bytes:
        attempt = Attempt(cast("Any", options), study, "north", None)
        return attempt.agree(cast("Any", wire), unobserved)

    with pytest.raises(UsageError, match="start this one with --resume, too"):
        agree()
    options.resume = True
    assert agree() == RUN
    wire.announcements = {}
    options.resume = False
    assert agree() == D[1]


def left(tmp_path: Path, shares: bytes = b"some shares") -> tuple[Path, Any]:
    """A directory with a run that has held a result, and its study."""
    study, out = load(small.write(tmp_path / "study").path), tmp_path / "out"
    out.mkdir()
    with RunState.create(out, state_digest(study), RUN, "north", VERSION) as state:
        journal = Journal(journal_path(out, RUN), Header(b"d" * 32, RUN, "north", VERSION))
        state.note = journal.held
        state.attempt(b"s" * 32)
        journal.events([(EVENTS[0], b"inputs")])
        if shares:
            state.hold(0, b"i" * 32, lambda: shares)
        journal.close()
    return out, study


def test_shares_go_also_when_the_party_died_right_after_its_results(tmp_path: Path) -> None:
    out, study = left(tmp_path)
    [path] = out.glob("state-*")
    (out / RUN_JSON).write_text(json.dumps({"session": RUN.hex(), "parties": []}))
    found = EarlierAttempt.find(out, study, "north")
    assert found is not None and found.finished and b"some shares" not in path.read_bytes()
    found.state.close()


def test_who_has_the_end_on_record_computes_nothing_more(tmp_path: Path) -> None:
    """A leader that does not know what it has handed out was set back: the run must not begin again."""
    out, study = left(tmp_path)
    path = journal_path(out, RUN)
    Journal.reopen(path, read(path)).end(0)
    found = EarlierAttempt.find(out, study, "north")
    assert found is not None and not found.finished
    with found.state, pytest.raises(ProtocolAborted, match="Party north has the results"):
        going_on(
            Offer.of(found.state, found.ended), Offer.of(found.state, False), Offer.of(found.state, False)
        )


def test_a_journal_that_knows_of_releases_is_not_thrown_away(tmp_path: Path) -> None:
    out, study = left(tmp_path, b"")
    path = journal_path(out, RUN)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"event"', b'"evnet"'))
    with pytest.raises(UsageError, match="is not a record of format"):
        EarlierAttempt.find(out, study, "north")
    assert path.exists()
    path.write_bytes(content[: content.index(b"\n") + 9])  # torn while it was made
    found = EarlierAttempt.find(out, study, "north")
    assert found is not None and found.journal is None and not path.exists()
    found.state.close()
