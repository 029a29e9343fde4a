"""Text of others as people see it: nothing that commands a terminal or turns the direction of writing."""

from __future__ import annotations

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.foreign_text import for_stream, printable


@given(st.text())
def test_what_is_shown_has_no_character_that_nobody_sees(text: str) -> None:
    told = printable(text, line=True)
    assert not any(unicodedata.category(letter)[0] == "C" for letter in told) and "\n" not in told
    assert printable(told, line=True) == told


@pytest.mark.parametrize("text", ["Zürich x 3", "年齢", "1\u00a0000 rows", "naïve “quoted” 🙂"])
def test_what_people_write_stays(text: str) -> None:
    assert printable(text) == text


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_data_is_shown_at_a_terminal_and_stays_where_a_program_reads_it() -> None:
    text = "a,b\n\x1b[2J,1\n"
    assert for_stream(text, StringIO()) == text
    assert for_stream(text, Terminal()) == "a,b\n\\x1b[2J,1\n"


def test_escapes() -> None:
    assert printable("a\x1b]0;p\x07\u202eb\U000e0001") == "a\\x1b]0;p\\x07\\u202eb\\U000e0001"
    assert (
        printable("two\nlines\t!") == "two\nlines\t!"
        and printable("two\nlines", line=True) == "two\\x0alines"
    )
    assert StudyInvalid("key \x1b[2J.").sentence == "key \\x1b[2J."
