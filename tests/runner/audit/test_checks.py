"""Every check passes on this build, and fails on one that is broken in the way it is there for."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mpc_protocols.backend import BACKENDS, EngineBackend
from mpc_protocols.psu.helper import protocol
from mpc_protocols.wire import Wire
from parties.data.counters import Counters
from parties.session.transport import codec
from runner.audit import driver
from runner.audit.broken_builds import mutations
from runner.audit.broken_builds.faults.mutation import Mutation
from runner.audit.check import MAX_ALARM, Check, Finding, Group, Profile, Verdict, load
from runner.audit.groups import processes, views
from runner.audit.subjects.deployment import End
from runner.audit.subjects.subject import Subject, subject
from runner.party.synthesis import plan_of
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
    "N.changed",
    "P.changed",
    "P.sizes",
    "P.tables",
}
"""Checks without a mutation; each has a test of its own below (L: in `tests/runner/audit/test_learning.py`), but for M.parties,
which takes its time."""
CHEAP = [mutation for mutation in mutations.MUTATIONS if mutation.name not in ("P1", "P2", "P6")]
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


def test_every_check_has_a_mutation_or_a_test() -> None:
    named = {name for mutation in mutations.MUTATIONS for name in mutation.expected}
    whole = {driver.full_name(group, check) for group in GROUPS.values() for check in group.checks}
    assert whole == named | NEVER_BROKEN_HERE
    assert not named & NEVER_BROKEN_HERE


def test_a_pickle_that_is_loaded_is_found(audited: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken build stands here, so that no line of the program can load a pickle."""
    plain = codec.loads

    def loads(payload: Any) -> Any:
        return pickle.loads(payload) if bytes(payload[:1]) == b"\x80" else plain(payload)  # noqa: S301  # the audit's own

    monkeypatch.setattr(codec, "loads", loads)
    finding = found(audited, "F.decoders")
    assert finding.verdict is Verdict.FAIL and "ran as code" in finding.evidence


def test_noise_of_another_size_does_not_fit(audited: Subject) -> None:
    """A sigma 10 % too large, seen in the draws."""
    with mutations.noise_times(110):
        finding = found(audited, "M.fit")
    assert finding.verdict is Verdict.FAIL, finding.evidence


def test_too_little_noise_shows_a_row(audited: Subject) -> None:
    with mutations.noise_times(50):
        for name in ("M.epsilon", "I.likelihood"):
            finding = found(audited, name)
            assert finding.verdict is Verdict.FAIL, finding.evidence


def test_a_run_that_spends_too_much_breaks_its_promise(audited: Subject) -> None:
    """The same run under a study that promises a tenth."""
    privacy = replace(audited.study.privacy, epsilon=audited.study.privacy.epsilon / 10)
    plan = plan_of(audited.study)
    stingy = replace(audited, study=replace(audited.study, privacy=privacy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runner.party.synthesis.plan_of", lambda study: plan)
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
            "mpc_protocols.memory_wire.MemoryWire.receive", lambda self, peer, size: self._take(peer)
        )
        finding = found(audited, "F.messages")
    assert finding.verdict is Verdict.FAIL and "ends in" in finding.evidence


def test_a_traceback_of_an_alignment_is_found(audited: Subject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mpc_protocols.memory_wire.MemoryWire.receive", lambda self, peer, size: self._take(peer)
        )
        patch.setattr("runner.audit.subjects.union.PATIENCE_S", 10.0)  # of the party that then waits in vain
        finding = found(audited, "P.changed")
    assert finding.verdict is Verdict.FAIL and "ends in" in finding.evidence


def test_rows_that_do_not_meet_are_found(audited: Subject) -> None:
    """An owner's rows in the wrong order."""
    plain = protocol.align
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            protocol,
            "align",
            lambda *given: replace(found := plain(*given), rows=found.rows[::-1].copy()),
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
            End(41, "Traceback (most recent call last)", "Party north is gone."),
            "showed a traceback",
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
    [caught] = [
        each for each in mutations.campaign(["A.conversion"], None, "replicated", "x") if each.name == "M33"
    ]
    assert caught.found and caught.caught_by == ("A.conversion",)


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
