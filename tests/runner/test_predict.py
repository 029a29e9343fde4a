"""Predictions by both owners of a trained model: real processes over TLS, both halves on one machine, and
what is refused."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.in_memory.memory_wire import run_parties
from mpc_protocols.wire import Wire
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from parties.certificates import make_all
from runner.party.prediction import Part, People, Records, TrainedModel
from runner.results.finished_run import columns_of
from runner.results.training import write_training
from runner.study import DataLocation, load
from runner.study.private_file import LedgerSettings, Private
from synth.research.florist.halves import ACTIVE, CALIBRATION, PASSIVE, ActiveModel, PassiveModel, archive
from tests.runner import trained
from tests.runner.in_memory import SessionInMemory
from tests.runner.processes import End, Program, run

SIZES = {"age": 6, "work": 4, "region": 5}
CUT = 8
SESSION, OTHER = "5e" * 32, "5f" * 32


@pytest.fixture(autouse=True)
def with_torch() -> None:
    """A study of a training is read only where PyTorch is, though no prediction loads it."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")


@dataclass(frozen=True)
class World:
    """A study, its owners' directories with a half each, as a run leaves them, and certificates."""

    root: Path
    study: Path
    active: Mapping[str, np.ndarray]

    @property
    def asked(self) -> Path:
        return self.root / "asked.csv"

    def book(self, file: str) -> None:
        """The run as it stands in north's ledger, one party of a run on one machine."""
        none = Fraction(0)
        notion = Notion(ProtectedUnit(), "replace")
        reservation = Reservation(
            "trained/north", SESSION, "trained", "00", 2.0, 1e-6, notion, none, none, ("south", "west")
        )
        booked = Ledger(self.root / file).reserve(reservation)
        booked.settle()
        booked.close()

    def put(self, run: str) -> None:
        """South's half, of this run."""
        head = {"half": "active", "run": run, "label": "ill", "cut": CUT}
        (self.root / "parties" / "south" / ACTIVE).write_bytes(archive(head, self.active))

    def ask(self, people: Sequence[str], name: str = "asked.csv") -> Path:
        """A list of people."""
        path = self.root / name
        path.write_text("note,person\n" + "".join(f"x,{person}\n" for person in people))
        return path

    def private(self, name: str, more: str = "") -> Path:
        """The private file of a party."""
        files = "".join(
            f'{key} = "certs/{file}"\n'
            for key, file in (("ca", "ca.crt"), ("cert", f"{name}.crt"), ("key", f"{name}.key"))
        )
        path = self.root / f"{name}.toml"
        path.write_text(f'{files}data = "{name}.csv"\n' + (f'[ledger]\nfile = "{name}.db"\n{more}'))
        return path

    def start(self, name: str, *more: object, people: Path | None = None, private: str = "") -> Program:
        """One owner's command."""
        return Program(
            *("predict", self.root / "parties" / name, self.study, "--party", name),
            *("--private", self.private(name, private), "--people", people or self.asked, *more),
            ledger=self.root / "ledger.db",
            scratch=self.root / f"scratch-{name}",
        )

    def both(self, **private: str) -> dict[str, End]:
        """Both owners, south with --out."""
        programs = {
            "north": self.start("north", private=private.get("north", "")),
            "south": self.start("south", "--out", self.root / "found.csv"),
        }
        return {name: program.end() for name, program in programs.items()}

    def expected(self, people: Sequence[str]) -> list[float]:
        """The network written out."""
        half = {owner: self.root / "parties" / owner for owner in ("north", "south")}
        left = PassiveModel.read(lambda name: (half["north"] / name).read_bytes())
        right = ActiveModel.read(lambda name: (half["south"] / name).read_bytes())
        with (self.root / "north.csv").open() as file:
            rows = {row["person"]: [int(row[name]) for name in SIZES] for row in csv.DictReader(file)}
        codes = np.array([rows[person] for person in people])
        return [float(one) for one in right.probabilities(left.embed(codes))]


@pytest.fixture
def world(tmp_path: Path) -> World:
    study = trained.write(tmp_path)
    rng = np.random.default_rng(2)

    def layer(inputs: int, outputs: int) -> list[np.ndarray]:
        return [
            rng.normal(size=(outputs, inputs)).astype(np.float32),
            rng.normal(size=outputs).astype(np.float32),
        ]

    passive = {
        f"columns.{place}.weight": rng.normal(size=(size, 4)).astype(np.float32)
        for place, size in enumerate(SIZES.values())
    }
    shapes = {"layers.0": (12, 7), "layers.2": (7, CUT)}
    for name, (inputs, outputs) in shapes.items():
        passive[f"{name}.weight"], passive[f"{name}.bias"] = layer(inputs, outputs)
    active = {}
    for name, (inputs, outputs) in {"0": (CUT, 5), "2": (5, 1)}.items():
        active[f"{name}.weight"], active[f"{name}.bias"] = layer(inputs, outputs)
        active[f"{name}.weight"] /= 10
    facts = {
        "study": "trained",
        "algorithm": "florist",
        "columns": columns_of(load(study).domain),
        "session": SESSION,
        "model": {"owners": {"active": "south", "passive": "north"}},
        "parties": [],
    }
    contents = {
        "north": {
            PASSIVE: archive(
                {"half": "passive", "run": SESSION, "columns": list(SIZES.items()), "cut": CUT}, passive
            )
        },
        "south": {CALIBRATION: json.dumps({"probability": {"slope": 0.9, "offset": 0.05}}).encode()},
    }
    for owner, files in contents.items():
        folder = tmp_path / "parties" / owner
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(facts))
        for name, content in files.items():
            (folder / name).write_bytes(content)
    (tmp_path / "run.json").write_text(json.dumps(facts))
    world = World(tmp_path, study, active)
    world.put(SESSION)
    return world


def certify(world: World) -> None:
    make_all(world.root / "certs", list(trained.PARTIES))


def differing(ends: Iterable[End], sentence: str) -> bool:
    """Whether who saw it first says so, 22, and the other hears of it, 40, or sees it as well."""
    codes = sorted(end.code for end in ends)
    return codes in ([22, 22], [22, 40]) and any(sentence in end.complaint for end in ends)


def test_two_owners_predict_over_the_session(world: World) -> None:
    """The order of a list, and how it writes a person, is its owner's own."""
    certify(world)
    people = [f"p{number}" for number in range(239, 0, -3)]
    world.ask(people)
    other = world.ask([f" P{person[1:]} " for person in reversed(people)], "theirs.csv")
    north, south = world.start("north", people=other), world.start("south", "--out", world.root / "found.csv")
    ends = {"north": north.end(), "south": south.end()}
    assert {end.code for end in ends.values()} == {0}, ends
    assert "embeddings of 80 people were sent to south" in ends["north"].output
    assert "80 probabilities in" in ends["south"].output
    path = world.root / "found.csv"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open() as file:
        found = list(csv.DictReader(file))
    assert set(found[0]) == {"person", "probability"} and {row["person"] for row in found} == set(people)
    expected = world.expected([row["person"] for row in found])
    assert np.allclose([float(row["probability"]) for row in found], expected, atol=1e-5)
    assert len({row["probability"] for row in found}) > 40
    [entry] = Ledger(world.root / "north.db").entries()
    assert entry.state == "settled" and entry.spent.rho == 0 and entry.claimless
    assert entry.reservation.counterparties == ("south",)
    assert not (world.root / "south.db").exists()


def test_both_halves_on_one_machine_predict_the_same(world: World) -> None:
    people = ["p7", "p3", "p11"]
    world.book("ledger.db")
    end = run(
        *("predict", world.root, world.study, "--people", world.ask(people)),
        ledger=world.root / "ledger.db",
        scratch=world.root / "scratch",
    )
    assert end.code == 0, end
    found = list(csv.DictReader(end.output.splitlines()))
    assert {row["person"] for row in found} == set(people)
    expected = world.expected([row["person"] for row in found])
    assert np.allclose([float(row["probability"]) for row in found], expected, atol=1e-5)
    [trained_by, entry] = Ledger(world.root / "ledger.db").entries()
    assert trained_by.reservation.run == SESSION and not trained_by.claimless
    assert entry.reservation.dataset == "trained/north" and entry.claimless


def test_the_account_of_the_training_is_charged_or_none(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(world.root / "ledger.db"))
    world.book("north.db")
    ask = ["predict", world.root, world.study, "--people", world.ask(["p1"])]
    assert tell(*ask) == 2
    sentence = capsys.readouterr().err
    assert "has no record of this run for trained/north" in sentence
    assert "--private north=FILE" in sentence
    own = world.private("north")
    assert tell(*ask, "--private", f"north={own}") == 0
    assert [entry.claimless for entry in Ledger(world.root / "north.db").entries()] == [False, True]
    assert not Ledger(world.root / "ledger.db").entries()
    assert tell(*ask, "--private", f"south={own}") == 2


def tell(*given: object) -> int:
    """The command in this process."""
    from runner.commands.cli import main

    return main([str(each) for each in given])


def test_probabilities_are_not_put_where_a_file_is(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is anything charged for them."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(world.root / "ledger.db"))
    world.book("ledger.db")
    people, out = world.ask(["p1"]), world.root / "out.csv"
    kept = people.read_bytes()
    (world.root / "link.csv").symlink_to(out)
    for place, sentence in (
        (people, "is there already"),
        (world.root / "link.csv", "is there already"),
        (world.root / "none" / "out.csv", "is no folder to write to"),
    ):
        assert tell("predict", world.root, world.study, "--people", people, "--out", place) == 2
        assert f"--out {place}" in (told := capsys.readouterr().err) and sentence in told
    assert people.read_bytes() == kept and not out.exists()
    assert len(Ledger(world.root / "ledger.db").entries()) == 1
    earlier = os.umask(0)
    try:
        assert tell("predict", world.root, world.study, "--people", people, "--out", out) == 0
    finally:
        os.umask(earlier)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600 and out.read_text().startswith("person,probability\n")
    out.write_text("of yesterday")
    out.chmod(0o644)
    assert tell("predict", world.root, world.study, "--people", people, "--out", out, "--replace") == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600 and out.read_text().startswith("person,probability\n")


class Told(SessionInMemory):
    """Notes what had happened when the others could first be told why this party stops."""

    def __init__(self, wire: Wire, facts: Mapping[str, Mapping[str, object]], ledger: Path) -> None:
        super().__init__(wire, facts)
        self._ledger, self.seen = ledger, list[tuple[int, bool, bool]]()

    def all_assembled(self) -> None:
        traffic = self._wire.traffic()
        recorded = any(entry.claimless for entry in Ledger(self._ledger).entries())
        self.seen.append((traffic.bytes_sent, traffic.bytes_received > 0, recorded))


def test_once_data_leaves_nobody_is_told_that_nothing_was_sent(world: World) -> None:
    model = TrainedModel.find(world.root, world.study)
    people = People.read(world.ask([f"p{number}" for number in range(5)]), model.study)
    own = Private(ledger=LedgerSettings(world.root / "north.db"))
    data = DataLocation(path=world.root / "north.csv")
    same = {name: {"people": people.digest, "model": SESSION} for name in trained.PARTIES}

    def part(name: str) -> Part:
        return Part(model, world.root / "parties" / name, people, name, own, None, data)

    def north(wire: Wire) -> list[tuple[int, bool, bool]]:
        told = Told(wire, same, world.root / "north.db")
        records = Records(model, own, world.root / "parties" / "north", data)
        records.find(people)
        part("north")._send(told, records)  # type: ignore[arg-type]
        return told.seen

    def south(wire: Wire) -> list[tuple[int, bool, bool]]:
        told = Told(wire, same, world.root / "north.db")
        part("south")._receive(told, model.active_half(world.root / "parties" / "south"))  # type: ignore[arg-type]
        return told.seen

    sent, received = run_parties([north, south], 2)
    assert sent == [(0, False, True)] and received == [(0, True, True)]


def test_somebody_who_is_not_held_makes_the_owner_refuse_and_nothing_is_sent(world: World) -> None:
    certify(world)
    world.ask(["p1", "p290"])  # p290 is south's alone
    ends = world.both()
    assert ends["north"].code == 30 and "does not hold a record of everybody" in ends["north"].complaint
    assert ends["south"].code == 40 and "p290" not in ends["south"].complaint + ends["north"].complaint
    assert not (world.root / "found.csv").exists() and not (world.root / "north.db").exists()


def test_other_records_can_be_named(world: World) -> None:
    new = world.root / "new.csv"
    new.write_text("person,age,work,region\nq1,0,1,2\nq2,5,3,4\n")
    world.book("ledger.db")
    end = run(
        *("predict", world.root, world.study, "--people", world.ask(["q2", "q1"]), "--data", new),
        ledger=world.root / "ledger.db",
        scratch=world.root / "scratch",
    )
    assert end.code == 0 and end.output.count("\n") == 3, end


def test_lists_of_other_people_are_not_answered(world: World) -> None:
    certify(world)
    world.ask(["p1", "p2"])
    programs = world.start("north", people=world.ask(["p1", "p3"], "other.csv")), world.start("south")
    ends = [program.end() for program in programs]
    assert differing(ends, "has the list of other people than party"), ends
    assert not (world.root / "north.db").exists()


def test_a_half_of_another_run_is_not_answered(world: World) -> None:
    certify(world)
    world.ask(["p1"])
    facts = world.root / "parties" / "south" / "run.json"
    facts.write_text(facts.read_text().replace(SESSION, OTHER))
    world.put(OTHER)
    ends = world.both()
    assert differing(ends.values(), "has the half of the model of another run than party"), ends


def test_a_half_is_of_the_run_that_its_directory_tells_of(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.put(OTHER)
    for more in ((), ("--party", "south", "--private", world.private("south"))):
        certify(world)
        where = world.root / "parties" / "south" if more else world.root
        assert tell("predict", where, world.study, "--people", world.ask(["p1"]), *more) == 22
        assert "holds half of the model of another run than its run.json tells of" in capsys.readouterr().err


def test_run_json_stands_only_for_halves_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step is the last one before a crash; an earlier run's half is kept until all that takes its
    place is written."""
    monkeypatch.setattr("runner.results.training.render", lambda _: None)
    own = {PASSIVE: b"new", "calibration.json": b"new"}
    (tmp_path / PASSIVE).write_bytes(b"earlier")
    steps, replace = list[str](), os.replace

    def noted(part: Path, final: Path) -> None:
        if not steps:
            assert (tmp_path / PASSIVE).read_bytes() == b"earlier"
            assert all((tmp_path / f".{name}.part").read_bytes() == b"new" for name in own)
        steps.append(final.name)
        replace(part, final)

    monkeypatch.setattr(os, "replace", noted)
    synced, fsync = list[int](), os.fsync

    def sync(handle: int) -> None:
        synced.append(len(steps))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", sync)
    write_training(tmp_path, {"parties": []}, own)
    assert steps == [PASSIVE, "calibration.json", "run.json"] and synced == [0, 0, 2]
    for name in own:
        assert (tmp_path / name).read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*"))


def test_a_cap_refuses_what_has_no_claim(world: World) -> None:
    certify(world)
    world.ask(["p1"])
    ends = world.both(north="cap_epsilon = 100.0\ncap_delta = 1e-6\n")
    assert ends["north"].code == 50 and "without a privacy claim" in ends["north"].complaint, ends
    assert ends["south"].code == 40 and "cap" not in ends["south"].complaint
    assert not (world.root / "found.csv").exists()


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (("--party", "west"), 2, "--party west holds no half of the model; its owners are north and south."),
        (("--private", "north.toml"), 2, "--private north.toml belongs to one party"),
        (("--insecure-key",), 2, "--insecure-key belongs to one party"),
        (("--out", "found.txt"), 2, "must end in .csv"),
        (("--party", "south", "--data", "new.csv"), 2, "--data belongs to the owner without the label"),
        (("--party", "north", "--out", "found.csv"), 2, "--out belongs to the owner of the label"),
    ],
)
def test_what_makes_no_sense_is_told(
    world: World, change: tuple[str, ...], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from runner.commands.cli import main

    world.ask(["p1"])
    given = ["predict", world.root, world.study, "--people", world.asked, *change]
    assert main([str(each) for each in given]) == code
    assert sentence in capsys.readouterr().err


def test_files_that_do_not_fit_are_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    from runner.commands.cli import main

    def told(code: int, *given: object) -> str:
        assert main(["predict", *map(str, given)]) == code
        return capsys.readouterr().err

    people = world.ask(["p1"])
    south = world.root / "parties" / "south"
    assert "holds no finished run" in told(2, world.root / "none", world.study, "--people", people)
    (world.root / "empty.csv").write_text("name\nx\n")
    assert "row 1 has no identifier in person" in told(
        30, world.root, world.study, "--people", world.root / "empty.csv"
    )
    assert "from 1 to max_rows" in told(30, world.root, world.study, "--people", world.ask([], "nobody.csv"))
    assert "cannot be read" in told(30, world.root, world.study, "--people", world.root / "a.csv")
    half = south / ACTIVE
    kept = half.read_bytes()
    half.write_bytes(kept[:200])
    assert "is not the half of a model" in told(30, world.root, world.study, "--people", people)
    half.unlink()
    assert f"holds no {ACTIVE}" in told(2, world.root, world.study, "--people", people)
    half.write_bytes(kept)
    text = world.study.read_text()
    world.study.write_text(text.replace('name = "trained"', 'name = "another"'))
    assert "holds a run of another study" in told(2, world.root, world.study, "--people", people)
