"""What `plan` says of quality: rows for each cell against noise, what so many rows carry, what to change."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.commands.cli import main
from runner.forecast import trial
from runner.forecast.presumed.invented_table import invented_rows
from runner.forecast.quality import CLEAR, Quality, quality
from runner.party.synthesis import plan_of
from runner.study import Study
from runner.study.study_warnings import warned_of
from synth.budget.accounting import rho_of
from synth.domain import Domain
from synth.judgement.metrics import marginal
from synth.judgement.relations import cramers_v
from tests.runner import split

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
    """By the formulas of the Gaussian mechanism: a marginal for a twentieth of rho has sigma^2 = 1 / (2 rho /
    20)."""
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


@pytest.mark.parametrize("algorithm", ["mst", "mosaic"])
@pytest.mark.parametrize(("rows", "epsilon", "keeps"), [(200, 0.3, False), (8000, 1.0, True)])
def test_whether_relations_will_be_kept_is_tried(
    algorithm: str, rows: int, epsilon: float, keeps: bool
) -> None:
    of = study(algorithm, None, epsilon=epsilon)
    found = trial.trial(of, rows)
    assert found is not None and found.related.keeps is keeps and not found.unrelated.keeps
    assert found == trial.trial(of, rows)  # the same study is told the same each time
    assert ("no relations will be kept" in found.sentence) != keeps
    assert ("WARNING" in trial.lines(found)[0]) != keeps


def test_relations_are_expected_where_more_than_half_of_the_tables_keep_some() -> None:
    assert [trial.Tried(1.0, 3, 2, some).keeps for some in range(3)] == [False, False, True]


def test_all_together_may_have_more_rows_than_one_may_bring() -> None:
    tables: dict[str, Any] = {"privacy": {"max_rows": 1000}}
    of = Study.of("q", COLUMNS, ["p", "q", "r"], epsilon=1.0, delta=1e-6, backend="ideal", **tables)
    for rows in (2500, 5000):  # as a guess may be, also beyond what three may bring
        found = trial.trial(of, rows)
        assert found is not None and found.rows == rows


def test_what_is_advised_has_been_tried_and_kept_more() -> None:
    """AIM's columns of a hundred values: Mosaic's bins keep more on the same tables."""
    found = trial.trial(study(rounds=2), 3000)
    assert found is not None and found.helps
    assert all(of.kept > found.related.kept + trial.MIN_MORE for _, of in found.helps)
    said = "\n".join(trial.lines(found))
    assert 'algorithm = "mosaic": about' in said
    enough = trial.trial(study("mosaic", None), 50_000)
    assert enough is not None and enough.related.kept > 5 and not enough.helps


def test_a_study_without_single_marginals_is_not_tried() -> None:
    wide = Study.of(
        "w", {f"c{i}": 2 for i in range(trial.MAX_COLUMNS + 1)}, ["p"], epsilon=1, delta=1e-6, backend="ideal"
    )
    assert trial.trial(wide, 5000) is None


def counted(codes: NDArray[np.int64], domain: Domain, pair: tuple[str, ...]) -> NDArray[np.float64]:
    return marginal(codes, domain, pair).astype(np.float64).reshape([domain.sizes[name] for name in pair])


@pytest.mark.parametrize("related", [True, False])
def test_invented_rows_fit_the_study(related: bool) -> None:
    domain = study().domain
    codes = invented_rows(domain, 4000, 1, "work", related=related)
    assert codes.shape == (4000, 4) and (codes >= 0).all() and (codes < list(domain.sizes.values())).all()
    strengths = [
        cramers_v(counted(codes, domain, pair), corrected=True)
        for pair in itertools.combinations(domain.names, 2)
    ]
    assert (max(strengths) > 0.15) == related and (max(strengths) < 0.08) != related


def test_plan_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text(study().to_toml())
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "400"]) == 0
    said = capsys.readouterr().out
    assert (
        "quality, for about 400 rows" in said
        and "no relations will be kept: of invented tables of about 400 rows" in said
    )
    assert max(map(len, said[said.index("quality, ") :].splitlines())) < 170
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "400", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["quality"]
    assert told["bins"] >= 1 and told["pairs"][0]["columns"] == ["age", "sex"]
    assert told["warning"] == told["trial"]["sentence"] and told["trial"]["keeps"] is False
    assert told["advice"] == [words for words, _ in told["trial"]["helps"]]


def test_plan_counts_the_tables_that_private_files_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text(study().to_toml())
    (tmp_path / "rows.csv").write_text("age,sex,work,region\n" + "1,0,1,2\n" * 320)
    (tmp_path / "p.toml").write_text('data = "rows.csv"\n')
    asked = ["plan", str(tmp_path / "study.toml"), "--json"]
    assert main([*asked, "--private", f"p={tmp_path / 'p.toml'}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told["rows"] == 320 and "for your eyes only" in told["rows_from"] and told["quality"]["rows"] == 320
    )
    assert main([*asked, "--private", f"q={tmp_path / 'p.toml'}"]) == 2
    assert "the study has no party q; it has p" in capsys.readouterr().err
    assert main([*asked, "--private", str(tmp_path / "p.toml")]) == 2


def test_rows_of_a_vertical_study_are_those_in_common(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = split.write(tmp_path).path
    assert main(["plan", str(path), "--rows", "1600"]) == 0
    said = capsys.readouterr().out
    assert (
        "1,600 records at each owner (from --rows), half of them common to all; a table of about 800 rows"
        in said
    )
    assert "quality, for about 800 rows" in said


def test_a_label_of_many_values_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label, warned in (("age", True), ("sex", False)):
        of = Study.of(
            "q",
            COLUMNS,
            ["p"],
            epsilon=1,
            delta=1e-6,
            backend="ideal",
            workload={"degree": 2, "label": label},
        )
        assert [one.code for one in warned_of(of)] == ["wide-label"] * warned
        (tmp_path / "study.toml").write_text(of.to_toml())
        main(["check", str(tmp_path / "study.toml")])
        assert ("label names age, a column of 100 values" in capsys.readouterr().out) == warned
