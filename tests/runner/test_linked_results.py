"""Files of linked tables from a model: values of an order that lists them, and what a directory from
elsewhere may not do."""

import csv
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import UsageError
from runner.results.linked import People, linked_of, write_tables
from synth.domain import Domain
from synth.linked.tables import ChildTable, LinkedTables
from synth.mrf.fit import Measurement, fit
from tests.runner import linked as trials
from tests.runner.processes import run

PEOPLE = Domain.from_spec({"columns": {"sex": {"kind": "categorical", "values": ["f", "m"]}}})
MANY = 60


def tables(values: list[Any]) -> LinkedTables:
    """Visits in the order of a column of listed values, which is no alphabet's."""
    visits = Domain.from_spec({"columns": {"stage": {"kind": "ordinal", "values": values}}})
    return LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", 4, "stage", visits),))


@pytest.mark.parametrize("values", [["low", "mid", "high"], ["none", 1, 2]])
def test_children_stand_in_the_order_in_which_the_study_lists_its_values(
    tmp_path: Path, values: list[Any]
) -> None:
    """Of listed values that are texts and numbers too, which no sort can compare."""
    linked, rng = tables(values), np.random.default_rng(4)
    sizes = linked.unfolded.sizes
    stated = [
        Measurement(clique, rng.random(int(np.prod([sizes[name] for name in clique]))) * 100, 1.0)
        for clique in linked.cliques
    ]
    model = fit(sizes, stated, impossible=linked.unfolded.impossible)
    people = People.of(linked, model.sample(MANY, rng), 1)
    _, file = write_tables(tmp_path, linked, model, people, 1)
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    places = [(int(row["pid"]), [str(value) for value in values].index(row["stage"])) for row in rows]
    assert len({place for _, place in places}) == 3
    assert all(one <= after for one, after in pairwise(places))


def test_a_statement_that_names_a_path_is_damaged() -> None:
    own = tables(["low", "high"])
    spec = json.loads(json.dumps(own.to_spec()))
    assert linked_of({"linked": spec}, own.unfolded, "out") == own
    spec["parent"] = "../patients"
    with pytest.raises(UsageError, match=r"out/run.json does not state its linked tables"):
        linked_of({"linked": spec}, own.unfolded, "out")


@pytest.mark.parametrize("count", ["5", "-1", "999999999", "x"])
def test_a_table_of_people_with_numbers_that_no_study_allows_is_not_folded(
    tmp_path: Path, count: str
) -> None:
    file = tmp_path / "synthetic.csv"
    file.write_text(f"sex,visits_count\nf,{count}\n")
    with pytest.raises(ValueError, match=r"beyond max_rows|invalid literal"):
        People.read(tables(["low", "high"]), np.zeros((1, 4), dtype=np.int64), file)


def test_verify_compares_what_run_json_says_of_tables_with_the_study_and_looks_at_all_copies(
    tmp_path: Path,
) -> None:
    trial = trials.write(tmp_path, changes=[('backend = "replicated"', 'backend = "ideal"')], count=40)
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    end = run("run", trial.path, "--out", out, ledger=ledger, scratch=tmp_path)
    assert end.code == 0, end.complaint
    shutil.copytree(out, tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", out / "parties" / "north")
    assert run("verify", out, ledger=ledger, scratch=tmp_path).code == 0
    (out / "parties" / "north" / "visits.csv").write_text("pid\n")
    end = run("verify", out, ledger=ledger, scratch=tmp_path)
    assert end.code == 22 and "parties/north/visits.csv is not what the model makes" in end.complaint
    shutil.rmtree(out / "parties")
    (out / "report.html").unlink()
    facts = json.loads((out / "run.json").read_text())
    for stated in (None, {**facts["linked"], "parent": "../others"}):
        altered = {key: value for key, value in {**facts, "linked": stated}.items() if value is not None}
        (out / "run.json").write_text(json.dumps(altered))
        end = run("verify", out, ledger=ledger, scratch=tmp_path)
        assert end.code == 22 and "states another linked than follows from the study" in end.complaint
    assert not list(tmp_path.glob("**/others.csv"))
