"""A contributor's ledger: charged before the file exists, settled by the signed result, never charged twice for one study."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.bundles.bundle import Bundle, content_of, letters_of, parse
from mpc_protocols.errors import (
    BudgetRefused,
    DataRefused,
    PeerIdentity,
    StudiesDiffer,
    StudyInvalid,
    UsageError,
)
from mpc_protocols.functionality import Event
from parties.budget.ledger import Ledger
from parties.budget.spending import Entry
from parties.inbox.store import AgreedList
from runner.__main__ import main
from runner.contributors.closing import Closing
from runner.contributors.result import Result
from runner.party.synthesis import plan_of
from runner.study import private_file
from tests.runner import small
from tests.worlds import collecting
from tests.worlds.collecting import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    return collecting.write(tmp_path, 3)


def entries(world: World, name: str = "c00") -> list[Entry]:
    return Ledger(world.folder / "ledgers" / f"{name}.db").entries()


def spent(world: World, name: str = "c00") -> Fraction:
    return sum((entry.spent.rho for entry in entries(world, name)), Fraction(0))


EVENTS = (
    Event("measure", Fraction(1, 100), Fraction(0), {}),
    Event("select", Fraction(1, 200), Fraction(0), {}),
)


def signed(world: World, took_part: tuple[str, ...], events: tuple[Event, ...] = EVENTS) -> Path:
    """A result that the three parties have signed."""
    plan = plan_of(world.study)
    closings = [Closing.of(world.study, party, private_file.Private(), plan) for party in collecting.PARTIES]
    agreed = AgreedList({bytes([at]) * 32: name for at, name in enumerate(took_part)})
    result = Result(
        closings[0].collection.study.hex(),
        "ab" * 32,
        agreed.hash.hex(),
        "cd" * 32,
        agreed.contributors,
        events,
    )
    path = world.folder / "result.json"
    path.write_bytes(
        result.to_bytes({each.party: each.inbox.signer().sign(result.signed) for each in closings})
    )
    return path


def test_a_bundle_holds_the_tables_counts_for_two_of_the_parties(world: World) -> None:
    for name, receivers in (
        ("c00", ("north", "south")),
        ("c01", ("south", "west")),
        ("c02", ("west", "north")),
    ):
        bundle = parse(world.contribute(name).read_bytes())
        header = bundle.header
        assert header.receivers == receivers and header.contributor == name
        total = np.zeros(header.cells, np.uint32)
        for receiver in receivers:
            for letter in letters_of(header, receiver):
                total += content_of(header, letter, bundle.opened(letter, world.inbox(receiver).secret()))
        for clique, place in world.contribution(name).collection.layout.places():
            own = small.Trial(world.trial.path, (), {name: world.rows[name]}, {})
            assert total[place].tolist() == own.marginal(clique)


def test_the_budget_is_reserved_before_the_file_exists(world: World) -> None:
    def killed(bundle: Bundle) -> None:
        [entry] = entries(world)
        assert entry.state == "open" and entry.spent.rho == plan_of(world.study).budget.rho_cap
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.contribution("c00").leave(killed)
    [entry] = entries(world)  # dead, and charged in full
    assert entry.state == "open" and spent(world) == plan_of(world.study).budget.rho_cap
    world.contribute("c00")  # the file that was lost, made again: charged once
    assert len(entries(world)) == 1 and spent(world) == plan_of(world.study).budget.rho_cap


def test_a_cap_without_room_leaves_no_file(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    private = world.folder / "c00.toml"
    private.write_text(private.read_text() + "cap_epsilon = 1.0\ncap_delta = 1e-6\n")
    out = world.folder / "c00.bundle"
    assert (
        main(
            [
                "contribute",
                str(world.trial.path),
                "--party",
                "c00",
                "--private",
                str(private),
                "--out",
                str(out),
            ]
        )
        == 50
    )
    assert "the cap is 1" in capsys.readouterr().err
    assert not out.exists() and not spent(world)


def test_a_table_that_does_not_fit_reserves_nothing_and_is_on_record(world: World) -> None:
    rows = [dict(world.rows["c00"][0], work="Astronaut")]
    small.write_csv(world.folder / "c00.csv", rows)
    with pytest.raises(DataRefused):
        world.contribute("c00")
    assert not entries(world)
    [refusal] = Ledger(world.folder / "ledgers" / "c00.db").refusals()
    assert refusal.code == 30


def test_the_signed_result_replaces_the_reservation(world: World) -> None:
    for name in ("c00", "c01"):
        world.contribute(name)
    path = signed(world, ("c00", "c02"))
    for _ in range(2):  # the second time changes nothing
        told = world.contribution("c00").settle(path)
        assert told.took_part and told.rho == 0.015
        assert spent(world, "c00") == Fraction(3, 200)
        told = world.contribution("c01").settle(path)
        assert not told.took_part and not told.rho and not spent(world, "c01")
    with pytest.raises(UsageError, match="knows of no bundle of c02"):
        world.contribution("c02").settle(path)
    with pytest.raises(BudgetRefused, match="has ended"):
        world.contribute("c00")


def test_a_result_that_is_not_signed_by_all_three_settles_nothing(world: World) -> None:
    world.contribute("c00")
    path = signed(world, ("c00",))
    good = json.loads(path.read_text())

    def refused(content: object, kind: type[Exception]) -> None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(kind):
            world.contribution("c00").settle(path)
        assert spent(world) == plan_of(world.study).budget.rho_cap

    for party in collecting.PARTIES:
        others = {name: of for name, of in good["signatures"].items() if name != party}
        refused({**good, "signatures": others}, PeerIdentity)
        refused({**good, "signatures": {**others, party: "00" * 64}}, PeerIdentity)
    result = good["result"]
    changes: list[dict[str, object]] = [
        {"events": result["events"][:1]},
        {"contributors": []},
        {"run": "ef" * 32},
        {"model": "ef" * 32},
        {"list": "ef" * 32},
    ]
    for change in changes:
        refused({**good, "result": {**result, **change}}, PeerIdentity)
    refused({**good, "result": {**result, "study": "ef" * 32}}, StudiesDiffer)
    for nonsense in ("", "[]", "{}", '{"result": {}, "signatures": {}}', "[" * 9999):
        refused(nonsense, UsageError)


def test_events_beyond_the_reservation_are_not_believed(world: World) -> None:
    world.contribute("c00")
    path = signed(world, ("c00",), (Event("measure", Fraction(10), Fraction(0), {}),))
    with pytest.raises(BudgetRefused, match="exceed what this run reserved"):
        world.contribution("c00").settle(path)
    assert spent(world) == plan_of(world.study).budget.rho_cap


def test_who_is_no_contributor_has_another_key_or_no_data_is_told_so(world: World) -> None:
    with pytest.raises(UsageError, match="not a contributor"):
        world.contribution("north") if (world.folder / "north.toml").write_text("") is not None else None
    private = world.folder / "c00.toml"
    text = private.read_text()
    for change, kind, word in (
        (('key = "c00.key"', 'key = "c01.key"'), PeerIdentity, "not the one that the study lists"),
        (('key = "c00.key"', ""), PeerIdentity, "has no key"),
        (('key = "c00.key"', 'key = "c00.csv"'), PeerIdentity, "not an Ed25519 key"),
        (('data = "c00.csv"', ""), StudyInvalid, "has no data"),
    ):
        private.write_text(text.replace(*change))
        with pytest.raises(kind, match=word):
            world.contribution("c00")


def test_the_command_writes_one_file_or_one_for_each_party(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str, name: str = "c00") -> int:
        private = str(world.folder / f"{name}.toml")
        return main(["contribute", str(world.trial.path), "--party", name, "--private", private, *arguments])

    out = world.folder / "c00.bundle"
    assert command("--out", str(out)) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert "sealed to north and south" in capsys.readouterr().out
    assert command("--out", str(out)) == 2 and "is there already" in capsys.readouterr().err
    assert command("--out", str(world.folder / "none" / "c00.bundle")) == 2
    assert command("--out", str(out), "--replace") == 0
    assert command("--settle", str(out), "--split") == 2
    assert command("--out", str(world.folder / "c01.bundle"), "--split", name="c01") == 0
    files = [world.folder / f"c01.{party}.bundle" for party in collecting.PARTIES]
    assert [tuple(parse(file.read_bytes()).parts) for file in files] == [(), ("a",), ("b",)]
    for party, file in zip(collecting.PARTIES, files, strict=True):
        arguments = ["inbox", str(world.trial.path), "--party", party]
        assert main([*arguments, "--add", str(file)]) == 0
        assert main([*arguments, "--add", str(file), str(out)]) == 0
        assert main([*arguments, "--list"]) == 0
        assert "open, holds 2 of 3 contributors' bundles" in capsys.readouterr().out
    assert main(["inbox", str(world.trial.path), "--party", "north", "--add", str(files[1])]) == 0
    assert main(["inbox", str(world.trial.path), "--party", "east", "--list"]) == 2
    assert main(["inbox", str(world.trial.path), "--party", "north", "--make-key"]) == 2
    key = world.folder / "new.key"
    assert main(["contribute", "unused.toml", "--party", "clinic", "--make-key", str(key)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("clinic ed25519:")
    assert main(["contribute", "unused.toml", "--party", "clinic", "--make-key", str(key)]) == 2
    assert main(["contribute", "unused.toml", "--party", "../clinic", "--make-key", str(key)]) == 2
