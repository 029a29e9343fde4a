"""What `plan` says of quality: rows for each cell against noise, what so many rows carry, what to change."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.forecast.quality import CLEAR, LOST, Quality, lines, quality
from runner.party.synthesis import plan_of
from runner.study import Study
from synth.budget.accounting import rho_of

COLUMNS = {"age": {"kind": "integer", "low": 0, "high": 99}, "sex": 2, "work": 6, "region": 12}


def study(algorithm: str = "aim", rounds: object = 3, degree: int = 2, epsilon: float = 1.0) -> Study:
    tables: dict[str, Any] = {algorithm: {} if rounds is None else {"rounds": rounds}}
    return Study.of(
        "q",
        COLUMNS,
        ["p"],
        epsilon=epsilon,
        delta=1e-6,
        algorithm=algorithm,
        backend="ideal",
        workload={"degree": degree},
        **tables,
    )


def judged(of: Study, rows: int) -> Quality:
    found = quality(of, plan_of(of), rows)
    assert found is not None
    return found


def test_noise_is_told_as_a_share_of_the_rows() -> None:
    """By the formulas of the Gaussian mechanism: a marginal for a twentieth of rho has sigma^2 = 1 / (2 rho / 20)."""
    found = judged(study(), 5000)
    sigma = math.sqrt(1 / (2 * float(rho_of(1.0, 1e-6)) / 20))
    assert found.pair_sd == pytest.approx(sigma, rel=0.02)
    by_name = {pair.columns: pair for pair in found.pairs}
    assert len(by_name) == 6 and by_name["age", "region"].cells == 1200
    assert by_name["age", "region"].noise == pytest.approx(
        math.sqrt(2 / math.pi) * sigma * 1200 / 5000, rel=0.02
    )
    assert by_name["age", "region"].rows_per_cell == pytest.approx(5000 / 1200)
    assert found.cells == pytest.approx(CLEAR * 5000 / (math.sqrt(2 / math.pi) * sigma), abs=1.5)
    assert found.bins == math.isqrt(found.cells)
    assert next(each for each in found.columns if each.name == "work").rows_per_value == pytest.approx(
        5000 / 6
    )


def test_ten_times_the_rows_have_a_tenth_of_the_noise() -> None:
    few, many = judged(study(), 2000), judged(study(), 20_000)
    for one, other in zip(few.pairs, many.pairs, strict=True):
        assert one.noise == pytest.approx(10 * other.noise, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["aim", "mst", "mosaic"])
@pytest.mark.parametrize(
    ("rows", "epsilon", "warned"),
    [(300, 1.0, True), (571, 1.0, True), (300, 0.5, True), (200_000, 1.0, False)],
)
def test_few_rows_are_warned_of(algorithm: str, rows: int, epsilon: float, warned: bool) -> None:
    found = judged(study(algorithm, None, epsilon=epsilon), rows)
    assert (found.warning is not None) == warned
    assert any("independent columns would do about as well" in line for line in lines(found)) == warned


def test_advice_is_what_can_be_changed() -> None:
    advice = "\n".join(judged(study(rounds=2), 3000).advice)
    assert 'rounds = "adaptive"' in advice and "2 rounds cannot even join 4 columns" in advice
    assert "fewer bins" in advice and "age (100)" in advice
    assert "are a guess" in "\n".join(judged(study(rounds=9), 3000).advice)
    assert judged(study(rounds="adaptive"), 10**7).advice == ()
    assert "degree = 2" in "\n".join(judged(study(degree=3), 3000).advice)
    assert 'algorithm = "mosaic"' in "\n".join(judged(study("mst", None), 300).advice)
    mosaic = "\n".join(judged(study("mosaic", "adaptive"), 3000).advice)
    assert "fewer bins" not in mosaic and "mosaic" not in mosaic  # it chooses bins itself
    assert LOST > CLEAR


def test_plan_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(study().to_toml())
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "400"]) == 0
    said = capsys.readouterr().out
    assert "quality, for about 400 rows" in said and "WARNING    for about 400 rows" in said
    assert max(map(len, said[said.index("quality, ") :].splitlines())) < 170
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "400", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["quality"]
    assert told["bins"] >= 1 and told["pairs"][0]["columns"] == ["age", "sex"]
