"""`bench utility --florist`: what is asked for, how people are split, and a whole command on a small table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.bench.benches.utility import BENCH
from runner.bench.research.florist.command import sections
from runner.bench.research.florist.printed import CHANGE, DRAWN
from runner.bench.research.florist.runs import APART, METHODS, Split
from runner.bench.utility.tables import Table
from synth.domain import Codes, Domain


def table(rows: int = 900) -> Table:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, rows), rng.integers(0, 3, rows)
    label = (a + rng.integers(0, 3, rows) > 4).astype(int)
    domain = Domain(("a", "label", "b"), (Codes(5), Codes(2), Codes(3)))
    return Table("tiny", domain, np.stack([a, label, b], axis=1))


def test_people_are_split_and_some_are_kept_apart() -> None:
    split = Split.of(table(), "label", 0.3, 0.6, 1)
    people, (codes, labels) = split.people, split.apart
    assert len(labels) == len(codes) == 900 // APART and len(people.labels) == 900 - 900 // APART
    assert people.codes.shape[1] == codes.shape[1] == 2 and people.label == "label"
    # false alarms below 1e-9
    assert abs(people.has_features.mean() - 0.7) < 6.2 * (0.21 / 810) ** 0.5
    assert abs(people.has_label.mean() - 0.4) < 6.2 * (0.24 / 810) ** 0.5
    union = split.held(people.has_features | people.has_label)
    assert (union.has_features | union.has_label).all() and len(union.labels) == len(union.codes)
    with pytest.raises(UsageError, match="no column b of two values"):
        Split.of(table(), "b", 0.3, 0.3, 1)


def test_printed_figures_are_the_papers() -> None:
    assert CHANGE["Criteo"][0.5] == -1.259 and CHANGE["Avazu"][0.9] == -11.55
    assert set(CHANGE["Criteo"]) == set(CHANGE["Avazu"]) and list(DRAWN) == list(range(1, 11))
    assert DRAWN[1] == (0.7465, 0.5001) and DRAWN[10] == (0.7493, 0.7438)


def test_a_change_is_that_of_the_same_seed() -> None:
    def line(method: str, seed: int, auc: float) -> dict[str, object]:
        return {"training": method, "share": 0.5, "seed": seed, "auc": auc, "ace": 0.01}

    lines = [line(name, 0, 0.8) for name in METHODS] + [line(name, 1, 0.5) for name in METHODS]
    lines[METHODS.index("tr")]["auc"] = 0.88
    change = sections(lines)[1]
    row = dict(zip(change["head"], change["rows"][0], strict=True))
    assert row["tr"] == "5.00 +- 5.00" and row["te"] == "0.00 +- 0.00"
    assert row["tr, printed: Criteo"] == "-1.259"


def test_the_command_prints_tables_and_writes_lines_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    real = table(500)
    header = ",".join(real.domain.names)
    np.savetxt(tmp_path / "tiny.csv", real.codes, fmt="%d", delimiter=",", header=header, comments="")
    (tmp_path / "tiny-domain.json").write_text(json.dumps(dict(real.domain.sizes)))
    lines, page = tmp_path / "lines.json", tmp_path / "page.html"
    BENCH.command(
        [
            *("--florist", "--data", str(tmp_path), "--table", "tiny", "--label", "label", "--shares", "0.5"),
            *("--epochs", "1", "--batch", "64", "--json", str(lines), "--html", str(page)),
        ]
    )
    told = capsys.readouterr().out
    assert "Tables 3 and 8" in told and "-1.259" in told and "0.7493" in told
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [line["training"] for line in written] == [
        "full",
        "partial",
        "vanilla",
        "te",
        "tr",
        "draws=1",
        "draws=10",
    ]
    assert all(0 <= line["auc"] <= 1 and 0 <= line["ace"] <= 1 for line in written)
    assert all(0.5 <= line["attack"] <= 1 for line in written if line["training"].startswith("draws"))
    html = page.read_text()
    assert "Table 5" in html and "-11.55" not in html and "-1.14" in html and "http-equiv" in html


def test_a_table_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    BENCH.command(["--florist", "--data", str(tmp_path)])
    assert f"not in {tmp_path}, left out: adult-vfl" in capsys.readouterr().out


def test_without_the_extra_the_command_that_gets_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.csv").write_text("a,label\n1,0\n")
    (tmp_path / "tiny-domain.json").write_text('{"a": 2, "label": 2}')
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None)
    with pytest.raises(StudyInvalid, match="pip install 'torch"):
        BENCH.command(["--florist", "--data", str(tmp_path), "--table", "tiny"])
    with pytest.raises(UsageError, match="--shares takes numbers between 0 and 1"):
        BENCH.command(["--florist", "--data", str(tmp_path), "--shares", "0.5,1"])
