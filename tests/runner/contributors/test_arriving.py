"""Selections while contributors arrive: a list for each round, each on the bundles that are there by then."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backends.bundles.bundle import Bundle
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import BudgetRefused, PeerIdentity
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from parties.budget.journal import read
from parties.inbox.close import Close
from parties.inbox.store import Inbox
from runner.__main__ import main
from runner.check.contributors import collection, inbox
from runner.contributors import closing
from runner.party.synthesis import plan_of
from runner.study import private_file
from runner.study.read import problems
from synth.mrf import Model
from tests.runner import in_memory
from tests.runner.processes import ROOT
from tests.worlds import collecting

IDEAL = ('backend = "replicated"', 'backend = "ideal"')
LOUD = ("epsilon = 4.0", "epsilon = 30.0")
CLOSES = "close = [{ bundles = 2 }, { bundles = 4 }, { bundles = 6 }]\n"
TABLE = collecting.TABLE.replace("close = { bundles = 2 }\n", CLOSES) + 'schedule = "arriving"\n'
ROUNDS = [["c00", "c01"], ["c02", "c03"], ["c04", "c05"]]


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> collecting.World:
    return collecting.write(tmp_path_factory.mktemp("arriving"), 6, changes=[LOUD], table=TABLE)


def arriving(
    tmp_path: Path, changes: Sequence[tuple[str, str]] = (), table: str = TABLE, own: int | None = None
) -> collecting.World:
    world = collecting.write(tmp_path, 6, changes=[LOUD, *changes], table=table, own=own)
    world.everybody(ROUNDS[0])
    return world


def small_world(tmp_path: Path) -> collecting.World:
    """Nothing delivered, and few rows."""
    return collecting.write(tmp_path, 6, count=5, changes=[LOUD], table=TABLE)


def deliver_when_looked_for(
    world: collecting.World, monkeypatch: pytest.MonkeyPatch, party: str = "north"
) -> list[int]:
    """Each look of one party that finds a round open brings the next round's bundles to all; how often it has
    looked."""
    looks, bring = [0], iter(ROUNDS[1:])

    class Clock:
        @staticmethod
        def sleep(seconds: float) -> None:
            looks[0] += 1

    own = closing.Closing.is_over

    def is_over(self: closing.Closing, bundles: int) -> bool:
        over = own(self, bundles)
        if not over and self.party == party and (more := next(bring, None)):
            world.everybody(more)
        return over

    monkeypatch.setattr(closing, "time", Clock)
    monkeypatch.setattr(closing.Closing, "is_over", is_over)
    return looks


@pytest.mark.parametrize("changes", [(IDEAL,), ()])
def test_each_round_asks_those_who_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Sequence[tuple[str, str]]
) -> None:
    """Noise of a total has a standard deviation below 4; a false alarm below 1e-9."""
    world = arriving(tmp_path, changes)
    looks = deliver_when_looked_for(world, monkeypatch)
    for facts in in_memory.run(world.trial.path, tmp_path / "out", monkeypatch).values():
        told = facts["contributors"]
        assert [each["bundles"] for each in told["rounds"]] == [2, 4, 6]
        assert len({each["list"] for each in told["rounds"]}) == 3
        assert told["list"] == told["rounds"][-1]["list"] and told["took_part"] == list(world.names)
        events = facts["privacy"]["events"]
        what = ["total", "measure", *["select", "measure", "total"] * 3]
        assert [event["what"] for event in events] == what
        assert facts["privacy"]["rho_spent"] <= facts["privacy"]["rho"]
        assert facts["privacy"]["rho_spent"] > 0.98 * facts["privacy"]["rho"]
        assert len(facts["selected"]) == 3 and abs(facts["privacy"]["noisy_total"] - 360) < 30
        assert facts["public_study"]["contributors"]["schedule"] == "arriving"
    assert looks[0] >= 2


def test_masks_of_one_round_that_were_those_of_another_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round has an oracle of its own over the same keys: what was masked alike twice would show its
    difference."""
    monkeypatch.setattr("mpc_protocols.backends.replicated.engine.Trio", lambda wire, session: Trio(wire))
    world = arriving(tmp_path)
    deliver_when_looked_for(world, monkeypatch)
    with pytest.raises(AssertionError, match="streams are begun more than once"):
        in_memory.run(world.trial.path, tmp_path / "out", monkeypatch)


def test_what_was_measured_of_few_rows_enters_as_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Almost no noise: shares of the columns of the first two contributors, and again of all; of as many rows
    as there are."""
    world = arriving(tmp_path, [IDEAL], TABLE + "again = true\n")
    deliver_when_looked_for(world, monkeypatch)
    assert main(["run", str(world.trial.path), "--out", str(tmp_path / "out")]) == 0
    told = json.loads((tmp_path / "out" / "measurements.json").read_text())
    rows = [entry["rows"] for entry in told["measurements"]]
    there = [120] * 6 + [240] + [360] * 6
    assert all(abs(have - real) < 30 for have, real in zip(rows, there, strict=True))
    model = Model.load(tmp_path / "out" / "model.npz")
    assert abs(model.total - 360) < 30
    real = world.marginal(["grade"], world.names)
    assert abs(model.marginal(("grade",)) / model.total - [count / 360 for count in real]).max() < 0.1
    events = json.loads((tmp_path / "out" / "run.json").read_text())["privacy"]["events"]
    assert [event["what"] for event in events][-2:] == ["total", "measure"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "in each of 3 rounds of arrivals (2, 4 and 6 files)" in page


def test_an_interrupted_run_goes_on_with_the_round_it_was_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops while it waits for the second round: what the first has opened is charged once, and the lists
    stay."""
    world = arriving(tmp_path, [IDEAL])
    run = ["run", str(world.trial.path), "--out", str(tmp_path / "out")]

    def interrupted(self: closing.Closing) -> closing.Closing:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(closing.Closing, "next_round", interrupted)
        assert main(run) == 130
    assert main([*run, "--replace"]) == 50
    deliver_when_looked_for(world, monkeypatch)
    assert main([*run, "--resume"]) == 0
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [each["bundles"] for each in facts["contributors"]["rounds"]] == [2, 4, 6]
    assert facts["privacy"]["rho_spent"] <= facts["privacy"]["rho"]
    assert not list((tmp_path / "inbox" / "north").glob("sum*"))
    own = world.inbox("north")
    with pytest.raises(BudgetRefused, match="collection is closed"):
        own.add(world.seal("c04"), datetime.now(UTC))
    with pytest.raises(PeerIdentity):
        own.secret()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (CLOSES, "close = { bundles = 2 }\n", "must be a list with schedule"),
        (
            "{ bundles = 4 }",
            "{ bundles = 2 }",
            "must come later from round to round, and bundles = 2 follows",
        ),
        ("{ bundles = 4 }", "{}", "must say when the collection is over"),
        ("{ bundles = 6 }", "{ bundles = 7 }", "more than the 6 contributors"),
        (
            "{ bundles = 4 }",
            "{ bundles = 5 }",
            "bundles = 6 follows bundles = 5, and fewer newcomers than min = 2",
        ),
        ("[{ bundles = 2 }", "[{ bundles = 1 }", "less than min = 2"),
        ("rounds = 3", "rounds = 4", "a selection for each of 3 closes: set [aim] rounds = 3"),
        ("rounds = 3", 'rounds = "adaptive"', "a selection for each of 3 closes"),
        ('algorithm = "aim"', 'algorithm = "mwem"', 'is for algorithm = "aim", and the study has "mwem"'),
        ('schedule = "arriving"', 'schedule = "arriving"\nagain = 3', "again must be"),
    ],
)
def test_every_mistake_gets_a_sentence(written: collecting.World, old: str, new: str, sentence: str) -> None:
    text = written.trial.path.read_text()
    assert old in text
    text = text.replace("[aim]", "[mwem]") if "mwem" in new else text
    other = written.folder / "other.toml"
    other.write_text(text.replace(old, new))
    found = problems(other)
    assert any(sentence in each and each.endswith(".") for each in found), found


def test_what_records_are_charged_is_all_of_rho(tmp_path: Path) -> None:
    for again in ("", "again = true\n"):
        world = collecting.write(tmp_path / f"x{len(again)}", 6, changes=[IDEAL], table=TABLE + again)
        plan: Any = plan_of(world.study)
        totals = 4 * plan.charges.counting(plan.total_sigma2)
        columns = 5 * (2 if again else 1)
        spent = (
            totals
            + 3 * plan.charges.selecting(plan.epsilon)
            + (3 + columns) * plan.charges.measuring(plan.sigma2)
        )
        assert 0.999999 * plan.budget.rho_cap < spent <= plan.budget.rho_cap
        assert abs(totals / plan.budget.rho_cap - Fraction(1, 20)) < Fraction(1, 1 << 30)


def test_plan_tells_the_rounds(written: collecting.World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(written.trial.path)]) == 0
    told = capsys.readouterr().out
    assert "in each of 3 rounds of arrivals how many rows there are" in told
    assert "fewer than 2 newcomers wait for a later round" in told
    assert "round 1    closes with 2 bundles; never for fewer than 2" in told and "round 3    closes" in told


def closings(world: collecting.World) -> list[closing.Closing]:
    """Of all three parties."""
    return [
        closing.Closing.of(world.study, party, private_file.Private(), world.plan)
        for party in collecting.PARTIES
    ]


def agreed_over_wires(there: list[closing.Closing]) -> None:
    def party(wire: Wire) -> None:
        there[wire.me].agree(wire, b"r" * 32)

    MemoryNetwork(3).run([party] * 3)


@pytest.mark.parametrize("agree", [agreed_over_wires, closing.in_the_clear])
def test_nobody_is_the_difference_of_two_rounds(
    tmp_path: Path, agree: Callable[[list[closing.Closing]], object]
) -> None:
    """A single newcomer, whoever has kept it away until now and everybody else since, waits for another one."""
    world = small_world(tmp_path)
    world.everybody(["c00", "c01", "c02"])
    there = closings(world)
    lists: list[tuple[str, ...]] = []
    for newcomers in ([], ["c03"], ["c04", "c05"]):
        world.everybody(newcomers)
        if lists:
            there = [each.next_round() for each in there]
        agree(there)
        assert len({each.agreed.hash for each in there}) == 1
        lists.append(there[0].agreed.contributors)
    assert lists == [("c00", "c01", "c02"), ("c00", "c01", "c02"), world.names]


def test_check_tells_which_lists_are_fixed_and_that_too_few_may_be_waited_for(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.everybody(ROUNDS[0])
    there = closings(world)
    agreed_over_wires(there)

    def told() -> str:
        return next(iter(inbox(world.study, "north", private_file.Private(), world.plan))).text

    assert "the lists of 1 of 3 rounds are fixed, the last one with 2 bundles; only their run" in told()
    for newcomers in ROUNDS[1:]:
        world.everybody(newcomers)
        there = [each.next_round() for each in there]
        agreed_over_wires(there)
    assert "the list of 6 bundles is fixed for this study; only a run on it is possible" in told()
    warned = [finding.text for finding in collection(world.study, world.plan)]
    assert any("2 newcomers at least" in each for each in warned)
    assert any("no date: if too few contributors come, the run waits without end" in each for each in warned)


def test_the_last_date_ends_every_round(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    first = closings(world)[0]
    for days, over in ((1, False), (-1, True)):
        at = datetime.now(UTC) + timedelta(days=days)
        closes = (Close(None, 2), Close(None, 4), Close(at, 6))
        shorter = Inbox(first.inbox.folder, replace(first.collection, closes=closes), "north")
        second = replace(first, inbox=shorter).next_round()
        assert second.is_over(3) is over and second.is_over(4)


def test_what_has_not_changed_is_not_verified_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each party holds four, three of them in common: they try once, and look less and less often."""
    world = small_world(tmp_path)
    world.everybody(ROUNDS[0])
    there = closings(world)
    agreed_over_wires(there)
    more = {name: world.seal(name) for name in ("c02", "c03", "c04", "c05")}
    world.deliver(more["c02"])
    for holder, name in zip(collecting.PARTIES, ("c03", "c04", "c05"), strict=True):
        world.deliver(more[name], to=[holder])
    pauses = threading.local()
    parsed: list[Path] = []

    class Enough(Exception):
        pass

    class Clock:
        @staticmethod
        def sleep(seconds: float) -> None:
            pauses.own = [*getattr(pauses, "own", []), seconds]
            if len(pauses.own) == 6:
                raise Enough

    own = Inbox._parsed

    def parse(self: Inbox, place: Path) -> Bundle:
        parsed.append(place)
        return own(self, place)

    monkeypatch.setattr(closing, "time", Clock)
    monkeypatch.setattr(Inbox, "_parsed", parse)

    def party(wire: Wire) -> list[float]:
        with pytest.raises(Enough):
            there[wire.me].next_round().agree(wire, b"r" * 32)
        return list(pauses.own)

    found = MemoryNetwork(3).run([party] * 3)
    assert found == [[1.0, 2.0, 4.0, 8.0, 15.0, 15.0]] * 3
    assert len(parsed) == 3 * 4


DYING = """
import os, sys
from pathlib import Path
import pytest
from runner.contributors.closing import Closing
from tests.runner import in_memory

patch = pytest.MonkeyPatch()
patch.setattr(Closing, "next_round", lambda closing: os._exit(9))
in_memory.run(Path(sys.argv[1]), Path(sys.argv[2]), patch)
"""


def test_parties_that_die_between_rounds_go_on_with_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first round has opened is not opened again: the journals hold each release once."""
    world = arriving(tmp_path)
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(world.trial.path), str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
    )
    assert died.returncode == 9, died.stderr
    deliver_when_looked_for(world, monkeypatch)
    described = in_memory.run(world.trial.path, tmp_path / "out", monkeypatch, resume=True)
    for name, facts in described.items():
        assert [each["bundles"] for each in facts["contributors"]["rounds"]] == [2, 4, 6]
        [journal] = (tmp_path / "out" / name).glob("journal-*")
        record = read(journal)
        assert [release.event.what for release in record.releases] == [
            event["what"] for event in facts["privacy"]["events"]
        ]
        assert record.attempts == 2 and facts["privacy"]["rho_spent"] <= facts["privacy"]["rho"]
