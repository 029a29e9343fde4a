"""Every check passes on this build, and fails on one that is broken in the way it is there for."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend, EngineBackend
from mpc_protocols.engine import prg
from mpc_protocols.errors import CosynthError, OutOfResources, ProtocolAborted, UsageError
from mpc_protocols.in_memory.memory_wire import Stuck
from mpc_protocols.process.threads import Aside
from mpc_protocols.psu.helper import protocol
from mpc_protocols.wire import Wire
from parties.data.counting.counters import Counters
from runner.party.synthesis import plan_of
from runner.review.audit import driver
from runner.review.audit.broken_builds import broken, mutations
from runner.review.audit.broken_builds.faults.mutation import Mutation
from runner.review.audit.broken_builds.faults.noise import noise_times
from runner.review.audit.check import MAX_ALARM, Check, Finding, Group, Profile, Verdict, load
from runner.review.audit.groups import hostile, processes, views
from runner.review.audit.groups.traffic import reference_answer
from runner.review.audit.subjects.ends import STUCK, judged_ends, unless_stuck
from runner.review.audit.subjects.in_memory.deviations import Deviation, Outcome, judged_outcome
from runner.review.audit.subjects.in_memory.streams import Streams
from runner.review.audit.subjects.processes.deployment import End
from runner.review.audit.subjects.processes.faults import FAULTS, MOMENTS, cases
from runner.review.audit.subjects.subject import Part, Subject, subject
from runner.starting.demo import CUSTODIANS
from tests.conformance.test_howto import example
from tests.toys.plain_backend import BACKEND as PLAIN

GROUPS = load()
QUICK = driver.chosen(GROUPS, (), (), Profile.QUICK)
NEVER_BROKEN_HERE = {
    "A.promise",
    "F.messages",
    "I.likelihood",
    "L.responses",
    "L.warned",
    "M.epsilon",
    "M.fit",
    "M.parties",
    "M.runs",
    "N.changed",
    "P.changed",
    "P.sizes",
    "P.tables",
}
"""Checks without a mutation; each has a test of its own below (L: in
`tests/runner/review/audit/research/test_learning.py`)."""
CHEAP = [
    mutation
    for mutation in mutations.MUTATIONS
    if mutation.name not in ("P1", "P2", "P6", "P9", "P10", "P11", "P12", "P13")
]
"""Those need whole runs of processes: `tests/acceptance/audit.py`, and what judges their ends below."""


@pytest.fixture(scope="module")
def audited() -> Iterator[Subject]:
    with subject(None, ["replicated"], Profile.QUICK, "tests") as found:
        yield found


def found(audited: Subject, name: str) -> Finding:
    [result] = driver.carry_out(audited, driver.chosen(GROUPS, (), [name], Profile.QUICK))
    return result.finding


@pytest.mark.parametrize("name", [driver.full_name(*each) for each in QUICK])
def test_this_build_passes(audited: Subject, name: str) -> None:
    """A false alarm: 1e-6 in all (`MAX_ALARM`)."""
    finding = found(audited, name)
    assert finding.verdict is Verdict.PASS, finding.evidence


@pytest.mark.parametrize("mutation", CHEAP, ids=lambda mutation: mutation.name)
def test_a_broken_build_is_found(audited: Subject, mutation: Mutation) -> None:
    for name in mutation.expected:
        with mutation.apply():
            finding = found(audited, name)
        assert finding.verdict is Verdict.FAIL, f"{name}: {finding.evidence}"


def test_memory_that_a_process_had_before_does_not_hide_what_it_takes() -> None:
    """A peak of the whole process that lies far above it."""
    _ = np.ones(1 << 24).sum()
    with hostile._Traced() as traced:
        _ = np.ones(1 << 23).sum()
    assert 8 << 23 <= traced.peak < 8 << 24


def test_every_check_has_a_mutation_or_a_test() -> None:
    named = {name for mutation in mutations.MUTATIONS for name in mutation.expected}
    whole = {driver.full_name(group, check) for group in GROUPS.values() for check in group.checks}
    assert whole == named | NEVER_BROKEN_HERE
    assert not named & NEVER_BROKEN_HERE


def test_what_travels_is_known_of_every_backend_of_ours() -> None:
    ours = [backend for backend in BACKENDS if isinstance(backend, DistributedBackend)]
    assert all(backend.known_traffic for backend in ours)
    for backend in ours:
        if backend.name in ("pair", "shamir"):  # the others are asked in other tests, and in an audit
            assert reference_answer(backend) == backend.known_traffic


def test_a_stream_that_a_party_begins_again_aside_is_begun_twice() -> None:
    """What a party computes in a thread of its own, while it does something else, is the party's."""

    def begin() -> None:
        prg.KeyStream(bytes(16)).reader(1)

    def both() -> None:
        begin()
        Aside(begin).join()

    drawn, party = Streams(), threading.Thread(target=both, name="party-1")
    with drawn.watched():
        party.start()
        party.join()
    assert drawn.twice() == [("party-1", 2)]


def test_transfers_that_are_given_twice_are_streams_begun_twice() -> None:
    """Masks of `pair` have ciphers of their own."""
    assert broken.failing("M11", "pair", None, "tests", ["V.streams"]) == ["V.streams"]


def test_noise_of_another_size_does_not_fit(audited: Subject) -> None:
    """A sigma 10 % too large, seen in the draws."""
    with noise_times(110):
        finding = found(audited, "M.fit")
    assert finding.verdict is Verdict.FAIL, finding.evidence


def test_scores_that_count_twice_show_in_the_choices_of_parties(audited: Subject) -> None:
    with mutations.named("M8").apply():
        finding = found(replace(audited, profile=Profile.DEFAULT), "M.parties")
    assert finding.verdict is Verdict.FAIL, finding.evidence


def test_what_a_deviating_party_sends_instead() -> None:
    for change, sent in (
        ("a bit flipped", b"\x01cde"),
        ("two bits flipped", b"\x01c\x66e"),
        ("a constant added to all bytes", b"bdef"),
        ("an earlier message sent again", b"abcd"),
    ):
        deviation = Deviation((0, 1), 2, 0, True, change)
        plain = {0: b"abcd", 1: b"ab", 2: b"\x00cde" if "bit" in change else b"acde"}
        told = [deviation.bend((0, 1), number, payload) for number, payload in plain.items()]
        assert told == [b"abcd", b"ab", sent], change
        assert deviation.bend((1, 0), 2, b"abcd") == b"abcd" and deviation.bend((0, 1), 2, b"") == b""


def test_all_parties_ends_are_judged_but_the_senders() -> None:
    stopped, stuck = ProtocolAborted("Party 0 cheats."), Stuck("Party 1 sent nothing.")
    for ends, outcome, words in (
        ({0: ValueError(), 1: stopped, 2: [1]}, "exit 40", None),
        ({0: [1], 1: [1], 2: [1]}, "went on", None),
        ({0: stopped, 1: stopped, 2: ValueError()}, "broken", "party 2 ends in ValueError"),
        ({0: stopped, 1: stopped, 2: UsageError("Why?")}, "broken", "party 2 ends with 2 (Why?)"),
        ({0: stopped, 1: stuck, 2: stopped}, STUCK, None),
        ({0: stopped, 1: stuck, 2: ValueError()}, "broken", "party 2 ends in ValueError"),
    ):
        assert judged_ends(ends, 0) == (outcome, words)
    passed, failed = Finding(Verdict.PASS, "."), Finding(Verdict.FAIL, ".")
    assert unless_stuck(passed, [{"exit 40": 3}]) is passed
    assert unless_stuck(passed, [{}, {STUCK: 1}]).verdict is Verdict.ERROR
    assert unless_stuck(failed, [{STUCK: 1}]) is failed


def test_too_little_noise_shows_a_row(audited: Subject) -> None:
    """A quarter of it: an area of .99999, where half would leave .983, as far from the alarm at .977 as
    chance goes in one of ten runs."""
    with noise_times(25):
        for name in ("M.epsilon", "I.likelihood"):
            finding = found(audited, name)
            assert finding.verdict is Verdict.FAIL, finding.evidence


def test_a_run_that_spends_too_much_breaks_its_promise(audited: Subject) -> None:
    """The same run under a study that promises a tenth."""
    privacy = replace(audited.study.privacy, epsilon=audited.study.privacy.epsilon / 10)
    plan = plan_of(audited.study)
    stingy = replace(audited, study=replace(audited.study, privacy=privacy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runner.review.audit.subjects.whole_run.plan_of", lambda study: plan)
        finding = found(stingy, "A.promise")
    assert finding.verdict is Verdict.FAIL and "promises epsilon 0.1" in finding.evidence


def test_a_file_whose_rows_count_twice_is_found(audited: Subject) -> None:
    add = Counters.add

    def twice(self: Counters, codes: object) -> None:
        for _ in range(2):
            add(self, codes)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Counters, "add", twice)
        finding = found(audited, "S.files")
    assert finding.verdict is Verdict.FAIL and "add up to" in finding.evidence


def test_a_traceback_at_a_changed_message_is_found(audited: Subject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mpc_protocols.in_memory.memory_wire.MemoryWire.receive",
            lambda self, peer, size: self._take(peer),
        )
        finding = found(audited, "F.messages")
    assert finding.verdict is Verdict.FAIL and "ends in" in finding.evidence


def test_a_traceback_of_an_alignment_is_found(audited: Subject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mpc_protocols.in_memory.memory_wire.MemoryWire.receive",
            lambda self, peer, size: self._take(peer),
        )
        patch.setattr(
            "runner.review.audit.subjects.in_memory.union.PATIENCE_S", 10.0
        )  # of the party that then waits in vain
        finding = found(audited, "P.changed")
    assert finding.verdict is Verdict.FAIL and "ends in" in finding.evidence


def test_rows_that_do_not_meet_are_found(audited: Subject) -> None:
    """An owner's rows in the wrong order."""
    plain = protocol.align
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            protocol, "align", lambda *given: replace(found := plain(*given), rows=found.rows[::-1].copy())
        )
        finding = found(audited, "P.tables")
    assert finding.verdict is Verdict.FAIL and "one record has two rows" in finding.evidence


def test_sizes_that_follow_identifiers_are_found(audited: Subject) -> None:
    plain = protocol.align

    def telling(wire: Any, entries: Any, *given: Any) -> Any:
        wire.fork("telling").send(2, bytes(sum(b"".join(entries)) % 251))
        return plain(wire, entries, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "align", telling)
        finding = found(audited, "P.sizes")
    assert finding.verdict is Verdict.FAIL and '"helper"' in finding.evidence


def test_honest_parties_that_end_with_different_results_are_found(audited: Subject) -> None:
    follow = EngineBackend.follow

    def mistaken(self: EngineBackend, wire: Wire, *given: Any) -> Any:
        return [counts + (wire.me == 2) for counts in follow(self, wire, *given)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineBackend, "follow", mistaken)
        finding = found(audited, "N.changed")
    assert finding.verdict is Verdict.FAIL and "different noisy counts" in finding.evidence


def test_messages_of_other_sizes_are_not_taken_for_masked_ones() -> None:
    """What was redrawn cannot be compared byte by byte then."""
    view = [np.array([1, 2, 3], np.uint8)]
    for redrawn, comparable, left in (
        ([np.array([1, 9, 3], np.uint8)], True, [True, False, False]),
        ([np.array([1, 9], np.uint8)], False, [True, True, False]),
        ([], False, [True, True, False]),
    ):
        follows = [np.array([True, True, False])]
        assert views.keep_equal(follows, view, redrawn) == comparable
        assert follows[0].tolist() == left


def test_rows_that_nobody_sends_say_nothing(audited: Subject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "same_outputs", lambda subject, parties, kept: [subject.tables(parties, 6)] * 2)
        finding = found(audited, "V.masks")
    assert finding.verdict is Verdict.UNINFORMATIVE and "nothing was looked at" in finding.evidence


def test_a_backend_that_opens_what_it_likes_says_nothing(audited: Subject) -> None:
    """A backend that this project has never seen is audited without new code; without masks it fails."""
    with BACKENDS.registered(PLAIN):
        other = replace(audited, backends=(PLAIN.name,))
        assert found(other, "A.events").verdict is Verdict.PASS
        assert found(other, "V.opened").verdict is Verdict.UNINFORMATIVE
        finding = found(other, "V.masks")
    assert finding.verdict is Verdict.FAIL, finding.evidence


def test_strangers_are_refused_and_the_right_parties_let_in(audited: Subject) -> None:
    finding = found(audited, "W.identity")
    assert finding.verdict is Verdict.PASS, finding.evidence


def test_what_the_others_do_when_one_is_killed_is_judged() -> None:
    right = End(41, "", "Party north closed its connection.")
    ends = {"north": End(-9, "", ""), "south": right, "west": right}
    assert not processes.judge_ends(ends, "north")
    for wrong, words in (
        (End(40, "", "Party north aborted."), "ended with 40 instead of 41"),
        (End(41, "", "Party south closed its connection."), "instead of 41"),
        (
            End(
                41, "", "Internal error: KeyError at step.py, line 7; please report it. Party north is gone."
            ),
            "ended by an internal error",
        ),
    ):
        [problem] = processes.judge_ends(ends | {"west": wrong}, "north")
        assert words in problem


def test_a_secret_is_found_however_it_is_written() -> None:
    secret = b"\x01\xfe secret \x99 of somebody"
    texts = {
        "plain": b"x" + secret,
        "hex": b"key=" + secret.hex().encode(),
        "json": b'{"k": "' + base64.b64encode(b"zz" + secret + b"y") + b'"}',
        "nothing": b"nothing",
    }
    assert processes.search(texts, [secret]) == ["hex", "json", "plain"]


def test_a_failing_check_does_not_stop_the_others(audited: Subject) -> None:
    def fails(_: Subject) -> Finding:
        raise RuntimeError("a reason")

    group = Group(
        "X", "", "", (Check("a", "", "exact", "", fails), Check("b", "", "exact", "", views.streams))
    )
    first, second = driver.carry_out(audited, [(group, check) for check in group.checks])
    assert first.finding.verdict is Verdict.ERROR and "a reason" in first.finding.evidence
    assert second.finding.verdict is Verdict.PASS


def test_a_broken_build_in_a_process_of_its_own() -> None:
    meant = mutations.meant(["A.conversion"], [])
    [caught] = mutations.campaign(meant, ["A.conversion"], None, "replicated", ["x", "y"])
    assert caught.is_noticed and (caught.seeds, caught.caught, caught.caught_by) == (2, 2, ("A.conversion",))
    assert not list(mutations.campaign([], ["A.conversion"], None, "replicated", ["x"]))
    with pytest.raises(UsageError, match="no broken build 'M99'"):
        mutations.meant(["A.conversion"], ["M99"])


def test_the_example_of_the_page_is_a_group(audited: Subject) -> None:
    group = example("audit-a-run.md").GROUP
    [result] = driver.carry_out(audited, [(group, check) for check in group.checks])
    assert result.finding.verdict is Verdict.PASS, result.finding.evidence


def test_alarms_add_up_to_what_is_promised() -> None:
    alarms = [check.alarm for group in GROUPS.values() for check in group.checks]
    assert 0 < sum(alarms) <= MAX_ALARM
    for group in GROUPS.values():
        for check in group.checks:
            assert (check.kind in ("exact", "fault")) == (check.alarm == 0) or check.name == "masks"
            assert check.claim.endswith(".") and check.sees


def ended(result: Any, opened: list[list[int]]) -> Outcome:
    """Three parties, of which the last ended like this."""
    right, counts = [[1, 2]], [[1, 2], [0]]
    return Outcome({0: right, 1: right, 2: result}, {0: counts, 1: counts, 2: opened}, {}, {})


def test_how_honest_parties_may_end_where_one_deviates() -> None:
    honest = ended([[1, 2]], [[1, 2], [0]])
    stopped = ProtocolAborted("Party 0 cheats.")
    for result, opened, words in (
        ([[1, 2]], [[1, 2], [0]], None),
        (stopped, [[1, 2]], None),
        ([[1, 3]], [[1, 2], [0]], "party 2 ends well with another result"),
        (stopped, [[1, 3]], "something else is opened to party 2"),
        (UsageError("Why?"), [], "party 2 ends with 2 (Why?)"),
        (ValueError(), [], "party 2 ends in ValueError"),
    ):
        assert judged_outcome(honest, ended(result, opened), 0)[1] == words
    assert judged_outcome(honest, ended([[1, 3]], []), 2)[1] is None


def test_too_little_noise_shows_a_row_in_whole_runs(audited: Subject) -> None:
    """A hundred runs a side: noise a quarter of what is charged."""
    few = replace(audited, rows=audited.rows[:200])
    assert found(few, "M.runs").verdict is Verdict.PASS
    with noise_times(25):
        finding = found(few, "M.runs")
    assert finding.verdict is Verdict.FAIL and "is charged" in finding.evidence


def test_campaigns_come_in_parts(audited: Subject) -> None:
    """Each case is in one part."""
    every = cases(Profile.DEEP, CUSTODIANS)
    parts = [replace(audited, part=Part.parse(f"{number}/7")).share(every) for number in range(1, 8)]
    assert len(every) == 360 == sum(map(len, parts)) and {case for part in parts for case in part} == set(
        every
    )
    for text in ("0/3", "4/3", "1", "a/b"):
        with pytest.raises(UsageError, match="--part"):
            Part.parse(text)
    few = cases(Profile.DEFAULT, CUSTODIANS)
    assert {case.fault for case in few} == set(FAULTS) and {case.moment for case in few} == set(MOMENTS)


def test_no_fault_may_end_a_party_by_an_internal_error_and_what_is_lacking_has_its_own_code() -> None:
    lacking = {"full", "memory"}
    for fault in FAULTS:
        assert CosynthError.exit_code not in fault.codes
        assert (OutOfResources.exit_code in fault.codes) == (fault.key in lacking)
