"""A kind of column is one class, one declaration and, where it is to be proposed, one guess: a toy goes the
whole way, from a table and a study to rows, a report and answers, with no other file changed."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mpc_protocols.errors import StudyInvalid, UsageError
from parties.data.counting.coding import Coder
from parties.data.counting.local_marginals import count
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import ColumnRule, Rules
from parties.data.harmony.values import Change
from parties.data.linked.opening import open_source
from parties.data.location import locate
from runner.api import Synthesizer, between
from runner.starting import proposals
from runner.starting.custodians import compared
from runner.starting.proposals import Texts
from synth.domain import Codes, Column, Domain, column_from_spec
from synth.domain.keys import kind_schema
from synth.domain.kinds import KINDS
from tests.parties.data.tables import write_csv, write_duckdb
from tests.source_files import nodes, parsed
from tests.toys.weekday_kind import NAMES, WEEKDAY, Weekday, guess

ROOT = Path(__file__).parents[2]
PRODUCT = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
DAYS = ["Monday", "mon", "Tue", "SUNDAY", None, "Sunday", "Wed"]
DOMAIN = Domain(("day", "x"), (Weekday(missing=True), Codes(2)))


def test_no_layer_compares_the_class_of_a_column() -> None:
    kinds, todo = {"Column"}, [Column]
    while todo:
        todo = [below for kind in todo for below in kind.__subclasses__()]
        kinds |= {kind.__name__ for kind in todo}
    assert {"Codes", "Calendar", "Boolean", "Edged"} <= kinds
    paths = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (path for path in paths if re.search("is(instance|subclass)", path.read_text("utf-8"))):
        module = parsed(path)
        domain = {
            alias.name
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synth.domain")
            for alias in node.names
        } | {node.name for node in module.body if isinstance(node, ast.ClassDef)}
        for call in nodes(path):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in ("isinstance", "issubclass")
            ):
                named = {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)}
                assert not named & kinds & domain, f"{path}:{call.lineno} asks for a class; ask the column"


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "weekday", WEEKDAY)
    monkeypatch.setattr(proposals, "GUESSES", [guess, *proposals.GUESSES])


def test_the_study_declares_it_and_says_what_is_wrong() -> None:
    assert column_from_spec({"kind": "weekday", "missing": True}, "x") == Weekday(missing=True)
    assert kind_schema("weekday")["properties"] == {
        "kind": {"const": "weekday"},
        "missing": {"type": "boolean"},
    }
    with pytest.raises(StudyInvalid, match=r'"boolean", "weekday", got .dow. \(did you mean "weekday"\?\)'):
        column_from_spec({"kind": "dow"}, "x")
    with pytest.raises(StudyInvalid, match="a weekday column knows missing"):
        column_from_spec({"kind": "weekday", "bins": 3}, "x")
    constrained = DOMAIN.constrained([{"if": {"day": "Sunday"}, "then": {"x": 0}}], "refuse")
    [(clique, cells)] = constrained.impossible.items()
    assert clique == ("day", "x") and np.argwhere(cells).tolist() == [[6, 1]]


def test_values_are_coded_and_what_is_none_is_a_misfit() -> None:
    codes, misfits = Coder(Weekday(missing=True)).code(pa.array(DAYS))
    assert codes.tolist() == [0, 0, 1, 6, 7, 6, 2] and not misfits
    _, [misfit] = Coder(Weekday()).code(pa.array(["Mon", "Moonday"]))
    assert misfit.row == 1 and misfit.reason == "the value is not one that the study declares for this column"


@pytest.mark.parametrize("push_down", [None, False, True])
def test_a_table_is_counted_in_memory_and_inside_a_database(tmp_path: Path, push_down: bool | None) -> None:
    table: dict[str, Sequence[object]] = {"day": DAYS, "x": [0, 1, 1, 0, 1, 1, 0]}
    if push_down is None:
        location = write_csv(tmp_path / "people.csv", table)
    else:
        write_duckdb(tmp_path / "people.duckdb", table)
        url = f"duckdb://{tmp_path / 'people.duckdb'}"
        location = locate({"url": url, "table": "s.people", **({"push_down": True} if push_down else {})})
    with open_source(location) as source:
        counts = count(source, DOMAIN, [("day", "x")], max_rows=100).counts([("day", "x")])[0]
    there = [(0, 0), (0, 1), (1, 1), (6, 0), (7, 1), (6, 1), (2, 0)]
    assert sorted(map(tuple, np.argwhere(counts.reshape(8, 2)).tolist())) == sorted(there)
    assert counts.sum() == len(DAYS)


def test_a_private_file_maps_to_it() -> None:
    step = fit(
        Rules("p.toml", columns={"day": ColumnRule(values={"Montag": "Mon"})}, stated=True), DOMAIN, ()
    ).step("day")
    codes, _ = Coder(DOMAIN["day"]).code(Change(step)(pa.array(["Montag", "Tue"])))
    assert codes.tolist() == [0, 1]
    with pytest.raises(StudyInvalid, match="values maps 'So' to 'Sonntag', which the study does not have"):
        fit(Rules("p.toml", columns={"day": ColumnRule(values={"So": "Sonntag"})}, stated=True), DOMAIN, ())


def test_it_is_proposed_from_one_table_and_from_several() -> None:
    one, other = Counter({"Mon": 3, "Sun": 2}), Counter({"monday": 4, "TUE": 4})
    assert proposals.proposal("day", one, 6).keys == (("kind", "weekday"), ("missing", True))
    together = compared({"a": Texts(5, {"day": one}), "b": Texts(8, {"Day": other})})
    assert [found.keys for found in together.proposals] == [(("kind", "weekday"),)]
    assert not together.notes


def test_a_run_reports_samples_and_answers_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"day": rng.choice(np.array([*NAMES[:4], None], object), 400), "x": rng.integers(0, 2, 400)}
    )
    columns: dict[str, Any] = {"day": {"kind": "weekday", "missing": True}, "x": 2}
    run = Synthesizer(columns, epsilon=20.0).fit(frame, out=tmp_path / "out").run
    table = pd.read_csv(tmp_path / "out" / "synthetic.csv")
    assert {"Monday", "Thursday"} <= set(table["day"].dropna()) <= set(NAMES)
    page = run.report.read_text(encoding="utf-8")
    assert "7 values or missing" in page and "Wednesday" in page
    assert set(run.sample(50, where={"day": ["tue"]})["day"]) == {"Tuesday"}
    with pytest.raises(UsageError, match="'Moonday' is not a value of it"):
        run.sample(5, where={"day": ["Moonday"]})
    with pytest.raises(UsageError, match="has no order that between could follow"):
        run.sample(5, where={"day": between("Mon", "Tue")})
    assert 0.1 < run.infer("share(day == 'Mon')")["estimate"][0] < 0.3
    with pytest.raises(UsageError, match="Column day holds texts, which have no mean"):
        run.infer("mean(day)")


@pytest.mark.parametrize("name", KINDS)
def test_the_reference_page_has_a_row_of_each_kind_with_its_keys(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "study-file.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{name}` | `")]
    assert all(f"`{key}`" in row.split("|")[2] for key in KINDS[name].keys), row
