"""`bench utility --vertical`: what is asked for, what a study says, scores, and a whole command on a small
table."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.errors import UsageError
from runner.bench.benches.utility import BENCH
from runner.bench.research.vertical.printed import cited, printed
from runner.bench.research.vertical.runs import Row, scores
from runner.bench.utility.tables import Table
from synth.domain import Codes, Domain


def table(rows: int = 500) -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, rows)
    codes = np.stack([a, rng.integers(0, 2, rows), (a + (rng.random(rows) < 0.2)) % 3], axis=1)
    return Table("tiny", Domain(("a", "b", "c"), (Codes(3), Codes(2), Codes(3))), codes)


def test_a_system_is_read_with_its_keys() -> None:
    row = Row.parse("vertimrf:encoder=mpc:adjacency=replace:backend=replicated")
    assert (row.algorithm, row.options, row.adjacency, row.backend) == (
        "vertimrf",
        {"encoder": "mpc"},
        "replace",
        "replicated",
    )
    with pytest.raises(UsageError, match="no algorithm 'aims' for columns split among owners"):
        Row.parse("aims")


def test_the_study_is_one_of_two_owners() -> None:
    study = tomllib.loads(Row.parse("aim:rounds=3").study(table(), 0.8, 1e-5))
    assert study["study"]["partition"] == "vertical" and study["aim"] == {"rounds": 3}
    assert [party.get("data") for party in study["party"]] == ["first.csv", "second.csv", None]
    assert study["privacy"]["max_rows"] >= 500


def test_a_table_equals_itself_and_a_constant_is_far_from_it() -> None:
    real = table()
    assert scores(real, real.codes) == {"tvd1": 0.0, "tvd2": 0.0, "tvd3": 0.0}
    far = scores(real, np.zeros_like(real.codes))
    assert far["tvd1"] == pytest.approx(np.mean([1 - (real.codes[:, j] == 0).mean() for j in range(3)]))
    assert far["tvd1"] < far["tvd2"] < far["tvd3"]


def test_printed_figures_stand_where_papers_have_them() -> None:
    assert printed("vertimrf:encoder=fm:adjacency=replace", "nltcs", "tvd3") == (0.052, 0.074)
    assert printed("vertimrf", "nltcs", "tvd3") is None and printed("vertigan", "adult-vfl", "tvd3") is None


def test_what_is_not_run_is_cited() -> None:
    head, names, *rows = cited()
    assert "not run" in head and names.split() == ["DPLT", "DPLT+", "VertiGAN"]
    web = "Web 0.7114 0.7251 0.7385 0.7124 0.7238 0.7484 0.6970 0.7776 0.7900"
    assert rows[0].split() == web.split() and len(rows) == 6


def test_the_command_prints_tables_and_writes_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny.csv").write_text(
        "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in table().codes.tolist())
    )
    (tmp_path / "tiny-domain.json").write_text('{"a": 3, "b": 2, "c": 3}')
    lines = tmp_path / "lines.jsonl"
    BENCH.command(
        f"--vertical --data {tmp_path} --tables tiny,absent --systems vertimrf --epsilon 100 --seeds 2 --json {lines}".split()
    )
    shown = capsys.readouterr().out
    assert "left out: absent" in shown and "tvd3, mean total variation distance of 3-way marginals" in shown
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(found) == 2 and all(line["tvd3"] < 0.2 for line in found)
    assert {line["vertical"] for line in found} == {"vertimrf"}
