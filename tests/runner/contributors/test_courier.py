"""A courier that is not trusted, without any: bytes out, bytes back, exact sums in the inboxes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from mpc_protocols.backends.bundles.bundle import file_bytes, parse
from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    PeerIdentity,
    ProtocolAborted,
    StudiesDiffer,
    StudyInvalid,
    UsageError,
)
from mpc_protocols.process.canonical_json import canonical
from parties.budget.ledger import Ledger
from runner.check.run import findings
from runner.contributors import contributing
from runner.contributors.collection import bundle_digest
from runner.contributors.courier import study_files
from runner.contributors.courier.node import Node
from runner.contributors.courier.study_files import StudyFiles
from runner.study import load
from tests.worlds.fleet import PARTIES, Fleet

SMALL = (6, 5, 4, 3)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    return Fleet(tmp_path, 4, SMALL)


def bundle(fleet: Fleet, number: int) -> bytes:
    return Node.read(fleet.settings(number)).bundle(fleet.message)


def now() -> datetime:
    return datetime.now(UTC)


def test_three_rounds_of_a_fleet_bring_exact_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who drops by is drawn, some twice, one hands over rubbish; the courier starts anew in between."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    fleet, chance, came = Fleet(tmp_path, 5, SMALL), Random(3), set[str]()
    for _ in range(3):
        deliveries = fleet.deliveries()
        for number in chance.sample(range(5), 2):
            came.add(deliveries.take(bundle(fleet, number), now()))
        with pytest.raises(ProtocolAborted):
            deliveries.take(b"rubbish", now())
        agreed = fleet.take_in()
        assert set(agreed.contributors) == came
    assert 2 < len(came) <= 5
    assert (fleet.opened(agreed) == fleet.clear(agreed.contributors)).all()
    assert fleet.opened(agreed).any()


def test_who_is_asked_again_hands_over_the_same_and_is_charged_once(fleet: Fleet) -> None:
    first = bundle(fleet, 2)
    assert bundle(fleet, 2) == first
    assert len(Ledger(fleet.folder / "ledgers" / "n0002.db").entries()) == 1
    deliveries = fleet.deliveries()
    assert deliveries.take(first, now()) == "n0002"
    with pytest.raises(BudgetRefused, match="It is by n0002, whose bundle has been passed on"):
        deliveries.take(first, now())
    fleet.take_in()
    fleet.deliveries().take(first, now())  # after a start anew
    assert fleet.take_in().contributors == ("n0002",)


def test_each_party_gets_its_own_part_only(fleet: Fleet) -> None:
    whole = bundle(fleet, 0)
    fleet.deliveries().take(whole, now())
    files = {party: fleet.arrivals(party) / "n0000.bundle" for party in PARTIES}
    held = {party: set(parse(file.read_bytes()).parts) for party, file in files.items()}
    assert held == {"north": {"a"}, "south": {"b"}, "west": set()}
    assert [path.name for path in fleet.arrivals("north").iterdir()] == ["n0000.bundle"]


def test_the_study_that_travels_is_the_study(fleet: Fleet, tmp_path: Path) -> None:
    files = StudyFiles.of(load(fleet.study))
    there = load(study_files.parse(fleet.message, files.fingerprint).write(tmp_path / "there"))
    assert bundle_digest(there) == bundle_digest(load(fleet.study))
    assert set(files.files) == {"study.toml", "contributors.txt", "receivers.json"}


def test_a_domain_in_a_file_travels_too(fleet: Fleet, tmp_path: Path) -> None:
    text = fleet.study.read_text()
    before, _, rest = text.partition("[domain.columns]")
    columns, mark, parties = rest.partition("[[party]]")
    sizes = {line.split(" = ")[0]: int(line.split(" = ")[1]) for line in columns.split("\n") if line}
    (fleet.study.parent / "public").mkdir()
    (fleet.study.parent / "public" / "domain.json").write_text(json.dumps(sizes))
    fleet.study.write_text(f'{before}[domain]\nfile = "public/domain.json"\n{mark}{parties}')
    files = StudyFiles.of(load(fleet.study))
    there = load(study_files.parse(files.to_bytes(), files.fingerprint).write(tmp_path / "there"))
    assert bundle_digest(there) == bundle_digest(load(fleet.study))


@pytest.mark.parametrize("altered", ["receivers", "more", "nothing", "deep"])
def test_another_study_than_the_confirmed_one_is_not_read_and_charges_nothing(
    fleet: Fleet, altered: str
) -> None:
    """A courier that puts in keys of its own would read the counts."""
    other = {
        "receivers": fleet.message.replace(b"seal", b"sael"),
        "more": fleet.message + b" ",
        "nothing": b"",
        "deep": b"[" * 100_000,
    }[altered]
    assert other != fleet.message
    with pytest.raises(StudiesDiffer, match="another study than the one confirmed here"):
        Node.read(fleet.settings(1)).bundle(other)
    assert not (fleet.folder / "kept").exists()
    assert not (fleet.folder / "ledgers" / "n0001.db").exists()


def test_a_confirmed_message_cannot_write_elsewhere(fleet: Fleet, tmp_path: Path) -> None:
    for name in ("../evil", "/tmp/evil", ".hidden", "a/../../b", "a//b", "a/", "..", ""):
        content = canonical({"format": "cosynth-study-files-1", "study": name, "files": {name: "x"}})
        with pytest.raises(StudiesDiffer, match="in a form that this version does not read"):
            study_files.parse(content, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    "form",
    [
        {"study": "s.toml", "files": {"other.toml": "x"}},
        {"study": "../s.toml", "files": {"s.toml": "x"}},
        {"study": 7, "files": {"s.toml": "x"}},
        {"study": "s.toml", "files": {"s.toml": 7}},
        {"study": "s.toml", "files": ["s.toml"]},
        {"study": "s.toml", "files": {"s.toml": "x", "n0001.bundle": "x"}},
        {"study": "s.toml", "files": {"s.toml": "x", "a/n0001.BUNDLE": "x"}},
        {"study": "s.toml"},
        [],
    ],
)
def test_a_confirmed_message_of_another_form_gets_the_sentence(form: object) -> None:
    content = canonical({"format": "cosynth-study-files-1", **form} if isinstance(form, dict) else form)
    for each in (content, content[:-1]):
        with pytest.raises(StudiesDiffer, match="in a form that this version does not read"):
            study_files.parse(each, hashlib.sha256(each).hexdigest())


def test_a_kept_bundle_that_expires_too_early_is_made_anew_on_the_same_reservation(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(contributing, "DAYS", 20)
        early = bundle(fleet, 2)
    with pytest.raises(ProtocolAborted, match="must last until"):
        fleet.deliveries().take(early, now())
    kept = next((fleet.folder / "kept").rglob("n0002.bundle"))
    outside = fleet.folder / "outside.toml"
    outside.write_text(f'party = "n0002"\nstudy = "{kept.parent.name}"\nkeep = "{kept.parent.parent}"\n')
    with pytest.raises(
        UsageError, match="too early for an inbox to take it, and the settings name no private"
    ):
        Node.read(outside).bundle(fleet.message)
    again = bundle(fleet, 2)
    assert fleet.deliveries().take(again, now()) == "n0002" and bundle(fleet, 2) == again
    assert len(Ledger(fleet.folder / "ledgers" / "n0002.db").entries()) == 1
    kept.write_bytes(b"rubbish")
    with pytest.raises(UsageError, match="is no bundle"):
        bundle(fleet, 2)


def test_a_study_that_says_where_data_lie_does_not_travel(fleet: Fleet) -> None:
    fleet.study.write_text(fleet.study.read_text() + 'data = "north.csv"\n')
    with pytest.raises(UsageError, match="nobody else's business"):
        StudyFiles.of(load(fleet.study))


def test_a_study_with_files_of_other_folders_does_not_travel(fleet: Fleet) -> None:
    text = fleet.study.read_text().replace('"contributors.txt"', '"../study/contributors.txt"')
    fleet.study.write_text(text)
    with pytest.raises(UsageError, match="only files from the study's folder"):
        StudyFiles.of(load(fleet.study))


def test_files_of_earlier_waves_and_registered_columns_travel_too() -> None:
    first = {"run": "first/out", "receivers": "first/receivers.json"}
    own = {"keys": "k.txt", "receivers": "r.json", "registered": "m.json", "after": first}
    wave = ["first/out/result.json", "first/out/measurements.json", "first/receivers.json"]
    assert study_files.named({"domain": {}, "contributors": own}) == ["k.txt", "r.json", "m.json", *wave]
    second = [first, {"run": "b", "receivers": "c"}]
    named = study_files.named({"domain": {}, "contributors": {**own, "after": second}})
    assert named[3:] == [*wave, "b/result.json", "b/measurements.json", "c"]


def test_rubbish_is_passed_on_to_nobody(fleet: Fleet) -> None:
    deliveries, good = fleet.deliveries(), bundle(fleet, 0)
    cells = fleet.collection.layout.cells
    damaged = bytearray(good)
    damaged[-1] ^= 1
    for content in (
        None,
        7,
        "text",
        b"",
        bytes(file_bytes(cells) + 1),
        good[:-1],
        good + b"x",
        bytes(damaged),
    ):
        with pytest.raises(CosynthError, match=r"^Its? "):
            deliveries.take(content, now())
    assert not any(list(fleet.arrivals(party).iterdir()) for party in PARTIES)
    assert deliveries.take(good, now()) == "n0000"


def test_half_a_bundle_and_a_stranger_are_passed_on_to_nobody(fleet: Fleet, tmp_path: Path) -> None:
    deliveries, good = fleet.deliveries(), parse(bundle(fleet, 0))
    with pytest.raises(ProtocolAborted, match="It lacks a part"):
        deliveries.take(good.for_receiver("south").to_bytes(), now())
    with pytest.raises(PeerIdentity, match="signature of n0000"):
        deliveries.take(replace(good, signature=bytes(64)).to_bytes(), now())
    (tmp_path / "other").mkdir()
    with pytest.raises(StudiesDiffer):
        deliveries.take(bundle(Fleet(tmp_path / "other", 2, SMALL), 0), now())


def test_a_folder_that_cannot_be_written_is_tried_again(fleet: Fleet) -> None:
    deliveries, content, west = fleet.deliveries(), bundle(fleet, 3), fleet.arrivals("west")
    west.rename(west.with_name("away"))
    with pytest.raises(UsageError, match="arrivals/west cannot be written"):
        deliveries.take(content, now())
    west.with_name("away").rename(west)
    assert deliveries.take(content, now()) == "n0003"
    assert fleet.take_in().contributors == ("n0003",)


def test_a_watched_folder_must_be_there(fleet: Fleet) -> None:
    fleet.arrivals("south").rmdir()
    with pytest.raises(UsageError, match="that party south watches is not there"):
        fleet.deliveries()


def test_a_node_without_a_private_file_hands_over_what_its_owner_has_made(fleet: Fleet) -> None:
    """Where the courier's own code runs: an account that can read neither table nor key."""
    made = bundle(fleet, 0)
    kept = next((fleet.folder / "kept").rglob("n0000.bundle"))
    settings = fleet.folder / "outside.toml"
    settings.write_text(f'party = "n0000"\nstudy = "{kept.parent.name}"\nkeep = "{kept.parent.parent}"\n')
    for file in ("n0000.csv", "n0000.key"):
        (fleet.folder / file).unlink()
    assert Node.read(settings).bundle(fleet.message) == made
    kept.unlink()
    with pytest.raises(UsageError, match="is not there, and the settings name no private file"):
        Node.read(settings).bundle(fleet.message)


def test_check_shows_the_fingerprint_that_contributors_compare(fleet: Fleet) -> None:
    told = [finding.text for finding in findings(fleet.study, None, None, False)]
    fingerprint = StudyFiles.of(load(fleet.study)).fingerprint
    assert f"a courier brings contributors this study with the fingerprint {fingerprint}" in told


def test_settings_name_what_is_wrong(fleet: Fleet) -> None:
    settings = fleet.settings(0)
    settings.write_text('party = "n0000"\nprivate = "n0000.toml"\n')
    with pytest.raises(StudyInvalid, match="study is missing: it must be the fingerprint"):
        Node.read(settings)
    settings.write_text('party = "n0000"\nprivate = "n0000.toml"\nstudy = "aa"\nkeeps = "x"\n')
    with pytest.raises(StudyInvalid, match='unknown key "keeps"'):
        Node.read(settings)
