"""Digits in groups: a number loses the marks, whatever its size; any other text stays as it is."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from parties.data.harmony.grouping import MARKS, Grouping

PAIRS = [(mark, decimal) for mark in MARKS for decimal in ".," if mark != decimal]


@given(st.sampled_from(PAIRS), st.integers(-(10**15), 10**15), st.one_of(st.none(), st.integers(0, 999)))
def test_a_number_loses_its_marks(marks: tuple[str, str], whole: int, part: int | None) -> None:
    grouping, fraction = Grouping(*marks), "" if part is None else f"{marks[1]}{part}"
    for written in MARKS[marks[0]]:
        text = f"{whole:,}".replace(",", written) + fraction
        assert grouping.without(text) == f"{whole}{fraction}"
        assert grouping.holds(text) == (abs(whole) >= 1000)


@given(st.sampled_from(PAIRS), st.text("0123456789,. '-+\u2019\u00a0e", max_size=14))
def test_any_other_text_stays_as_it_is(marks: tuple[str, str], text: str) -> None:
    grouping = Grouping(*marks)
    left, _, right = text.lstrip("+-").partition(marks[1])
    groups = re.split(f"[{MARKS[marks[0]]}]", left)
    number = (
        len(text) - len(text.lstrip("+-")) <= 1
        and len(groups) > 1
        and 1 <= len(groups[0]) <= 3
        and all(len(group) == 3 for group in groups[1:])
        and all(part.isdigit() for part in groups)
        and (not right or right.isdigit())
    )
    assert grouping.holds(text) == number
    assert grouping.without(text) == ("".join(re.split(f"[{MARKS[marks[0]]}]", text)) if number else text)
