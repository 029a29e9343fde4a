"""The numbers behind the drawings, against brute force; and the drawings' geometry."""
# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association

from runner.report.agreement import agreements, associations, one_way, synthetic_counts
from runner.report.drawings import charts, graph
from runner.report.drawings.pair_chart import MAX_LINES, groups, pair_chart
from runner.report.drawings.svg import number, row_name, ticks
from runner.report.files import load
from runner.report.number_format import duration, listed, moment, percent, plain, size
from synth.domain import Categorical, Codes, Domain, Integer, Numeric
from synth.judgement.relations import cramers_v
from tests.runner.report.fake import GROUPS, PEOPLE, people, write_run


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figures")
    write_run(path)
    return path


def test_the_table_is_read_back_as_codes(tmp_path: Path) -> None:
    """Decoding then reading is the identity, for every kind of column, missing values and odd spellings
    included."""
    domain = Domain(
        ("i", "f", "t", "n", "c", "k"),
        (
            Numeric(-3, 40, 9, integral=True, missing=True),
            Numeric(0.1, 0.7, 7, missing=True),
            Categorical(('yes, "no"', " padded ", "NA", "null", "nan"), missing=True),
            Categorical((1, 2, 30)),
            Categorical((True, False)),
            Codes(5),
        ),
    )
    codes = people(domain, 2000)
    write_run(tmp_path, domain=domain, codes=codes, groups=(("i", "f"),))
    run = load(tmp_path)
    with (tmp_path / "synthetic.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run.codes)
    for j, (name, column) in enumerate(zip(domain.names, domain.columns, strict=True)):
        assert set(np.unique(run.codes[:, j])) <= set(range(column.size))
        for row, code in zip(rows, run.codes[:, j].tolist(), strict=True):
            text = row[name]
            if text == "":
                assert column.missing and code == column.size - 1
            elif isinstance(column, Numeric):
                assert column.bin_of(float(text)) == code
            elif isinstance(column, Categorical):
                assert text.lower() == str(column.values[code]).lower()
            else:
                assert int(text) == code


def test_agreement_is_the_definition(directory: Path) -> None:
    run = load(directory)
    found = agreements(run)
    assert [a.clique for a in found] == [*((name,) for name in PEOPLE.names), *GROUPS]
    for a, measurement in zip(found, run.measurements, strict=True):
        counts: dict[tuple[int, ...], int] = {}
        columns = [run.domain.names.index(name) for name in a.clique]
        for row in run.codes[:, columns].tolist():
            counts[tuple(row)] = counts.get(tuple(row), 0) + 1
        cells = np.ndindex(*(run.domain.sizes[name] for name in a.clique))
        expected = sum(
            abs(value / run.noisy_total - counts.get(cell, 0) / len(run.codes))
            for cell, value in zip(cells, measurement.values.tolist(), strict=True)
        )
        assert a.distance == pytest.approx(expected, rel=1e-9)
        assert a.noise == pytest.approx(
            math.sqrt(2 / math.pi) * math.sqrt(measurement.sigma2) * a.cells / run.noisy_total
        )
        assert int(synthetic_counts(run, a.clique).sum()) == len(run.codes)


def test_a_column_never_measured_alone_is_summed_from_the_best_group(directory: Path) -> None:
    run = load(directory)
    wide = next(m for m in run.measurements if m.clique == ("age", "married"))
    object.__setattr__(
        run, "measurements", tuple(m for m in run.measurements if m.clique not in (("age",), ("region",)))
    )
    found = {one.name: one for one in one_way(run)}
    assert found["region"].measured is None
    age = found["age"]
    assert age.source == ("age", "married") and age.measured is not None
    np.testing.assert_allclose(age.measured * run.noisy_total, wide.values.reshape(24, 2).sum(axis=1))
    assert age.spread * run.noisy_total == pytest.approx(math.sqrt(2 * wide.sigma2))


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_cramers_v_equals_scipy(rows: int, columns: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(1, 50, size=(rows, columns))
    assert cramers_v(counts.astype(float)) == pytest.approx(
        association(counts, method="cramer", correction=False), abs=1e-12
    )


def test_cramers_v_at_its_ends() -> None:
    assert cramers_v(np.eye(4)) == pytest.approx(1.0)
    assert cramers_v(np.ones((3, 5))) == pytest.approx(0.0, abs=1e-12)
    assert cramers_v(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])) == pytest.approx(1.0)
    assert cramers_v(np.array([[1.0, 2.0]])) == 0.0 and cramers_v(np.zeros((2, 2))) == 0.0


def test_associations_come_from_the_model(directory: Path) -> None:
    run = load(directory)
    strength = associations(run, ("age", "married", "region"))
    assert np.array_equal(strength, strength.T) and np.array_equal(np.diag(strength), np.ones(3))
    table = run.model.marginal(("age", "region")).reshape(24, 30)
    assert strength[0, 2] == pytest.approx(cramers_v(table))
    assert strength[0, 1] > 0.3  # measured together and strongly dependent by construction


def places(markup: str) -> dict[str, tuple[float, float, float]]:
    """Name -> (centre x, centre y, width) of the pills of a drawn graph."""
    found = re.findall(
        r'<g><title>([^<]*)</title><rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="26"', markup
    )
    return {name: (float(x) + float(w) / 2, float(y) + 13, float(w)) for name, x, y, w in found}


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 14), st.data())
def test_names_in_the_graph_never_overlap(count: int, data: st.DataObject) -> None:
    names = [f"column {i}" for i in range(count)]
    group = st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True)
    cliques = data.draw(st.lists(group.map(sorted).map(tuple), max_size=12, unique=True))
    for width, height in ((760.0, 440.0), (370.0, max(460.0, 34.0 * count))):
        lines: dict[tuple[str, ...], float] = {
            pair: 0.5 for clique in cliques for pair in combinations(clique, 2)
        }
        markup = graph.picture(names, cliques, lines, width=width, height=height, class_="graph")
        at = places(markup)
        assert set(at) == set(names)
        for (x1, y1, w1), (x2, y2, w2) in combinations(at.values(), 2):
            assert abs(x1 - x2) >= (w1 + w2) / 2 - 0.5 or abs(y1 - y2) >= 25.5
        total = float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', markup).group(1))  # type: ignore[union-attr]
        assert all(w / 2 <= x <= width - w / 2 and 13 <= y <= total - 13 for x, y, w in at.values())


def test_columns_measured_together_stand_closer() -> None:
    names = [f"c{i}" for i in range(8)]
    chain = [(names[i], names[i + 1]) for i in range(7)]
    at = places(graph.picture(names, chain, {}, width=760, height=440, class_="graph"))
    near = max(math.dist(at[a][:2], at[b][:2]) for a, b in chain)
    assert math.dist(at["c0"][:2], at["c7"][:2]) > 3 * near


def test_the_stronger_a_relation_the_heavier_its_line_in_a_crowd() -> None:
    """25 columns, every pair measured: no text but names, lines in the order of strength, each with its
    figure."""
    names = [f"c{i}" for i in range(25)]
    pairs = list(combinations(names, 2))
    strengths: dict[tuple[str, ...], float] = {pair: i / len(pairs) for i, pair in enumerate(pairs)}
    markup = graph.picture(names, pairs, strengths, width=760, height=450, class_="graph")
    drawn = re.findall(r"<line [^>]*stroke-width=\"([\d.]+)\" stroke-opacity=\"([\d.]+)\"", markup)
    widths, shades = ([float(line[place]) for line in drawn] for place in (0, 1))
    assert len(drawn) == 300 and widths == sorted(widths) and shades == sorted(shades) and widths[-1] > 5
    assert re.findall(r"<text[^>]*>([^<]*)</text>", markup) == names


COUNTED = Integer(0, 99, 100)


def test_a_pair_is_drawn_as_shares_that_add_up() -> None:
    domain = Domain(("n", "answer"), (COUNTED, Categorical(("no", "yes"))))
    counts = np.stack([np.full(100, 1.0), np.where(np.arange(100) < 50, 0.0, 3.0)], axis=1)
    drawn = pair_chart(domain, ("n", "answer"), [("rows", counts)])
    assert (drawn.lines, drawn.shares) == ("n", "answer") and [name for _, name in drawn.legend] == [
        "no",
        "yes",
    ]
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="17"', drawn.charts[0])]
    lines = [widths[i] + widths[i + 1] for i in range(0, len(widths), 2)]
    assert len(lines) == MAX_LINES and np.allclose(lines, lines[0], atol=0.02)
    assert "75\u00a0%" in drawn.charts[0] and "100\u00a0%" in drawn.charts[0]
    turned = pair_chart(domain, ("n", "answer"), [("rows", counts)], "n")
    assert (turned.lines, turned.shares) == ("answer", "n")


class Known:
    """Intervals, and bins of columns, that are known beforehand."""

    def __init__(
        self, found: list[list[tuple[float, float] | None]], bins: dict[str, Sequence[int]] | None = None
    ) -> None:
        self.found, self.bins_of, self.asked = found, bins or {}, list[object]()

    def __call__(
        self, of: str, groups: Sequence[Sequence[int]], by: str, lines: Sequence[Sequence[int]]
    ) -> list[list[tuple[float, float] | None]]:
        self.asked.append((of, groups, by, lines))
        return self.found

    def bins(self, pair: Sequence[str]) -> dict[str, Sequence[int]]:
        return {name: bins for name, bins in self.bins_of.items() if name in pair}


def test_what_was_counted_in_one_bin_is_drawn_as_one_group() -> None:
    domain = Domain(("job", "n"), (Categorical(("a", "b", "c", "d")), Integer(0, 7, 8)))
    counts = np.arange(32, dtype=np.float64).reshape(4, 8)
    sure = Known([[(0.1, 0.2)]] * 3, {"job": (0, 1, 0, 2), "n": (0, 0, 0, 1, 1, 1, 1, 1)})
    drawn = pair_chart(domain, ("job", "n"), [("rows", counts)], "n", sure)
    assert sure.asked == [("n", [(0, 1, 2), (3, 4, 5, 6, 7)], "job", [(1,), (3,), (0, 2)])]
    assert [name for _, name in drawn.legend] == ["0 to 2", "3 to 7"]
    assert "c and 1 more" in drawn.charts[0] and len(re.findall('class="whisker"', drawn.charts[0])) == 3


BINNED = Integer(0, 99, 10, missing=True, zero=True)


@given(
    st.lists(st.integers(0, 50), min_size=BINNED.size, max_size=BINNED.size),
    st.lists(st.integers(0, 4), min_size=BINNED.size, max_size=BINNED.size),
    st.integers(3, 9),
)
def test_groups_split_no_bin(sums: list[int], bins: list[int], most: int) -> None:
    for column in (BINNED, Categorical(tuple(f"v{i}" for i in range(BINNED.size))), Codes(BINNED.size)):
        of = {
            code: at
            for at, group in enumerate(groups(column, np.array(sums, float), most, bins))
            for code in group.codes
        }
        for one, other in combinations(range(BINNED.size), 2):
            assert bins[one] != bins[other] or not (sums[one] and sums[other]) or of.get(one) == of.get(other)


def test_ends_of_parts_have_their_intervals_and_it_is_counted_which_hold_them() -> None:
    domain = Domain(("group", "answer"), (Codes(2), Codes(3)))
    counts = np.array([[50.0, 25.0, 25.0], [10.0, 0.0, 90.0]])
    sure = Known([[(0.4, 0.6), (0.8, 0.9)], [(0.05, 0.2), None]])
    drawn = pair_chart(domain, ("group", "answer"), [("rows", counts)], "answer", sure)
    assert sure.asked == [("answer", [(0,), (1,), (2,)], "group", [(0,), (1,)])]
    assert drawn.inside == ((2, 3),) and drawn.is_sure  # .5 and .1 lie inside, .75 does not
    assert re.findall(r"interval: ([^<]*)<", drawn.charts[0]) == [
        "40\u00a0% to 60\u00a0%",
        "80\u00a0% to 90\u00a0%",
        "5\u00a0% to 20\u00a0%",
    ]
    without = pair_chart(domain, ("group", "answer"), [("rows", counts)], "answer")
    assert not without.is_sure and "whisker" not in without.charts[0]


@given(st.lists(st.integers(0, 50), min_size=100, max_size=100), st.integers(2, 9))
def test_groups_of_a_column_hold_every_row_once(sums: list[int], most: int) -> None:
    found = groups(COUNTED, np.array(sums, dtype=np.float64), most)
    codes = [code for group in found for code in group.codes]
    assert len(found) <= most and len(codes) == len(set(codes))
    assert sum(sums[code] for code in codes) == sum(sums)
    of_texts = groups(Categorical(tuple(f"v{i}" for i in range(100))), np.array(sums, dtype=np.float64), most)
    assert len(of_texts) <= most and sum(sums[code] for group in of_texts for code in group.codes) == sum(
        sums
    )


def test_a_long_name_takes_two_lines_and_is_not_cut() -> None:
    text = "a longer name of an occupation group"
    markup = row_name(100, 10, text, 20)
    assert markup.count("<text") == 2 and "…" not in markup
    assert " ".join(re.findall(r"([^<>]+)</text>", markup)) == text
    assert row_name(100, 10, "short", 20).count("<text") == 1


def test_a_budget_bar_is_to_scale() -> None:
    markup = charts.budget([("select", "one", 0.1), ("measure", "two", 0.3)], 0.8)
    x = [float(value) for value in re.findall(r'<rect x="([\d.]+)" y="0"', markup)]
    widths = [float(value) for value in re.findall(r'y="0" width="([\d.]+)"', markup)]
    assert x == [0, 125] and widths == pytest.approx([125, 375], abs=1.5)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(1, 9))
def test_ticks_are_round_and_inside(low: float, span: float, about: int) -> None:
    found = ticks(low, low + span, about)
    slack = 1e-6 * span + 1e-9 * abs(low)
    assert all(low - slack <= value <= low + span + slack for value in found)
    assert len(found) <= about + 1


@given(st.floats(-1e6, 1e6))
def test_coordinates_keep_two_decimals(value: float) -> None:
    assert abs(float(number(value)) - value) <= 0.0051 and number(value) != "-0"


def test_numbers_as_people_write_them() -> None:
    written = {
        plain(0.0123456): "0.0123",
        plain(0): "0",
        plain(1234.6): "1,235",
        plain(1e-5): "10⁻⁵",
        plain(2.5e-15): "2.5 × 10⁻¹⁵",
        plain(3e9): "3 × 10⁹",
        percent(0.5): "50 %",
        percent(0.12346, 2): "12.35 %",
        percent(1): "100 %",
        size(12): "12 B",
        size(4210): "4.21 kB",
        size(23_100_000): "23.1 MB",
        size(5e9): "5 GB",
        duration(0.25): "250 ms",
        duration(7.42): "7.42 s",
        duration(600): "10 min",
        duration(9000): "2 h 30 min",
    }
    assert {text.replace("\u00a0", " "): expected for text, expected in written.items()} == {
        v: v for v in written.values()
    }
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert (
        moment("2025-11-04T09:31:07+00:00") == "4 November 2025, 09:31 UTC"
        and moment("yesterday") == "yesterday"
    )
