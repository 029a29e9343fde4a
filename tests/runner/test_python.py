"""The Python API: studies in code, what a finished run answers, one table on one machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from datetime import UTC, date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgba

from cosynth import CosynthError, Run, Study, Synthesizer, between, load, run_study
from mpc_protocols.errors import DataRefused, StudyInvalid, UsageError
from runner.results.query import standard_error
from runner.study.toml_text import to_toml
from synth.synthesis import Measured
from tests.runner import small

COLUMNS = {
    "age": {"kind": "integer", "low": 20, "high": 79, "bins": 6},
    "work": {"kind": "categorical", "values": ["Private", "Gov", "None"], "missing": True},
    "born": {"kind": "date", "low": date(1940, 1, 1), "high": date(2009, 12, 31), "step": "year"},
    "sick": {"kind": "boolean"},
    "grade": 3,
}


def table(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(20, 80, rows)
    return pd.DataFrame(
        {
            "age": age,
            "work": ["None" if each > 64 else "Private" if each % 2 else None for each in age],
            "born": [date(2020 - int(each), 3, 4) for each in age],
            "sick": rng.random(rows) < age / 100,
            "grade": rng.integers(0, 3, rows),
        }
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    folder = tmp_path_factory.mktemp("python")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSYNTH_LEDGER", str(folder / "ledger.db"))
        synthesizer = Synthesizer(
            COLUMNS, epsilon=20.0, delta=1e-6, aim={"rounds": 4}, privacy={"max_rows": 4096}
        )
        assert "not fitted" in repr(synthesizer) and "protects nothing" in repr(synthesizer)
        with pytest.raises(UsageError, match="call fit first"):
            synthesizer.sample(1)
        return synthesizer.fit(table())


@pytest.fixture(scope="module")
def run(fitted: Synthesizer) -> Run:
    return load(fitted.run.directory)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.times(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), VALUES, max_size=4))
def test_a_tree_comes_back_from_its_text(tree: dict[str, Any]) -> None:
    read = tomllib.loads(to_toml(tree))
    assert read == tree and json.dumps(read, default=str) == json.dumps(tree, default=str)  # the order, too


@pytest.mark.parametrize("tree", [{"a": None}, {"a": float("inf")}, {1: 2}, {"a": [object()]}])
def test_what_toml_has_no_form_of_is_refused(tree: Any) -> None:
    with pytest.raises(TypeError):
        to_toml(tree)
    with pytest.raises(StudyInvalid, match="The study: a value has no form"):
        Study.from_dict(tree)


def test_one_study_by_four_ways(tmp_path: Path) -> None:
    trial = small.write(tmp_path)
    study = Study.read(trial.path)
    assert Study.from_toml(trial.path.read_text(), tmp_path).public() == study.public()
    assert Study.from_dict(tomllib.loads(trial.path.read_text()), tmp_path).public() == study.public()
    (tmp_path / "again.toml").write_text(study.to_toml())
    again = Study.read(tmp_path / "again.toml")
    assert again.public() == study.public() and again.parties[0].data == study.parties[0].data
    assert Study.from_toml(study.to_toml(), tmp_path).parties[0].data == study.parties[0].data
    tree = tomllib.loads(study.to_toml())
    tree["party"][0]["data"] = {"url": "sqlite://a%20b.db?x", "table": "people"}
    placed = Study.from_dict(tree, tmp_path).parties[0].data
    assert placed is not None and placed.url == f"sqlite://{tmp_path}/a%20b.db?x"
    made = Study.of(
        "trial",
        tree["domain"]["columns"],
        [{key: value for key, value in party.items() if key != "data"} for party in tree["party"]],
        epsilon=4.0,
        delta=1e-6,
        aim={"rounds": 3},
        privacy={"max_rows": 4096},
        session=tree["session"],
    )
    assert made.public() == study.public()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"epsilon": -1},
            "The study: [privacy] epsilon must be a number greater than 0 and less than 1e+06, got -1.",
        ),
        ({"algorithm": "aimm"}, "The study: [study] algorithm must be"),
        ({"aim": {"rouds": 3}}, 'The study: [aim] unknown key "rouds"'),
        ({"columns": {"a": {"kind": "text"}}}, "free text cannot be synthesised"),
    ],
)
def test_problems_name_the_study_and_no_file(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CosynthError) as refused:
        Study.of(
            **{
                "name": "x",
                "columns": {"a": 2, "b": 3},
                "parties": ["p"],
                "epsilon": 1,
                "delta": 1e-6,
                **change,
            }
        )
    assert sentence in refused.value.sentence and "/" not in refused.value.sentence.partition(" (")[0]


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="its text is not TOML"):
        Study.from_toml("[study")


def test_a_run_is_what_fit_has_made(fitted: Synthesizer, run: Run) -> None:
    assert run.summary == fitted.run.summary and run == fitted.run
    assert len(run.synthetic) == run.summary["rows"] and run.summary["backend"] == "ideal"
    assert f"{run.summary['rows']:,} rows" in repr(fitted)
    assert {measured.columns for measured in run.measurements} >= {("age",), ("sick",)}
    assert len(run.graph().nodes) == 5 and len(run.junction_tree().nodes) >= 1


def test_rows_have_the_types_of_their_columns(run: Run) -> None:
    rows = run.sample(700, seed=3)
    assert list(rows.columns) == list(COLUMNS) and len(rows) == 700
    assert rows["age"].dtype == np.int64 and rows["born"].dt.year.between(1940, 2009).all()
    assert (
        rows["sick"].dtype == bool
        and rows["work"].isna().any()
        and set(rows["work"].dropna()) <= {"Private", "Gov", "None"}
    )
    pd.testing.assert_frame_equal(rows, run.sample(700, seed=3))
    assert not rows.equals(run.sample(700))


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ({"work": "Private", "sick": True}, lambda rows: (rows["work"] == "Private") & rows["sick"]),
        ({"work": None}, lambda rows: rows["work"].isna()),
        (
            {"work": ["Gov", None], "grade": {0, 2}},
            lambda rows: (rows["work"] != "Private") & (rows["grade"] != 1),
        ),
        ({"age": between(30, 41)}, lambda rows: rows["age"].between(30, 49)),
        (
            {"age": 77, "born": between("1940-05-01", date(1950, 1, 1))},
            lambda rows: (rows["age"] > 69) & (rows["born"].dt.year < 1951),
        ),
    ],
)
def test_rows_of_a_kind(run: Run, where: dict[str, Any], holds: Any) -> None:
    rows = run.sample(150, where)
    assert len(rows) == 150 and holds(rows).all()


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"wrk": 1}, 'has no column wrk (did you mean "work"?)'),
        ({"work": "private"}, "'private' is not a value of it"),
        ({"work": []}, "the list of values is empty"),
        ({"age": 19}, "19 is outside 20 to 79"),
        ({"age": between(40, 30)}, "ends in the wrong order"),
        ({"work": between("Gov", "None")}, "no order"),
        ({"age": object()}, "is of a type that no column holds"),
    ],
)
def test_conditions_that_no_row_can_have_are_refused(run: Run, where: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        run.sample(1, where)
    assert sentence in refused.value.sentence


def test_a_marginal_has_the_standard_error_of_what_was_measured(run: Run) -> None:
    ages = run.query("age")
    (measured,) = [each for each in run.measurements if each.columns == ("age",)]
    assert ages.attrs["basis"] == "measured" and len(ages) == 6
    assert 0 < ages["standard_error"][0] <= float(measured.sigma2) ** 0.5
    assert ages["count"].sum() == pytest.approx(ages.attrs["total"]) and ages["share"].sum() == pytest.approx(
        1
    )
    together = [each.columns for each in run.measurements if len(each.columns) > 1]
    assert run.query(*together[0])["standard_error"].notna().all()
    wide = run.query("age", "work", "sick", "grade")
    assert wide.attrs["basis"] == "not measured together" and wide["standard_error"].isna().all()
    with pytest.raises(UsageError, match="The run has no column agee"):
        run.query("agee")


def test_a_run_answers_with_intervals(run: Run) -> None:
    found = run.infer(
        "mean(age)", "share(work == 'Private')", "share(sick == true & grade == 1 | age < 30)", level=0.9
    )
    assert found["low"][0] < found["estimate"][0] < found["high"][0] and found["licence"][0] == "measured"
    assert found["bound_low"][0] <= found["low"][0] - 4 and "age x sick x grade" in found["reason"][2]
    assert found["low"].isna().tolist() == [False, False, True] and found.attrs == {
        "level": 0.9,
        "target": "population",
        "note": "",
    }
    rows = run.infer("share(work == 'Private')", target="rows")
    assert rows["noise_share"][0] == 1 and rows["standard_error"][0] < found["standard_error"][1]
    with pytest.raises(UsageError, match="no column agee"):
        run.infer("mean(agee)")


def test_pictures_are_a_page_that_loads_nothing(run: Run, tmp_path: Path) -> None:
    picture = run.plot("columns", "graph", "budget")
    page = picture.save(tmp_path / "run.html").read_text(encoding="utf-8")
    assert page == picture.html and "Columns" in page and "The budget" in page
    assert "default-src 'none'" in page and not re.search(r"<script|https?://(?!www\.w3\.org)", page)
    shown = picture._repr_html_()
    assert shown.count("<iframe") == 1 and "<svg" not in shown  # inside an attribute, escaped
    assert str(picture.height) in shown and 300 < picture.height < 6000
    assert run.plot().height > run.plot("graph").height
    with pytest.raises(UsageError, match='did you mean "columns"'):
        run.plot("colums")
    with pytest.raises(UsageError, match="cannot be written"):
        picture.save(tmp_path / "nowhere" / "run.html")


def test_pictures_are_a_matplotlib_figure_of_the_same_marks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = run.plot("columns", "graph", "budget")
    figure = picture.figure()
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert len(figure.axes) == len(run.synthetic.columns) + 2 and set(run.synthetic.columns) <= texts
    faces = [patch.get_facecolor() for axes in figure.axes for patch in axes.patches]
    filled = {to_hex(face) for face in faces if to_rgba(face)[3] > 0}
    assert {"#559793", "#fcfbf8"} <= filled and "#000000" not in filled  # bars and names, by the style sheet
    for name in ("run.png", "run.pdf", "run.svg", "run.html"):
        assert picture.savefig(tmp_path / name).stat().st_size > 1000
    for name in ("run.xyz", "nowhere/run.png"):
        with pytest.raises(UsageError, match=r"cannot be written|is not written as"):
            picture.savefig(tmp_path / name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"matplotlib, which is not installed; .*pip install"):
        picture.savefig(tmp_path / "run.png")


def test_replicates_are_tables_of_the_study(run: Run) -> None:
    tables = run.replicates(3, 50, seed=7)
    assert [len(table) for table in tables] == [50] * 3
    assert all(list(table.columns) == list(run.sample(1).columns) for table in tables)
    assert not tables[0].equals(tables[1]) and tables[2].equals(run.replicates(3, 50, seed=7)[2])
    assert len(run.replicates(2)[0]) == run.summary["rows"]
    for number in (1, 5000):
        with pytest.raises(UsageError, match="replicates can be made"):
            run.replicates(number)


def test_standard_errors_are_those_of_sums_and_of_weighted_means() -> None:
    sizes = {"a": 2, "b": 5}
    zeros = np.zeros(10, np.int64)
    both, alone = Measured(("a", "b"), 4, 1, zeros), Measured(("a",), 5, 0, zeros[:2])  # type: ignore[arg-type]
    assert standard_error([both], sizes, ("b", "a")) == 2
    assert standard_error([both], sizes, ("a",)) == pytest.approx(20**0.5)
    assert standard_error([both, alone], sizes, ("a",)) == pytest.approx((1 / 20 + 1 / 5) ** -0.5)
    assert standard_error([alone], sizes, ("a", "b")) is None


def test_a_frame_of_real_rows_judges_the_table(run: Run) -> None:
    found = run.evaluate(table(), label="sick")
    assert set(found.distances) == {1, 2, 3} and found.prediction is not None
    assert str(found).startswith("Not private")
    with pytest.raises(DataRefused) as refused:
        run.evaluate(table().assign(grade=7))
    assert refused.value.sentence.startswith('The frame of real rows, column "grade", row 1:')
    with pytest.raises(DataRefused) as refused:
        run.evaluate(table().assign(grade=[object()] * 600))
    assert refused.value.sentence.startswith('The frame of real rows, column "grade", cannot be written')
    with pytest.raises(UsageError, match="The frame of test rows must be a pandas DataFrame, got list"):
        run.evaluate(table(), [1])


def test_a_notebook_shows_facts_as_text(run: Run, tmp_path: Path) -> None:
    page = run._repr_html_()
    assert "epsilon 20" in page and "ideal" in page and "<script" not in page
    facts = {**run.summary, "study": "<script>x</script>", "columns": run.summary["columns"]}
    assert "<script" not in Run(tmp_path, facts)._repr_html_()


def test_a_report_is_a_path_that_a_notebook_shows_as_the_page(run: Run) -> None:
    report = run.report
    assert report == run.directory / "report.html" and report.read_bytes().startswith(b"<!doctype html>")
    shown = report._repr_html_()
    assert (
        shown is not None and shown.startswith("<iframe srcdoc=") and "<h1" not in shown and "&lt;h1" in shown
    )
    assert report.parent._repr_html_() is None, "a folder is shown as what it is"


def test_tables_are_read_and_harmonised_in_a_notebook_without_widgets(tmp_path: Path) -> None:
    """DuckDB takes itself to be in one where this IPython says so, and then asks ipywidgets for a progress bar."""
    (tmp_path / "north.csv").write_text("AGE,sick\n" + "40,false\n41,true\n" * 20)
    (tmp_path / "north.toml").write_text('data = "north.csv"\n[harmonise]\nnames = "ignore case"\n')
    study = Study.of(
        "x",
        {name: COLUMNS[name] for name in ("age", "sick")},
        ["north"],
        epsilon=1,
        delta=1e-6,
        backend="ideal",
    )
    (tmp_path / "study.toml").write_text(study.to_toml())
    code = (
        "import sys, types; shell = types.ModuleType('IPython')\n"
        "shell.get_ipython = lambda: types.SimpleNamespace(config={'IPKernelApp': {}})\n"
        "sys.modules['IPython'], sys.modules['ipywidgets'] = shell, None\n"
        "from cosynth import Study; from runner.commands.cli import main\n"
        "print(*Study.propose('north.csv').columns)\n"
        "sys.exit(main(['check', 'study.toml', '--private', 'north=north.toml']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout.startswith("AGE sick\n") and "north: its table fits" in done.stdout, done.stderr
    assert done.returncode == 0


def test_load_says_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no finished run") as refused:
        load(tmp_path)
    assert "--out" not in refused.value.sentence
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(UsageError, match=r"Study\.read"):
        load(tmp_path / "study.toml")


def test_refused_frames_are_named_by_their_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    study = Study.of("x", COLUMNS, ["north", "south"], epsilon=1.0, delta=1e-6, backend="ideal")
    with pytest.raises(DataRefused) as refused:
        run_study(study, {"north": table(50), "south": table(50).assign(age="old")}, tmp_path / "out")
    assert refused.value.sentence.startswith(
        'The frame of party south, column "age", row 1: the value is not a'
    )
    with pytest.raises(DataRefused, match=r"but for capitals; write names = .*, or rename them\."):
        run_study(study, {"north": table(50), "south": table(50).rename(columns=str.upper)}, tmp_path / "out")
    with pytest.raises(StudyInvalid, match="The study: no party has data"):
        run_study(study, out=tmp_path / "out")
    with pytest.raises(StudyInvalid, match="The study: data is given for west"):
        run_study(study, {"west": table(5)}, tmp_path / "out")
    assert not list(tmp_path.glob("out/*.parquet")) and not (tmp_path / "out" / "run.json").exists()
