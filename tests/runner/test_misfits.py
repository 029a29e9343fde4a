"""Studies whose parties do not fit their backend: exit 10, and a sentence that names what would do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpc_protocols.backend import BACKENDS, Backend
from runner.__main__ import main
from runner.study import problems
from tests.runner import split
from tests.runner.studies import STUDY

DISTRIBUTED = [backend for backend in BACKENDS if not backend.ideal]


def study(directory: Path, backend: str, computing: int, contributing: int = 0) -> Path:
    """So many parties that compute, and others that do not."""
    text = STUDY[: STUDY.index("[[party]]")].replace('"replicated"', f'"{backend}"')
    for number in range(computing + contributing):
        flag = str(number < computing).lower()
        text += f'[[party]]\nname = "p{number}"\naddress = "127.0.0.1:{7101 + number}"\ncompute = {flag}\n'
    path = directory / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(path: Path) -> list[str]:
    """The problems of a study, but for packages that are not installed here."""
    return [problem for problem in problems(path) if "which this installation lacks" not in problem]


@pytest.mark.parametrize(
    ("backend", "computing", "words"),
    [
        ("replicated", 2, ["two computing parties only (p0, p1)", "exactly three", 'use backend = "pair"']),
        ("replicated", 5, ["5 computing parties", "no more than three", 'use backend = "shamir"']),
        ("pair", 1, ["one computing party only (p0)", "exactly two", "add a [[party]]"]),
        ("pair", 3, ["3 computing", "no more than two", 'backend = "replicated" or backend = "shamir"']),
        ("pair", 4, ["4 computing parties (p0, p1, p2, p3)", "exactly two", 'use backend = "shamir"']),
        ("shamir", 2, ["two computing", "three to nine", "add a [[party]]", 'use backend = "pair"']),
        ("shamir", 10, ["10 computing", "three to nine", "let no more than nine of them compute"]),
    ],
)
def test_the_sentence_names_the_alternative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str, computing: int, words: list[str]
) -> None:
    path = study(tmp_path, backend, computing, contributing=1)
    for command in (["check"], ["plan"], ["plan", "--compare"], ["run", "--out", str(tmp_path / "out")]):
        assert main([command[0], str(path), *command[1:]]) == 10
        said = capsys.readouterr()
        assert all(word in said.out + said.err for word in words), said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("backend", DISTRIBUTED, ids=lambda backend: backend.name)
def test_what_a_sentence_names_would_do(tmp_path: Path, backend: Backend) -> None:
    """For every number of computing parties: either they fit, or each backend that is named takes them."""
    for computing in range(1, 12):
        found = faults(study(tmp_path, backend.name, computing))
        least, most = backend.computing
        assert len(found) == (not least <= computing <= most), found
        for sentence in found:
            _, *others = re.findall(r'backend = "(\w+)"', sentence)
            assert backend.name not in others
            for other in others:
                assert faults(study(tmp_path, other, computing)) == []
            fewer = min(max(computing, least), most)
            assert faults(study(tmp_path, backend.name, fewer, max(0, computing - fewer))) == []


def test_three_owners_are_told_who_can_join_their_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [('"replicated"', '"pair"'), ("merge3", "auto")]
    path = split.write(tmp_path, count=20, own=split.THREE, changes=changes).path
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 10
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and 'backend = "replicated"' in said, said
