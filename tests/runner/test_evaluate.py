"""`evaluate`: figures that mean what they say, and a page that is for one person only."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from runner.cli import main
from runner.evaluation.judge import judge, real_rows
from runner.report.files import load
from synth.metrics.copies import share_in
from tests.runner.test_columns import STUDY, write


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("judged")
    write(directory)
    (directory / "study.toml").write_text(STUDY)
    assert main(["run", str(directory / "study.toml"), "--out", str(directory / "out")]) == 0
    return directory


def test_figures_beside_those_of_real_rows_and_of_columns_apart(run: Path) -> None:
    finished = load(run / "out")
    real = real_rows(run / "clinic.csv", finished.domain)
    found = judge(finished, real, label="smokes")
    assert found.rows == (400, 900) and set(found.distances) == {1, 2, 3}
    for degree, figure in found.distances.items():
        assert 0 < figure.value < 0.9 and 0 < figure.real < 0.9, degree
    assert found.distances[1].value < 0.1  # epsilon 50
    assert found.prediction is not None and 0.3 < found.prediction.value < 0.7  # nothing is related to it
    assert [sum(counts) for counts in found.counts.values()] == [900] * 8
    distances = [value for _, value in found.worst]
    assert distances == sorted(distances, reverse=True) and len(distances) == 10


def test_a_perfect_table_and_a_label_that_follows(run: Path) -> None:
    """The real rows judged as if they were the synthetic ones: no distance, all of them copies, and a label that is known."""
    finished = load(run / "out")
    real = real_rows(run / "clinic.csv", finished.domain)
    days, ward = (finished.domain.names.index(name) for name in ("days", "ward"))
    real[:, ward] = np.where(real[:, days] == 0, 0, 1)
    object.__setattr__(finished, "codes", real)
    found = judge(finished, real, held_out=real, label="ward")
    assert [figure.value for figure in found.distances.values()] == [0, 0, 0]
    assert found.copies.value == found.copies.real == 1 and (found.copies.apart or 0) < 0.2
    assert found.prediction is not None and found.prediction.value > 0.999


def test_shares_of_equal_rows() -> None:
    rows = np.array([[0, 1], [2, 3]])
    assert share_in(np.array([[0, 1], [0, 1], [1, 0], [2, 3]]), rows) == 0.75
    assert share_in(np.array([[9, 9]]), rows) == 0


def test_the_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["evaluate", str(run / "out"), "--real", str(run / "clinic.csv")]
    page = tmp_path / "judged.html"
    before = {path.name for path in (run / "out").iterdir()}
    assert main([*asked, "--label", "smokes", "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Not private") and "prediction of smokes" in said and "pairs of columns" in said
    text = page.read_text()
    assert "Not private" in text and "Column by column" in text and text.count("<figure>") == 8
    assert stat.S_IMODE(page.stat().st_mode) == 0o600 and {p.name for p in (run / "out").iterdir()} == before
    assert main([*asked, "--json", "--test", str(run / "clinic.csv")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (
        facts["copies"]["real_rows"] == 1
        and "prediction" not in facts
        and facts["note"].startswith("Not private")
    )


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (["--label", "smoked"], 2, "has no such column"),
        (["--html", "OUT/judged.html"], 2, "passed on"),
        (["--real", "OUT/run.json"], 30, "must end in .csv or .parquet"),
    ],
)
def test_what_is_refused(
    run: Path, more: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [word.replace("OUT", str(run / "out")) for word in more]
    assert main(["evaluate", str(run / "out"), "--real", str(run / "clinic.csv"), *more]) == code
    assert sentence in capsys.readouterr().err
