"""What is known to be impossible: how a study says it, which cells it excludes, and that decoded values keep
it."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from synth.domain import Domain, Edged

COLUMNS: dict[str, Any] = {
    "married": {"kind": "categorical", "values": ["never", "now", "once"]},
    "years": {"kind": "integer", "low": 0, "high": 60, "bins": 12, "zero": True, "missing": True},
    "age": {"kind": "numeric", "low": 0, "high": 90, "bins": 5, "integral": True},
    "spouse": {"kind": "numeric", "low": 0, "high": 90, "bins": 3, "missing": True},
    "in": {"kind": "date", "low": "2020-01-01", "high": "2020-12-31", "step": "month"},
    "out": {"kind": "date", "low": "2020-01-01", "high": "2021-12-31", "step": "quarter", "missing": True},
    "pain": {"kind": "ordinal", "values": ["none", "some", "much"]},
    "worst": {"kind": "ordinal", "values": ["none", "some", "much"], "missing": True},
}
NEVER = {"if": {"married": "never"}, "then": {"years": 0, "spouse": {"missing": True}}}


def domain(*constraints: object, **more: object) -> Domain:
    return Domain.from_spec({"columns": COLUMNS, "constraints": list(constraints), **more})


def test_an_implication_excludes_cells() -> None:
    found = domain(NEVER, {"if": {"age": {"below": 18}}, "then": {"married": ["never"]}}).impossible
    assert [*found] == [("married", "years"), ("married", "spouse"), ("married", "age")]
    years, spouse, age = found.values()
    assert not years[1:].any() and years[0].tolist() == [
        False,
        *([True] * 12),
        False,
    ]  # a missing value contradicts nothing
    assert spouse[0].tolist() == [True, True, True, False] and not spouse[1:].any()
    assert age.tolist() == [[False] * 5, [True, *([False] * 4)], [True, *([False] * 4)]]


def test_an_order_excludes_what_no_two_values_of_the_bins_can_keep() -> None:
    found = domain({"order": ["in", "out"]}, {"order": ["pain", "worst"]}).impossible
    months = found["in", "out"]
    assert months.shape == (12, 9) and not months[:, 8].any()  # missing
    assert [int(row.argmin()) for row in months] == [month // 3 for month in range(12)]
    assert found["pain", "worst"].tolist() == [
        [False] * 4,
        [True, False, False, False],
        [True, True, False, False],
    ]


def test_what_follows_from_orders_is_known() -> None:
    columns = {name: {"kind": "codes", "size": 3} for name in "abc"}
    spec = {"columns": columns, "constraints": [{"order": ["c", "a"]}, {"order": ["a", "b"]}]}
    found = Domain.from_spec(spec)
    assert [one.text for one in found.constraints] == ["c <= a", "a <= b", "c <= b"]
    assert found.impossible["b", "c"].tolist() == [[False, True, True], [False, False, True], [False] * 3]
    with pytest.raises(StudyInvalid, match="in a circle"):
        Domain.from_spec({"columns": columns, "constraints": [{"order": ["a", "b"]}, {"order": ["b", "a"]}]})


def test_a_domain_with_constraints_is_written_and_read_again() -> None:
    given = domain(NEVER)
    assert Domain.from_spec(given.to_spec()) == given and hash(given) == hash(domain(NEVER))
    assert given.to_spec() != domain(NEVER, broken_rows="leave out").to_spec()
    assert "constraints" not in domain().to_spec()
    assert given.subset(("married", "age")).constraints == ()
    assert given.constraints[0].text == "married = never implies years = 0 and spouse = missing"


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ({"when": {}}, "1: A constraint must be { if"),
        ({"if": {"married": "never"}, "then": {}}, "then must say"),
        (
            {"if": {"maried": "never"}, "then": {"years": 0}},
            "It names 'maried', which the domain does not have",
        ),
        (
            {"if": {"married": "Never"}, "then": {"years": 0}},
            "if.married is 'Never', which this column does not have",
        ),
        ({"if": {"married": "never"}, "then": {"years": 3}}, "then.years is 3, which shares its bin"),
        (
            {"if": {"married": "never"}, "then": {"age": {"missing": True}}},
            "then.age must be a value, a list",
        ),
        ({"if": {"age": {"below": 20}}, "then": {"married": "never"}}, "if.age divides the bin 18 to 35"),
        (
            {"if": {"age": {"below": "20"}}, "then": {"married": "never"}},
            "if.age must give at_least and below",
        ),
        (
            {"if": {"married": "now"}, "then": {"married": "never"}},
            "It names a column both in if and in then",
        ),
        ({"order": ["age", "age"]}, "Order must list two different columns"),
        ({"order": ["age", "in"]}, "Order compares age with in"),
        ({"order": ["pain", "age"]}, "Order compares pain with age"),
        ({"order": ["out", "in"]}, "Order needs limits of out that are not above those of in"),
    ],
)
def test_what_is_no_constraint_is_refused(constraint: object, words: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        domain(constraint)
    assert words in caught.value.sentence


def test_only_two_rules_for_rows_that_break_one() -> None:
    with pytest.raises(StudyInvalid, match='broken_rows must be "refuse" or "leave out"'):
        domain(NEVER, broken_rows="mend")


LIMITS = st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True).map(sorted)


@given(st.data())
def test_decoded_values_keep_their_order_and_their_bins(data: st.DataObject) -> None:
    integral, zero = data.draw(st.booleans()), data.draw(st.booleans())
    columns = {}
    for name in "abcd":
        edges = sorted({0, 12, *data.draw(LIMITS)})
        columns[name] = {
            "kind": "numeric",
            "edges": edges,
            "integral": integral,
            "missing": True,
            "zero": zero,
        }
    constraints = [{"order": ["a", "b"]}, {"order": ["b", "c"]}, {"order": ["a", "d"]}]
    world = Domain.from_spec({"columns": columns, "constraints": constraints})
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    codes = np.stack([rng.integers(0, column.size, 300) for column in world.columns], axis=1)
    for names, cells in world.impossible.items():
        codes = codes[~cells[tuple(codes[:, world.names.index(name)] for name in names)]]
    values = dict(zip(world.names, world.decode(codes, rng), strict=True))
    for j, (name, column) in enumerate(zip(world.names, world.columns, strict=True)):
        assert isinstance(column, Edged)
        for code, value in zip(codes[:, j], values[name], strict=True):
            assert (value is None) == (code == column.size - 1)
            # a bin without an integer decodes to the nearest one
            assert value is None or column.bin_of(value) == code or integral
    for first, second in ("ab", "bc", "ac", "ad"):
        assert all(
            x is None or y is None or x <= y for x, y in zip(values[first], values[second], strict=True)
        )


def test_decoded_days_keep_their_order() -> None:
    world = domain({"order": ["in", "out"]})
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, column.size, 4000) for column in world.columns], axis=1)
    codes = codes[~world.impossible["in", "out"][codes[:, 4], codes[:, 5]]]
    values = world.decode(codes, rng)
    pairs = [(x, y) for x, y in zip(values[4], values[5], strict=True) if y is not None]
    assert all(isinstance(x, date) and x <= y for x, y in pairs)
    overlapping = [x.month <= 3 and y.year == 2020 and y.month <= 3 for x, y in pairs]
    assert sum(overlapping) > 100


def test_columns_without_an_order_are_decoded_as_ever() -> None:
    rng, other = np.random.default_rng(5), np.random.default_rng(5)
    codes = np.stack([rng.integers(0, c.size, 50) for c in domain().columns], axis=1)
    other.bit_generator.state = rng.bit_generator.state
    alone = [c.decode(codes[:, j], rng) for j, c in enumerate(domain().columns)]
    for one, same in zip(alone, domain(NEVER).decode(codes, other), strict=True):
        assert one.tolist() == same.tolist()
