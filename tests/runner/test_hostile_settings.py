"""Private files that are mistaken or made to harm: one sentence that names the file and the key, whatever
they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc_protocols.errors import StudyInvalid
from runner.__main__ import main
from runner.study import private_file
from tests.runner import small

HUGE = "9" * 400
CASES = {
    # a line of the file: words of the sentence
    "text for a number": (
        'ledger.cap_epsilon = "1"\nledger.cap_delta = 1e-6',
        "cap_epsilon must be a number",
    ),
    "a date": ("workers = 1979-05-27", "workers must be a whole number"),
    "a list": ("out = [1, [2], {a = 1}]", "out must be a path"),
    "a table": ("key = {}", "key must be a path"),
    "no table": ("ledger = 3", "[ledger] must be a table"),
    "huge": (f"ledger.cap_epsilon = {HUGE}\nledger.cap_delta = 1e-6", "cap_epsilon must be a number"),
    "huge below": (f"ledger.cap_epsilon = -{HUGE}\nledger.cap_delta = 1e-6", "cap_epsilon must be a number"),
    "huge whole": (f"ledger.max_alignments = {HUGE}", "max_alignments must be a whole number"),
    "infinite": ("ledger.cap_epsilon = inf\nledger.cap_delta = 1e-6", "cap_epsilon must be a number"),
    "no number": ("ledger.cap_epsilon = nan\nledger.cap_delta = 1e-6", "cap_epsilon must be a number"),
    "more digits than are read": (f"workers = {'9' * 5000}", "A number of more than 4,000 digits"),
    "more digits below 0": (f"workers = -{'9' * 5000}", "A number of more than 4,000 digits"),
    "more digits in base 16": (f"workers = 0x{'f' * 5000}", "A number of more than 4,000 digits"),
    "more digits in a list": (f"out = [0b{'1' * 20000}]", "A number of more than 4,000 digits"),
    "parts with quotation marks": ('"\\"".' * 20_000 + "a = 1", "A key of more than 64 parts"),
    "a key of two lines": ('"a\\nall is well" = 1', '"a\\x0aall is well"'),
    "a value of two lines": ('listen = "a\\nall is well"', '"a\\x0aall is well"'),
    **{
        f"NUL in {key}": (f'{key} = "a\\u0000.csv"', f"{key.rpartition('.')[2]} must be a path")
        for key in ("out", "cert", "key", "ca", "inbox", "ledger.file")
    },
    "NUL in data": ('data = "a\\u0000.csv"', "data must be the path of a file"),
    "NUL in a database": ('data = { url = "duckdb:///a%00b", table = "x" }', "url must not hold %00"),
    "NUL in tallies": ('data = { tallies = "a\\u0000" }', "tallies must be a pattern of paths"),
    "links in a circle": ('out = "circle/x"', "out must be a path"),
    "a table in a circle": ('data = "circle/x.csv"', "data must be the path of a file"),
    "a device": ('data = "/dev/zero"', "data must name a .csv, .tsv, .parquet or .xlsx file"),
    "a port that is none": ('listen = "[::1]:99999999"', "listen must be"),
    "too deep": (f"data = {'[' * 5000}", "nested too deeply"),
}


@pytest.mark.parametrize("case", CASES)
def test_whatever_it_holds_is_one_sentence(tmp_path: Path, case: str) -> None:
    text, words = CASES[case]
    (tmp_path / "circle").symlink_to("circle")
    file = tmp_path / "private.toml"
    file.write_text(text + "\n")
    found = private_file.problems(file)
    assert any(words in sentence for sentence in found), found
    assert all(sentence.startswith(str(file)) and len(sentence) < 500 for sentence in found)
    with pytest.raises(StudyInvalid):
        private_file.load(file)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('"\\u001b[2J" = 1', 10),
        ('out = ["\\u001b[2J\\u202e"]', 10),
        ('listen = "\\u001b]0;x\\u0007"', 10),
        ('data = "\\u001b[2J.csv"', 30),
        (f'data = "{"a" * 300}.csv"', 30),
    ],
)
def test_no_terminal_obeys_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = small.write(tmp_path / "study", changes=[("[session]", '[session]\ntls = "insecure-loopback"')])
    file = tmp_path / "private.toml"
    file.write_text(text + "\n")
    asked = ["run", str(trial.path), "--party", "north", "--private", str(file), "--out", str(tmp_path / "o")]
    if code == 30:
        asked = ["check", *asked[1:-2]]
    assert main(asked) == code
    shown = "".join(capsys.readouterr())
    assert "nternal error" not in shown and all(letter.isprintable() for letter in shown.replace("\n", ""))


def test_huge_numbers_of_a_study_are_one_sentence(tmp_path: Path) -> None:
    for old in ("epsilon = 4.0", "delta = 1e-6", "connect_s = 300", "rounds = 3", "low = 20"):
        new = f"{old.partition('=')[0]}= {HUGE}"
        trial = small.write(tmp_path / old, changes=[(old, new)])
        assert main(["check", str(trial.path)]) == 10
