"""`campaigns.txt` names tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import NO_TESTS

TESTS = Path(__file__).parent


def test_every_line_is_a_test_or_a_case_of_one(request: pytest.FixtureRequest) -> None:
    """Of the files that run beside this one."""
    assert request.config.stash[NO_TESTS] == []


def test_every_file_is_there_and_no_line_stands_twice() -> None:
    text = (TESTS / "campaigns.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(set(lines))
    gone = {
        line.partition("::")[0] for line in lines if not (TESTS.parent / line.partition("::")[0]).is_file()
    }
    assert not gone
