"""`evaluate`: figures that mean what they say, and a page that is for one person only."""

from __future__ import annotations

import itertools
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from parties.budget.ledger import Ledger
from runner.commands.cli import main
from runner.report.files import Run, load
from runner.results.finished_run import agreed_study
from runner.review.evaluation import prediction, private_score
from runner.review.evaluation.judge import judge, real_rows, rows_by_rules
from runner.review.evaluation.page import write_page
from runner.review.evaluation.words import strongest, verdict
from runner.study import load as read_study
from runner.study import private_file
from runner.study.declared.tables import Unit
from synth.budget.accounting import Accountant, rho_of
from synth.domain import Domain
from synth.judgement.metrics import marginal, total_variation
from synth.judgement.metrics.copies import share_in
from tests.runner import split
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
    distances = [figure.value for _, figure in found.worst]
    assert distances == sorted(distances, reverse=True) and len(distances) == 10


def test_a_perfect_table_and_a_label_that_follows(run: Path) -> None:
    """The real rows judged as if they were the synthetic ones: no distance, all of them copies, and a label
    that is known."""
    finished = load(run / "out")
    real = real_rows(run / "clinic.csv", finished.domain)
    days, ward = (finished.domain.names.index(name) for name in ("days", "ward"))
    real[:, ward] = np.where(real[:, days] == 0, 0, 1)
    object.__setattr__(finished, "codes", real)
    found = judge(finished, real, held_out=real, label="ward")
    assert [figure.value for figure in found.distances.values()] == [0, 0, 0]
    assert found.copies.value == found.copies.real == 1 and (found.copies.apart or 0) < 0.2
    assert found.prediction is not None and found.prediction.value > 0.999


def test_yardsticks_are_of_equal_size_and_the_verdict_says_what_is_lost(run: Path) -> None:
    """Few real rows lie far from each other: real rows are still the nearest, whatever the table, and lost is
    said to be lost."""
    finished = load(run / "out")
    rng = np.random.default_rng(8)
    real = real_rows(run / "clinic.csv", finished.domain)[:200]
    days, ward = (finished.domain.names.index(name) for name in ("days", "ward"))
    real[:, ward] = np.where(real[:, days] == 0, 0, 1)
    apart = np.column_stack([rng.permutation(column) for column in real.T])
    for codes, lost in ((apart, True), (real[rng.integers(0, 200, 4000)], False)):
        object.__setattr__(finished, "codes", codes)
        found = judge(finished, real, label="ward")
        assert found.compared == (100, 100)
        for degree in (2, 3):
            figure = found.distances[degree]
            assert figure.real < (figure.apart or 0) and (figure.real < figure.value) == lost
        said = " ".join(verdict(found))
        assert ("Relations are lost" in said and "useless" in said) == lost
        assert ("Relations kept" in said and "100% of what real rows give" in said) != lost
        assert ("days", "ward") in {pair.columns for pair in strongest(found) if pair.carried is not None}


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
    assert "Not private" in text and "Column by column" in text and text.count("<figure>") >= 8
    assert stat.S_IMODE(page.stat().st_mode) == 0o600 and {p.name for p in (run / "out").iterdir()} == before
    assert main([*asked, "--json", "--test", str(run / "clinic.csv")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (
        facts["copies"]["real_rows"] == 1
        and "prediction" not in facts
        and facts["note"].startswith("Not private")
    )


def test_of_two_columns_there_is_a_picture_too_and_of_one_there_is_none(run: Path, tmp_path: Path) -> None:
    finished, page = load(run / "out"), tmp_path / "judged.html"
    real = real_rows(run / "clinic.csv", finished.domain)
    found = judge(finished, real)
    for relations in (strongest(found)[:1], []):
        write_page(page, finished, real, replace(found, relations=relations))
        assert ("What goes with what" in page.read_text()) == bool(relations)


def written_otherwise(run: Path, folder: Path) -> tuple[Path, Path]:
    """A private file and the clinic's table as that one reads it."""
    private, table = folder / "private.toml", folder / "clinic.csv"
    private.write_text(
        '[csv]\ndelimiter = ";"\n[harmonise.columns.ward]\nfrom = "station"\nvalues = { alpha = "A" }\n'
        '[ledger]\nfile = "ledger.db"\ndataset = "patients"\ncap_epsilon = 5.0\ncap_delta = 1e-6\n'
    )
    text = (run / "clinic.csv").read_text().replace("ward", "station")
    table.write_text(text.replace(",A\n", ",alpha\n").replace(",A\r\n", ",alpha\r\n").replace(",", ";"))
    return private, table


def test_rows_are_read_by_a_private_file_whose_ledger_is_not_touched(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, table = written_otherwise(run, tmp_path)
    asked, more = ["evaluate", str(run / "out"), "--json"], ["--private", str(private)]
    capsys.readouterr()
    assert main([*asked, "--real", str(run / "clinic.csv"), "--test", str(run / "clinic.csv")]) == 0
    facts = capsys.readouterr().out
    assert main([*asked, "--real", str(table), "--test", str(table), *more]) == 0
    assert capsys.readouterr().out == facts and not (tmp_path / "ledger.db").exists()
    assert main([*asked, "--real", str(table)]) == 30


def test_rows_without_an_identifier_are_left_out_as_a_run_leaves_them_out(run: Path, tmp_path: Path) -> None:
    study = agreed_study(load(run / "out").facts, run / "out" / "run.json")
    assert study.domain == load(run / "out").domain
    header, *rows = (run / "clinic.csv").read_text().splitlines()
    lines = [
        f"person,{header}",
        *(f"{number if number % 9 else ''},{row}" for number, row in enumerate(rows)),
    ]
    (tmp_path / "clinic.csv").write_text("\n".join(lines))
    (tmp_path / "private.toml").write_text('[harmonise]\nmissing_ids = "leave out"\n')
    rules = private_file.load(tmp_path / "private.toml").rules
    persons = replace(study, privacy=replace(study.privacy, unit=Unit("person", 1)))
    assert len(rows_by_rules(tmp_path / "clinic.csv", persons, rules)) == 800
    assert len(real_rows(tmp_path / "clinic.csv", study.domain)) == 900
    owners = read_study(split.write(tmp_path / "owners").path)
    with pytest.raises(UsageError, match="join all owners' columns"):
        rows_by_rules(tmp_path / "clinic.csv", owners, rules)


def test_a_score_that_may_be_told_is_charged(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, real_file = written_otherwise(run, tmp_path)
    asked = ["evaluate", str(run / "out"), "--real", str(real_file), "--private", str(private), "--json"]
    capsys.readouterr()
    assert main([*asked, "--private-score", "4"]) == 0
    told = json.loads(capsys.readouterr().out)
    finished = load(run / "out")
    real = real_rows(run / "clinic.csv", finished.domain)
    exact = whole_distance(finished, real)
    # rows are scaled by a noisy number, too: a tenth of rho buys it an sd below a hundredth of the rows. 7
    # sd: 1e-11
    assert abs(told["value"] - exact) < 7 * told["standard_error"] + 0.02
    (entry,) = Ledger(tmp_path / "ledger.db").entries("patients")
    assert float(entry.spent.rho) == pytest.approx(told["rho"]) and entry.state == "settled"
    assert told["rho"] <= float(rho_of(4, 1e-6)) and {begun.event.what for begun in entry.events} == {
        "total",
        "distances",
    }
    assert main([*asked, "--private-score", "4"]) == 50  # the cap
    assert "cap" in capsys.readouterr().err and len(Ledger(tmp_path / "ledger.db").entries("patients")) == 1


def whole_distance(finished: Run, real: NDArray[np.integer[Any]]) -> float:
    """Mean total variation of pairs of whole tables, which is what the score tells."""
    pairs = list(itertools.combinations(finished.domain.names, 2))
    return total_variation(real, finished.codes, finished.domain, pairs)


def test_the_score_has_the_law_of_its_noise(run: Path) -> None:
    """Mean of many: within 7 standard errors of the exact distance to the scaled table (false alarms: below
    1e-11)."""
    finished = load(run / "out")
    study = agreed_study(finished.facts, run / "out" / "run.json")
    real = real_rows(run / "clinic.csv", finished.domain)
    pairs = private_score._pairs(study)
    budget, sigmas = private_score._budget(study, 50.0, len(pairs))
    found = [
        private_score._released(
            study,
            finished,
            pairs,
            lambda cliques: [marginal(real, finished.domain, clique) for clique in cliques],
            Accountant(budget),
            sigmas,
        )
        for _ in range(12)
    ]
    error = found[0][1]
    exact = whole_distance(finished, real)
    mean = sum(value for value, _ in found) / len(found)
    assert abs(mean - exact) < 7 * error / len(found) ** 0.5 + 2e-3  # the number of rows is off by a few
    assert len({value for value, _ in found}) > 1


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (["--label", "smoked"], 2, "has no such column"),
        (["--html", "OUT/judged.html"], 2, "passed on"),
        (["--test", "OUT/run.json"], 30, "must end in .csv, .tsv, .parquet or .xlsx"),
        (["--private-score", "1"], 2, "--private-score needs --private FILE"),
        (["--private-score", "0", "--private", "PRIVATE"], 2, "must be an epsilon above 0"),
        (["--private-score", "1e-12", "--private", "PRIVATE"], 2, "buys nothing"),
        (["--private-score", "1", "--label", "smokes"], 2, "--label shows exact figures"),
        (["--private", "x.toml"], 10, "x.toml"),
    ],
)
def test_what_is_refused(
    run: Path, tmp_path: Path, more: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "private.toml").write_text('[ledger]\nfile = "ledger.db"\n')
    places = {"OUT": run / "out", "PRIVATE": tmp_path / "private.toml"}
    for name, place in places.items():
        more = [word.replace(name, str(place)) for word in more]
    assert main(["evaluate", str(run / "out"), "--real", str(run / "clinic.csv"), *more]) == code
    assert sentence in capsys.readouterr().err


def test_a_label_of_many_values_is_asked_for_by_few_questions() -> None:
    """Of an age three cuts near its quartiles, whoever's is missing left out; of a name the commonest values;
    so the number of models does not grow with the label's values."""
    rng = np.random.default_rng(4)
    domain = Domain.from_spec(
        {
            "columns": {
                "age": {"kind": "integer", "low": 0, "high": 99, "missing": True},
                "place": {"kind": "categorical", "values": [f"p{k}" for k in range(40)]},
                "few": {"kind": "categorical", "values": ["a", "b", "c"]},
                "code": {"kind": "codes", "size": 40},
            }
        }
    )
    age = np.append(rng.integers(0, 80, 3000), np.full(200, 100))
    place = np.minimum(rng.geometric(0.2, len(age)) - 1, 39)
    code = 39 - place  # an occupation's: most people have the last ones, and none is above another
    real = np.column_stack([age, place, np.where(age >= 40, 2, age % 2), code])
    cuts = prediction.questions(domain, "age", real)
    assert [cut.high for cut in cuts] == [100] * 3 and {cut.missing for cut in cuts} == {100}
    shares = [float(np.mean(age[age < 100] >= cut.low)) for cut in cuts]
    assert np.allclose(shares, [0.75, 0.5, 0.25], atol=0.03)
    assert [question.words for question in prediction.questions(domain, "few", real)] == ["a", "b", "c"]
    named = prediction.questions(domain, "place", real)
    assert [question.words for question in named] == [f"p{k}" for k in range(8)]
    coded = prediction.questions(domain, "code", real)
    assert [question.words for question in coded] == [str(k) for k in range(32, 40)]
    found = prediction.predicted(domain, "age", cuts, [(real, real, real)])
    assert found.value == found.real > 0.85 and list(found.asked) == [cut.words for cut in cuts]
    assert cuts[1].words == f"{cuts[1].low} and above"
    assert (
        prediction.predicted(domain, "few", prediction.questions(domain, "few", real), [(real,) * 3]).asked
        == []
    )
    alone = np.zeros((9, 4), int)
    for label, said in (("age", "one value of it only"), ("plase", '(did you mean "place"?)')):
        with pytest.raises(UsageError) as raised:
            prediction.questions(domain, label, alone)
        assert said in str(raised.value)
    with pytest.raises(UsageError, match="name more real rows"):
        prediction.predicted(domain, "age", cuts, [(real, real, alone)])
