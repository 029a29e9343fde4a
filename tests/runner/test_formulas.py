"""Texts that a spreadsheet would run: said by `check`, and harmless with `--csv-safe`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.commands.cli import main
from runner.results.table.formulas import harmless, is_formula
from runner.study import Study


def test_what_a_spreadsheet_runs() -> None:
    for text in ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x", "\t=1", "\r=1", "\uff1d1+1", "\uff20a"):
        assert is_formula(text) and harmless(text) == f"'{text}"
    for value in ("-3", "+2.5e3", "a=1", "", 3, -3.5, None, True):
        assert not is_formula(value) and harmless(value) == value


def write_study(directory: Path, columns: dict[str, Any]) -> None:
    """A study in the clear of one party's rows.csv."""
    study = Study.of(
        "f",
        columns,
        [{"name": "p", "data": str(directory / "rows.csv"), "address": "127.0.0.1:9999"}],
        epsilon=50,
        delta=1e-9,
        backend="ideal",
        workload={"degree": 1},
    )
    (directory / "study.toml").write_text(study.to_toml())


def test_it_is_said_and_can_be_written_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    write_study(tmp_path, {"=1+1": {"kind": "categorical", "values": ["@run", "-5", "plain"]}, "b": 2})
    (tmp_path / "rows.csv").write_text("=1+1,b\n" + "@run,0\n-5,1\nplain,1\n" * 40)
    assert main(["check", str(tmp_path / "study.toml")]) == 0
    assert "runs as formulas: the column =1+1, @run of =1+1;" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    asked = ["sample", str(tmp_path / "out"), "--rows", "300", "--seed", "1"]
    assert main([*asked, "--out", str(tmp_path / "plain.csv")]) == 0
    assert main([*asked, "--csv-safe", "--out", str(tmp_path / "safe.csv")]) == 0
    plain, safe = (path.read_text() for path in (tmp_path / "plain.csv", tmp_path / "safe.csv"))
    assert safe.startswith("'=1+1,b\n") and "\n'@run," in safe and "\n-5," in safe
    assert safe.replace("'", "") == plain
    assert main([*asked, "--csv-safe", "--out", str(tmp_path / "t.parquet")]) == 2
    assert main(["query", str(tmp_path / "out"), "=1+1", "--csv-safe"]) == 0
    assert "'=1+1,count" in capsys.readouterr().out


def test_a_carriage_return_within_a_value_begins_no_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has its report, which reads the table; what is asked of it is quoted, too."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    write_study(tmp_path, {"a": {"kind": "categorical", "values": ["x\r=1+1", "plain"]}, "b": 2})
    (tmp_path / "rows.csv").write_text('a,b\n"x\r=1+1",0\nplain,1\n' + "plain,1\n" * 40, newline="")
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["query", str(tmp_path / "out"), "a", "--csv-safe"]) == 0
    assert '\n"x\r=1+1",' in capsys.readouterr().out
