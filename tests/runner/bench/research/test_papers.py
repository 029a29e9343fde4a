"""`bench paper`: when a figure agrees, what is printed of items that are run or not, and the page of states."""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mpc_protocols.errors import UsageError
from runner.bench.research.benches.paper import BENCH, NAMES
from runner.bench.research.papers.federated import DISTAIM, EPSILONS, FLAIM
from runner.bench.research.papers.paper import Claim, Figure, Item, Paper, Settings, number
from runner.bench.research.papers.show import show
from runner.bench.research.papers.split_columns import VERTIGAN, VERTIMRF
from runner.bench.research.papers.union import FLORIST
from runner.bench.research.vertical.splitters import by_correlation, by_importance
from tests.runner.processes import ROOT

PAPERS = (FLAIM, VERTIMRF, FLORIST, VERTIGAN, DISTAIM)
PAGE = (ROOT / "docs" / "design" / "papers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("ours", "printed", "verdict"),
    [
        ((1.0,), None, "no figure printed"),
        ((1.09,), (1.0, 1.0), "agrees"),
        ((0.91,), (1.0, 1.0), "agrees"),
        ((1.11,), (1.0, 1.0), "higher"),
        ((0.89,), (1.0, 1.0), "lower"),
        ((0.5, 1.5), (1.7, 1.7), "agrees"),
        ((1.0, 1.0), (1.7, 1.7), "lower"),
        ((0.06,), (0.052, 0.074), "agrees"),
        ((0.09,), (0.052, 0.074), "higher"),
        ((-1.2,), (-1.26, -1.14), "agrees"),
        ((2.1,), (-1.26, -1.14), "higher"),
    ],
)
def test_a_figure_agrees_within_a_tenth_or_two_spreads(
    ours: tuple[float, ...], printed: tuple[float, float] | None, verdict: str
) -> None:
    assert Figure("cell", ours, printed).verdict == verdict


def test_a_figure_without_a_run_is_none() -> None:
    with pytest.raises(ValueError, match="no run"):
        Figure("cell", ())


def shown(
    paper: Paper, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> tuple[str, list[dict[str, object]]]:
    lines = io.StringIO()
    show(paper, settings, lines)
    return capsys.readouterr().out, [json.loads(line) for line in lines.getvalue().splitlines()]


def test_what_is_run_stands_beside_the_printed_and_what_is_not_says_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def figures(settings: Settings) -> Iterator[Figure]:
        yield Figure("a, b", (0.5, 0.7), number(0.6))
        yield Figure("a, c", (3.0, 3.0), (0.1, 0.2))

    def nothing(settings: Settings) -> Iterator[Figure]:
        return iter(())

    items = (
        Item("table 1", "errors", "other data", figures),
        Item("table 2", "more", "its data are not public"),
        Item("table 3", "slow", "curves", figures, slow=True),
        Item("table 4", "absent", "other tables", nothing),
    )
    out, lines = shown(Paper("toy", "nobody", items), Settings(tmp_path, quick=True), capsys)
    assert re.search(r"a, b +0\.6 \(0\.14\) +0\.6 +agrees", out)
    assert re.search(r"a, c +3 \(0\) +0\.1 to 0\.2 +higher", out)
    assert "run: 1 agrees, 1 higher" in out and "other data" in out
    assert "not rerun\n  its data are not public" in out
    assert "not run: left out by --quick" in out and "not run: the folder holds none of its tables" in out
    assert [line["verdict"] for line in lines] == ["agrees", "higher"]


@pytest.mark.parametrize(
    ("means", "verdict"),
    [((0.9, 0.5), "holds"), ((0.5, 0.9), "does not hold"), ((0.9,), "not looked at: figures are lacking")],
)
def test_what_a_paper_says_in_words_is_looked_at(
    means: tuple[float, ...], verdict: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    falls = Claim("it falls", lambda found: found["late"] < found["early"])

    def figures(settings: Settings) -> Iterator[Figure]:
        for where, mean in zip(("early", "late"), means, strict=False):
            yield Figure(where, (mean,))

    curve = Item("figure over T", "error", "curves", figures, claims=(falls,))
    paper = Paper("toy", "nobody", (curve, Item("table 1", "errors", "not public"))).only("over T")
    out, lines = shown(paper, Settings(tmp_path), capsys)
    assert f'in words: "it falls": {verdict}\n' in out and "table 1" not in out
    assert lines[-1] == {"paper": "toy", "item": "figure over T", "claim": "it falls", "verdict": verdict}


def test_flaim_s_claims_hold_of_curves_that_are_as_printed_and_not_of_others() -> None:
    printed = {"naive": 0.8, "oracle": 0.62, "private": 0.43, "arriving": 0.42, "central": 0.2}
    for item in FLAIM.items:
        for claim in item.claims:
            assert claim.verdict(()) == "not looked at: figures are lacking"
    (curve,) = FLAIM.only("over epsilon").items
    for swapped, verdicts in ((None, {"holds"}), ("naive", {"holds", "does not hold"})):
        figures = [
            Figure(f"adult, {method}, epsilon {epsilon:g}, err", (0.1 if method == swapped else error,))
            for method, error in printed.items()
            for epsilon in EPSILONS
        ]
        assert {claim.verdict(figures) for claim in curve.claims} == verdicts


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
def test_every_owner_has_a_column_however_unequal_they_are(alpha: float) -> None:
    names = tuple("abcd")
    for seed in range(50):
        first = by_importance(names, alpha, np.random.default_rng(seed))
        assert 0 < len(first) < 4 and set(first) < set(names)


def test_splitters_by_correlation_put_twins_together_or_apart() -> None:
    rng = np.random.default_rng(3)
    one, two = rng.integers(0, 2, (2, 4000))
    codes = np.stack([one, two, one, two], axis=1)
    least, most = (by_correlation("abcd", codes, beta, rng) for beta in (0.0, 1.0))
    assert set(least) in ({"a", "c"}, {"b", "d"}) and set(most) not in ({"a", "c"}, {"b", "d"})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table under the name of FLAIM's."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(4)
    sizes = {"a": 3, "b": 2, "c": 4, "income>50K": 2}
    codes = {name: rng.integers(0, size, 1500) for name, size in sizes.items()}
    pd.DataFrame(codes).to_csv(folder / "adult.csv", index=False)
    (folder / "adult-domain.json").write_text(json.dumps(sizes), encoding="utf-8")
    return folder


def test_distaim_s_items_run_on_a_small_table(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, lines = shown(DISTAIM, Settings(tables, quick=True), capsys)
    told = [(line["item"], line["where"], line["printed"]) for line in lines]
    assert ("FLAIM table 2", "adult, arriving, err", [0.42, 0.42]) in told
    assert ("FLAIM table 2", "adult, central, nll", [19.3, 19.3]) in told
    cells = 3 * 2 * 4 + 3 * 2 * 2 + 3 * 4 * 2 + 2 * 4 * 2 + 6 + 12 + 6 + 8 + 4 + 8 + 3 + 2 + 4 + 2
    assert [line["ours"] for line in lines if "8 bytes" in str(line["where"])] == [[8 * cells / 1e6]]
    assert "magic" not in out


def test_items_that_need_no_table_run_in_an_empty_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = shown(VERTIGAN, Settings(tmp_path, quick=True), capsys)
    assert [line["verdict"] for line in lines] == ["agrees"] * 5 + ["higher"]
    _, lines = shown(FLORIST, Settings(tmp_path, quick=True), capsys)
    assert [(line["item"], line["verdict"]) for line in lines] == [
        ("cost of the private set union", "agrees")
    ]


def test_every_item_says_what_it_is_and_has_its_line_on_the_page() -> None:
    assert [paper.name for paper in PAPERS] == list(NAMES)
    for paper in PAPERS:
        section = PAGE.partition(f"\n## {paper.name}")[2].partition("\n## ")[0]
        assert section, f"docs/design/papers.md has no section {paper.name}"
        for item in paper.items:
            assert item.remark and f"| {item.label} |" in section, f"{paper.name}, {item.label}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["flaim", "--data", "nowhere-at-all"], "is no folder"),
        (["flaim", "--data", ".", "--seeds", "0"], "at least 1"),
        (["flame", "--data", "."], "flame"),
        (["flaim", "--data", ".", "--item", "table 99"], "no item called 'table 99'"),
        (["flaim"], "--data"),
        ([], "NAME"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises((UsageError, argparse.ArgumentError), match=re.escape(sentence)):
        BENCH.command(arguments)
