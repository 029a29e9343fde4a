"""Names and values of a study come from another organisation: none of them is anything but a name or a value."""

from __future__ import annotations

import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from synth.domain import Categorical, Domain
from tests.parties.data.sql.databases import Store, pushed, quoted

NAMES = (
    'it"s',
    "a`b",
    "c]d",
    "[e]",
    "f'; DROP TABLE people; --",
    'g"; DROP TABLE people; --',
    "h`; DROP TABLE people; -- ",
    "i%j",
    "i%%j",
    "k%sl",
    "m%(n)s",
    ":o",
    "p?q",
    "$1",
    "r\\s",
    "v/*w*/",
    "x.y",
    "@z",
    "count(*)",
    "1",
    "c0",
)
VALUES = (
    *NAMES,
    "t\nu",
    "' OR '1'='1",
    "\\' OR 1=1 --",
    "\\",
    "''",
    "'",
    '"',
    "%",
    "{}",
    "\\x27",
    "0x27",
    "\u02bc",
    "\uff07",
    "end",
)


def test_hostile_names_and_values_are_names_and_values(store: Store) -> None:
    # SQLAlchemy's reading of MariaDB's columns passes over a name with a backtick: its type is not known then
    names = [name.rstrip() for name in NAMES if store.name != "mariadb" or "`" not in name]
    values = [VALUES[row % len(VALUES)] for row in range(2 * len(VALUES))]
    table = 'the "people"; DROP TABLE victims; --`'
    location = store.table({name: ("text", values) for name in names}, table)
    domain = Domain(tuple(names), tuple(Categorical(VALUES) for _ in names))
    with open_source(pushed(location)) as source:
        counted = count(source, domain, [(name,) for name in names], max_rows=10**6)
    assert all(list(cells) == [2] * len(VALUES) for cells in counted.counts([(name,) for name in names]))


def test_a_name_that_is_not_read_is_refused(store: Store) -> None:
    location, domain = store.table({"a`b": ("text", ["x"])}), Domain(("a`b",), (Categorical(("x",)),))
    with open_source(pushed(location)) as source:
        if store.name == "mariadb":
            with pytest.raises(DataRefused, match="data of type unknown"):
                count(source, domain, [("a`b",)], max_rows=9)
        else:
            assert count(source, domain, [("a`b",)], max_rows=9).rows == 1


def test_a_value_that_is_none_says_nothing_of_itself(store: Store) -> None:
    location = store.table({"x": ("text", ["a", "SECRET-42'; --"])})
    domain = Domain(("x",), (Categorical(("a", "b'; DROP TABLE people; --")),))
    with open_source(pushed(location)) as source, pytest.raises(DataRefused) as refused:
        count(source, domain, [("x",)], max_rows=10**6)
    assert "SECRET" not in str(refused.value) and "DROP" not in str(refused.value)


def test_a_table_of_another_name_is_not_found(store: Store) -> None:
    store.table({"x": ("text", ["a"])}, "plain")
    with pytest.raises(DataRefused, match="does not exist in this database"):
        open_source(store.at(quoted('plain" WHERE 1 = 1; --'), push_down=True))
