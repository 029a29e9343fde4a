"""How text that others wrote is shown: names of studies, parties, columns and files, unknown keys, values,
reasons.

A terminal obeys control characters (ESC, BEL), and both terminals and browsers obey those that turn the
direction of writing, so a name could rewrite what stands beside it. Whatever is written for people goes
through `printable`, as late as can be: sentences of failures, findings, lines of progress, `plan`, pages.
"""

from __future__ import annotations

import unicodedata
from typing import TextIO

_KEPT = "\n\t"


def printable(text: str, *, line: bool = False) -> str:
    """The text with characters that no reader sees (controls, formats, surrogates, the unassigned) as
    escapes: \\x1b, \\u202e.

    line: of one line, so that an end of a line is one of them, too.
    """
    if (
        text.isprintable()
    ):  # of no such character, as most: those that `_is_seen` asks of come one by one below
        return text
    return "".join(letter if _is_seen(letter, line) else _escaped(letter) for letter in text)


def for_stream(text: str, stream: TextIO) -> str:
    """Data on its way out: as it is where a program reads it, `printable` where the stream is a terminal, which
    would obey it."""
    return printable(text) if stream.isatty() else text


def _is_seen(letter: str, line: bool) -> bool:
    if letter in _KEPT:
        return not line
    category = unicodedata.category(letter)
    return category[0] != "C" and category not in ("Zl", "Zp")


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
