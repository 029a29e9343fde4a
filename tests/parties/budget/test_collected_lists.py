"""A study runs on one list of bundles and in one run, as each computing party's own ledger sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from parties.budget.collected_lists import CollectedList
from parties.budget.ledger import Ledger

STUDY, LIST, OTHER = b"s" * 32, b"l" * 32, b"o" * 32
RUN, LATER = b"r" * 32, b"q" * 32


def record(folder: Path, study: bytes = STUDY, party: str = "north") -> CollectedList:
    return CollectedList(Ledger(folder / "ledger.db"), study, party)


def test_a_list_is_fixed_once(tmp_path: Path) -> None:
    assert record(tmp_path).fixed is None
    record(tmp_path).fix(LIST)
    record(tmp_path).fix(LIST)
    assert record(tmp_path).fixed == LIST
    with pytest.raises(BudgetRefused, match="north has fixed another list"):
        record(tmp_path).fix(OTHER)
    assert record(tmp_path).fixed == LIST


def test_a_run_that_has_released_nothing_leaves_room_for_another(tmp_path: Path) -> None:
    record(tmp_path).fix(LIST)
    record(tmp_path).check(RUN)
    record(tmp_path).check(LATER)
    record(tmp_path).begin(RUN)
    record(tmp_path).begin(RUN)
    record(tmp_path).check(RUN)
    for refused in (record(tmp_path).check, record(tmp_path).begin):
        with pytest.raises(BudgetRefused, match="for one run"):
            refused(LATER)


def test_studies_and_parties_of_one_ledger_are_apart(tmp_path: Path) -> None:
    record(tmp_path).fix(LIST)
    record(tmp_path).begin(RUN)
    for other in (record(tmp_path, party="south"), record(tmp_path, study=b"t" * 32)):
        assert other.fixed is None
        other.fix(OTHER)
        other.begin(LATER)


def test_a_ledger_that_cannot_be_written_refuses(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("no database" * 100)
    with pytest.raises(BudgetRefused, match="cannot be used"):
        record(tmp_path).fix(LIST)
