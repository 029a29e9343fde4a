"""Single columns of everybody who is enrolled, by a run of its own; a later table of those who dropped by is
brought to them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.check.run import findings
from runner.study import load
from runner.study.read import problems
from synth.budget.accounting import rho_of
from synth.mrf import Model
from tests.runner import in_memory, small
from tests.worlds import collecting

IDEAL = ('backend = "replicated"', 'backend = "ideal"')
COLUMNS = [
    ('algorithm = "aim"', 'algorithm = "flaim"'),
    ("[aim]\nrounds = 3", '[flaim]\nvariant = "one-shot"'),
    ("degree = 2", "degree = 1"),
]
LOUD = ("epsilon = 4.0", "epsilon = 30.0")
NAMED = collecting.TABLE + 'registered = "enrolled.json"\n'


def finished(world: collecting.World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a run has left."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(world.folder / "ledger.db"))
    assert main(["run", str(world.trial.path), "--out", str(world.folder / "out")]) == 0
    return world.folder / "out"


def enrol(folder: Path, monkeypatch: pytest.MonkeyPatch, contributors: int = 6) -> dict[str, Any]:
    """measurements.json of a run on everybody's single columns, in bundles."""
    world = collecting.write(folder, contributors, changes=[*COLUMNS, LOUD, IDEAL])
    assert set(world.collection.layout.cliques) == {(name,) for name in small.COLUMNS}
    world.everybody()
    told: dict[str, Any] = json.loads((finished(world, monkeypatch) / "measurements.json").read_text())
    return told


@pytest.mark.parametrize("algorithm", ["aim", "mosaic"])
def test_the_table_follows_those_who_enrolled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """Six enrol, two drop by: noise is below a row, so shares of columns are those of six, within a
    hundredth."""
    enrolled = enrol(tmp_path / "enrolled", monkeypatch)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "enrolled.json").write_text(json.dumps(enrolled))
    named = [('algorithm = "aim"', f'algorithm = "{algorithm}"'), ("[aim]", f"[{algorithm}]")]
    world = collecting.write(tmp_path / "study", 6, changes=[IDEAL, LOUD, *named], table=NAMED)
    world.everybody(["c00", "c01"])
    out = finished(world, monkeypatch)
    facts = json.loads((out / "run.json").read_text())
    assert abs(facts["rows"] - 360) < 20 and abs(facts["privacy"]["noisy_total"] - 120) < 20
    told = facts["contributors"]["registered"]
    assert abs(told["rows"] - 360) < 20
    model = Model.load(out / "model.npz")
    for name in small.COLUMNS:
        real = world.marginal([name], world.names)
        share = model.marginal((name,)) / model.total
        assert abs(share - [count / sum(real) for count in real]).max() < 0.02
    page = (out / "report.html").read_text()
    assert "single columns are brought to those of" in page
    words = [str(finding) for finding in findings(world.trial.path, None, None, False)]
    assert any("who is in both runs has spent epsilon" in each for each in words)
    assert 0 < told["rho"] <= float(rho_of(30, Fraction(1, 10**6)))


def test_one_shot_runs_on_bundles_over_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of the total: standard deviation below 4; a false alarm below 1e-9."""
    world = collecting.write(tmp_path, 3, changes=[*COLUMNS[:2], LOUD])
    assert len(world.collection.layout.cliques) == 10
    world.everybody()
    with monkeypatch.context() as patched:
        described = in_memory.run(world.trial.path, tmp_path / "out", patched)
    for facts in described.values():
        assert [event["what"] for event in facts["privacy"]["events"]] == ["measure"]
        assert facts["contributors"]["took_part"] == list(world.names) and facts["selected"] == []
        assert abs(facts["privacy"]["noisy_total"] - 180) < 60
    assert len(described) == 3


@pytest.mark.parametrize(
    ("bend", "sentence"),
    [
        (None, "cannot be read"),
        ({"columns": {"age": 6}}, "other columns"),
        ({"measurements": []}, "every column of the study by itself"),
        ({"measurements": "twice"}, "every column of the study by itself"),
        ({"measurements": "short"}, "another number of values"),
        ({"measurements": "texts"}, "no count"),
        ({"measurements": "noise"}, "is no fraction"),
        ({"measurements": "huge"}, "is no fraction"),
        ({"measurements": "tiny"}, "out of range"),
        ({"measurements": "pair"}, "more than single columns"),
        ({"measurements": "selected"}, "more than single columns"),
        ({"measurements": "some"}, "of some custodians only"),
        ({"measurements": 3}, "not the measurements.json of a run"),
        ([], "not the measurements.json of a run"),
    ],
)
def test_a_file_that_is_not_such_a_runs_is_refused(tmp_path: Path, bend: Any, sentence: str) -> None:
    entries: list[dict[str, Any]] = [
        {"clique": [name], "sigma2": "3/2", "round": 0, "values": [5] * size}
        for name, size in small.SIZES.items()
    ]
    world = collecting.write(tmp_path, 2)
    path = world.trial.path
    path.write_text(path.read_text().replace(collecting.TABLE, NAMED))
    form: Any = {"columns": small.SIZES, "noisy_total": 30.0, "measurements": entries}
    if bend is not None:
        what = bend.get("measurements") if isinstance(bend, dict) else None
        first = entries[0]
        if what == "twice":
            entries.append(first)
        elif what == "short":
            first["values"] = [5]
        elif what == "texts":
            first["values"] = ["5"] * small.SIZES["age"]
        elif what == "noise":
            first["sigma2"] = "-3/2"
        elif what == "huge":
            first["sigma2"] = "1e3000000"
        elif what == "tiny":
            first["sigma2"] = "1/65"
        elif what == "pair":
            entries.append({"clique": [*small.SIZES][:2], "sigma2": "3/2", "round": 0, "values": [5]})
        elif what == "selected":
            first["round"] = 1
        elif what == "some":
            first["rows"] = 12
        else:
            form = {**form, **bend} if isinstance(bend, dict) else bend
        (tmp_path / "enrolled.json").write_text(json.dumps(form))
    (found,) = problems(path)
    assert "[contributors] registered" in found and sentence in found


def test_what_is_registered_is_in_the_digest(tmp_path: Path) -> None:
    world = collecting.write(tmp_path, 2)
    path = world.trial.path
    path.write_text(path.read_text().replace(collecting.TABLE, NAMED))
    seen = set()
    for count, total in ((5, 30.0), (6, 30.0), (6, 31.0)):
        entries = [
            {"clique": [name], "sigma2": "3/2", "round": 0, "values": [count] * size}
            for name, size in small.SIZES.items()
        ]
        form = {"columns": small.SIZES, "noisy_total": total, "measurements": entries}
        (tmp_path / "enrolled.json").write_text(json.dumps(form))
        own = load(path).contributors
        assert own is not None
        seen.add(own.public()["registered"])
    assert len(seen) == 3
