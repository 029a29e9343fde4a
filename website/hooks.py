"""What the site needs beyond docs/ as it is: the order of pages, and links to files that lie elsewhere in the
project.

Pages are written for whoever reads them in a clone: a link to README.md or to a source file leads there. On
the site, pages of the root become pages of a section of their own; a link to any other file becomes the
file's name. A link that leads nowhere stays as it is, and stops the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PROJECT = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "examples/README.md": "project/examples.md",
    "runner/starting/demo/README.md": "project/demo.md",
    "packaging/README.md": "project/packaging.md",
}
"""Pages outside docs/, and what they are called on the site."""
WORKER = "javascripts/worker.js"
"""What website/worker.js is called on the site."""
FIRST = {
    "Start": [
        "howto/tour.md",
        "howto/first-study.md",
        "howto/python.md",
        "howto/protocols.md",
        "howto/choose.md",
        "howto/read-a-report.md",
        "howto/judge-a-result.md",
        "howto/answer-a-question.md",
        "algorithms.md",
        "backends.md",
    ],
    "Between organisations": [
        "howto/deploy.md",
        "howto/harmonise.md",
        "howto/databases.md",
        "howto/large-tables.md",
        "howto/vertical.md",
        "howto/linked.md",
        "howto/next-release.md",
        "howto/contribute.md",
        "howto/fleet.md",
        "howto/watch-a-run.md",
        "howto/verify-a-run.md",
    ],
    "Reference": [
        "reference/study-file.md",
        "reference/command-line.md",
        "reference/outputs.md",
        "reference/python.md",
        "reference/leakage.md",
        "reference/versions.md",
        "reference/exit-codes.md",
    ],
    "Design": ["architecture.md", "glossary.md"],
    "Change it": ["howto/audit-a-run.md"],
}
"""Pages that come first in their sections; every other one follows in its folder's section, by name."""
CODE, HYPHENATED, MAX_WHOLE = re.compile(r"<code>([^<]*)</code>"), re.compile(r"[^\s]*-[^\s]*"), 40
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
CODE_WITH_BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")
"""Code in a cell whose bar a forge wants escaped; the site's tables show the escape."""
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEAD, ROW = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL), re.compile(r"<tr>.*?</tr>", re.DOTALL)
CELL, TAG = re.compile(r"<td\b"), re.compile(r"<[^>]+>")
PICTURE = re.compile(r'(<img src=")([^"]+)(")')


def sections() -> dict[str, list[str]]:
    """Every page of docs/ but the first one, by section."""
    pages = {
        name: list(filter(lambda page: (DOCS / page).is_file(), listed)) for name, listed in FIRST.items()
    }
    known = {page for listed in pages.values() for page in listed}
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).as_posix()
        if page in known or page == "index.md":
            continue
        if page.startswith("howto/"):
            pages["Change it" if path.name.startswith("add-") else "Between organisations"].append(page)
        elif page.startswith("reference/"):
            pages["Reference"].append(page)
        else:
            pages["Design" if page.startswith("design/") else "Start"].append(page)
    return pages


def on_config(config: Any) -> Any:
    """The navigation."""
    named = sections()
    codes = [page for page in named["Reference"] if page.startswith("reference/exit-codes/")]
    reference: list[Any] = [page for page in named["Reference"] if page not in codes]
    if codes:
        reference.append({"Exit codes, one by one": codes})
    named["Change it"] += list(PROJECT.values())
    config.nav = [
        {"Home": "index.md"},
        *({name: reference if name == "Reference" else pages} for name, pages in named.items()),
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/, and the script with which search works without a server."""
    from mkdocs.structure.files import File

    for source, page in {**PROJECT, "website/worker.js": WORKER}.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_post_build(config: Any) -> None:
    """The search's index as a script, which the theme loads where a page is a file: none may be read there."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    script = f"var __index = {index.read_text(encoding='utf-8')}"
    index.with_suffix(".js").write_text(script, encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links as the site has them; the first one has the whole width."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    return rewritten(markdown, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """The page's HTML. Browsers end a line after the hyphens of an option, which then reads as two; on a
    telephone a row stands as a paragraph, in which each cell needs the name of its column.
    """

    def whole(found: re.Match[str]) -> str:
        word = found.group()
        return word if len(word) > MAX_WHOLE else f'<span class="whole">{word}</span>'

    named = TABLE.sub(lambda table: with_labels(table.group()), html)
    return CODE.sub(lambda code: f"<code>{HYPHENATED.sub(whole, code[1])}</code>", named)


def with_labels(table: str) -> str:
    """A table of three columns or more, whose cells behind the first have their column's name as
    `data-label`."""
    names = [TAG.sub("", name).strip().replace('"', "&quot;") for name in HEAD.findall(table)]
    if len(names) < 3:
        return table

    def row(cells: re.Match[str]) -> str:
        labels = iter(["", *names[1:]])

        def cell(start: re.Match[str]) -> str:
            label = next(labels, "")
            return f'{start.group()} data-label="{label}"' if label else start.group()

        return CELL.sub(cell, cells.group())

    return ROW.sub(row, table)


def rewritten(markdown: str, page: str) -> str:
    """page: its path on the site."""
    sources = {target: source for source, target in PROJECT.items()}
    here = dirname(sources.get(page, f"docs/{page}"))

    def link(found: re.Match[str]) -> str:
        text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found.group()
        file, mark, fragment = target.partition("#")
        place = normpath(join(here, file))
        if place in PROJECT:
            return f"[{text}]({relpath(PROJECT[place], dirname(page) or '.')}{mark}{fragment})"
        if place.startswith("docs/"):
            return f"[{text}]({relpath(place.removeprefix('docs/'), dirname(page) or '.')}{mark}{fragment})"
        if (ROOT / place).exists():
            if text.strip("`") == place:
                return f"`{place}`"
            return text if text.startswith("`") else f"{text} (`{place}`)"
        return found.group()

    def picture(found: re.Match[str]) -> str:
        place = normpath(join(here, found[2]))
        if not place.startswith("docs/") or not (ROOT / place).is_file():
            return found.group()
        return f"{found[1]}{relpath(place.removeprefix('docs/'), dirname(page) or '.')}{found[3]}"

    plain = CODE_WITH_BAR.sub(lambda found: found.group().replace(r"\|", "|"), markdown)
    return PICTURE.sub(picture, LINK.sub(link, plain))
