"""The tab key, as the shells themselves answer it; zsh answers nobody but a terminal."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.commands.cli import main

pytest.importorskip("shtab")
STUDY = """\
[study]
name = "clinics"

[[party]]
name = "north"
data = "north.csv"

[[ party ]]
  name = 'south' # the other one

[domain.columns.name]
name = "no party"
"""


def fish(script: Path, words: list[str]) -> list[str]:
    line = " ".join(words)
    told = _told(script, ["fish", "--no-config", "-c", f"source {script}; complete -C {shlex.quote(line)}"])
    return [each.partition("\t")[0] for each in told]


def bash(script: Path, words: list[str], breaks: str = "=") -> list[str]:
    """breaks: whether bash takes `=` for the end of a word, as it does unless told otherwise."""
    if breaks:
        words = [part for word in words for part in _parted(word)]
    line = (
        f"COMP_WORDBREAKS={shlex.quote(' ' + breaks)}; COMP_WORDS=({shlex.join(words)}); "
        f"COMP_CWORD={len(words) - 1}; source {script}; _cosynth 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return _told(script, ["bash", "--norc", "-c", line])


def _parted(word: str) -> list[str]:
    """As bash hands a word over that is being completed."""
    return [part for part in re.split("(=)", word) if part] or [word]


def _told(script: Path, command: list[str]) -> list[str]:
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line]


@pytest.fixture(params=["bash", "fish"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a study and a table, and what the shell reads; named after the shell."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not here")
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "nord.toml").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "deep.csv").write_text("")
    assert main(["completion", request.param]) == 0
    script = tmp_path / f"completion.{request.param}"
    script.write_text(capsys.readouterr().out)
    return script


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["chec"], ["check"]),
        (["ledger", ""], ["check", "show"]),
        (["run", "--repl"], ["--replace"]),
        (["check", "stu"], ["study.toml"]),
        (["check", "study.toml", "--party", ""], ["north", "south"]),
        (["run", "study.toml", "-p", "s"], ["south"]),
        (["run", "study.toml", "--private", "n"], ["nord.toml", "north="]),
        (["run", "study.toml", "--private", "north=no"], ["nord.toml"]),
        (["run", "study.toml", "--private=north=no"], ["nord.toml"]),
        (["check", "study.toml", "--private", "north=folder/d"], ["folder/deep.csv"]),
        (["init", "new", "--from", "north=folder/d"], ["folder/deep.csv"]),
        (["evaluate", "out", "--real", "no"], ["nord.toml"]),
        (["bench", "sco"], ["scores"]),
        (["bench", "scores", "--cel"], ["--cells"]),
    ],
)
def test_the_tab_key_completes_commands_files_parties_and_files_of_parties(
    shell: Path, words: list[str], found: list[str]
) -> None:
    """Bash replaces what follows the last `=`, fish the whole word."""
    words = ["cosynth", *words]
    if shell.suffix == ".bash":
        assert sorted(bash(shell, words)) == found
        return
    before = words[-1].rpartition("=")[0]
    assert sorted(fish(shell, words)) == [f"{before}={each}" if before else each for each in found]


def test_bash_that_breaks_no_word_at_an_equals_sign_is_given_the_whole_word(shell: Path) -> None:
    if shell.suffix == ".bash":
        words = ["cosynth", "check", "study.toml", "--private", "north=no"]
        assert bash(shell, words, breaks="") == ["north=nord.toml"]


def test_a_command_is_described_by_its_line_of_help(shell: Path) -> None:
    if shell.suffix == ".fish":
        assert "-a check -d 'name every problem before a run'\n" in shell.read_text()
