"""A later wave: contributors who came too late for an earlier one, whose marginals are measured again and added."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backends.bundles.sealing import ReceiverSecret
from mpc_protocols.errors import BudgetRefused
from mpc_protocols.process.canonical_json import canonical
from parties.budget.ledger import Ledger
from runner.__main__ import main
from runner.check.run import findings
from runner.contributors import signed_result, statement
from runner.party.synthesis import plan_of
from runner.review.verification.collected import collected
from runner.review.verification.place import Place
from runner.study import Study, digest
from runner.study.read import problems
from runner.study.sections import public_files
from runner.study.sections.receivers import receivers_text
from synth.budget.accounting import rho_of
from synth.mrf import Model
from tests.runner import in_memory, small
from tests.worlds import collecting

IDEAL = ('backend = "replicated"', 'backend = "ideal"')
LOUD = ("epsilon = 4.0", "epsilon = 30.0")
FIRST, NAMES = "first", tuple(f"c{at:02}" for at in range(6))
AFTER = 'after = { run = "first/out", receivers = "first/receivers.json" }\n'


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study over six contributors, of whom the first four have come."""
    folder = tmp_path_factory.mktemp("waves") / FIRST
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COSYNTH_LEDGER", str(folder / "ledger.db"))
        world = collecting.write(folder, 6, changes=[IDEAL, LOUD], table=collecting.TABLE)
        late = world.contribute("c05")
        world.deliver(*[world.contribute(name) for name in NAMES[:4]])
        assert main(["run", str(world.trial.path), "--out", str(folder / "out")]) == 0
        assert late.exists()
    return folder


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def later(
    tmp_path: Path,
    earlier: Path,
    changes: Sequence[tuple[str, str]] = (IDEAL, LOUD),
    table: str = collecting.TABLE + AFTER,
) -> collecting.World:
    """A study over the same contributors, with their keys and ledgers, after the earlier one."""
    shutil.copytree(earlier, tmp_path / FIRST)
    plain = table.replace(AFTER, "")
    world = collecting.write(tmp_path, 6, changes=changes, table=plain)
    for each in (*NAMES, "contributors"):
        for file in earlier.glob(f"{each}.*"):
            if file.suffix in (".key", ".txt"):
                shutil.copy(file, tmp_path)
    shutil.copytree(earlier / "ledgers", tmp_path / "ledgers")
    world.trial.path.write_text(world.trial.path.read_text().replace(plain, table))
    return world


def measured(folder: Path) -> dict[tuple[str, ...], Any]:
    told = json.loads((folder / "measurements.json").read_text())
    return {tuple(entry["clique"]): entry for entry in told["measurements"]}


def test_what_the_first_wave_has_measured_is_measured_of_the_others_and_added(
    tmp_path: Path, earlier: Path
) -> None:
    """Noise is below a row: the sums are the counts of all six, within a hundredth of the rows."""
    world = later(tmp_path, earlier)
    world.everybody(["c04", "c05"])
    assert main(["run", str(world.trial.path), "--out", str(tmp_path / "out")]) == 0
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    first, second = measured(earlier / "out"), measured(tmp_path / "out")
    assert second.keys() == first.keys()
    ratios = [Fraction(second[q]["sigma2"]) / Fraction(first[q]["sigma2"]) for q in first]
    assert max(ratios) / min(ratios) < 1 + Fraction(1, 1 << 30)
    spent, rho = facts["privacy"]["rho_spent"], facts["privacy"]["rho"]
    assert 0.999999 * rho < spent <= rho <= float(rho_of(30, Fraction(1, 10**6)))
    assert [event["what"] for event in facts["privacy"]["events"]] == ["measure"]
    assert facts["contributors"]["took_part"] == ["c04", "c05"] and facts["contributors"]["enrolled"] == 2
    [before] = facts["contributors"]["after"]
    assert before["took_part"] == list(NAMES[:4]) and abs(before["rows"] - 240) < 20
    assert abs(facts["rows"] - 360) < 20 and abs(facts["privacy"]["noisy_total"] - 120) < 20
    model = Model.load(tmp_path / "out" / "model.npz")
    for name in small.COLUMNS:
        real = world.marginal([name], world.names)
        assert abs(model.marginal((name,)) - real).max() < 0.03 * sum(real)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "of an earlier wave" in page and "Everybody is in one wave only" in page


def test_the_second_wave_runs_over_shares(
    tmp_path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = later(tmp_path, earlier, [LOUD])
    world.everybody(["c04", "c05"])
    described = in_memory.run(world.trial.path, tmp_path / "out", monkeypatch)
    assert len(described) == 3
    for facts in described.values():
        assert abs(facts["rows"] - 360) < 20 and abs(facts["privacy"]["noisy_total"] - 120) < 20
        assert facts["contributors"]["absent"] == [] and facts["selected"] == []


def test_who_was_in_an_earlier_wave_is_refused_everywhere(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    with pytest.raises(BudgetRefused, match="c01 was in an earlier wave"):
        world.contribute("c01")
    bundle = world.seal("c01")
    for party in collecting.PARTIES:
        with pytest.raises(BudgetRefused, match="it is by c01, who was in an earlier wave"):
            world.inbox(party).add(bundle, datetime.now(UTC))
    words = [str(each) for each in findings(world.trial.path, "c01", tmp_path / "c01.toml", False)]
    assert any("c01 was in an earlier wave" in each for each in words)


def test_a_new_name_for_an_earlier_key_brings_nobody_in_twice(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    keys = tmp_path / "contributors.txt"
    keys.write_text(keys.read_text().replace("c02 ", "zzz "))
    assert world.study.contributors is not None
    assert world.study.contributors.earlier == {"c00", "c01", "zzz", "c03"}


def test_a_bundle_that_was_too_late_is_settled_before_the_next_wave(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    with pytest.raises(BudgetRefused, match="has not settled yet"):
        world.contribute("c05")
    settle = [
        "contribute",
        str(earlier / "study.toml"),
        "--party",
        "c05",
        "--private",
        str(tmp_path / "c05.toml"),
    ]
    assert main([*settle, "--settle", str(earlier / "out" / "result.json")]) == 0
    assert world.contribute("c05").exists()


def test_check_tells_a_contributor_what_its_ledger_would_refuse(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    words = [str(each) for each in findings(world.trial.path, "c05", tmp_path / "c05.toml", False)]
    assert any("has not settled yet" in each for each in words)
    words = [str(each) for each in findings(world.trial.path, "c04", tmp_path / "c04.toml", False)]
    assert not any("settle" in each for each in words)


def test_one_table_is_in_a_wave_once(tmp_path: Path) -> None:
    """Under the names of two contributors each count would move by two, which costs four times as much."""
    world = collecting.write(tmp_path, 2, changes=[IDEAL, LOUD])
    world.contribute("c00")
    own = tmp_path / "c01.toml"
    own.write_text('data = "c00.csv"\nkey = "c01.key"\n[ledger]\nfile = "ledgers/c00.db"\ndataset = "c00"\n')
    with pytest.raises(BudgetRefused, match="in the table twice"):
        world.contribute("c01")
    assert any("in the table twice" in str(each) for each in findings(world.trial.path, "c01", own, False))
    assert len(Ledger(tmp_path / "ledgers" / "c00.db").entries()) == 1


def test_the_ledger_refuses_by_itself_who_is_called_otherwise(tmp_path: Path, earlier: Path) -> None:
    """The rows of c00 under another name and another key: its ledger knows them by their data set's name."""
    world = later(tmp_path, earlier)
    (tmp_path / "c04.toml").write_text(
        'data = "c00.csv"\nkey = "c04.key"\n[ledger]\nfile = "ledgers/c00.db"\ndataset = "c00"\n'
    )
    with pytest.raises(BudgetRefused, match="has not settled yet"):
        world.contribute("c04")


def bent(content: str, what: str) -> str:
    form = json.loads(content)
    if what == "value":
        form["measurements"][0]["values"][0] += 1
    return json.dumps(form) + "\n"


CHANGED = {
    "bins": [("high = 80, bins = 6", "high = 200, bins = 6")],
    "order": [('["no", "yes"]', '["yes", "no"]')],
    "constraint": [
        (
            "[session]\n",
            '[[domain.constraints]]\nif = { work = "None" }\nthen = { sick = "yes" }\n\n[session]\n',
        )
    ],
}


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("gone", "cannot be read"),
        ("value", "not the one that its parties have signed"),
        ("signature", "does not bear the signature"),
        ("version", "another version of the program"),
        ("receivers", "does not bear the signature"),
        ("pipe", "must be a file"),
        ("large", "is larger than"),
        ("epsilon", "promised another epsilon"),
        ("bins", "bins, labels, orders of values or constraints"),
        ("order", "bins, labels, orders of values or constraints"),
        ("constraint", "bins, labels, orders of values or constraints"),
        ("registered", "other registered columns"),
        ("twice", "named already"),
        ("table", "must be { run ="),
        ("few", "fewer than the 3 bundles"),
    ],
)
def test_an_earlier_wave_that_cannot_be_added_is_one_sentence(
    tmp_path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch, what: str, sentence: str
) -> None:
    changes, table = [IDEAL, LOUD, *CHANGED.get(what, [])], collecting.TABLE + AFTER
    if what == "epsilon":
        changes = [IDEAL]
    world = later(tmp_path, earlier, changes, table)
    study, first = world.trial.path, tmp_path / FIRST
    text = study.read_text()
    if what == "gone":
        (first / "out" / "measurements.json").unlink()
    elif what == "value":
        file = first / "out" / "measurements.json"
        file.write_text(bent(file.read_text(), what))
    elif what == "signature":
        file = first / "out" / "result.json"
        file.write_text(file.read_text().replace('"c03"', '"c09"', 1))
    elif what == "version":
        file = first / "out" / "result.json"
        file.write_text(file.read_text().replace(signed_result.FORMAT, "cosynth-result-1"))
    elif what == "pipe":
        (first / "receivers.json").unlink()
        os.mkfifo(first / "receivers.json")
    elif what == "large":
        monkeypatch.setattr(
            public_files, "MAX_BYTES", (first / "out" / "measurements.json").stat().st_size - 1
        )
    elif what == "receivers":
        shutil.copy(tmp_path / "receivers.json", first)
    elif what == "registered":
        columns = [
            {"clique": [name], "sigma2": "3/2", "round": 0, "values": [5] * size}
            for name, size in small.SIZES.items()
        ]
        (tmp_path / "enrolled.json").write_text(
            json.dumps({"columns": small.SIZES, "noisy_total": 30.0, "measurements": columns})
        )
        study.write_text(text.replace(AFTER, AFTER + 'registered = "enrolled.json"\n'))
    elif what == "twice":
        each = AFTER.removeprefix("after = ").strip()
        study.write_text(text.replace(AFTER, f"after = [{each}, {each}]\n"))
    elif what == "table":
        study.write_text(text.replace(AFTER, 'after = "first"\n'))
    elif what == "few":
        study.write_text(text.replace("min = 2\nclose = { bundles = 2 }", "min = 3\nclose = { bundles = 3 }"))
    (found,) = problems(study)
    assert sentence in found and found.endswith(".")


def test_computing_parties_bring_no_tables_to_a_later_wave(tmp_path: Path, earlier: Path) -> None:
    """Neither in the study, which is not read then, nor in a private file, as its owner is told beforehand."""
    world = later(tmp_path, earlier)
    small.write_csv(tmp_path / "north.csv", small.rows(1, 50))
    world.everybody(["c04", "c05"])
    study, own = world.trial.path, tmp_path / "north.toml"
    own.write_text('data = "north.csv"\n')
    words = [str(each) for each in findings(study, "north", own, False)]
    assert any("comes after an earlier wave, and north has a table" in each for each in words)
    assert main(["run", str(study), "--out", str(tmp_path / "out"), "--private", f"north={own}"]) == 10
    study.write_text(study.read_text().replace('name = "north"\n', 'name = "north"\ndata = "north.csv"\n'))
    (found,) = problems(study)
    assert "in which the table of north may be already" in found


def test_a_party_of_the_first_wave_is_told_apart_by_more_than_capitals(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    keys = tmp_path / "contributors.txt"
    keys.write_text(keys.read_text().replace("c05 ", "North "))

    def change(told: dict[str, Any], measured: dict[str, Any]) -> None:
        told.update(custodians=["NORTH", "C04"])

    entry = signed_anew(earlier, tmp_path / "other", change)
    text = world.trial.path.read_text().replace(AFTER, f"after = {entry}\n")
    for party in collecting.PARTIES:
        text = text.replace(f'name = "{party}"', f'name = "{party}-2"')
    receivers = tmp_path / "receivers.json"
    told = json.loads(receivers.read_text())
    receivers.write_text(json.dumps({f"{name}-2": key for name, key in told.items()}))
    world.trial.path.write_text(text)
    (found,) = problems(world.trial.path)
    assert "of whom 6 were in an earlier wave" in found


def test_a_wave_that_does_not_tell_who_was_in_it_is_none(tmp_path: Path, earlier: Path) -> None:
    """Else its people could come again under another name."""
    world = later(tmp_path, earlier)
    entry = signed_anew(
        earlier, tmp_path / "other", lambda told, measured: told.update(keys=told["keys"][1:])
    )
    world.trial.path.write_text(world.trial.path.read_text().replace(AFTER, f"after = {entry}\n"))
    (found,) = problems(world.trial.path)
    assert "does not tell the keys of those who were in it" in found


def test_a_study_in_python_finds_its_waves_where_its_other_files_are(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    for after in (AFTER, AFTER.replace("{", "[{").replace("}", "}]")):
        text = world.trial.path.read_text().replace(AFTER, after)
        study = Study.from_toml(text, tmp_path)
        assert study.public() == world.study.public()
        assert Study.from_toml(study.to_toml(), "/").public() == world.study.public()


def test_a_third_wave_names_both_before_it(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path / "second", earlier)
    world.everybody(["c04", "c05"])
    assert main(["run", str(world.trial.path), "--out", str(tmp_path / "second" / "out")]) == 0
    after = '{ run = "second/out", receivers = "second/receivers.json" }'
    third = collecting.write(tmp_path, 8, changes=[IDEAL, LOUD], table=collecting.TABLE)
    lines = (tmp_path / "contributors.txt").read_text().splitlines()
    first = (earlier / "contributors.txt").read_text().splitlines()
    (tmp_path / "contributors.txt").write_text("\n".join([*first, *lines[-2:]]) + "\n")
    path = third.trial.path
    text = path.read_text()
    path.write_text(text.replace(collecting.TABLE, collecting.TABLE + f"after = {after}\n"))
    (found,) = problems(path)
    assert "must name all waves before" in found
    shutil.copytree(earlier, tmp_path / FIRST)
    both = f"after = [{AFTER.removeprefix('after = ').strip()}, {after}]\n"
    path.write_text(text.replace(collecting.TABLE, collecting.TABLE + both))
    assert problems(path) == []
    assert third.study.contributors is not None
    assert third.study.contributors.earlier == set(NAMES)
    plan: Any = plan_of(third.study)
    assert abs(plan.earlier.total - 360) < 20


def signed_anew(
    earlier: Path,
    folder: Path,
    change: Callable[[dict[str, Any], dict[str, Any]], object] = lambda told, measured: None,
) -> str:
    """The earlier wave's files in another folder, changed and signed by three other parties; its entry in `after`."""
    out = folder / "out"
    out.mkdir(parents=True)
    told = json.loads((earlier / "out" / "result.json").read_bytes())["result"]
    measured = json.loads((earlier / "out" / "measurements.json").read_bytes())
    change(told, measured)
    content = json.dumps(measured).encode()
    (out / "measurements.json").write_bytes(content)
    told["measurements"] = hashlib.sha256(content).hexdigest()
    secrets = {name: ReceiverSecret.generate() for name in ("x", "y", "z")}
    (folder / "receivers.json").write_text(
        receivers_text({name: secret.public for name, secret in secrets.items()})
    )
    said = canonical(told)
    signatures = {name: secret.sign(signed_result.signed(said)) for name, secret in secrets.items()}
    (out / "result.json").write_bytes(statement.to_bytes(signed_result.KIND, said, signatures))
    return f'{{ run = "{folder.name}/out", receivers = "{folder.name}/receivers.json" }}'


def other_people(told: dict[str, Any], measured: dict[str, Any]) -> None:
    told["study"] = "12" * 32
    told["contributors"] = [f"other-{name}" for name in told["contributors"]]
    told["keys"] = [key[::-1] for key in told["keys"]]


def with_name(told: dict[str, Any], measured: dict[str, Any]) -> None:
    other_people(told, measured)
    told["contributors"][1] = "c01"


def with_key(told: dict[str, Any], measured: dict[str, Any]) -> None:
    key = told["keys"][2]
    other_people(told, measured)
    told["keys"][2] = key


def with_custodian(told: dict[str, Any], measured: dict[str, Any]) -> None:
    other_people(told, measured)
    told["custodians"] = ["c02"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (other_people, ""),
        (with_name, "c01 was in it and in another wave"),
        (with_key, "a contributor's key was in it and in another wave"),
        (with_custodian, "c02 was in it and in another wave"),
    ],
)
def test_waves_that_share_somebody_are_not_added(
    tmp_path: Path, earlier: Path, change: Callable[[dict[str, Any], dict[str, Any]], None], sentence: str
) -> None:
    world = later(tmp_path, earlier)
    second = signed_anew(earlier, tmp_path / "second", change)
    study = world.trial.path
    both = f"after = [{AFTER.removeprefix('after = ').strip()}, {second}]\n"
    study.write_text(study.read_text().replace(AFTER, both))
    found = problems(study)
    assert len(found) == bool(sentence) and sentence in "".join(found)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told, measured: measured.update(noisy_total=-1.0), "0 to 2^31 are possible"),
        (lambda told, measured: measured.update(noisy_total=2.0**31), "0 to 2^31 are possible"),
        (lambda told, measured: measured.update(noisy_total=float("nan")), "0 to 2^31 are possible"),
        (
            lambda told, measured: measured["measurements"][-1].update(rows=20.0),
            "its rounds were counted over different contributors",
        ),
    ],
)
def test_what_three_parties_have_signed_is_judged_all_the_same(
    tmp_path: Path, earlier: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], sentence: str
) -> None:
    world = later(tmp_path, earlier)
    other = signed_anew(earlier, tmp_path / "other", change)
    world.trial.path.write_text(world.trial.path.read_text().replace(AFTER, f"after = {other}\n"))
    (found,) = problems(world.trial.path)
    assert sentence in found and found.endswith(".")


def test_whose_signatures_are_believed_is_in_the_digest_and_shown(tmp_path: Path, earlier: Path) -> None:
    world, digests = later(tmp_path, earlier), []
    text = world.trial.path.read_text()
    for name in ("one", "two"):  # the same result, signed by others
        entry = signed_anew(earlier, tmp_path / name)
        world.trial.path.write_text(text.replace(AFTER, f"after = {entry}\n"))
        world.__dict__.pop("study", None)
        digests.append(digest(world.study, ""))
    assert digests[0] != digests[1]
    assert world.study.contributors is not None
    (wave,) = world.study.contributors.after
    words = " ".join(str(each) for each in findings(world.trial.path, None, None, False))
    assert wave.study in words
    assert all(f"{name} {key.fingerprint}" in words for name, key in wave.receivers.items())


def test_a_computing_partys_own_table_of_the_first_wave_comes_no_more(tmp_path: Path, earlier: Path) -> None:
    world = later(tmp_path, earlier)
    keep = {"contributors": ["c00"], "custodians": ["c05"]}

    def change(told: dict[str, Any], measured: dict[str, Any]) -> None:
        told.update(keep, keys=told["keys"][:1])

    entry = signed_anew(earlier, tmp_path / "other", change)
    world.trial.path.write_text(world.trial.path.read_text().replace(AFTER, f"after = {entry}\n"))
    with pytest.raises(BudgetRefused, match="c05 was in an earlier wave"):
        world.contribute("c05")


def test_a_wave_that_is_not_named_counts_in_the_ledger(tmp_path: Path, earlier: Path) -> None:
    """c04 is in a second wave; a third one names only the first."""
    world = later(tmp_path, earlier)
    world.contribute("c04")
    world.trial.path.write_text(world.trial.path.read_text().replace('name = "trial"', 'name = "third"'))
    shutil.move(tmp_path / "c04.csv", tmp_path / "c04-moved.csv")
    (tmp_path / "c04.toml").write_text(
        'data = "c04-moved.csv"\nkey = "c04.key"\n[ledger]\nfile = "ledgers/c04.db"\n'
    )
    study = collecting.World(world.trial, world.names, world.rows)
    with pytest.raises(BudgetRefused, match="does not name") as caught:
        study.contribute("c04")
    assert "data set c04 " in caught.value.sentence and caught.value.exit_code == 50
    (refused,) = Ledger(tmp_path / "ledgers" / "c04.db").entries()
    assert refused.state == "open"


def test_verify_checks_what_contributors_are_told(tmp_path: Path, earlier: Path) -> None:
    out = Path(shutil.copytree(earlier / "out", tmp_path / "out"))
    (finding,) = collected(Place.at(out))
    assert "contributors are told of this run, signed by north (" in finding.text and finding.error is None
    file, measurements = out / "result.json", out / "measurements.json"
    whole = file.read_text()
    file.write_text(whole.replace('"c03"', '"c09"', 1))
    (finding,) = collected(Place.at(out))
    assert finding.error is not None and finding.error.exit_code == 21
    file.write_text(whole)
    measurements.write_text(bent(measurements.read_text(), "value"))
    (finding,) = collected(Place.at(out))
    assert finding.error is not None and "another measurements.json" in finding.text
    measurements.write_text((earlier / "out" / "measurements.json").read_text())
    place = Place.at(out)
    place.run["privacy"]["events"].pop()
    (finding,) = collected(place)
    assert finding.error is not None and "another account of events" in finding.text
    file.unlink()
    (finding,) = collected(Place.at(out))
    assert finding.error is not None and "has no result.json, and its parties sign one" in finding.text
    place.run["agreed"]["contributors"]["after"] = [{}]
    assert [each.note for each in collected(place)] == [False, True]
