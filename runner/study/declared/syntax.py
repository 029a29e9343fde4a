"""The sentence about a TOML file that cannot be parsed: where, what the parser says, and, of what people are
used to write elsewhere, what it is in TOML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PLACE = re.compile(r"(.*) \(at (line (\d+), column \d+)\)$", re.DOTALL)
HABITS: Final = (
    (r"^\s*[{\[]?\s*\"[^\"]*\"\s*:\s*", "this looks like JSON, and a study is TOML: write key = value"),
    (r"^\s*\{\s*$", "this looks like JSON, and a study is TOML: write key = value"),
    (r"[\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb]", 'write plain quotation marks (")'),
    (
        r"(?:^|[\[{,.])\s*[\w-]*[^\x00-\x7f][\w-]*\s*[=.\]]",
        'a name with other letters than A to Z stands between quotation marks (")',
    ),
    (r"^[^#]*=[^#\"']*\b(True|False|TRUE|FALSE|yes|no)\b", "truth values are true and false"),
    (r"^[^#\"'\[{]*=\s*[-+]?\d+,\d+", "a number has a point, not a comma"),
    (r"^[^#\"']*=\s*[-+.\de]+\s*%", "a share is written as a number, such as 0.01 for 1 %"),
    (
        r"\"[^\"]*\\[^\"]*\"",
        "write a path with / or between single quotation marks ('), where \\\\ means itself",
    ),
    (r"^\s*[\w.-]+\s*:", "write key = value"),
    (r"^\s*[\w.-]+\s*=\s*(#.*)?$", "a value is missing after ="),
    (r"^[^#\"']*=\s*[A-Za-z][\w ./-]*\s*(#.*)?$", 'write a text between quotation marks (")'),
)
"""What a line has that cannot be parsed, and what to write; the first that fits holds."""
MAX_LINE: Final = 300
"""Letters of a line that is looked at. A file may be anybody's, and the time that these patterns take grows
with the third power of a line's length."""
TWICE: Final = ("Cannot overwrite a value", "Cannot declare", "Cannot mutate")
"""How the parser begins when a name is taken."""


def syntax_sentence(path: Path, text: str, message: str) -> str:
    """One sentence: file, line, what is wrong, what to do. message: the parser's."""
    found = _PLACE.match(message)
    if found is None:  # at the end of the file
        what = message.removesuffix(" (at end of document)")
        return f"{path}, end of file: {what}; close there what was opened."
    what, place, number = found[1], found[2], int(found[3])
    lines = text.split("\n")  # as TOML counts them
    line = lines[number - 1] if number <= len(lines) else ""
    habits = HABITS if len(line) <= MAX_LINE else ()
    cure = next((cure for habit, cure in habits if re.search(habit, line)), "correct the TOML syntax there")
    if what.startswith(TWICE):
        what = "this name is there already"
        cure = (
            "leave one out; tables of which there are several, such as [[party]], have two brackets each time"
        )
    return f"{path}, {place}: {what}; {cure}."
