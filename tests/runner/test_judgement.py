"""What a result says of itself: relations, warnings, parameters under which the promise says little, one
default algorithm."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cosynth import CosynthWarning, Study, Synthesizer, load, run_study
from runner.commands.cli import main
from runner.results.warnings import emphasised, of_columns, texts_of, warnings_of
from runner.study import problems
from synth.algorithm import proposed
from synth.judgement.parameters import best_guess, unsafe
from synth.judgement.relations import Relations, relations
from tests.acceptance.small_tables import DELTA, case
from tests.runner import small
from tests.runner.studies import write_study
from tests.synth.oracles import ideal

COLUMNS = {"a": 2, "b": 3}


def judged(permuted: bool, rows: int = 1500, epsilon: float = 3.0) -> Relations:
    """The verdict on a run of the proposed algorithm on a table with one strong predictor."""
    from mpc_protocols.functionality import unobserved
    from synth.budget.accounting import Accountant
    from synth.workload import Workload

    table = case("diabetes", rows, None, permuted)
    assert table is not None
    workload = Workload.from_spec({"degree": 2}, table.domain)
    algorithm = proposed()
    plan = algorithm.plan(
        table.domain, workload, algorithm.config(), epsilon=epsilon, delta=DELTA, adjacency="add-remove"
    )
    got = algorithm.run(ideal(table.rows, table.domain, Accountant(plan.budget)), plan, unobserved)
    return relations(got.model, got.measurements, table.domain.sizes, got.noise_share is not None)


def test_a_strong_relation_is_kept_and_named() -> None:
    found = judged(permuted=False)
    assert found.kept > 0 and ("glucose", "outcome") in [one.columns for one in found.strongest]
    assert found.sentence.startswith("Relations kept: ") and all(
        0 <= one.kept <= 1 for one in found.strongest
    )


def test_columns_without_relations_are_not_called_related() -> None:
    """A relation is claimed of one such result in ten at most; seven in a row have a chance of 1e-7."""
    assert any(judged(permuted=True).kept == 0 for _ in range(7))


def test_a_table_without_relations_warns_before_anything_else() -> None:
    none = Relations(0, 0, 3, 0.0, (), (), ("a", "b", "c"))
    codes = [one.code for one in warnings_of(none, "Too few.", 1.0, 1e-9, 100)]
    assert codes == ["no-relations", "few-rows"]
    assert not warnings_of(Relations(1, 1, 1, 1.0, (), (), ()), None, 1.0, 1e-9, 100)
    assert [one.code for one in warnings_of(none, None, 200.0, 0.005, 100)][:2] == [
        "unsafe-epsilon",
        "unsafe-delta",
    ]


def test_warnings_of_an_earlier_version_or_of_anything_else_are_none() -> None:
    assert texts_of({}) == texts_of({"warnings": "x"}) == texts_of({"warnings": [3, {"code": "x"}]}) == ()


def test_what_a_marginal_is_not_to_be_read_for() -> None:
    facts = {"relations": {"kept": 2, "unrelated": ["a"], "lost": [{"columns": ["c", "b"]}]}}
    assert of_columns(facts, ["a"]) == of_columns(facts, ["b", "d"]) == of_columns({}, ["a", "b"]) == ()
    assert of_columns(facts, ["a", "b"]) == ("No relation of a to another column shows in this table.",)
    (lost,) = of_columns(facts, ["b", "c", "d"])
    assert lost.startswith("A relation of b and c showed")
    assert "single columns only" in of_columns({"relations": {"kept": 0}}, ["b", "d"])[0]


def test_a_word_that_names_no_algorithm_is_one_problem(tmp_path: Path) -> None:
    (found,) = problems(write_study(tmp_path, ('algorithm = "aim"', 'algorithm = "ctgan"')))
    assert "did you mean" in found


def test_where_a_promise_says_little() -> None:
    assert not unsafe(3.0, 1e-9, 1000)
    assert [one.code for one in unsafe(10.5, 1e-9, None)] == ["unsafe-epsilon"]
    assert [one.code for one in unsafe(1.0, 1e-3, 1000)] == ["unsafe-delta"] and not unsafe(1.0, 1e-5, 1000)
    assert best_guess(0.0, 0.0) == 0.5 and best_guess(1.0, 0.0) == pytest.approx(np.e / (1 + np.e))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_warnings_are_red_on_a_terminal_and_plain_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "note     WARNING: epsilon = 200 promises next to nothing.\nok"
    red = "\x1b[1;31mnote     WARNING: epsilon = 200 promises next to nothing.\x1b[0m\nok"
    assert emphasised(text, Terminal()) == red
    assert emphasised(text, io.StringIO()) == text
    monkeypatch.setenv("NO_COLOR", "1")
    assert emphasised(text, Terminal()) == text


def test_a_large_delta_is_refused_unless_it_is_accepted(tmp_path: Path) -> None:
    path = write_study(tmp_path, ("delta = 1e-9", "delta = 0.05"))
    (found,) = problems(path)
    assert "accept_delta" in found and "delta" in found
    assert not problems(write_study(tmp_path, ("delta = 1e-9", "delta = 0.05\naccept_delta = true")))
    others = problems(write_study(tmp_path, ("delta = 1e-9", "delta = 0.05\naccept_delta = 1")))
    assert any("accept_delta must be true or false" in other for other in others)


def test_one_algorithm_is_the_default_everywhere() -> None:
    study = Study.of("x", COLUMNS, ["a", "b", "c"], epsilon=1.0, delta=1e-6)
    from runner.starting.demo import HEAD
    from runner.starting.template import template

    assert study.algorithm == Synthesizer(COLUMNS, epsilon=1.0).study.algorithm == proposed().name
    assert f'algorithm = "{proposed().name}"' in HEAD
    assert all(f'algorithm = "{proposed().name}"' in template(vertical) for vertical in (False, True))
    root = Path(__file__).parents[2]
    assert f'algorithm = "{proposed().name}"' in (root / "docs/howto/first-study.md").read_text()
    for page in ("README.md", "docs/algorithms.md", "docs/reference/study-file.md"):
        sentences = re.split(r"[.|]\s", (root / page).read_text())
        assert any(f"`{proposed().name}`" in one or f'"{proposed().name}"' in one for one in sentences), page
    (taken,) = [
        one
        for one in re.split(r"\.\s", (root / "docs/reference/study-file.md").read_text())
        if "unless told otherwise" in one
    ]
    assert f"take `{proposed().name}`" in taken and "`Study.of` and `Synthesizer`" in taken
    assert (
        Study.of("x", COLUMNS, ["a", "b", "c"], epsilon=1.0, delta=1e-6, aim={"rounds": 5}).algorithm == "aim"
    )


def test_what_a_result_warns_of_is_said_wherever_its_user_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without relations at an epsilon that protects little: in run.json, on stderr, in Python, in
    every output."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    changes = [
        ('algorithm = "aim"', 'algorithm = "mosaic"'),
        ("[aim]\nrounds = 3\n", ""),
        ('"replicated"', '"ideal"'),
    ]
    trial = small.write(tmp_path / "study", changes=[*changes, ("epsilon = 4.0", "epsilon = 0.02")])
    out = tmp_path / "out"
    for option in ((), ("--json", "--replace")):
        assert main(["run", str(trial.path), "--out", str(out), *option]) == 0
        texts = [one["text"] for one in json.loads((out / "run.json").read_text())["warnings"]]
        assert texts and texts[0].startswith("No two columns of this table are related")
        assert capsys.readouterr().err.splitlines() == [f"WARNING: {text}" for text in texts]
    run = load(out)
    assert list(run.warnings) == texts and all(f"WARNING: {text}" in str(run) for text in texts)
    assert "epsilon 0.02" in str(run) and "5 columns" in str(run) and "No relations kept" in str(run)
    head = (out / "report.html").read_text().partition("<main>")[0]
    assert all(f'<p class="warning">{text}</p>' in head.replace("\u2019", "'") for text in texts)
    assert main(["sample", str(out), "--rows", "3"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"WARNING: {text}" for text in texts]
    assert main(["query", str(out), "age", "work"]) == 0
    assert capsys.readouterr().err.startswith("WARNING: No two columns of this table are related")
    with pytest.warns(CosynthWarning) as caught:
        again = run_study(str(trial.path), out=tmp_path / "python")
    assert [str(one.message) for one in caught if one.category is CosynthWarning] == list(again.warnings)
