"""Whole runs over bundles: the counts that are opened, the closing rule, one list and one run for a study, on both backends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, PeerIdentity, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from parties.budget.collected_lists import CollectedList
from parties.budget.ledger import Ledger
from parties.inbox.store import AgreedList
from runner.__main__ import main
from runner.contributors import statement
from runner.contributors.closing import Closing
from runner.contributors.result import exchange
from runner.contributors.signed_result import Result
from runner.contributors.void import declaration
from runner.party.synthesis import plan_of
from runner.study import private_file
from tests.runner import in_memory
from tests.runner.processes import ROOT
from tests.worlds import collecting
from tests.worlds.collecting import PARTIES, World

IDEAL = ('backend = "replicated"', 'backend = "ideal"')
DYING = """
import os, sys
from pathlib import Path
import pytest
from tests.runner import in_memory

patch = pytest.MonkeyPatch()
patch.setattr("synth.run.Run.share", lambda *arguments: os._exit(9))
in_memory.run(Path(sys.argv[1]), Path(sys.argv[2]), patch)
"""


LAST_WRITES_NOTHING = """
import sys
from pathlib import Path
import pytest
from runner.party.resume.attempt import Attempt
from tests.runner import in_memory

patch = pytest.MonkeyPatch()
finish = Attempt.finish

def dies(attempt, run):
    if attempt._name == "north":
        raise RuntimeError("north dies when its results are in place")
    finish(attempt, run)

patch.setattr(Attempt, "finish", dies)
in_memory.run(Path(sys.argv[1]), Path(sys.argv[2]), patch)
"""


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def closing_of(world: World, party: str = "north") -> Closing:
    return Closing.of(world.study, party, private_file.Private(), plan_of(world.study))


def run(
    world: World, monkeypatch: pytest.MonkeyPatch, out: str = "out", resume: bool = False
) -> dict[str, dict[str, Any]]:
    with monkeypatch.context() as patched:
        return in_memory.run(world.trial.path, world.folder / out, patched, resume)


def totals(described: dict[str, Any]) -> float:
    return float(described["privacy"]["noisy_total"])


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
@pytest.mark.parametrize(("contributors", "own"), [(2, None), (3, 40), (7, None)])
def test_a_run_counts_contributors_and_parties_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contributors: int,
    own: int | None,
    changes: Sequence[tuple[str, str]],
) -> None:
    """Noise of the total: standard deviation below 4; a false alarm below 1e-9."""
    world = collecting.write(tmp_path, contributors, own=own, count=50, changes=changes)
    world.everybody()
    for described in run(world, monkeypatch).values():
        rows = 50 * contributors + 3 * (own or 0)
        assert abs(totals(described) - rows) < 30
        assert described["contributors"]["took_part"] == list(world.names)
        assert described["contributors"]["absent"] == []
        assert described["public_study"]["contributors"]["min"] == 2
    told = [json.loads(file.read_bytes())["result"] for file in (tmp_path / "out").rglob("result.json")]
    assert told and all(each["custodians"] == ([] if own is None else sorted(PARTIES)) for each in told)
    known = [entry.reservation.waves for entry in Ledger(tmp_path / "ledger.db").entries()]
    assert known == [(told[0]["study"],)] * (0 if own is None else 3)


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
def test_who_is_not_at_all_three_inboxes_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    world = collecting.write(tmp_path, 5, changes=changes)
    world.everybody(["c00", "c01", "c02"])
    world.deliver(world.contribute("c03"), to=["north", "west"])
    for described in run(world, monkeypatch).values():
        assert described["contributors"]["took_part"] == ["c00", "c01", "c02"]
        assert described["contributors"]["absent"] == ["c03", "c04"]
        assert described["contributors"]["enrolled"] == 5
        assert abs(totals(described) - 180) < 30


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
def test_who_hands_each_party_another_bundle_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    """By its own key: all three parties have taken in a bundle of its, and their parts would not add up to counts."""
    world = collecting.write(tmp_path, 4, changes=changes)
    world.everybody(["c00", "c01", "c02"])
    for party in PARTIES:
        world.deliver(world.seal("c03"), to=[party])
        assert "c03" in world.inbox(party).accepted(datetime.now(UTC)).values()
    for described in run(world, monkeypatch).values():
        assert described["contributors"]["took_part"] == ["c00", "c01", "c02"]
        assert abs(totals(described) - 180) < 30


def refused(world: World, monkeypatch: pytest.MonkeyPatch, out: str) -> CosynthError:
    with pytest.raises(CosynthError) as caught:
        run(world, monkeypatch, out)
    return caught.value


def nothing_is_fixed(world: World) -> bool:
    closings = [closing_of(world, party) for party in PARTIES]
    return all(closing.record.fixed is None and closing.inbox.agreed() is None for closing in closings)


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
def test_below_the_minimum_nothing_is_charged_and_nothing_is_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    table = collecting.TABLE.replace("min = 2", "min = 3").replace(
        "{ bundles = 2 }", "{ at = 2020-01-01T00:00:00Z }"
    )
    world = collecting.write(tmp_path, 4, own=40, changes=changes, table=table)
    before = datetime(2019, 12, 31, tzinfo=UTC)
    files = [world.seal(name, before) for name in ("c00", "c01")]
    for party in PARTIES:
        for file in files:
            world.inbox(party).add(file, before)
    for attempt in ("one", "two"):
        error = refused(world, monkeypatch, attempt)
        assert isinstance(error, ProtocolAborted) and "min = 3" in error.sentence
        assert nothing_is_fixed(world)
        assert not [entry for entry in Ledger().entries() if entry.spent.rho]


def test_a_collection_that_is_open_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = collecting.TABLE.replace("{ bundles = 2 }", "{ at = 2999-01-01T00:00:00Z, bundles = 3 }")
    world = collecting.write(tmp_path, 4, table=table)
    world.everybody(["c00", "c01"])
    error = refused(world, monkeypatch, "early")
    assert isinstance(error, ProtocolAborted) and "open until it closes" in error.sentence
    assert nothing_is_fixed(world)
    world.everybody(["c02"])
    assert abs(totals(run(world, monkeypatch)["north"]) - 180) < 30


def test_a_study_runs_once_and_on_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = collecting.write(tmp_path, 4)
    world.everybody()
    run(world, monkeypatch)
    error = refused(world, monkeypatch, "again")
    assert isinstance(error, BudgetRefused) and "for one run" in error.sentence


def _crash(monkeypatch: pytest.MonkeyPatch, world: World, where: str, out: str) -> None:
    """A run that dies at this function of every party's."""

    def dies(*arguments: object, **more: object) -> None:
        raise RuntimeError("The process dies here.")

    with monkeypatch.context() as patched:
        patched.setattr(where, dies)
        with pytest.raises(RuntimeError, match="dies here"):
            in_memory.run(world.trial.path, world.folder / out, patched)


def test_a_crash_behind_the_closing_leaves_the_same_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 4)
    world.everybody()
    _crash(monkeypatch, world, "runner.party.process.Collective.assemble", "crashed")
    fixed = {closing_of(world, party).record.fixed for party in PARTIES}
    assert len(fixed) == 1 and None not in fixed
    # nothing was released: the same list may be run anew, by a run with another id
    described = run(world, monkeypatch)["south"]
    assert described["contributors"]["list"] == next(iter(fixed)).hex()  # type: ignore[union-attr]
    assert abs(totals(described) - 240) < 30


def test_a_run_that_has_begun_to_release_is_resumed_and_not_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 4, own=40)
    world.everybody()
    # the columns are measured; a process of its own, whose locks end with it
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(world.trial.path), str(world.folder / "out")],
        cwd=ROOT,
        capture_output=True,
    )
    assert died.returncode == 9, died.stderr.decode()
    for party in PARTIES:
        inbox = world.inbox(party)
        assert not inbox.signer().opens and (inbox.folder / "sum.bin").exists()
    assert "for one run" in refused(world, monkeypatch, "anew").sentence
    described = run(world, monkeypatch, "out", resume=True)
    for content in described.values():
        assert abs(totals(content) - 360) < 30 and content["contributors"]["took_part"] == list(world.names)
        # what was opened before the crash was charged once
        assert content["privacy"]["rho_spent"] <= content["privacy"]["rho"]
    for entry in Ledger().entries():
        assert entry.spent.rho <= plan_of(world.study).budget.rho_cap
    assert (world.folder / "out" / "west" / "result.json").exists()


def test_parties_that_have_finished_give_their_signatures_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 3)
    world.everybody()
    died = subprocess.run(
        [sys.executable, "-c", LAST_WRITES_NOTHING, str(world.trial.path), str(world.folder / "out")],
        cwd=ROOT,
        capture_output=True,
    )
    assert b"north dies" in died.stderr
    results = {party: world.folder / "out" / party / "result.json" for party in PARTIES}
    content = results["south"].read_bytes()
    results["north"].unlink()
    assert (world.folder / "inbox" / "north" / "receiver.key").exists()
    assert not (world.folder / "inbox" / "south" / "receiver.key").exists()
    described = run(world, monkeypatch, "out", resume=True)
    assert set(described) == {"north"} and results["north"].read_bytes() == content
    assert not (world.folder / "inbox" / "north" / "receiver.key").exists()


def test_a_list_with_one_bundle_fewer_is_refused_at_every_party(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lists that differ by one contributor would open what is nearly that one's table."""
    world = collecting.write(tmp_path, 4)
    world.everybody()
    _crash(monkeypatch, world, "runner.party.process.Collective.assemble", "crashed")
    fewer = AgreedList(dict(list(closing_of(world).inbox.accepted(datetime.now(UTC)).items())[:3]))
    # south drops one: its inbox and its ledger are its own to change
    closing_of(world, "south").inbox.keep(fewer)
    with Ledger().transaction() as database:
        database.execute("UPDATE collections SET list = ? WHERE party = 'south'", (fewer.hash.hex(),))
    closings = {party: closing_of(world, party) for party in PARTIES}
    for party in ("north", "west"):
        with pytest.raises(BudgetRefused, match=f"Party {party} has fixed another list"):
            closings[party].fix(fewer)
    assert isinstance(refused(world, monkeypatch, "out"), BudgetRefused)


def test_a_fixed_list_that_is_gone_from_the_inbox_stops_its_party(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 3)
    world.everybody()
    _crash(monkeypatch, world, "runner.party.process.Collective.assemble", "crashed")
    for party in PARTIES:
        (world.folder / "inbox" / party / "agreed.json").unlink()
    assert isinstance(refused(world, monkeypatch, "out"), DataRefused)


LATE = timedelta(days=100)
"""After it the bundle of one contributor has expired, those of the others have not."""


def _interrupted(monkeypatch: pytest.MonkeyPatch, world: World, fixed_at: str) -> None:
    """A closing that only one party has completed, of bundles of which one expires before the others; then time passes."""
    fix = CollectedList.fix

    def dies(record: CollectedList, agreed: bytes) -> None:
        if record.party != fixed_at:
            raise RuntimeError("The process dies here.")
        fix(record, agreed)

    world.everybody(["c00", "c01"])
    world.deliver(world.contribute("c02"))
    with monkeypatch.context() as patched:
        patched.setattr(CollectedList, "fix", dies)
        with pytest.raises(RuntimeError, match="dies here"):
            in_memory.run(world.trial.path, world.folder / "interrupted", patched)
    monkeypatch.setattr("runner.contributors.closing._now", lambda: datetime.now(UTC) + LATE)
    assert [closing_of(world, party).record.fixed is not None for party in PARTIES] == [
        party == fixed_at for party in PARTIES
    ]
    assert len(world.inbox("south").accepted(datetime.now(UTC) + LATE)) == 2


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
def test_an_interrupted_closing_is_gone_on_with_on_the_list_that_one_party_has_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    """Also when a bundle of it, whose contributor chose when it ends, has expired at the others meanwhile."""
    world = collecting.write(tmp_path, 3, changes=changes)
    _interrupted(monkeypatch, world, "north")
    described = next(iter(run(world, monkeypatch).values()))
    assert described["contributors"]["took_part"] == ["c00", "c01", "c02"]
    assert len({closing_of(world, party).record.fixed for party in PARTIES}) == 1


def test_a_party_without_the_list_that_another_has_fixed_fixes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 3)
    _interrupted(monkeypatch, world, "north")
    (world.folder / "inbox" / "south" / "proposed.json").unlink()
    assert isinstance(refused(world, monkeypatch, "again"), DataRefused)
    assert [closing_of(world, party).record.fixed is None for party in PARTIES] == [False, True, True]


def test_a_party_for_which_the_collection_is_open_keeps_the_others_from_fixing_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks differ: west's is behind the closing."""
    world = collecting.write(tmp_path, 3)
    world.everybody()
    propose = Closing.propose

    def behind(closing: Closing, agreed: AgreedList) -> None:
        if closing.party == "west":
            raise ProtocolAborted("The collection is open.")
        propose(closing, agreed)

    with monkeypatch.context() as patched:
        patched.setattr(Closing, "propose", behind)
        assert "collection is open" in refused(world, patched, "early").sentence
    assert nothing_is_fixed(world)
    run(world, monkeypatch)


def test_a_study_below_its_minimum_is_declared_void_and_contributors_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 4)
    world.deliver(world.contribute("c00"))
    files = []
    for party in PARTIES:
        assert main(["inbox", str(world.trial.path), "--party", party, "--void"]) == 0
        files.append(world.inbox(party).void_file)
    error = refused(world, monkeypatch, "out")
    assert isinstance(error, BudgetRefused) and "declared this study void" in error.sentence
    assert world.contribution("c00").settle(*files).void
    [entry] = Ledger(world.folder / "ledgers" / "c00.db").entries()
    assert entry.state == "settled" and not entry.spent.rho


def test_after_a_run_nothing_is_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = collecting.write(tmp_path, 3)
    world.everybody()
    run(world, monkeypatch)
    assert main(["inbox", str(world.trial.path), "--party", "north", "--void"]) != 0
    assert not world.inbox("north").void_file.exists()


def other_ledger(world: World) -> list[str]:
    """A private file of north's whose ledger has never seen a run."""
    file = world.folder / "other.toml"
    file.write_text('[ledger]\nfile = "other.db"\n')
    return ["inbox", str(world.trial.path), "--party", "north", "--private", str(file), "--void"]


def test_nothing_is_void_by_a_ledger_that_does_not_know_the_list_or_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world, agreed, run_ = collecting.write(tmp_path, 2), AgreedList({}), b"r" * 32
    closing, void = closing_of(world), other_ledger(world)
    key = closing.inbox.signer().secret

    def refuses() -> bool:
        code, told = main(void), capsys.readouterr().err
        return code == 50 and "--private" in told and closing.inbox.signer().secret == key

    def removed(*names: str) -> None:
        for name in names:
            (closing.inbox.folder / name).unlink()

    closing.fix(agreed)
    assert refuses()
    assert closing.inbox.sum(agreed).size
    removed("agreed.json")
    key = closing.inbox.signer().secret  # the half that signs
    assert refuses()
    removed("sum.bin")
    closing.begin(run_)
    closing.begin(run_)
    assert refuses()
    CollectedList(Ledger(world.folder / "other.db"), closing.collection.study, "north").fix(agreed.hash)
    assert refuses()  # a copy that was made before the run
    assert main(void[:4] + void[-1:]) == 50 and "--resume" in capsys.readouterr().err
    removed("begun")
    assert main(void) == 0


@pytest.mark.parametrize("changes", [(), (IDEAL,)])
def test_no_run_begins_where_an_inbox_holds_the_word_that_the_study_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    world = collecting.write(tmp_path, 2, changes=changes)
    world.everybody()
    assert main(other_ledger(world)) == 0
    assert not closing_of(world).record.void
    error = refused(world, monkeypatch, "out")
    assert isinstance(error, BudgetRefused) and "void-north.json" in error.sentence


def test_an_inbox_that_has_seen_another_run_refuses_this_one(tmp_path: Path) -> None:
    world = collecting.write(tmp_path, 2)
    closing = closing_of(world)
    closing.inbox.begin(b"r" * 32)
    closing.fix(AgreedList({}))
    closing.check(b"r" * 32)
    for refuse in (closing.check, closing.begin):
        with pytest.raises(BudgetRefused, match="another one has begun to release"):
            refuse(b"s" * 32)


def test_the_word_about_another_study_is_not_taken_for_this_one_s(tmp_path: Path) -> None:
    world = collecting.write(tmp_path, 2)
    inbox = world.inbox("north")
    inbox.write_void(statement.to_bytes("void", declaration(b"e" * 32), {}))
    command = ["inbox", str(world.trial.path), "--party", "north", "--void"]
    assert main(command) == 22 and inbox.secret() and not closing_of(world).record.void
    inbox.void_file.unlink()
    assert main(command) == 0
    # what a crash behind the word has left, and nothing on disk reminds of, goes at the next start
    (inbox.folder / "sum.bin").write_bytes(b"sum")
    assert inbox.tidy() == [] and not inbox.added_up


def test_an_earlier_signature_is_given_again_only_if_it_is_of_this_result(tmp_path: Path) -> None:
    world = collecting.write(tmp_path, 2)
    closings = [closing_of(world, party) for party in PARTIES]
    study = closings[0].collection.study.hex()
    stale, told = (Result(study, run * 32, "ab" * 32, "cd" * 32, (), ()) for run in ("01", "02"))
    path = tmp_path / "result.json"

    def exchanged() -> list[dict[str, bytes]]:
        return MemoryNetwork(3, 3).run([lambda wire: exchange(wire, closings[wire.me], told, path)] * 3)

    for earlier in (
        stale.to_bytes({each.party: each.inbox.signer().sign(stale.signed) for each in closings}),
        b"nonsense",
    ):
        path.write_bytes(earlier)
        first, *others = exchanged()
        assert others == [first] * 2
    path.write_bytes(told.to_bytes(first))
    for each in closings:
        (each.inbox.folder / "receiver.key").unlink()
    assert exchanged() == [first] * 3
    path.write_bytes(b"nonsense")
    with pytest.raises(PeerIdentity, match="restore it from a copy"):
        exchanged()


def test_a_list_is_proposed_only_with_its_bundles_on_disk(tmp_path: Path) -> None:
    world = collecting.write(tmp_path, 2)
    world.everybody()
    closing = closing_of(world)
    agreed = AgreedList(closing.held())
    (closing.inbox.folder / "bundles" / "c01.bundle").unlink()
    with pytest.raises(DataRefused, match="bundle of c01"):
        closing.propose(agreed)
    assert closing.inbox.proposed() is None


def test_a_run_that_cannot_delete_its_keys_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = collecting.write(tmp_path, 3)
    world.everybody()
    unlink = Path.unlink

    def kept(path: Path, missing_ok: bool = False) -> None:
        if path.name == "receiver.key":
            raise PermissionError(1, "not permitted")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", kept)
    run(world, monkeypatch)
    told = [
        json.loads(line)
        for line in (world.folder / "out" / "south" / "events.jsonl").read_text().splitlines()
    ]
    [line] = [line for line in told if line["event"] == "not_deleted"]
    assert line["files"] == [
        "receiver.key"
    ]  # events are passed on: where the folder lies is for the private log


def test_the_result_is_signed_by_all_and_settles_every_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = collecting.write(tmp_path, 4)
    world.deliver(*[world.contribute(name) for name in ("c00", "c01", "c02")])
    world.contribute("c03")  # never delivered
    described = run(world, monkeypatch)
    files = [world.folder / "out" / party / "result.json" for party in PARTIES]
    [content] = {file.read_bytes() for file in files}
    told, path = json.loads(content)["result"]["events"], files[0]
    events = described["north"]["privacy"]["events"]
    assert [float(Fraction(event["rho"])) for event in told] == [event["rho"] for event in events]
    for name in world.names:
        settled = world.contribution(name).settle(path)
        [entry] = Ledger(world.folder / "ledgers" / f"{name}.db").entries()
        assert settled.took_part == (name != "c03") and entry.state == "settled"
        assert float(entry.spent.rho) == pytest.approx(
            described["north"]["privacy"]["rho_spent"] * (name != "c03")
        )
    for party in PARTIES:
        assert {path.name for path in (world.folder / "inbox" / party).rglob("*") if path.is_file()} == {
            "agreed.json",
            "begun",
        }


@pytest.mark.parametrize("algorithm", ["mwem", "mst", "mosaic", "privmrf"])
def test_every_horizontal_algorithm_runs_on_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """Levels and larger cliques that a run asks for later are sums of what the bundles hold."""
    changes = [('algorithm = "aim"', f'algorithm = "{algorithm}"'), ("[aim]\nrounds = 3\n", "")]
    world = collecting.write(tmp_path, 3, count=300, changes=changes)
    world.everybody()
    described = run(world, monkeypatch)
    assert len(described["north"]["selected"]) > 0
    assert abs(totals(described["north"]) - 900) < 200


@pytest.mark.parametrize("contributors", [100])
def test_three_processes_run_on_a_hundred_bundles(
    tmp_path: Path, contributors: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Noise of the total: standard deviation below 4; a false alarm below 1e-9."""
    table = collecting.TABLE.replace("bundles = 2", f"bundles = {contributors}")
    world = collecting.write(tmp_path / "study", contributors, count=30, table=table)
    world.everybody()
    out = tmp_path / "out"
    assert main(["run", str(world.trial.path), "--out", str(out)]) == 0, capfd.readouterr().err
    described = json.loads((out / "run.json").read_text())
    assert described["contributors"]["took_part"] == list(world.names)
    assert abs(totals(described) - 30 * contributors) < 30
    assert len({(out / "parties" / party / "result.json").read_bytes() for party in PARTIES}) == 1
    assert (out / "result.json").exists()
