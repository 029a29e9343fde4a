"""`bench psu`: every protocol at a tiny size, figures per party, and what cannot be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main

Measured = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Measured:
    """The lines of a bench of 50 identifiers, each configuration once."""

    def lines(*options: str) -> list[dict[str, Any]]:
        path = tmp_path / "lines.jsonl"
        path.unlink(missing_ok=True)
        once = ["--identifiers", "50", "--repeats", "1", "--warmup", "0", "--json", str(path)]
        assert main(["bench", "psu", *once, *options]) == 0, capsys.readouterr().err
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return lines


def test_all_protocols(measured: Measured) -> None:
    lines = measured("--owners", "2", "--via", "merge3,helper,dh2,florist", "--common", "0.5")
    assert [line["params"]["via"] for line in lines] == ["merge3", "helper", "dh2", "florist"]
    assert all(line["predicted"] == {name: line[name] for name in ("rounds", "bytes_sent")} for line in lines)
    assert all(line["amount"] == 100 and line["baseline"]["numpy"]["wall_s"] > 0 for line in lines)


@pytest.mark.campaign
def test_several_owners_and_extreme_overlaps(measured: Measured) -> None:
    lines = measured("--owners", "2", "--via", "merge3,helper", "--common", "0,1")
    assert len(lines) == 4
    assert all(line["predicted"] == {name: line[name] for name in ("rounds", "bytes_sent")} for line in lines)
    lines = measured("--owners", "3,5", "--common", "0,1", "--no-baseline")
    assert [len(line["bytes_sent"]) for line in lines] == [3, 3, 5, 5]


def test_protocols_of_two_owners_refuse_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "psu", "--owners", "3", "--via", "dh2"]) == 2
    assert "--via dh2 joins two owners, got 3" in capsys.readouterr().err


def test_the_papers_group_is_for_its_own_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "line.jsonl"
    arguments = ["bench", "psu", "--identifiers", "3", "--repeats", "1", "--no-baseline", "--json", str(path)]
    assert main([*arguments, "--via", "florist", "--group", "residues"]) == 0, capsys.readouterr().err
    line = json.loads(path.read_text(encoding="utf-8"))
    assert (
        sum(line["bytes_sent"]) > 8 * 3 * 256
    )  # elements of 256 bytes, about eleven for each identifier of an owner
    assert main([*arguments, "--via", "dh2", "--group", "residues"]) == 2
    assert "--group residues is for --via florist, got dh2" in capsys.readouterr().err
