"""Parts of a table add up to the table, however it is cut, and each is in it once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import DataRefused
from parties.data.counting import counters
from parties.data.location import locate
from parties.data.source import many_files
from parties.data.tallies.files import add_files
from parties.data.tallies.places import TallyFiles
from parties.data.tallies.total import Total
from parties.data.tallies.unit_range import unit_hash
from tests.parties.data.tables import CANARY, Table, write_csv, write_parquet
from tests.parties.data.tallies.parts import (
    BY_PERSON,
    COUNTING,
    added,
    partition,
    people,
    rows_of,
    told,
    whole,
    written,
)


def refused(parts: list[object], *words: str, **changes: object) -> None:
    with pytest.raises(DataRefused) as caught:
        added(parts, replace(COUNTING, **changes))  # type: ignore[arg-type]
    assert all(word in caught.value.sentence for word in words), caught.value.sentence


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 2**32), st.booleans())
def test_a_table_cut_in_any_way_has_the_counts_of_the_whole(
    tmp_path: Path, owners: list[int], seed: int, few: bool
) -> None:
    table = people(len(owners), seed)
    with pytest.MonkeyPatch.context() as patch, many_files():
        patch.setattr(counters, "_MAX_KEPT_ROWS", 1000 * few)
        parts = [partition(location) for location in written(tmp_path, table, owners, 4)]
        assert told(added(parts)) == told(whole(write_csv(tmp_path / "whole.csv", table)))


def test_the_same_part_is_never_added_twice(tmp_path: Path) -> None:
    location = write_csv(tmp_path / "t.csv", people(5))
    part = partition(location)
    refused([part, part], "part0.tally", "part1.tally", "twice")
    write_csv(tmp_path / "t.csv", people(6))
    again = partition(location)
    assert part.place == again.place and part.partition != again.partition
    refused([part, again], "twice")
    copy = write_csv(tmp_path / "other.csv", people(5))
    assert added([part, partition(copy)]).rows == 10


def test_a_part_of_two_names_is_never_added_twice(tmp_path: Path) -> None:
    location = write_csv(tmp_path / "t.csv", people(5))
    part = partition(location)
    for name, make in (("linked.csv", os.link), ("soft.csv", os.symlink), ("moved.csv", os.rename)):
        make(tmp_path / "t.csv", tmp_path / name)
        refused([part, partition(locate(tmp_path / name))], "part0.tally", "part1.tally", "twice")


def test_parts_read_by_other_rules_are_refused(tmp_path: Path) -> None:
    part = partition(write_csv(tmp_path / "t.csv", people(5)))
    refused([replace(part, rules="ab")], "part0.tally", "other rules")
    refused([part], "other rules", rules="ab")


def test_the_bound_on_rows_holds_for_all_parts_together(tmp_path: Path) -> None:
    parts = [partition(location) for location in written(tmp_path, people(8), [0, 1] * 4, 2)]
    assert added(parts, replace(COUNTING, max_rows=8)).rows == 8
    refused(list(parts), "the table", "max_rows = 7", max_rows=7)


def test_no_rows_at_all_are_refused_unless_allowed(tmp_path: Path) -> None:
    parts = [partition(location) for location in written(tmp_path, people(0), [], 2)]
    refused(list(parts), "no rows", "allow_empty")
    total = Total(COUNTING, "the table")
    for part in parts:
        total.add(part, "p")
    assert total.table(allow_empty=True).rows == 0


def test_a_misfit_in_a_part_is_refused_without_its_value(tmp_path: Path) -> None:
    table = people(5)
    table["code"][3] = CANARY
    with pytest.raises(DataRefused) as caught:
        partition(write_csv(tmp_path / "t.csv", table))
    assert "t.csv" in caught.value.sentence and "line 5" in caught.value.sentence
    assert CANARY not in caught.value.sentence


def test_people_in_one_part_only_are_counted(tmp_path: Path) -> None:
    table = people(40)
    middle = sorted(unit_hash("trial", "person", str(person)) for person in table["person"])[17]
    owners = [int(unit_hash("trial", "person", str(person)) > middle) for person in table["person"]]
    locations = written(tmp_path, table, owners, 3)  # one of them without a row
    parts = [partition(location, BY_PERSON) for location in locations]
    assert told(added(parts, BY_PERSON)) == told(whole(write_csv(tmp_path / "t.csv", table), BY_PERSON))


def test_somebody_who_may_be_in_two_parts_is_refused(tmp_path: Path) -> None:
    """Two rows each, in two parts: neither has more than the bound, both together have."""
    table = people(4)
    table["person"] = ["a", "a", "a", "a"]
    parts = [partition(location, BY_PERSON) for location in written(tmp_path, table, [0, 0, 1, 1], 2)]
    refused(list(parts), "part0.tally", "part1.tally", "overlap", unit=BY_PERSON.unit)
    many = people(40)
    mixed = [partition(location, BY_PERSON) for location in written(tmp_path, many, [0, 0, 1, 1] * 10, 2)]
    refused(list(mixed), "overlap", unit=BY_PERSON.unit)


def test_a_person_has_one_hash_in_text_and_in_numbers(tmp_path: Path) -> None:
    table: Table = {**people(2), "person": ["7", "7"]}
    numbers: Table = {**people(2), "person": [7, 7]}
    text = partition(write_csv(tmp_path / "t.csv", table), BY_PERSON)
    number = partition(write_parquet(tmp_path / "t.parquet", numbers), BY_PERSON)
    assert text.units == number.units and text.units is not None
    assert text.units.low == text.units.high == unit_hash("trial", "person", "7")


def test_identifiers_that_are_no_text_or_whole_numbers_are_refused(tmp_path: Path) -> None:
    table: Table = {**people(2), "person": [0.1, 0.2]}
    with pytest.raises(DataRefused, match="text or whole numbers"):
        partition(write_parquet(tmp_path / "t.parquet", table), BY_PERSON)


def test_counts_for_another_unit_are_refused(tmp_path: Path) -> None:
    location = write_csv(tmp_path / "t.csv", people(3))
    refused([partition(location, BY_PERSON)], "another unit")
    refused([partition(location)], "another unit", unit=BY_PERSON.unit)


def test_too_many_rows_of_a_person_within_a_part_are_refused(tmp_path: Path) -> None:
    table: Table = {**people(3), "person": ["a", "a", "a"]}
    with pytest.raises(DataRefused, match="max_rows = 2"):
        partition(write_csv(tmp_path / "t.csv", table), BY_PERSON)


def test_files_are_added_and_one_that_is_missing_is_noticed(tmp_path: Path) -> None:
    table = people(9)
    for number in range(3):
        location = write_csv(tmp_path / f"t{number}.csv", rows_of(table, range(3 * number, 3 * number + 3)))
        (tmp_path / f"t{number}.tally").write_bytes(partition(location).to_bytes())
    files = TallyFiles(str(tmp_path / "*.tally"), 3)
    local = add_files(files, COUNTING, allow_empty=False)
    assert told(local) == told(whole(write_csv(tmp_path / "t.csv", table)))
    for expected in (2, 4):
        with pytest.raises(DataRefused, match=f"has 3 parts, and data.parts says {expected}"):
            add_files(replace(files, parts=expected), COUNTING, allow_empty=False)
    with pytest.raises(DataRefused, match="names no file"):
        add_files(TallyFiles(str(tmp_path / "*.tallies")), COUNTING, allow_empty=False)
    with (tmp_path / "t1.tally").open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 30)  # as large as it says, and never read
    with pytest.raises(DataRefused, match=r"t1\.tally is no tally"):
        add_files(files, COUNTING, allow_empty=False)


def test_the_digest_is_of_the_parts_in_any_order(tmp_path: Path) -> None:
    parts = [partition(location) for location in written(tmp_path, people(8), [0, 1] * 4, 2)]
    digests = set()
    for order in (parts, parts[::-1], parts[:1]):
        total = Total(COUNTING, "the table")
        for number, part in enumerate(order):
            total.add(part, str(number))
        digests.add(total.digest)
    assert len(digests) == 2


def test_a_tally_that_others_may_have_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.tally"
    file.write_bytes(partition(write_csv(tmp_path / "t.csv", people(5))).to_bytes())
    file.chmod(0o600)
    place = TallyFiles(str(file))
    assert add_files(place, COUNTING, allow_empty=False).rows == 5
    for mode in (0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(DataRefused, match=r"t\.tally must be a file that this user owns"):
            add_files(place, COUNTING, allow_empty=False)
    file.chmod(0o600)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
        with pytest.raises(DataRefused, match="this user owns"):
            add_files(place, COUNTING, allow_empty=False)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataRefused, match="must be a file"):
        add_files(place, COUNTING, allow_empty=False)
