"""[contributors] in the study file, and what `check`, `plan` and the report say about a collection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import StudyInvalid
from runner.__main__ import main
from runner.report.words.collected_text import collected
from runner.study import digest, load, problems
from tests.worlds import collecting
from tests.worlds.collecting import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    return collecting.write(tmp_path, 3)


def wrong(world: World, old: str, new: str) -> list[str]:
    """What is wrong with the study once a text of it is replaced."""
    text = world.trial.path.read_text()
    assert old in text, old
    other = world.folder / "other.toml"
    other.write_text(text.replace(old, new))
    found = problems(other)
    assert all(sentence.startswith(str(other)) and sentence.endswith(".") for sentence in found)
    return found


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('keys = "contributors.txt"\n', "", "keys is missing"),
        ('receivers = "receivers.json"\n', "", "receivers is missing"),
        ('keys = "contributors.txt"', 'keys = "none.txt"', "none.txt, which cannot be read"),
        ('receivers = "receivers.json"', 'receivers = "none.json"', "--make-key"),
        ('receivers = "receivers.json"', 'receivers = "contributors.txt"', "which cannot be used"),
        ("expected_rows = 2000\n", "", "expected_rows is missing"),
        ("expected_rows = 2000", "expected_rows = 0", "expected_rows must be"),
        ("min = 2", "min = 1", "min must be"),
        ("min = 2", "min = 4", "more than the 3 contributors"),
        ("close = { bundles = 2 }\n", "", "close must say when"),
        ("close = { bundles = 2 }", "close = {}", "close must say when"),
        ("close = { bundles = 2 }", "close = { bundles = 4 }", "more than the 3 contributors"),
        ("close = { bundles = 2 }", "close = { bundels = 2 }", 'did you mean "bundles"'),
        ("close = { bundles = 2 }", "close = { at = 9999-12-31T23:59:00-05:00 }", "before the year 9000"),
        ("close = { bundles = 2 }", "close = { at = 2027-01-31 }", "date and time with a time zone"),
        ("close = { bundles = 2 }", "close = { at = 2027-01-31T00:00:00 }", "date and time with a time zone"),
        ("min = 2", 'min = 2\nschedule = "arriving"', "must be a list with schedule"),
        ("min = 2", "min = 2\nagain = true", 'no meaning without schedule = "arriving"'),
        ("min = 2", 'min = 2\nschedule = "sometime"', 'must be "collect"'),
        ("min = 2", "min = 2\nregister = true", 'unknown key "register"'),
        ("max_rows = 4096", "max_rows = 1000000000", "lower it to at most 357,913,941"),
        ('backend = "replicated"', 'backend = "shamir"', 'takes no bundles; use "replicated"'),
        ('backend = "replicated"', 'backend = "pair"', 'takes no bundles; use "replicated"'),
        ('partition = "horizontal"', 'partition = "vertical"', "rows of their own with all columns"),
        ('name = "west"', 'name = "c00"', "taken by a party"),
        ('name = "west"', 'name = "far-west"', 'no computing party (did you mean "far-west"?)'),
    ],
)
def test_every_mistake_gets_a_sentence(world: World, old: str, new: str, word: str) -> None:
    assert any(word in sentence for sentence in wrong(world, old, new)), wrong(world, old, new)


def test_a_party_that_neither_computes_nor_is_listed_has_no_place(world: World) -> None:
    east = f'{world.trial.path.read_text()}\n[[party]]\nname = "east"\naddress = "127.0.0.1:7999"\ndata = "c00.csv"\n'
    world.trial.path.write_text(east)
    with pytest.raises(StudyInvalid, match="must be one of them"):
        load(world.trial.path)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("c09", "a line is NAME ed25519:KEY"),
        ("c09 rsa:abc", "a line is NAME ed25519:KEY"),
        ("c09 ed25519:abc", "not 32 bytes in base64"),
        ("../c09 ed25519:" + "A" * 43 + "=", "a name is letters"),
        ("C00 ed25519:" + "A" * 43 + "=", "taken by a party, or stands there twice"),
        ("north ed25519:" + "A" * 43 + "=", "taken by a party"),
    ],
)
def test_a_bad_line_of_keys_is_named(world: World, line: str, word: str) -> None:
    with (world.folder / "contributors.txt").open("a") as file:
        file.write(f"{line}\n")
    [sentence] = problems(world.trial.path)
    assert "line 5" in sentence and word in sentence


def test_two_contributors_with_one_key_are_refused(world: World) -> None:
    file = world.folder / "contributors.txt"
    file.write_text(file.read_text() + file.read_text().splitlines()[1].replace("c00", "c09") + "\n")
    [sentence] = problems(world.trial.path)
    assert "another contributor's" in sentence


def test_the_digest_covers_the_content_of_both_files(world: World) -> None:
    before = digest(load(world.trial.path), "")
    keys = world.folder / "contributors.txt"
    text = keys.read_text()
    keys.write_text("# another comment\n\n" + text)
    assert digest(load(world.trial.path), "") == before
    keys.write_text("\n".join(text.splitlines()[:-1]))
    assert digest(load(world.trial.path), "") != before
    keys.write_text(text)
    receivers = world.folder / "receivers.json"
    (world.folder / "inbox" / "west" / "receiver.key").unlink()
    assert main(["inbox", str(world.trial.path), "--party", "west", "--make-key"]) == 0
    assert digest(load(world.trial.path), "") != before and receivers.exists()


def test_expected_rows_decide_what_a_bundle_holds(world: World) -> None:
    from runner.contributors.collection import layout_of
    from runner.party.synthesis import plan_of

    cells = {}
    for rows in (1, 25, 2000):
        text = world.trial.path.read_text().replace("expected_rows = 2000", f"expected_rows = {rows}")
        path = world.folder / "other.toml"
        path.write_text(text)
        study = load(path)
        if rows == 1:
            with pytest.raises(StudyInvalid, match="expected_rows = 1 is too few"):
                plan_of(study)
            continue
        plan = plan_of(study)
        layout = layout_of(study, plan)
        asked = [*plan.one_way, *plan.candidates]
        assert len(layout.marginals(np.zeros(layout.cells, np.uint32))(asked)) == len(asked)
        cells[rows] = layout.cells
    assert cells[25] < cells[2000] == 155


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    return code, capsys.readouterr().out


def test_check_looks_at_inboxes_and_contributors(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(world.trial.path)
    code, text = told(capsys, "check", path)
    assert (
        code == 0 and "3 contributors may each leave a bundle of 2.92 kB: 155 cells of 10 marginals" in text
    )
    code, text = told(capsys, "check", path, "--party", "north")
    assert code == 0 and "has the key that the study lists" in text
    assert "north holds 0 bundles: the collection is open until it closes with 2 bundles" in text
    world.everybody(["c00", "c01"])
    assert "north holds 2 bundles; what all three hold" in told(capsys, "check", path, "--party", "north")[1]
    (world.folder / "inbox" / "north" / "receiver.key").unlink()
    code, text = told(capsys, "check", path, "--party", "north")
    assert code == 21 and "has no key" in text
    private = world.folder / "c02.toml"
    code, text = told(capsys, "check", path, "--party", "c02", "--private", str(private))
    assert code == 0 and "is the key that the study lists for c02" in text and "its table fits" in text
    world.contribute("c02")
    code, text = told(capsys, "check", path, "--party", "c02", "--private", str(private))
    assert code == 0 and "has made a bundle for this study, which is charged its whole budget" in text
    private.write_text(private.read_text().replace("c02.key", "c01.key"))
    code, text = told(capsys, "check", path, "--party", "c02", "--private", str(private))
    assert code == 21 and "not the one that the study lists" in text
    assert told(capsys, "check", path, "--party", "c02")[0] != 0


def test_plan_tells_what_contributors_leave(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = told(capsys, "plan", str(world.trial.path))
    assert code == 0
    assert "bundles    3 contributors may each leave one of 2.92 kB: 155 cells of 10 marginals" in text
    assert "closing    with 2 bundles; never for fewer than 2" in text
    assert "for about 2,000 rows (from expected_rows in the study)" in text
    assert "each contributor: who else took part" in text


TOLD: dict[str, Any] = {
    "contributors": {
        "enrolled": 5,
        "took_part": ["c00", "c01", "c02", "c03"],
        "absent": ["c04"],
        "custodians": ["north"],
    }
}


def test_the_report_says_who_took_part_and_what_that_leaves_out() -> None:
    words = collected(TOLD)
    assert words is not None
    assert "trusted to have counted its true rows" in words.way
    assert "four contributors, of five that the study lists, and those of north" in words.about
    assert (
        "80 % of the contributors" in words.left_out
        and "no figure on this page shows how much" in words.left_out
    )
    assert ("Did not", "c04") in words.rows
    facts = TOLD["contributors"]
    everybody = collected({"contributors": {**facts, "absent": [], "enrolled": 4, "custodians": []}})
    assert everybody is not None and "Everybody who was listed" in everybody.left_out
    many = [f"c{at:03}" for at in range(100)]
    crowd = collected({"contributors": {**facts, "took_part": many, "enrolled": 101}})
    assert crowd is not None and ("Took part", "100 contributors, named in run.json") in crowd.rows
    assert collected({}) is None


def test_a_run_leaves_a_report_that_names_its_contributors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    world = collecting.write(tmp_path / "study", 3, changes=[('backend = "replicated"', 'backend = "ideal"')])
    world.deliver(*[world.contribute(name) for name in ("c00", "c02")])
    out = tmp_path / "out"
    assert main(["run", str(world.trial.path), "--out", str(out)]) == 0
    page = re.sub(r"<[^>]+>", " ", (out / "report.html").read_text())
    assert "Who took part" in page and "two contributors, of three that the study lists" in page
    private = str(world.folder / "c00.toml")
    settle = ["contribute", str(world.trial.path), "--party", "c00", "--private", private, "--settle"]
    assert main([*settle, str(out / "result.json")]) == 0
    assert "c00 took part: the ledger is charged rho" in capsys.readouterr().out
    assert main(["run", str(world.trial.path), "--out", str(tmp_path / "again")]) == 50
    assert (
        main(
            [
                "contribute",
                str(world.trial.path),
                "--party",
                "c00",
                "--private",
                private,
                "--out",
                str(out / "x"),
            ]
        )
        == 50
    )
