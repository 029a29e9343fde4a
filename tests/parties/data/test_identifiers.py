"""Identifiers made in whole arrays are those of the policy made one by one, or both refuse; places, kinds,
and no value shown."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpc_protocols.errors import DataRefused
from mpc_protocols.psu.identifiers.normalise import MAX_FIELD, IdentifierPolicy, Identifiers
from parties.data.identifiers import IdentifierReader
from tests.parties.data.tables import CANARY, write_csv, write_parquet

RULES = ("text", "exact", "name", "email", "date", "phone:GB")
BLANKS = "".join(chr(i) for i in range(0x3100) if chr(i).isspace())
SPECIAL = [
    "",
    " ",
    "n/a",
    "N/A ",
    "#N/A",
    "-",
    "--",
    "?",
    "Unknown",
    "null",
    "NaN",
    "None",
    "nil",
    "na",
    "A@b.c",
    "@",
    "a@",
    "a@b@c",
    "a b@c",
    "2024-02-29",
    "20240229",
    " 2024-02-30",
    "020 7946 0958",
    "x" * MAX_FIELD,
    "x" * (MAX_FIELD + 1),
    "\u00e9" * (MAX_FIELD // 2 + 1),
    "\x1cann\x1f lee\x85",
    "\u00c9",
    "e\u0301",
    "\u212aelvin",
    "kelvin",
]
TEXTS = st.one_of(
    st.none(),
    st.text(st.characters(max_codepoint=127), max_size=6),
    st.text(max_size=6),
    st.text(st.sampled_from(BLANKS + "aB@\u0130\u00df\u0301\ufb01\u212a"), max_size=6),
    st.sampled_from(SPECIAL),
)


def made(
    policy: IdentifierPolicy, columns: list[pa.Array], block: int = 7
) -> tuple[Identifiers | None, list[str]]:
    """The reader's result over blocks, and where it found misfits."""
    reader = IdentifierReader(policy, untyped=False)
    misfits = [
        f"{name} {start + misfit.row if misfit.row is not None else ''} {misfit.reason}"
        for start in range(0, len(columns[0]), block)
        for name, misfit in reader.add([column.slice(start, block) for column in columns])
    ]
    return (None if misfits else reader.finish()), misfits


def assert_same(policy: IdentifierPolicy, values: list[list[object]], columns: list[pa.Array]) -> None:
    got, misfits = made(policy, columns)
    bad = [row for row, record in enumerate(zip(*values, strict=True)) if policy.canonical(record) is None]
    assert (got is None) == bool(bad) and all(
        any(f" {row} the" in misfit for misfit in misfits) for row in bad[:1]
    )
    if got is not None:
        expected = policy.encode(values, "north")
        assert got.entries == expected.entries and all(isinstance(entry, bytes) for entry in got.entries)
        assert (got.rows.tolist(), got.kinds, got.duplicates) == (
            expected.rows.tolist(),
            expected.kinds,
            expected.duplicates,
        )
        assert got.rows.dtype == expected.rows.dtype


@pytest.mark.parametrize("rule", RULES)
@given(data=st.data())
def test_each_text_is_what_the_rule_makes_of_it(rule: str, data: st.DataObject) -> None:
    policy = IdentifierPolicy(("id",), (rule,), "first")
    values = data.draw(st.lists(TEXTS, max_size=12))
    kind = data.draw(
        st.sampled_from(
            [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
        )
    )
    if kind == pa.string_view():
        columns = [pa.array(values, pa.string()).cast(kind)]
    elif pa.types.is_dictionary(kind):
        columns = [pa.array(values, pa.string()).dictionary_encode()]
    else:
        columns = [pa.array(values, kind)]
    if any(value is not None for value in values):
        assert_same(policy, [list(values)], columns)
        kept = [value for value in values if policy.canonical([value]) is not None]
        assert_same(policy, [list(kept)], [pa.array(kept, pa.string())])


@pytest.mark.parametrize("rule", RULES)
def test_each_special_text_on_its_own(rule: str) -> None:
    """One at a time, so that no other refusal hides a wrong one."""
    policy = IdentifierPolicy(("id",), (rule,))
    for text in [
        *SPECIAL,
        *(f" {text.upper()}\t" for text in SPECIAL),
        *(f"a{text}@x.org" for text in SPECIAL),
    ]:
        assert_same(policy, [[text]], [pa.array([text], pa.string())])


def test_every_character_below_and_around_ascii() -> None:
    """All of Unicode's first 0x3100 characters and every special casing, alone and between letters, under
    every rule."""
    characters = [
        chr(i)
        for i in [*range(0x3100), *range(0xFB00, 0xFB10), 0xFEFF, 0x1D165, 0x10FFFF]
        if not 0xD800 <= i < 0xE000
    ]
    for rule in RULES:
        policy = IdentifierPolicy(("id",), (rule,), "first")
        for text in ("{}", "a{}B", "a@{}.Com", " {} a "):
            kept = [text.format(c) for c in characters if policy.canonical([text.format(c)]) is not None]
            got, misfits = made(policy, [pa.array(kept, pa.string())], 1 << 16)
            assert misfits == [] and got is not None
            assert got.entries == list(dict.fromkeys(policy.canonical([value]) for value in kept))
            others = [text.format(c) for c in characters if policy.canonical([text.format(c)]) is None]
            for start in range(0, len(others), 997):  # each refused in a block with one that is not
                assert made(policy, [pa.array(["ann@x.org", others[start]])])[1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.sampled_from(RULES))
@example([0, -1, 17, 17, 2125550100, 20240229], "text")
def test_integers(values: list[int], rule: str) -> None:
    assert_same(IdentifierPolicy(("id",), (rule,), "first"), [list(values)], [pa.array(values, pa.int64())])


@given(
    st.lists(
        st.dates() | st.just(datetime.date(1, 1, 1)) | st.just(datetime.date(9999, 12, 31)),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(RULES),
    st.booleans(),
)
def test_dates_and_midnights(values: list[datetime.date], rule: str, moments: bool) -> None:
    given: list[object] = list(values)
    column = pa.array(values, pa.date32())
    if moments:
        given = [datetime.datetime.combine(value, datetime.time()) for value in values]
        column = pa.array(given, pa.timestamp("us"))
    assert_same(IdentifierPolicy(("born",), (rule,), "first"), [given], [column])


def test_moments_that_are_no_days_and_days_that_are_no_dates() -> None:
    policy = IdentifierPolicy(("born",), ("date",))
    noon = datetime.datetime(2024, 2, 29, 12)
    for column in (
        pa.array([noon], pa.timestamp("us")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([-(2**31)], pa.int32()).cast(pa.date32()),
        pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us")),
        pa.array([-(2**63) + 1], pa.int64()).cast(pa.timestamp("us")),
    ):
        (misfit,) = made(policy, [column])[1]
        assert "cannot be read as 'date'" in misfit
    (identifiers, _) = made(policy, [pa.array([datetime.datetime(2024, 2, 29)], pa.timestamp("ns", "UTC"))])
    assert identifiers is not None and identifiers.entries == [policy.canonical(["2024-02-29"])]


@given(
    st.lists(
        st.tuples(TEXTS, st.integers(0, 3), st.sampled_from([None, datetime.date(2000, 1, 1)])),
        min_size=1,
        max_size=15,
    )
)
def test_composite_keys(records: list[tuple[str | None, int, datetime.date | None]]) -> None:
    policy = IdentifierPolicy(("a", "b", "c"), ("name", "exact", "date"), "first")
    for chosen in (records, [record for record in records if policy.canonical(record) is not None]):
        texts, numbers, days = ([record[i] for record in chosen] for i in range(3))
        if any(text is not None for text in texts) and any(day is not None for day in days):
            columns = [
                pa.array(texts, pa.string()),
                pa.array(numbers, pa.int16()),
                pa.array(days, pa.date32()),
            ]
            assert_same(policy, [texts, list(numbers), days], columns)  # type: ignore[list-item]


def test_types_that_are_no_identifiers() -> None:
    for column in (pa.array([1.5]), pa.array([True]), pa.array([b"x"]), pa.array([[1]])):
        (misfit,) = made(IdentifierPolicy(("id",), ("text",)), [column])[1]
        assert "identifiers are text, integers or dates" in misfit
    (misfit,) = made(IdentifierPolicy(("id",), ("text",)), [pa.nulls(3)])[1]
    assert " 0 the identifier is missing" in misfit


def test_kinds_are_those_of_the_policy() -> None:
    policy = IdentifierPolicy(("id",), ("text",))
    texts = pa.array(["a"])
    for untyped, column, kind in (
        (True, texts, "untyped"),
        (False, texts, "text"),
        (True, pa.array([1]), "integer"),
        (False, texts.slice(1), "untyped"),
    ):
        reader = IdentifierReader(policy, untyped=untyped)
        assert reader.add([column]) == []
        assert reader.finish().kinds == (kind,)


def test_nothing_of_a_value_is_kept_where_it_could_be_shown() -> None:
    reader = IdentifierReader(IdentifierPolicy(("id",), ("date",)), untyped=True)
    ((_, misfit),) = reader.add([pa.array(["2024-02-29", CANARY])])
    assert misfit.row == 1 and CANARY not in repr(misfit) + repr(reader)
    with pytest.raises(DataRefused):  # the scalar path refuses the same
        IdentifierPolicy(("id",), ("date",)).encode([["2024-02-29", CANARY]], "north")


def test_a_million_identifiers_take_seconds(quiet_machine: bool) -> None:
    """0.4 s of CPU (1.2 s value by value); the limit leaves room for a slow machine."""
    texts = pa.array([f"Person-{i:08d}" for i in range(1_000_000)])
    reader = IdentifierReader(IdentifierPolicy(("id",), ("text",)), untyped=True)
    started = time.process_time()
    for start in range(0, len(texts), 1 << 16):
        assert reader.add([texts.slice(start, 1 << 16)]) == []
    identifiers = reader.finish()
    assert not quiet_machine or time.process_time() - started < 4
    assert len(identifiers.entries) == 1_000_000 and identifiers.entries[7] == b"\0\0\0\0\x0fperson-00000007"


def test_reading_records_loads_no_pandas(tmp_path: Path) -> None:
    texts = {"id": ["Ann", "B\u00e9a"], "a": ["1", "0"], "born": ["2020-01-01", "20200101"]}
    typed: dict[str, list[object]] = {"id": [5, 6], "a": [1, 0], "born": [datetime.date(2020, 1, 1)] * 2}
    files = [
        str(write_csv(tmp_path / "t.csv", texts).path),
        str(write_parquet(tmp_path / "t.parquet", typed).path),
    ]
    code = f"""if True:
        import sys
        from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
        from parties.data.records import read
        from parties.data.location import locate
        from parties.data.linked.opening import open_source
        from synth.domain import Codes, Domain
        for path in {files}:
            with open_source(locate(path)) as source:
                policy = IdentifierPolicy(("id", "born"), ("text", "date"))
                print(read(source, Domain(("a",), (Codes(2),)), policy, max_rows=5).codes["a"].tolist())
        print([name for name in ("pandas", "networkx") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[1, 0]", "[1, 0]", "[]"]
