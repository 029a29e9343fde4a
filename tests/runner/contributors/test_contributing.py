"""A contributor's ledger: charged before the file exists, settled by the signed result, never charged twice
for one study."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.bundles.bundle import Bundle, content_of, letters_of, parse
from mpc_protocols.errors import (
    BudgetRefused,
    DataRefused,
    PeerIdentity,
    StudiesDiffer,
    StudyInvalid,
    UsageError,
)
from mpc_protocols.functionality import Event
from mpc_protocols.process.canonical_json import canonical
from parties.budget.ledger import Ledger
from parties.budget.spending import Entry
from parties.inbox.store import AgreedList
from runner.__main__ import main
from runner.contributors import statement
from runner.contributors.closing import Closing
from runner.contributors.contributing import Contribution
from runner.contributors.signed_result import Result
from runner.contributors.void import declaration
from runner.party.synthesis import plan_of
from runner.study import load, private_file
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

    def refused(content: Any, kind: type[Exception]) -> None:
        if not isinstance(content, bytes):
            signatures = {name: bytes.fromhex(text) for name, text in content["signatures"].items()}
            content = statement.to_bytes("result", canonical(content["result"]), signatures)
        path.write_bytes(content)
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
    for nonsense in (b"", b"[]", b"{}", b'{"result": {}, "signatures": {}}', b"[" * 9999):
        refused(nonsense, UsageError)
    head, tail = b'{"result":' + b'"' + result["study"].encode() + b'"', b',\n"signatures":'
    for nonsense in (
        b"[" * 9999,
        b'{"north":1}}',
        b'{"north":"\\ud800"}}',
        b'{"north":"zz"}}',
        b'{"north":"00"}}',
    ):
        refused(head + tail + nonsense, UsageError)
    for unsigned in (
        b"[" * 9999,
        b'{"rho":"1e999999999"}',
        b'{"rho":1e999999999,"what":"\\ud800"}',
        b"9" * 9999,
    ):
        refused(head + unsigned + tail + b"{}}", PeerIdentity)  # before anything of it is read


@pytest.mark.parametrize("text", ["1e999999999", "0.01", "-1/2", "9" * 5000, "nan"])
def test_a_number_that_is_no_plain_rational_is_not_read_even_if_it_is_signed(world: World, text: str) -> None:
    world.contribute("c00")
    form = json.loads(signed(world, ("c00",)).read_text())["result"]
    form["events"][0]["rho"] = text
    content, path = canonical(form), world.folder / "odd.json"
    signers = {party: world.inbox(party).signer() for party in collecting.PARTIES}
    signatures = {party: key.sign(b"cosynth-result-2" + content) for party, key in signers.items()}
    path.write_bytes(statement.to_bytes("result", content, signatures))
    with pytest.raises(UsageError, match="no result that this version can read"):
        world.contribution("c00").settle(path)
    assert spent(world) == plan_of(world.study).budget.rho_cap


def test_what_a_crash_left_of_a_key_or_a_bundle_goes_when_it_is_made_again(world: World) -> None:
    places = [world.folder / "new.key", world.folder / "c00.bundle"]
    left = [world.folder / f".{place.name}.{number}.part" for number, place in enumerate(places)]
    other = world.folder / ".old.bundle.7.part"
    for part in (*left, other):
        part.write_bytes(b"half of it")
    study, private = str(world.trial.path), str(world.folder / "c00.toml")
    assert main(["contribute", study, "--party", "c00", "--make-key", str(places[0])]) == 0
    assert main(["contribute", study, "--party", "c00", "--private", private, "--out", str(places[1])]) == 0
    assert not any(part.exists() for part in left) and other.exists()


def test_contributions_to_one_study_share_its_plan(world: World) -> None:
    first = world.contribution("c00")
    second = Contribution(world.study, "c01", world.private("c01"), None, first)
    assert second.collection is first.collection
    bundle = second.leave(lambda bundle: None)
    assert bundle.header.contributor == "c01" and spent(world, "c01") == plan_of(world.study).budget.rho_cap
    with pytest.raises(ValueError, match="one study"):
        Contribution(load(world.trial.path), "c02", world.private("c02"), None, first)


def void(world: World, *parties: str) -> list[Path]:
    """These parties' words that the study is void."""
    for party in parties:
        assert main(["inbox", str(world.trial.path), "--party", party, "--void"]) == 0
    return [world.inbox(party).void_file for party in parties]


def test_a_study_that_all_three_say_is_void_gives_the_budget_back(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.deliver(world.contribute("c00"))
    files = void(world, *collecting.PARTIES)
    for party, file in zip(collecting.PARTIES, files, strict=True):
        # keys and bundles are gone, and nothing is taken in or run any more
        assert [path.name for path in file.parent.rglob("*") if path.is_file()] == [file.name]
        with pytest.raises(BudgetRefused, match="the study is void"):
            world.inbox(party).add(world.folder / "c00.bundle", datetime.now(UTC))
        closing = Closing.of(world.study, party, private_file.Private(), plan_of(world.study))
        with pytest.raises(BudgetRefused, match=f"Party {party} has declared this study void"):
            closing.record.check(b"r" * 32)
        with pytest.raises(BudgetRefused, match="void"):
            closing.record.begin(b"r" * 32)
        with pytest.raises(BudgetRefused, match="void"):
            closing.fix(AgreedList({}))
    # one that is missing, another's signature, or another study's word are not enough
    for some in (files[:2], files[:1] * 3):
        with pytest.raises(PeerIdentity, match="signature of party"):
            world.contribution("c00").settle(*some)
    altered = world.folder / "altered.json"
    altered.write_bytes(files[2].read_bytes().replace(b'"west"', b'"south"'))
    with pytest.raises(PeerIdentity, match="signature of party"):
        world.contribution("c00").settle(*files[:2], altered)
    with pytest.raises(UsageError, match="says something else"):
        world.contribution("c00").settle(files[0], signed_elsewhere(world))
    assert spent(world) == plan_of(world.study).budget.rho_cap
    again = void(world, "north")  # may be repeated
    assert again[0].read_bytes() == files[0].read_bytes()
    for _ in range(2):
        told = world.contribution("c00").settle(*files)
        assert told.void and not told.took_part and not told.rho and not spent(world)
    capsys.readouterr()
    settle = [
        "contribute",
        str(world.trial.path),
        "--party",
        "c00",
        "--private",
        str(world.folder / "c00.toml"),
    ]
    assert main([*settle, "--settle", *map(str, files)]) == 0
    assert "signed that it is void" in capsys.readouterr().out
    assert main(["inbox", str(world.trial.path), "--party", "north", "--list"]) == 0
    assert "void, holds 0 of 3" in capsys.readouterr().out
    main(["check", str(world.trial.path), "--party", "north"])
    assert "the study is void, and no run of it is possible" in capsys.readouterr().out


def signed_elsewhere(world: World) -> Path:
    """A word about another study."""
    path = world.folder / "elsewhere.json"
    path.write_bytes(statement.to_bytes("void", declaration(b"e" * 32), {}))
    return path


def test_a_party_whose_run_has_begun_to_release_declares_nothing_void(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    closing = Closing.of(world.study, "north", private_file.Private(), plan_of(world.study))
    closing.record.fix(b"l" * 32)
    closing.record.begin(b"r" * 32)
    key = world.inbox("north").signer().secret
    assert main(["inbox", str(world.trial.path), "--party", "north", "--void"]) == 50
    assert "has begun to release at party north" in capsys.readouterr().err
    assert not world.inbox("north").void_file.exists() and world.inbox("north").signer().secret == key
    closing.record.check(b"r" * 32)  # that run can go on


def test_a_list_that_is_fixed_and_of_which_nothing_was_released_can_be_void(world: World) -> None:
    closing = Closing.of(world.study, "north", private_file.Private(), plan_of(world.study))
    closing.record.fix(b"l" * 32)
    void(world, "north")
    assert closing.record.void and closing.record.fixed is None


def test_fingerprints_of_the_receivers_keys_are_shown_to_contributors(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    private = ["--party", "c00", "--private", str(world.folder / "c00.toml")]
    keys = world.collection.receivers
    assert len({key.fingerprint for key in keys.values()}) == 3
    assert (
        main(["contribute", str(world.trial.path), *private, "--out", str(world.folder / "c00.bundle")]) == 0
    )
    told = capsys.readouterr().out
    assert all(f"key of {name}: {key.fingerprint}\n" in told for name, key in keys.items())
    assert main(["check", str(world.trial.path), *private]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(f"key of {name} with the fingerprint {key.fingerprint}" in told for name, key in keys.items())


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
