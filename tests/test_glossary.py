"""The glossary and the project's words agree: its words are in use, each has one entry, and names do without
those it rejects."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_files import nodes

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("cosynth", "mpc_protocols", "synth", "parties", "runner")
REJECTED_HEADING = "\n## Not used here\n"
MODULES, DEFINITIONS = "modules", "definitions"
ENDINGS = ("", "s", "es", "ies", "d", "ed", "ing")
"""What may follow a term, or its last letter, where it is used: margin -> margins, dummy -> dummies, settle
-> settled."""


def rows(text: str) -> list[list[str]]:
    """The cells of all tables' rows, headings and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("word", "not")]


def parts(cell: str) -> list[str]:
    """The words of an entry: `shim, relay`; `order (of rows)` without what is in parentheses."""
    return [part for part in re.split(r",\s+|/", re.sub(r"\s*\(.*?\)", "", cell)) if part]


def tables() -> tuple[list[list[str]], list[list[str]]]:
    """(word, meaning) of the entries; (words, instead, where) of the rejected ones."""
    entries, _, rejected = GLOSSARY.read_text(encoding="utf-8").partition(REJECTED_HEADING)
    assert rejected, f"The glossary has no heading {REJECTED_HEADING.strip()!r}."
    return rows(entries), rows(rejected)


def pieces(name: str) -> list[str]:
    """begin_select, BeginSelect, BEGIN_SELECT: begin, select."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+", name)]


def plain(text: str) -> str:
    """Words in small letters with single spaces between; names of the code taken apart."""
    return " ".join(pieces(text))


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


@cache
def prose() -> str:
    """All that the packages and the pages say, the glossary left out."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path != GLOSSARY]
    return plain("\n".join(path.read_text(encoding="utf-8") for path in (*sources(), *pages)))


def used(term: str, text: str) -> bool:
    """Whether a term occurs, as it stands or with an ending; as one word, too: `bit slice`, bitslice."""
    words = plain(term)
    for form in (words, words.replace(" ", "")):
        stem = re.escape(form[:-1])
        if re.search(rf"\b{stem}(?:{re.escape(form[-1])}(?:{'|'.join(ENDINGS)})|ies|ing)\b", text):
            return True
    return False


def named(path: Path) -> Iterator[str]:
    """What a file names: itself, its definitions, arguments, attributes and variables."""
    yield path.stem
    for node in nodes(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name


def defined(path: Path) -> Iterator[str]:
    """What a file defines: functions, classes, fields and attributes of objects, without leading underscores."""
    for node in nodes(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name.strip("_")
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name.strip("_")
            case ast.ClassDef(name=name, body=body):
                yield name
                for item in body:
                    targets = (
                        item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
                    )
                    yield from (target.id.strip("_") for target in targets if isinstance(target, ast.Name))


@cache
def definitions() -> dict[Path, frozenset[str]]:
    return {path: frozenset(defined(path)) for path in sources()}


@cache
def names() -> dict[Path, frozenset[str]]:
    return {path: frozenset(named(path)) for path in sources()}


def offences(word: str, where: str) -> list[str]:
    """Names with a rejected word, with the file of each."""
    if where == DEFINITIONS:
        return sorted(
            f"{path.relative_to(ROOT)}: {word}" for path, own in definitions().items() if word in own
        )
    found = []
    for path, own in names().items():
        if where not in ("", MODULES) and not path.is_relative_to(ROOT / where):
            continue
        for name in {path.stem} if where == MODULES else own:
            prefix = word.endswith("_") and name.lstrip("_").startswith(word)
            if prefix or (not word.endswith("_") and word in pieces(name)):
                found.append(f"{path.relative_to(ROOT)}: {name}")
    return sorted(found)


def test_every_word_of_the_glossary_is_in_use() -> None:
    text = prose()
    unused = [part for word, _ in tables()[0] for part in parts(word) if not used(part, text)]
    assert not unused, f"The glossary explains what nobody says: {', '.join(unused)}."


def test_a_word_has_one_entry_and_is_not_rejected() -> None:
    entries, rejected = tables()
    words = Counter(part.lower() for word, _ in entries for part in parts(word))
    assert [word for word, count in words.items() if count > 1] == []
    assert [word for row in rejected for word in parts(row[0]) if word.lower() in words] == []


def test_names_do_without_rejected_words() -> None:
    found = [
        f"{offence} (say {instead})"
        for cell, instead, where in tables()[1]
        for word in parts(cell)
        for offence in offences(word, where.strip("`"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "words"),
    [("MOST_ROWS", ["most", "rows"]), ("_beginSelect", ["begin", "select"]), ("DPEvent", ["dp", "event"])],
)
def test_names_are_taken_apart(name: str, words: list[str]) -> None:
    assert pieces(name) == words


def test_a_word_may_be_rejected_for_definitions_only(tmp_path: Path) -> None:
    file = tmp_path / "probe.py"
    file.write_text(
        "def told(found):\n    drawn = found\n    return drawn\n\nclass Box:\n    shown: int\n    def __init__(self):\n"
        "        self._each = 1\n"
    )
    assert set(defined(file)) == {"told", "Box", "shown", "init", "each"}


def test_the_checks_notice() -> None:
    """An invented term is not in use; a term is found with its endings; a rejected word is found inside a
    name."""
    assert not used("frobnication of marginals", prose())
    for term, text in (
        ("dummy", "two dummies"),
        ("settle", "it settled"),
        ("bit slice", "Bitslice"),
        ("TV", "the TV"),
    ):
        assert used(term, plain(text)), term
    assert not used("tap", plain("a tape"))
    assert any(offence.endswith(": GLOSSARY_PROBE") for offence in offences_in("GLOSSARY_PROBE", "probe"))
    assert any(offence.endswith(": MOST_PROBES") for offence in offences_in("MOST_PROBES", "MOST_"))
    assert not offences_in("almost_there", "MOST_") and not offences_in("probes", "probe")


def offences_in(name: str, word: str) -> list[str]:
    """`offences` if one more name were there."""
    path = ROOT / "synth" / "plan.py"
    before = names()[path]
    names()[path] = before | {name}
    try:
        return offences(word, "synth")
    finally:
        names()[path] = before
