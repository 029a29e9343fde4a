"""Whatever is cited opens from a clone: pages, their sections, links, and files that pages name."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_files import nodes

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cosynth", "mpc_protocols", "synth", "parties", "runner", "tests", "examples")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

COMMENT = re.compile(r"#.*(?:`|\.md|DESIGN|issue|shared)")
"""A line that may hold a comment in which something is cited or named: to find comments for certain takes a
while."""
NUMBER = r"[0-9]+(?:\.[0-9]+)*"
SECTIONS = rf"\s+({NUMBER}(?:(?:,\s+|-|\s+and\s+){NUMBER})*)(?![\w%])"
"""What follows a page or a link to it: 1.5, or 1.2, 1.3, or 3-5."""
CITED = re.compile(rf"(?<![\w/])(docs/[\w/-]+\.md)`?(?:{SECTIONS})?")
LINK = re.compile(rf"\]\(([^)\s]+)\)(?:{SECTIONS})?")
PAGE_NAME = re.compile(r"(?<![\w/.-])`([\w./-]+\.md)`")
ELSEWHERE = re.compile(r"\bDESIGN\b|\bissue [0-9]|(?<!\w)shared/|(?<![\w/.-])[\w-]+\.md [0-9]")
"""Documents that a clone does not hold, and pages named without their place."""
FILE = re.compile(r"`((?:cosynth|mpc_protocols|synth|parties|runner|tests|examples)/[\w./-]*)`")
NAME = re.compile(r"`([A-Za-z_]\w+(?:\.[A-Za-z_]\w+)*)(?:\(\))?`")
"""A name in the code: `prose`, `ring.reshare`, `trio.py`."""
FOREIGN = {
    "cryptography",
    "delay",
    "is_valid_point",
    "markupsafe",
    "netem",
    "phe",
    "rbcl",
    "recv_into",
    "to_numpy",
    "__context__",
}
"""Names of other libraries and programs that the code does not mention itself."""
EXTENSIONS = {"css", "csv", "html", "json", "jsonl", "npz", "py"}
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(rf"^#+ +({NUMBER})\.? ", re.MULTILINE)


@cache
def prose(path: Path) -> list[tuple[int, str]]:
    """The texts of a source file that explain: docstrings, texts under a constant, comments; with their line
    numbers."""
    docstrings = [
        (node.lineno, node.value.value)
        for node in nodes(path)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    source = path.read_text(encoding="utf-8")
    if not COMMENT.search(source):
        return docstrings
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return docstrings + [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


@cache
def texts() -> list[tuple[str, str]]:
    """(place, text) of everything that may cite."""
    sources = [(f"{path.relative_to(ROOT)}:{line}", text) for path in SOURCES for line, text in prose(path)]
    return sources + [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in PAGES]


@cache
def sections(page: Path) -> tuple[str, ...]:
    """The numbers of a page's headings, in order."""
    return tuple(HEADING.findall(CODE.sub("", page.read_text(encoding="utf-8"))))


def numbers(cited: str | None) -> list[str]:
    return re.findall(NUMBER, cited or "")


def missing_sections(page: Path, cited: str | None) -> list[str]:
    return [number for number in numbers(cited) if number not in sections(page)]


def test_every_cited_page_and_section_exists() -> None:
    problems = []
    for place, text in texts():
        for name, cited in CITED.findall(text):
            page = ROOT / name
            if not page.is_file():
                problems.append(f"{place} cites {name}, which does not exist")
            elif gone := missing_sections(page, cited):
                problems.append(f"{place} cites {name} {', '.join(gone)}, and that page has no such section")
    assert not problems, "\n".join(problems)


def test_nothing_cites_a_document_that_a_clone_does_not_hold() -> None:
    problems = []
    for place, text in texts():
        problems += [f"{place} cites {found[0]!r}" for found in ELSEWHERE.finditer(LINK.sub("", text))]
        for name in PAGE_NAME.findall(text):
            beside = (ROOT / place.partition(":")[0]).parent / name
            if not (ROOT / name).is_file() and not beside.is_file():
                problems.append(f"{place} names `{name}`, which does not exist")
    assert not problems, "\n".join(problems)


def words_of(path: Path) -> Iterator[str]:
    """Every name that a file's code mentions, those inside its texts included."""
    prose_nodes = {node.value for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if node not in prose_nodes:
                yield from re.findall(r"\w+", text)


def definitions_of(path: Path) -> Iterator[str]:
    """What others may call by its name: functions, classes, fields, attributes, constants."""
    constants = {
        each for node in nodes(path) if isinstance(node, ast.Module | ast.ClassDef) for each in node.body
    }
    for node in nodes(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets) if node in constants:
                yield from (
                    each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                )


def test_names_in_docstrings_and_comments_exist() -> None:
    """A name in backticks is a module, is mentioned by the file's own code, or is defined somewhere in the
    project."""
    everywhere = {path.stem for path in SOURCES} | {
        folder.name for path in SOURCES for folder in path.parents
    }
    everywhere |= {name for path in SOURCES for name in definitions_of(path)}
    everywhere |= {*dir(builtins), *FOREIGN, *EXTENSIONS}
    problems = []
    for path in SOURCES:
        own: set[str] | None = None  # the file's own words: few files name what is defined nowhere
        for line, text in prose(path):
            for name in NAME.findall(text):
                if name.endswith(".py") and not (path.parent / name).is_file():
                    problems.append(f"{path.relative_to(ROOT)}:{line} names `{name}`, which is not beside it")
                elif strange := [part for part in name.split(".") if part not in everywhere]:
                    own = set(words_of(path)) if own is None else own
                    if gone := [part for part in strange if part not in own]:
                        problems.append(f"{path.relative_to(ROOT)}:{line} names `{name}`: what is {gone[0]}?")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_resolve(page: Path) -> None:
    for target, cited in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}"
        if linked.suffix == ".md":
            assert not (gone := missing_sections(linked, cited)), (
                f"{page.name} links to {target} {', '.join(gone)}"
            )
        if anchor:
            headings = re.findall(r"^#+ +(.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name in FILE.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "NAME" not in name and page.name != "CHANGELOG.md":  # a place for the reader's own; what once was
            assert (ROOT / name).exists(), f"{page.relative_to(ROOT)} names `{name}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sections_are_numbered_once_and_in_order(page: Path) -> None:
    found = [tuple(map(int, number.split("."))) for number in sections(page)]
    if page.name != "CHANGELOG.md":
        assert found == sorted(set(found))


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / target).resolve() for target, _ in LINK.findall(index.read_text(encoding="utf-8"))
    }
    for page in (ROOT / "docs").rglob("*.md"):
        assert page in linked or page == index, f"docs/index.md does not lead to {page.relative_to(ROOT)}"
