"""TOML text of a parsed study: what the standard library reads back as the same tree. Standard library only,
which does not write TOML itself."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def to_toml(tree: Mapping[str, Any]) -> str:
    """The text; keys keep their order, which decides that of columns.

    Tables become sections, lists of tables repeated sections; what is in these, or stands before a plain
    value, is in one line. Raises `TypeError` for a value or a key that TOML has no form of: None, a number
    that is not finite, a key that is no text.
    """
    lines: list[str] = []
    _table(tree, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(tree: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    entries = list(tree.items())
    plain = max((place + 1 for place, (_, value) in enumerate(entries) if not _has_section(value)), default=0)
    lines += [f"{_key(key)} = {_value(value)}" for key, value in entries[:plain]]
    for key, value in entries[plain:]:
        inner = (*path, _key(key))
        if isinstance(value, Mapping):
            if not value or not all(map(_has_section, value.values())):
                lines += ["", f"[{'.'.join(inner)}]"]
            _table(value, inner, lines)
        else:
            for entry in value:
                lines += ["", f"[[{'.'.join(inner)}]]"]
                lines += [f"{_key(name)} = {_value(own)}" for name, own in entry.items()]


def _has_section(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and len(value) > 0
        and all(isinstance(entry, Mapping) for entry in value)
    )


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"A key of TOML is a text, not {key!r:.60}.")
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    # JSON's escapes are TOML's, but for characters beyond 16 bits and DEL: those stand as they are, this one
    # is escaped
    quoted = json.dumps(value, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return f"[{', '.join(map(_value, value))}]"
    told = (
        str(value)
        if value is None or isinstance(value, float)
        else f"an object of type {type(value).__name__}"
    )
    raise TypeError(f"TOML has no form of {told}.")  # not the object: somebody may have given rows by mistake
