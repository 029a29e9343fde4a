"""`bench utility`: its tables, networks and scores, and a whole command on a table of a few hundred rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused, UsageError
from runner.bench import registry
from runner.bench.benches.utility import BENCH
from runner.bench.utility.exactness import VARIANTS
from runner.bench.utility.networks import Network
from runner.bench.utility.options import spread
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import DRAWN_ROWS, chosen, names, read
from synth.domain import Codes, Domain
from synth.judgement.metrics.prediction import auc

BIF = """network unknown {
}
variable Rain { type discrete [ 2 ] { no, yes }; }
variable Wet {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( Rain ) {
  table 0.75, 0.25;
}
probability ( Wet | Rain ) {
  (no) 0.9, 0.1, 0.0;
  (yes) 1e-1, 0.2, 7.0e-1;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rain.bif").write_text(BIF)
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 400)
    table = np.stack([a, (a + (rng.random(400) < 0.2)) % 3, rng.integers(0, 2, 400)], axis=1)
    lines = ["a,b,c", *(",".join(map(str, row)) for row in table.tolist())]
    (tmp_path / "tiny.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tiny-domain.json").write_text('{"a": 3, "b": 3, "c": 2}')
    return tmp_path


def test_a_network_is_read_and_drawn_from(folder: Path) -> None:
    network = Network.read(folder / "rain.bif")
    assert network.parents == {"Rain": (), "Wet": ("Rain",)}
    rows = network.sample(40_000, np.random.default_rng(1))
    joint = np.bincount(rows[:, 0] * 3 + rows[:, 1], minlength=6) / len(rows)
    expected = [0.675, 0.075, 0.0, 0.025, 0.05, 0.175]
    assert np.abs(joint - expected).max() < 0.012  # five deviations of the largest: false alarms below 1e-5
    assert joint[2] == 0


@pytest.mark.parametrize(
    ("old", "new"), [("(yes) 1e-1, 0.2, 7.0e-1;", ""), ("0.75", "0.7"), ("( Rain ) {", "( Snow ) {")]
)
def test_a_damaged_network_is_refused_by_name(folder: Path, old: str, new: str) -> None:
    (folder / "rain.bif").write_text(BIF.replace(old, new))
    with pytest.raises(DataRefused, match=r"rain\.bif"):
        Network.read(folder / "rain.bif")


def test_tables_are_found_and_those_that_are_not_there_are_named(folder: Path) -> None:
    assert names(folder) == ["rain", "tiny"]
    tables, absent = chosen(folder, ["tiny", "adult", "tiny@100"])
    assert [t.name for t in tables] == ["tiny", "tiny@100"] and absent == ["adult"]
    assert [len(t.codes) for t in tables] == [400, 100]
    drawn = read(folder, "rain")
    assert drawn is not None and drawn.codes.shape == (DRAWN_ROWS, 2)
    with pytest.raises(UsageError, match="no folder"):
        names(folder / "elsewhere")
    (folder / "tiny-domain.json").write_text('{"a": 2, "b": 3, "c": 2}')
    with pytest.raises(DataRefused, match="outside the sizes"):
        read(folder, "tiny")


def test_rows_are_algorithms_with_keys_of_their_table(folder: Path) -> None:
    assert Row.parse("mosaic:rounds=40:max_model_mb=2.5").options == {"rounds": 40, "max_model_mb": 2.5}
    with pytest.raises(UsageError, match="no algorithm 'oracle'"):
        Row.parse("oracle")
    table = read(folder, "tiny")
    assert table is not None
    with pytest.raises(UsageError, match="does not know"):
        run(Row.parse("mst:colour=3"), table, 1.0, 1e-5, 0)


def test_equal_seeds_give_equal_scores(folder: Path) -> None:
    table = read(folder, "tiny")
    assert table is not None
    first, again, other = (
        run(Row.parse("aim:rounds=2"), table, 2.0, 1e-5, seed).scores for seed in (3, 3, 4)
    )
    assert first == again != other


def test_the_command_prints_means_and_writes_a_line_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "lines.jsonl"
    BENCH.command(
        f"--data {folder} --tables tiny,adult --algorithms independent,mst,mosaic --epsilon 1,4 --seeds 2 --json {out}".split()
    )
    said = capsys.readouterr().out
    assert "left out: adult" in said and "epsilon 4" in said and "+-" in said
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 3 * 2 * 2
    assert all(0 <= line["err"] <= 2 and 0.9 < line["rho_share"] <= 1 for line in lines)


@pytest.mark.parametrize("wrong", [["--epsilon", "0"], ["--seeds", "0"], ["--tables", "nix"]])
def test_what_makes_no_sense_is_refused(folder: Path, wrong: list[str]) -> None:
    with pytest.raises(UsageError):
        BENCH.command(["--data", str(folder), *wrong])


def test_it_is_found_and_has_a_command_of_its_own() -> None:
    assert isinstance(registry.load()["utility"], registry.Survey)


def test_the_spread_is_the_standard_error_of_the_mean() -> None:
    assert spread([1.0, 2.0, 3.0]) == "2.0000 +- 0.5774" and spread([]) == "-"


def test_the_area_is_one_for_what_is_known_and_a_half_for_nothing() -> None:
    domain = Domain(("x", "y", "label"), (Codes(4), Codes(3), Codes(2)))
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 4, 2000), rng.integers(0, 3, 2000)
    known = np.stack([x, y, x >= 2], axis=1).astype(np.int64)
    assert auc(known, known, domain, "label") == 1.0
    random = known.copy()
    random[:, 2] = rng.integers(0, 2, 2000)
    assert abs(auc(known, random, domain, "label") - 0.5) < 0.07  # five deviations
    constant = known.copy()
    constant[:, 2] = 0
    assert auc(constant, known, domain, "label") == 0.5
    with pytest.raises(ValueError, match="both values"):
        auc(known, constant, domain, "label")
    with pytest.raises(ValueError, match="two values"):
        auc(known, known, domain, "x")


def test_without_noise_picks_and_counts_are_those_of_the_rows_and_all_is_charged(folder: Path) -> None:
    table = read(folder, "tiny")
    assert table is not None
    row = Row.parse("mosaic:rounds=4")
    runs = [run(row, table, 3.0, 1e-5, 1, exact) for exact in (None, *VARIANTS)]
    assert runs[0].scores["err"] == runs[1].scores["err"] and "model_err" not in runs[0].scores
    assert [one.rho_share for one in runs[1:]] == [pytest.approx(runs[0].rho_share, abs=0.05)] * 4
    assert (
        runs[4].scores["model_err"] < 0.01 < runs[1].scores["model_err"]
    )  # of 400 rows, the triple is measured


def test_the_parts_of_an_error_are_printed_written_and_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, shown = folder / "parts.jsonl", folder / "parts.html"
    BENCH.command(
        f"--data {folder} --tables tiny --algorithms mst --epsilon 3 --seeds 2 --parts --json {lines} --html {shown}".split()
    )
    assert "selection and measurements" in capsys.readouterr().out
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(found) == 4 * 2 + 1
    parts = found[-1]["parts"]
    whole = [line["err"] for line in found[:-1] if line["exact"] == "nothing"]
    assert parts["whole"] == pytest.approx(sum(whole) / 2) and parts["two halves"] > 0
    text = shown.read_text()
    assert "mst on tiny, epsilon 3" in text and f"{parts['structure']:.4f}" in text and "src=" not in text
    with pytest.raises(UsageError, match="goes with --parts"):
        BENCH.command(["--data", str(folder), "--tables", "tiny", "--html", str(shown)])
