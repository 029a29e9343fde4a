"""Names of tables as a study or a private file writes them."""

from __future__ import annotations

import re

_PART = r'(?:[^."]+|"(?:[^"]|"")+")'


def parts(table: str) -> tuple[str, ...]:
    """`people`, `schema.people`, `"a schema"."it.s"`: a part with a dot or a quotation mark in it stands in
    quotation marks.

    Capitals count, quoted or not. Raises ValueError.
    """
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", table):
        raise ValueError("not a table's name")
    return tuple(
        part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, table)
    )
