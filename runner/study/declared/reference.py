"""The tables of keys on the reference page (`docs/reference/study-file.md`), made of the declarations that
the reader uses.

A section of the page whose heading names a table of the study has a Markdown table with a row a key; what
stands around it is written by hand. A heading that names several algorithms has one table for all. `python -m
runner.study.declared.reference FILE` writes the page anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mpc_protocols.options import Option, Options, written
from runner.study.declared.schema import tables

HEADING = re.compile(r"^## .*", re.MULTILINE)
NAMED = re.compile(r"\[([a-z]+)")
ROWS = re.compile(r"^\| key .*\n(?:\|.*\n)+", re.MULTILINE)


def page(text: str) -> str:
    """The page with its tables of keys made anew. Raises `ValueError` for a section that has no table to
    replace."""
    known = tables()
    heads = [*HEADING.finditer(text)]
    parts = [text[: heads[0].start()]] if heads else [text]
    for head, after in zip(heads, [*(one.start() for one in heads[1:]), len(text)], strict=True):
        section = text[head.start() : after]
        named = {name: known[name] for name in NAMED.findall(head.group()) if name in known}
        if named and not any(name in HAND_WRITTEN for name in named):
            section, count = ROWS.subn(lambda _, of=named: keys_of(of), section, count=1)  # type: ignore[misc]
            if not count:
                raise ValueError(f"The section of {', '.join(named)} has no table of keys.")
        parts.append(section)
    return "".join(parts)


HAND_WRITTEN = frozenset({"workload", "domain"})
"""Sections that teach by an example, key by key."""


def keys_of(named: Mapping[str, type[Options]]) -> str:
    """The Markdown table of one table's keys, or of several, each key once."""
    found: dict[str, list[str]] = {}
    for name, keys in named.items():
        for key in keys.options():
            found.setdefault(key, []).append(name)
    several = len(named) > 1
    lines = [
        "| key | " + "of | " * several + "values | default | meaning |",
        "|---|" + "---|" * (3 + several),
    ]
    for key, owners in found.items():
        of_each = [named[name].options()[key] for name in owners]
        of = "all" if len(owners) == len(named) else ", ".join(owners)
        cells = [
            f"`{key}`",
            *([of] if several else []),
            _owners_text(owners, map(values, of_each)),
            _owners_text(owners, (_default(named[name], key) for name in owners)),
            _owners_text(owners, (option.meaning or option.help for option in of_each)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def values(option: Option) -> str:
    """The values that a key may have, short."""
    words = [f"`{word}`" for word in option.choices]
    most = f" to {option.high:,}" if option.high < 2**63 - 1 else " or more"
    below = f", below {_number(option.below)}" if option.below < float("inf") else ""
    number = f"above {_number(option.above)}{below}"
    plain = {
        "whole": f"{option.low:,}{most}",
        "number": number,
        "decimal": number,
        "flag": "`true`, `false`",
        "text": "text",
        "texts": "list of texts",
    }.get(option.kind)
    return ", ".join([*([plain] if plain else []), *words])


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _default(keys: type[Options], key: str) -> str:
    """What a key that is absent means."""
    option, default = keys.options()[key], keys.defaults()[key]
    if option.fallback or option.required or default is None:
        return option.fallback or ("required" if option.required else "-")
    return f"`{written(float(default) if isinstance(default, Fraction) else default)}`"


def _owners_text(owners: Sequence[str], words: Iterable[str]) -> str:
    """What holds for most of the owners, and what for others."""
    said: dict[str, list[str]] = {}
    for name, text in zip(owners, words, strict=True):
        said.setdefault(text, []).append(name)
    usual = max(said, key=lambda text: len(said[text]))
    return "; ".join([usual, *(f"{', '.join(said[text])}: {text}" for text in said if text != usual)])


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(page(place.read_text(encoding="utf-8")), encoding="utf-8")
