"""What an inbox takes in, and the one sentence that everything else gets."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from mpc_protocols.backends.bundles.bundle import Bundle, Header, parse, seal_bundle
from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    DataRefused,
    OutOfResources,
    PeerIdentity,
    ProtocolAborted,
    StudiesDiffer,
    UsageError,
)
from parties.inbox.arrivals import Arrivals, waiting
from parties.inbox.files import write_private
from parties.inbox.store import AgreedList
from runner.__main__ import main
from tests.worlds import collecting
from tests.worlds.collecting import PARTIES, World

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Nothing is delivered here, but to folders of a test's own."""
    return collecting.write(tmp_path_factory.mktemp("collecting"), 4)


@pytest.fixture
def fresh(tmp_path: Path) -> World:
    return collecting.write(tmp_path, 4)


def key_of(world: World, name: str) -> Ed25519PrivateKey:
    key = load_pem_private_key((world.folder / f"{name}.key").read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return key


def made(world: World, name: str, change: Callable[[Header], Header] = lambda header: header) -> Bundle:
    """A signed bundle of zeros by a contributor who may choose its header."""
    collection = world.collection
    first, second = collection.receivers_of(name)
    key = key_of(world, name)
    header = Header(
        collection.study,
        collection.layout.hash,
        collection.layout.cells,
        name,
        hashlib.sha256(key.public_key().public_bytes_raw()).digest(),
        secrets.token_bytes(32),
        (first, second),
        NOW.replace(microsecond=0),
        NOW.replace(microsecond=0) + timedelta(days=40),
    )
    header = change(header)
    to = [collection.receivers[receiver] for receiver in (first, second)]
    return seal_bundle(header, np.zeros(header.cells, np.int64), to, key.sign)


def refusal(world: World, content: bytes, party: str = "north", now: datetime = NOW) -> CosynthError:
    """What this party says of a file. Nothing of it stays."""
    file = world.folder / "arrived.bundle"
    file.write_bytes(content)
    with pytest.raises(CosynthError) as caught:
        world.inbox(party).add(file, now)
    assert caught.value.sentence.startswith(f"The bundle {file} is refused: ")
    assert caught.value.sentence.endswith(".") and caught.value.sentence.count(". ") == 0
    assert not world.inbox(party).accepted(NOW)
    return caught.value


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        (lambda h: replace(h, study=b"t" * 32), StudiesDiffer, "another study"),
        (lambda h: replace(h, layout=b"t" * 32), StudiesDiffer, "other marginals"),
        (lambda h: replace(h, cells=h.cells - 1), StudiesDiffer, "other marginals"),
        (lambda h: replace(h, contributor="mallory"), PeerIdentity, "does not list"),
        (lambda h: replace(h, contributor="c02"), PeerIdentity, "another key"),
        (lambda h: replace(h, key=b"k" * 32), PeerIdentity, "another key"),
        (lambda h: replace(h, receivers=h.receivers[::-1]), StudiesDiffer, "other parties"),
        (lambda h: replace(h, runs=2), BudgetRefused, "2 runs"),
        (lambda h: replace(h, runs=0), BudgetRefused, "0 runs"),
        (lambda h: replace(h, expires=NOW.replace(microsecond=0)), ProtocolAborted, "expired"),
        (lambda h: replace(h, expires=h.created + timedelta(days=29)), ProtocolAborted, "must last until"),
        (
            lambda h: replace(
                h, created=h.created - timedelta(days=99), expires=h.created + timedelta(days=29)
            ),
            ProtocolAborted,
            "must last until",
        ),
        (lambda h: replace(h, created=h.created.replace(year=9000, day=1)), ProtocolAborted, "future"),
        (lambda h: replace(h, created=h.created.replace(year=9999, day=1)), ProtocolAborted, "header"),
        (lambda h: replace(h, expires=h.created.replace(year=9001, day=1)), ProtocolAborted, "header"),
        (lambda h: replace(h, contributor="m\N{CYRILLIC SMALL LETTER A}l"), PeerIdentity, r"by 'm\u0430l'"),
        (
            lambda h: replace(
                h, created=h.created + timedelta(days=2), expires=h.expires + timedelta(days=9)
            ),
            ProtocolAborted,
            "in the future",
        ),
    ],
)
def test_a_bundle_that_is_not_for_this_collection_is_refused(
    world: World, change: Callable[[Header], Header], kind: type[CosynthError], word: str
) -> None:
    error = refusal(world, made(world, "c00", change).to_bytes())
    assert type(error) is kind and word in error.sentence


def test_a_bundle_signed_by_somebody_else_is_refused(world: World) -> None:
    bundle = made(world, "c00")
    forged = replace(bundle, signature=key_of(world, "c01").sign(bundle.signed))
    assert "does not bear the signature of c00" in refusal(world, forged.to_bytes()).sentence


def test_parts_that_are_swapped_moved_or_sealed_to_another_key_are_refused(world: World) -> None:
    bundle, other = made(world, "c00"), made(world, "c00")
    swapped = replace(bundle, parts={"a": bundle.parts["b"], "b": bundle.parts["a"]})
    moved = replace(bundle, parts={**bundle.parts, "a": other.parts["a"]})
    for bad in (swapped, moved):
        assert "damaged, or belongs to another bundle" in refusal(world, bad.to_bytes()).sentence
    # the contributor itself seals the parts to the wrong parties, and signs that
    collection = world.collection
    wrong = [collection.receivers[name] for name in ("south", "north")]
    sealed = seal_bundle(
        bundle.header, np.zeros(bundle.header.cells, np.int64), wrong, key_of(world, "c00").sign
    )
    for party in ("north", "south"):
        assert "not sealed to the key" in refusal(world, sealed.to_bytes(), party).sentence


def test_a_damaged_or_foreign_file_is_refused(world: World, tmp_path: Path) -> None:
    content = made(world, "c00").to_bytes()
    for bad in (b"", b"PK\x03\x04", content[:-1], content + b"\0", content + bytes(100_000), content[100:]):
        assert isinstance(refusal(world, bad), ProtocolAborted)
    with pytest.raises(UsageError, match="cannot be read"):
        world.inbox("north").add(tmp_path / "nothing.bundle", NOW)


@pytest.mark.parametrize("start", range(0, 2400, 300))
def test_flipped_bytes_are_refused_by_whoever_receives_them(world: World, start: int) -> None:
    """Every 23rd byte here; every byte in the bundle's own test."""
    content = made(world, "c00").to_bytes()
    for place in range(start, min(start + 300, len(content)), 23):
        refusal(world, content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])


def test_a_file_for_another_party_is_refused_and_the_third_needs_no_part(fresh: World) -> None:
    bundle = made(fresh, "c00")  # parts for north and south
    error = refusal(fresh, bundle.for_receiver("south").to_bytes())
    assert "lacks part a, which is for party north" in error.sentence
    refusal(fresh, bundle.for_receiver("west").to_bytes(), "south")
    for party in PARTIES:
        file = fresh.folder / f"{party}.bundle"
        file.write_bytes(bundle.for_receiver(party).to_bytes())
        assert fresh.inbox(party).add(file, NOW) == ("accepted", "c00")
    assert len({frozenset(fresh.inbox(party).accepted(NOW)) for party in PARTIES}) == 1


def test_a_contributor_has_one_bundle_and_the_first_counts(fresh: World) -> None:
    first, second = (fresh.folder / name for name in ("first.bundle", "second.bundle"))
    first.write_bytes(made(fresh, "c00").to_bytes())
    second.write_bytes(made(fresh, "c00").to_bytes())
    inbox = fresh.inbox("north")
    assert inbox.add(first, NOW)[0] == "accepted" and inbox.add(first, NOW)[0] == "known"
    with pytest.raises(BudgetRefused, match="another bundle of c00"):
        inbox.add(second, NOW)
    assert list(inbox.accepted(NOW)) == [parse(first.read_bytes()).name]


def test_what_is_kept_is_sealed_and_its_owners_alone(fresh: World) -> None:
    fresh.deliver(fresh.contribute("c00"), to=["north"])
    kept = fresh.folder / "inbox" / "north"
    files = [path for path in kept.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"receiver.key", "c00.bundle"}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in (kept, kept / "bundles"))


def test_a_bundle_that_has_expired_meanwhile_is_not_offered(fresh: World) -> None:
    fresh.deliver(fresh.contribute("c00"), to=["north"])
    assert len(fresh.inbox("north").accepted(NOW)) == 1
    assert not fresh.inbox("north").accepted(NOW + timedelta(days=91))


def test_a_bundle_that_another_study_took_in_is_named(fresh: World) -> None:
    fresh.deliver(fresh.seal("c00"), to=["north"])
    fresh.trial.path.write_text(fresh.trial.path.read_text().replace("epsilon = 4.0", "epsilon = 5.0"))
    changed = replace(fresh, trial=fresh.trial)  # read anew
    with pytest.raises(
        DataRefused, match=r"c00\.bundle in the inbox cannot be used any more \(It was made for another study"
    ):
        changed.inbox("north").accepted(NOW)


def test_a_key_is_made_once_and_must_be_the_one_of_the_study(fresh: World) -> None:
    from parties.inbox.store import make_key

    folder = fresh.folder / "inbox" / "north"
    with pytest.raises(UsageError, match="is there already"):
        make_key(folder)
    file = fresh.contribute("c00")
    (folder / "receiver.key").unlink()
    with pytest.raises(PeerIdentity, match="has no key"):
        fresh.inbox("north").add(file, NOW)
    make_key(folder)
    with pytest.raises(PeerIdentity, match="not the one that the study lists"):
        fresh.inbox("north").add(file, NOW)


def test_closing_adds_up_deletes_the_key_and_takes_no_more(fresh: World) -> None:
    fresh.everybody(["c00", "c01", "c02"])
    inboxes = [fresh.inbox(party) for party in PARTIES]
    agreed = AgreedList(inboxes[0].accepted(NOW))
    for inbox in inboxes:
        inbox.keep(agreed)
    total = sum((inbox.sum(agreed) for inbox in inboxes), np.zeros(1, np.uint32))
    layout = inboxes[0].collection.layout
    for clique, place in layout.places():
        assert total[place].tolist() == fresh.marginal(clique, ["c00", "c01", "c02"])
    late = fresh.contribute("c03")
    for inbox in inboxes:
        assert not inbox.signer().opens
        assert np.array_equal(inbox.sum(agreed), inbox.sum(agreed))  # from its file: the key is gone
        with pytest.raises(PeerIdentity, match="deleted when the collection was closed"):
            inbox.secret()
        with pytest.raises(BudgetRefused, match="collection is closed"):
            inbox.add(late, NOW)
        with pytest.raises(DataRefused, match="another list"):
            inbox.sum(AgreedList({name: agreed.entries[name] for name in list(agreed.entries)[:2]}))
        inbox.finish()
        assert {path.name for path in inbox.folder.rglob("*") if path.is_file()} == {"agreed.json"}


def test_a_list_with_a_bundle_that_is_gone_cannot_be_added_up(fresh: World) -> None:
    fresh.everybody(["c00", "c01"])
    inbox = fresh.inbox("north")
    agreed = AgreedList(inbox.accepted(NOW))
    place = fresh.folder / "inbox" / "north" / "bundles" / "c01.bundle"
    content = place.read_bytes()
    place.unlink()
    with pytest.raises(DataRefused, match="bundle of c01 is in the agreed list"):
        inbox.sum(agreed)
    place.write_bytes(content[:-5])
    with pytest.raises(DataRefused, match="damaged"):
        inbox.sum(agreed)
    assert inbox.signer().opens  # the key stays until the sum is on disk


def test_after_the_closing_date_nothing_is_taken(tmp_path: Path) -> None:
    table = collecting.TABLE.replace("{ bundles = 2 }", "{ at = 2027-01-01T01:00:00+01:00 }")
    world = collecting.write(tmp_path, 2, table=table)
    inbox, file = world.inbox("north"), world.contribute("c00")
    end = datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(BudgetRefused, match="has closed"):
        inbox.add(file, end)
    assert inbox.add(file, min(NOW, end - timedelta(seconds=1)))[0] == "accepted"


def watched(world: World, folder: Path, party: str = "north") -> tuple[Arrivals, list[str]]:
    """A watch, and what it tells."""
    folder.mkdir(exist_ok=True)
    told = list[str]()
    return Arrivals(world.inbox(party), folder, told.append), told


def test_a_watched_folder_is_emptied_and_refusals_stay_under_another_name(
    fresh: World, tmp_path: Path
) -> None:
    folder = tmp_path / "arrivals"
    folder.mkdir()
    fresh.contribute("c00", folder / "one.bundle")
    (folder / "two.bundle").write_bytes(b"nonsense")
    (folder / "note.txt").write_text("not a bundle")
    arrivals, lines = watched(fresh, folder)
    arrivals.sweep(NOW)
    assert not lines  # nobody knows yet whether they are whole
    arrivals.sweep(NOW)
    told = "\n".join(lines)
    assert "accepted, of c00" in told and "two.bundle is refused: it is not a bundle." in told
    assert {path.name for path in folder.iterdir()} == {"two.bundle.refused", "note.txt"}
    assert not waiting(folder) and not waiting(tmp_path / "nowhere")


@pytest.mark.timeout(60)
def test_nothing_that_stands_in_a_watched_folder_ends_the_watch_or_is_waited_for(
    fresh: World, tmp_path: Path
) -> None:
    folder = tmp_path / "arrivals"
    arrivals, told = watched(fresh, folder)
    secret = tmp_path / "secret"
    fresh.contribute("c01", secret)
    os.mkfifo(folder / "pipe.bundle")
    (folder / "link.bundle").symlink_to(secret)
    (folder / "folder.bundle").mkdir()
    bad = os.fsencode(folder) + b"/\xff\n.bundle"
    with open(bad, "wb") as file:
        file.write(b"nonsense")
    long = "x" * (255 - len(".bundle")) + ".bundle"
    (folder / long).write_bytes(b"nonsense")
    fresh.contribute("c00", folder / "zz.bundle")
    for _ in range(4):
        arrivals.sweep(NOW)
    assert len(told) == 6 and sum("is refused" in line for line in told) == 5  # each is told once
    assert any("accepted, of c00" in line for line in told)
    assert any("symbolic link" in line for line in told) and secret.exists()
    assert any("\\udcff\\x0a" in line for line in told) and all(line.isascii() for line in told)
    assert not waiting(folder) and len(list(folder.iterdir())) == 5


def test_an_upload_is_taken_when_it_has_stopped_growing(fresh: World, tmp_path: Path) -> None:
    folder = tmp_path / "arrivals"
    arrivals, told = watched(fresh, folder)
    content = fresh.contribute("c00").read_bytes()
    file = folder / "c00.bundle"
    for part in range(1, 5):
        file.write_bytes(content[: part * len(content) // 4])
        arrivals.sweep(NOW)
    assert not told and file.exists()
    arrivals.sweep(NOW)
    assert told == [f"{file}: accepted, of c00"] and not file.exists()


def test_a_fault_of_the_own_inbox_leaves_what_has_arrived(
    fresh: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "arrivals"
    arrivals, told = watched(fresh, folder)
    fresh.contribute("c00", folder / "c00.bundle")

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("parties.inbox.store.write_private", full)
        for _ in range(2):
            arrivals.sweep(NOW)
    assert "cannot be written" in told[0] and (folder / "c00.bundle").exists()
    arrivals.sweep(NOW)
    assert told[1:] == [f"{folder / 'c00.bundle'}: accepted, of c00"]
    fresh.contribute("c01", folder / "c01.bundle")
    (fresh.folder / "inbox" / "north" / "receiver.key").unlink()
    arrivals.sweep(NOW)
    with pytest.raises(PeerIdentity, match="has no key"):
        arrivals.sweep(NOW)
    assert (folder / "c01.bundle").exists()


def test_a_full_disk_is_no_budget_that_is_refused(fresh: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it end a run that has its results."""

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    inbox = fresh.inbox("north")
    monkeypatch.setattr("parties.inbox.store.write_private", full)
    with pytest.raises(OutOfResources, match=r"the disk is full.*so nothing is computed with it"):
        inbox.propose(AgreedList({}))
    assert inbox.finish() == []


def test_a_file_that_nobody_has_foreseen_is_refused_and_the_watch_goes_on(
    fresh: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "arrivals"
    arrivals, told = watched(fresh, folder)
    (folder / "a.bundle").write_bytes(b"odd")
    fresh.contribute("c00", folder / "c00.bundle")

    def overflows(content: bytes) -> Bundle:
        if content == b"odd":
            raise OverflowError("what was in it")
        return parse(content)

    monkeypatch.setattr("parties.inbox.store.parse", overflows)
    for _ in range(2):
        arrivals.sweep(NOW)
    refused = f"The bundle {folder / 'a.bundle'} is refused: it cannot be examined (OverflowError)."
    assert told == [refused, f"{folder / 'c00.bundle'}: accepted, of c00"]
    assert [path.name for path in folder.iterdir()] == ["a.bundle.refused"]


def test_a_damaged_list_of_the_own_inbox_sets_no_bundle_aside(fresh: World, tmp_path: Path) -> None:
    fresh.deliver(fresh.contribute("c00"), to=["north"])
    folder, inbox = tmp_path / "arrivals", fresh.inbox("north")
    arrivals, told = watched(fresh, folder)
    second = fresh.contribute("c00", folder / "c00.bundle")
    (inbox.folder / "proposed.json").write_bytes(b"[" * 9999)
    for _ in range(2):
        arrivals.sweep(NOW)
    assert "proposed.json cannot be read" in told[0] and second.exists()
    (inbox.folder / "agreed.json").write_bytes(b"{}")
    with pytest.raises(DataRefused, match=r"agreed\.json cannot be read"):
        arrivals.sweep(NOW)
    with pytest.raises(UsageError, match=r"agreed\.json cannot be read"):
        inbox.add(second, NOW)
    assert second.exists()


@pytest.mark.parametrize(
    "left",
    ["agreed.json", "proposed.json", "sum.bin", "begun", "finished", "void-south.json", "bundles/c.bundle"],
)
def test_the_folder_of_an_earlier_study_gets_no_new_key(tmp_path: Path, left: str) -> None:
    from parties.inbox.store import make_key

    file = tmp_path / left
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"")
    with pytest.raises(UsageError, match=f"{left} is of an earlier study"):
        make_key(tmp_path)
    assert not (tmp_path / "receiver.key").exists()
    file.unlink()
    make_key(tmp_path)


def test_a_pipe_that_is_named_is_refused_at_once(fresh: World) -> None:
    pipe = fresh.folder / "pipe.bundle"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="a pipe or a device"):
        fresh.inbox("north").add(pipe, NOW)


def test_a_bundle_lasts_until_a_month_after_the_closing(tmp_path: Path) -> None:
    table = collecting.TABLE.replace("{ bundles = 2 }", "{ at = 2999-01-01T00:00:00Z }")
    world = collecting.write(tmp_path, 2, table=table)
    error = refusal(world, made(world, "c00").to_bytes())
    assert "must last until 2999-01-31 00:00:00 UTC" in error.sentence
    assert world.inbox("north").add(world.contribute("c00"), NOW)[0] == "accepted"


def test_an_expired_bundle_gives_way_to_another_of_its_contributor(fresh: World) -> None:
    inbox, later = fresh.inbox("north"), NOW + timedelta(days=41)
    first, second = (fresh.folder / name for name in ("first.bundle", "second.bundle"))
    old = made(fresh, "c00")
    first.write_bytes(old.to_bytes())
    inbox.add(first, NOW)
    renewed = made(fresh, "c00", lambda h: replace(h, expires=h.expires + timedelta(days=60)))
    second.write_bytes(renewed.to_bytes())
    with pytest.raises(BudgetRefused, match="another bundle of c00"):
        inbox.add(second, NOW + timedelta(days=40, hours=-1))
    # a list that stands on disk, and may be fixed at another party, needs the bundle for its sum
    inbox.propose(AgreedList({old.name: "c00"}))
    with pytest.raises(BudgetRefused, match="another bundle of c00"):
        inbox.add(second, later)
    inbox.propose(AgreedList({}))
    assert inbox.add(second, later) == ("accepted", "c00")
    assert list(inbox.accepted(later)) == [renewed.name]


def test_what_a_crash_left_of_keys_and_sums_goes_at_the_next_start(fresh: World) -> None:
    inbox = fresh.inbox("north")
    fresh.deliver(fresh.contribute("c00"), to=["north"])
    left = [
        inbox.folder / ".receiver.key.77.part",
        inbox.folder / ".sum.bin.ab.part",
        inbox.folder / "bundles" / ".c1.b.part",
    ]
    for part in left:
        part.write_bytes(b"half a key")
    before = {path for path in inbox.folder.rglob("*") if path.is_file()} - set(left)
    holder = os.open(left[1], os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)  # a process that is alive is writing it
    assert main(["inbox", str(fresh.trial.path), "--party", "north", "--list"]) == 0
    assert [part.exists() for part in left] == [False, True, False]
    os.close(holder)
    assert inbox.tidy() == [] and not left[1].exists()
    assert {path for path in inbox.folder.rglob("*") if path.is_file()} == before


def test_files_that_cannot_be_deleted_are_named_and_tried_again(
    fresh: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox, unlink = fresh.inbox("north"), Path.unlink
    fresh.deliver(fresh.contribute("c00"), to=["north"])

    def kept(path: Path, missing_ok: bool = False) -> None:
        if path.name == "receiver.key":
            raise PermissionError(1, "not permitted")
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", kept)
        assert inbox.finish() == [inbox.folder / "receiver.key"]
        assert main(["inbox", str(fresh.trial.path), "--party", "north", "--list"]) == 0
        assert (
            f"{inbox.folder / 'receiver.key'} should be gone and cannot be deleted" in capsys.readouterr().err
        )
    assert inbox.tidy() == [] and not [path for path in inbox.folder.rglob("*") if path.is_file()]


def test_a_writer_whose_file_was_taken_for_a_leftover_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, stolen = fcntl.flock, list[Path]()

    def late(descriptor: int, how: int) -> None:
        if not stolen:  # between making and locking it
            stolen.extend(tmp_path.glob(".*.part"))
            stolen[0].unlink()
        lock(descriptor, how)

    monkeypatch.setattr("fcntl.flock", late)
    write_private(tmp_path / "key", b"content")
    assert stolen and (tmp_path / "key").read_bytes() == b"content" and len(list(tmp_path.iterdir())) == 1


def test_base64_of_a_key_is_what_the_study_lists(world: World) -> None:
    listed = (world.folder / "contributors.txt").read_text()
    public = key_of(world, "c03").public_key().public_bytes_raw()
    assert f"c03 ed25519:{base64.b64encode(public).decode()}\n" in listed
