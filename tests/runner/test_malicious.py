"""Studies with `security = "malicious"`: what may be asked for, runs of them, and a leader that hands out
something else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import PeerLost, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from parties.budget.ledger import Ledger
from runner.check.run import findings
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.launch.launcher import launch
from runner.party import synthesis
from runner.party.collective import Collective
from runner.party.course import agreed_table, answers
from runner.party.course.answers import _Inputs
from runner.party.resume.earlier_attempt import cannot_resume
from runner.party.session import run_deadline
from runner.party.synthesis import facts_of, plan_of
from runner.results.release import Release, parse
from runner.study import Study, load, problems
from synth.mrf import Model
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire
from tests.runner import in_memory, small, split
from tests.runner.test_release import DOMAIN, RELEASE

ASKED = ('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')
LEADER, FOLLOWER, CONTRIBUTOR = "south", "west", "east"


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def wanted(tmp_path: Path, parties: int = 4, **how: Any) -> small.Trial:
    """A study of three that compute and one that does not."""
    return small.write(tmp_path / "study", parties=parties, **{"changes": [ASKED], **how})


def told(tmp_path: Path, *changes: tuple[str, str]) -> list[str]:
    """The problems of such a study with these changes, without the file's name."""
    path = wanted(tmp_path, changes=[ASKED, *changes]).path
    return [sentence.removeprefix(f"{path}: ") for sentence in problems(path)]


# -- what may be asked for
# -----------------------------------------------------------------------------------------------------


def test_what_does_not_hold_is_refused_with_one_sentence(tmp_path: Path) -> None:
    for backend in BACKENDS:
        if backend.name != "replicated":
            [sentence] = told(tmp_path, ('backend = "replicated"', f'backend = "{backend.name}"'))
            assert sentence.startswith(
                f'[study] security = "malicious" is not offered by backend = "{backend.name}", which has semi-honest'
            )
    in_rounds = ('algorithm = "aim"', 'algorithm = "flaim"'), ("[aim]\nrounds = 3", "[flaim]\nrounds = 3")
    [sentence] = told(tmp_path, *in_rounds)
    assert "does more than ask for them" in sentence


ALIGNED = ('method = "psu"\nvia = "merge3"\nid = "person"', 'method = "row-order"')


def test_tables_that_are_too_wide_are_refused_before_anything_starts(tmp_path: Path) -> None:
    """By `plan`, by `check` where the owners are known, and by a run: with one sentence that names the table."""
    many = ("bins = 4, missing = true }", "bins = 1030, missing = true }")
    trial = split.write(tmp_path, aligned=True, changes=[ASKED, ALIGNED, many])
    study = load(trial.path)
    with pytest.raises(StudyInvalid) as refused:
        forecast(study)
    said = [finding.text for finding in findings(trial.path, None, None, False)]
    assert refused.value.sentence in said
    assert "cut into two parts it has 1,031 and 1 cells, each at most 1,024" in refused.value.sentence
    with pytest.raises(StudyInvalid, match="is too wide for split columns"):
        launch(trial.path, tmp_path / "out")
    assert not Ledger(tmp_path / "ledger.db").entries()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], None),
        ([("merge3", "auto")], None),
        ([("merge3", "dh2")], None),
        ([ALIGNED], None),
        ([("merge3", "helper")], "into two rows"),
        ([("merge3", "florist")], "without being noticed"),
        ([("merge3", "dh2"), ("replace", "add-remove")], "1 in 1,000"),
        ([("replace", "add-remove")], None),
        ([("intersection", "union")], None),
        ([("intersection", "union"), ("replace", "add-remove")], 'use adjacency = "replace", or population'),
    ],
)
def test_records_are_joined_by_what_stands_against_a_deviation(
    tmp_path: Path, changes: list[tuple[str, str]], words: str | None
) -> None:
    path = split.write(tmp_path, changes=[ASKED, *changes]).path
    found = problems(path)
    assert len(found) == (words is not None), found
    if words is not None:
        assert words in found[0] and 'security = "malicious"' in found[0]
        assert "add-remove" in found[0] or 'use via = "merge3"' in found[0]


def test_how_long_a_party_waits_is_asked_of_such_a_study_only(tmp_path: Path) -> None:
    later = ("[session]", "[session]\nanswer_s = 30")
    assert load(wanted(tmp_path, changes=[ASKED, later]).path).session.answer_s == 30
    path = small.write(tmp_path / "study", changes=[later]).path
    [sentence] = problems(path)
    assert '[session] answer_s has no meaning with security = "semi-honest"' in sentence


def without_tables(study: Study) -> Study:
    return replace(study, parties=tuple(replace(each, data=None) for each in study.parties))


def test_how_long_a_run_may_take_follows_from_no_table_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, seen = load(wanted(tmp_path).path), list[Study]()

    def foretell(of: Study) -> Any:
        seen.append(of)
        return SimpleNamespace(time_s={"WAN": 1000.0})

    monkeypatch.setattr("runner.forecast.predict.forecast", foretell)
    assert run_deadline(study, study.parties[0].name) == 10_000
    assert seen == [without_tables(study)] != [study]


def test_a_run_may_take_so_many_times_what_plan_foretells(tmp_path: Path) -> None:
    study = without_tables(load(wanted(tmp_path).path))
    foretold = forecast(study).time_s["WAN"]
    assert 10 * foretold < 3600 == run_deadline(study, study.parties[0].name)
    short = ("[session]", "[session]\ndeadline_factor = 3\ndeadline_floor_s = 1")
    study = load(wanted(tmp_path / "short", changes=[ASKED, short]).path)
    deadline = run_deadline(study, study.parties[0].name)
    assert deadline is not None and 2 * foretold < deadline < 4 * foretold
    contributor = next(party.name for party in study.parties if not party.compute)
    assert run_deadline(study, contributor) is None
    path = small.write(tmp_path / "study", changes=[short]).path
    assert run_deadline(load(small.write(tmp_path / "plain").path), "north") is None
    assert len(found := problems(path)) == 2 and all("deadline_" in one for one in found)


def test_who_has_no_data_counts_as_if_it_had(tmp_path: Path) -> None:
    """It could share some all the same."""
    study = load(wanted(tmp_path, data={"north": None}).path)
    assert facts_of(study, 3, bytes(32)).row_cap == 4 * study.privacy.max_rows
    assert {party.name for party in study.to_check} == {party.name for party in study.parties}


def test_a_run_knows_what_custodians_count(tmp_path: Path) -> None:
    """And refuses other questions, in either mode; owners of columns keep their rows, and count what they are
    asked for."""
    for study in (load(wanted(tmp_path).path), load(small.write(tmp_path / "plain").path)):
        plan = plan_of(study)
        facts = facts_of(study, 3, bytes(32), plan)
        assert facts.counted == frozenset(map(frozenset, [*plan.one_way, *plan.candidates]))
        assert replace(facts, counted=None) == facts_of(study, 3, bytes(32))
    owned = load(split.write(tmp_path / "split").path)
    assert facts_of(owned, 2, bytes(32), plan_of(owned)).counted is None


def test_check_and_plan_say_what_holds(tmp_path: Path) -> None:
    study = load(wanted(tmp_path).path)
    said = [finding.text for finding in findings(study.path, None, None, False)]
    assert any("everybody's counts are checked on shares" in text for text in said)
    assert any("one computing party that does whatever it likes" in text for text in said)
    assert "a run of this study that is interrupted cannot be resumed" in said
    assert not study.resumes and 'security = "malicious" cannot go on' in cannot_resume(study)
    expected = forecast(study)
    text = words(study, expected)
    assert "aim on replicated (malicious)" in text and "whatever one of them does" in text
    assert (
        expected.soundness is not None
        and f"{expected.soundness['proofs']:,} batches; a deviation passes" in text
        and expected.soundness["lg_chance"]
        == round(study.descriptor.lg_chance(expected.soundness["proofs"]), 2)
    )
    plain = forecast(load(small.write(tmp_path / "plain", parties=4).path), expected.rows)
    assert expected.bytes_sent > 2 * plain.bytes_sent and expected.rounds > plain.rounds


# -- runs
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_of_processes(tmp_path: Path) -> None:
    """Over TLS, with a contributor: everybody has the same table and has settled, and the report says what
    held."""
    trial = wanted(tmp_path, count=60)
    out = tmp_path / "out"
    launch(trial.path, out)
    folders = [out / "parties" / name for name in trial.names]
    assert len({(folder / "synthetic.csv").read_bytes() for folder in folders}) == 1
    for folder in folders:
        facts = json.loads((folder / "run.json").read_text())
        assert facts["security"] == "malicious"
        assert facts["inputs"] == {"checked": list(trial.names), "left_out": []}
        proofs, lg_chance = facts["soundness"]["proofs"], facts["soundness"]["lg_chance"]
        assert (
            0 < proofs < 1000
            and -57 < lg_chance < -46.4
            and facts == json.loads((out / "run.json").read_text())
        )
    assert not list(out.rglob("state-*"))
    for entry in Ledger(tmp_path / "ledger.db").entries():
        assert entry.state == "settled" and entry.spent.rho > 0
    report = (out / "report.html").read_text()
    assert "may depart from the protocol as it likes" in report and "Semi-honest parties" not in report
    assert f"This run had at most {proofs} batches of proofs" in report


@pytest.mark.slow
def test_a_run_of_processes_on_split_columns(tmp_path: Path) -> None:
    """Two owners that compute and a third party, whose records are joined first; what `plan` says of it, and
    what the report says held."""
    trial = split.write(tmp_path / "study", count=300, changes=[ASKED, ("merge3", "auto")])
    out = tmp_path / "out"
    launch(trial.path, out)
    folders = [out / "parties" / name for name in trial.names]
    assert len({(folder / "synthetic.csv").read_bytes() for folder in folders}) == 1
    facts = json.loads((folders[0] / "run.json").read_text())
    assert facts["security"] == "malicious"
    assert facts["soundness"] == {
        "proofs": 1 << 16,
        "lg_chance": -40.42,
    }  # a bound: their number follows private sizes
    report = (out / "report.html").read_text()
    assert "may depart from the protocol as it likes" in report and "record by record" in report
    study = load(trial.path)
    text = words(study, forecast(study))
    assert "owners' columns are checked on shares" in text and "whatever one of them does" in text
    assert any("names one value in each row" in f.text for f in findings(trial.path, None, None, False))


# -- runs whose leader tells others something else
# ------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """The sentence with which such a run in memory ends, of who notices first."""
    on_one_machine = ("silence_s = 200", 'silence_s = 200\ntls = "insecure-loopback"')
    trial = wanted(tmp_path, count=60, changes=[ASKED, on_one_machine])

    def run() -> str:
        with pytest.raises(ProtocolAborted) as noticed:
            in_memory.run(trial.path, tmp_path / "out", monkeypatch)
        return noticed.value.sentence

    return run


def more(release: Release) -> Release:
    """With one more in a cell of the first counts that were opened."""
    first, *others = release.measurements
    values = first.values.copy()
    values[0] += 1
    return replace(release, measurements=(replace(first, values=values), *others))


def test_a_leader_that_reports_other_counts_is_found(
    stopped: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = synthesis.draft
    monkeypatch.setattr(answers, "draft", lambda *given: more(draft(*given)))
    assert "reports other releases than this party has authorised and opened" in stopped()


def test_a_leader_that_reports_somebody_as_left_out_is_found(
    stopped: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _Inputs.named

    @contextmanager
    def named(self: _Inputs) -> Iterator[None]:
        with plain(self):
            yield
        if self._run.collective.leads:
            self.left_out.append(CONTRIBUTOR)

    monkeypatch.setattr(_Inputs, "named", named)
    assert "reports that other parties' counts were left out than were" in stopped()


def test_a_contributor_asks_the_others_what_was_handed_out(
    stopped: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And stops before it settles its account by what the leader says alone."""
    hand_out = Collective.hand_out

    def handed(self: Collective, release: bytes) -> None:
        domain = self._study.domain
        other = more(parse(memoryview(release), domain, 1 << 20, LEADER)).to_bytes(domain)
        *others, contributor = everybody = self._others
        self._others = others
        hand_out(self, release)
        self._others = everybody  # the leader goes on as if nothing had happened, until it is stopped
        self._wire.fork("release to one").send(contributor, other)

    def received(self: Collective, size_limit: int) -> memoryview:
        name = "release to one" if self._wire.me == 3 else "release"
        return self._wire.fork(name).receive_up_to(self._leader, size_limit)

    monkeypatch.setattr(Collective, "hand_out", handed)
    monkeypatch.setattr(Collective, "receive_release", received)
    assert stopped().startswith(f"Party {LEADER} handed out different results to this party and to party")


# -- the agreement on the table
# ------------------------------------------------------------------------------------------------

FIXED = replace(RELEASE, codes=RELEASE.codes[:0], decode_seed=0)
ROWS = 50


def agreed(
    handed_out: Callable[[Release, int], Release] = lambda release, _: release,
    draft: Callable[[int], Release] = lambda _: FIXED,
    rows: int = ROWS,
    check: Callable[[Release], None] = lambda _: None,
) -> list[Any]:
    """What three that compute, of whom P1 leads, and a contributor come to: a release, or the sentence with
    which they stop.

    handed_out: what the leader gives a party in place of the release that was agreed on. draft: what it sends
    each at first.
    """
    parties = [SimpleNamespace(name=name) for name in ("north", LEADER, FOLLOWER, CONTRIBUTOR)]
    study = SimpleNamespace(domain=DOMAIN, leader=parties[1], leader_number=1, numbered=parties)
    workload = SimpleNamespace(cliques=(("a", "b"),))

    def of(wire: Any, sends: Any = None) -> Any:
        return SimpleNamespace(
            wire=sends or wire,
            study=study,
            limit=100,
            backend=BACKENDS["replicated"].secured("malicious"),
            plan=SimpleNamespace(workload=workload),
            observe=unobserved,
            name=parties[wire.me].name,
        )

    class Drafts(CheatingWire):
        """Sends each party a draft of its own."""

        def fork(self, name: str) -> Any:
            own = self._wire.fork(name)
            if name != "draft":
                return own
            return CheatingWire(own, lambda _, to, sent: sent[:8] + draft(to).to_bytes(DOMAIN))

    def party(wire: Any) -> Any:
        stream = wire.fork("release")
        try:
            if wire.me == 1:
                release = agreed_table.agree(of(wire, Drafts(wire, lambda *_: None)), FIXED, rows, check)
                for to in (0, 2, 3):
                    stream.send(to, handed_out(release, to).to_bytes(DOMAIN))
                return release
            if wire.me == 3:
                payload = stream.receive_up_to(1, 1 << 20)
                agreed_table.confirmed(of(wire), payload)
                return parse(payload, DOMAIN, 100, LEADER)
            release = agreed_table.agree(of(wire), None, 0, check)
            return agreed_table.compare(of(wire), release, stream.receive_up_to(1, 1 << 20))
        except (ProtocolAborted, PeerLost) as error:
            return error.sentence

    return MemoryNetwork(4, 3).run([party] * 4)


def other_rows(release: Release, _: int = 0) -> Release:
    return replace(release, codes=2 - release.codes % 3)


def test_all_that_compute_draw_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their releases answer side by side."""
    asked, draw = list[bool](), Model.sample

    def sample(model: Model, *given: Any, pair_by_pair: bool = False, **more: Any) -> Any:
        asked.append(pair_by_pair)
        return draw(model, *given, pair_by_pair=pair_by_pair, **more)

    monkeypatch.setattr(Model, "sample", sample)
    found = agreed()
    first = found[0]
    assert len(asked) == 3 and all(asked)
    assert first.codes.shape == (ROWS, 2) and all(
        of.to_bytes(DOMAIN) == first.to_bytes(DOMAIN) for of in found
    )
    again = agreed()[0]  # another session, another coin
    assert again.decode_seed != first.decode_seed and not np.array_equal(again.codes, first.codes)


def test_a_leader_that_hands_out_something_else_is_named() -> None:
    """Other rows; the same rows with another seed for their decoding, or with other events. The contributor
    has no word of it."""
    said = agreed(other_rows)[0]
    assert said.startswith(f"Party {LEADER} handed out another table than party north draws"), said
    for lie in (
        lambda release, _: replace(release, decode_seed=release.decode_seed ^ 1),
        lambda release, _: replace(release, selections=(*release.selections[:-1], ("a",))),
    ):
        found = agreed(lie)
        for follower in (0, 2):
            assert found[follower].startswith(f"Party {LEADER} handed out another result than"), found
        assert isinstance(found[3], str)


def test_a_leader_that_tells_a_contributor_of_another_release_is_found() -> None:
    """Its account would be settled by fewer releases than there were: it stops, and its reservation stands."""
    found = agreed(lambda release, to: other_rows(release) if to == 3 else release)
    assert found[3].startswith(
        f"Party {LEADER} handed out different results to this party and to party north"
    )


def test_there_is_no_coin_for_two_different_models() -> None:
    """What all must have fixed before is part of it; else the leader could choose a model that fits the
    random numbers."""
    found = agreed(draft=lambda to: replace(FIXED, noisy_total=6.5 + to))
    assert all("do not agree on what precedes a common coin" in said for said in found[:3]), found


def test_what_a_follower_does_not_know_of_or_is_too_large_has_none_either() -> None:
    def refuse(_: Release) -> None:
        raise ProtocolAborted("Other releases.")

    assert agreed(check=refuse)[0] == "Other releases."
    assert agreed(rows=101)[0].startswith(f"Party {LEADER} wants a table of 101 rows")
