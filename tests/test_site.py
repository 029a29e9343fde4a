"""The site of the pages: every page has a place, links that leave docs/ are found, and what the first page
shows works."""

from __future__ import annotations

import csv
import json
import random
import re
import runpy
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpc_protocols import errors
from runner.commands.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HOOKS = runpy.run_path(str(ROOT / "website" / "hooks.py"))


def test_every_page_has_one_place() -> None:
    listed = [page for pages in HOOKS["sections"]().values() for page in pages]
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}
    assert sorted(listed) == sorted(there)
    assert all((ROOT / source).is_file() for source in HOOKS["PROJECT"])


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "[README](../README.md)", "[README](project/readme.md)"),
        (
            "howto/python.md",
            "[changes](../../CHANGELOG.md#added)",
            "[changes](../project/changelog.md#added)",
        ),
        ("howto/python.md", "[codes](../reference/exit-codes.md)", "[codes](../reference/exit-codes.md)"),
        ("howto/python.md", "[book](../../examples/notebook.ipynb)", "book (`examples/notebook.ipynb`)"),
        (
            "howto/protocols.md",
            "[examples/protocols.py](../../examples/protocols.py)",
            "`examples/protocols.py`",
        ),
        ("project/readme.md", "[deploy](docs/howto/deploy.md)", "[deploy](../howto/deploy.md)"),
        ("project/examples.md", "[deploy](../docs/howto/deploy.md)", "[deploy](../howto/deploy.md)"),
        (
            "project/readme.md",
            '<img src="docs/images/who-sends-what.svg" width="9">',
            '<img src="../images/who-sends-what.svg" width="9">',
        ),
        ("howto/python.md", r"a | `run [-v \| -q]` | a \| b", r"a | `run [-v | -q]` | a \| b"),
        ("howto/python.md", "[x](https://example.org/a.md)", "[x](https://example.org/a.md)"),
        ("howto/python.md", "[x](../../nowhere.md)", "[x](../../nowhere.md)"),  # stops the build
    ],
)
def test_links_lead_to_where_pages_are_on_the_site(page: str, link: str, expected: str) -> None:
    assert HOOKS["rewritten"](f"See {link}.", page) == f"See {expected}."


def test_the_search_has_its_index_and_a_worker_where_pages_are_opened_as_files(tmp_path: Path) -> None:
    """The theme hides the search's box where no worker starts, and loads the index as a script there."""
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text('{"docs": ["\u03b5"]}', encoding="utf-8")
    HOOKS["on_post_build"](SimpleNamespace(site_dir=str(tmp_path)))
    script = (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert json.loads(script.removeprefix("var __index = ")) == {"docs": ["\u03b5"]}
    configured = (ROOT / "website" / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"polyfills: [{HOOKS['WORKER']}]" in configured
    assert 'location.protocol === "file:"' in (ROOT / "website" / "worker.js").read_text(encoding="utf-8")


def test_an_option_is_not_broken_at_its_hyphens() -> None:
    page = HOOKS["on_page_content"]("<td><code>run [--json]</code> a-b</td>")
    assert page == '<td><code>run <span class="whole">[--json]</span></code> a-b</td>'


def test_a_cell_names_its_column_where_a_row_stands_as_a_paragraph() -> None:
    head = "<table><thead><tr><th>of</th><th>our <em>own</em></th><th></th></tr></thead><tbody>"
    rows = (
        '<tr><td>AIM</td><td style="x">18.89</td><td>agrees</td></tr><tr><td>MST</td><td>2</td><td></td></tr>'
    )
    page = HOOKS["on_page_content"](head + rows + "</tbody></table>")
    assert page.count("data-label") == 2 and page.startswith(head)
    assert '<td>AIM</td><td data-label="our own" style="x">18.89</td><td>agrees</td>' in page
    two = "<table><tr><th>I want to</th><th>page</th></tr><tr><td>a</td><td>b</td></tr></table>"
    assert HOOKS["on_page_content"](two) == two


def test_every_exit_code_has_a_page_with_cause_and_cure() -> None:
    codes = {
        errors.CosynthError.exit_code,
        *(kind.exit_code for kind in errors.CosynthError.__subclasses__()),
    }
    pages = {
        int(path.stem): path.read_text(encoding="utf-8")
        for path in (DOCS / "reference" / "exit-codes").glob("*.md")
    }
    assert set(pages) == codes
    for code, text in pages.items():
        assert text.startswith(f"# {code}: ") and "| cause | cure |" in text, code
        assert f"[{code}](exit-codes/{code}.md)" in (DOCS / "reference" / "exit-codes.md").read_text(
            encoding="utf-8"
        )


def test_the_first_study_is_what_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its study and its commands, in a folder with two tables; in the clear, for processes are tested
    elsewhere."""
    text = (DOCS / "howto" / "first-study.md").read_text(encoding="utf-8")
    (study,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^    cosynth (.*)$", text, re.MULTILINE)
    assert [line.split()[0] for line in commands] == ["check", "plan", "run", "query", "sample", "evaluate"]
    (tmp_path / "study.toml").write_text(study.replace('"replicated"', '"ideal"'), encoding="utf-8")
    draw = random.Random(3)
    for name, count in (("clinic", 900), ("registry", 700)):
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["age", "smokes", "visits", "region"])
            for _ in range(count):
                age = draw.randint(18, 99)
                smokes = draw.choice(["yes", "no", ""]) if age < 60 else "no"
                writer.writerow(
                    [age, smokes, draw.choice([0, 1, 3, 9]), draw.choice(["north", "south", "west"])]
                )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    for line in commands:
        assert main(shlex.split(line)) == 0, (line, capsys.readouterr().err)
    said = capsys.readouterr().out
    assert "quality, for about" in said and "Not private" in said
    assert (tmp_path / "result" / "report.html").is_file()
    assert len((tmp_path / "more.csv").read_text().splitlines()) == 1001


def test_the_tour_goes_as_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tables, its columns and its commands after the demo; in the clear, for processes are tested
    elsewhere."""
    page = (DOCS / "howto" / "tour.md").read_text(encoding="utf-8")
    text = re.sub(r" \\\n +", " ", page)  # a command on two lines
    typed = [line.partition("  # ")[0].strip() for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE)]
    assert len(typed) == 12
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    (tables,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(tables, {})
    (columns,) = re.findall(
        r"tests/test_site.py confirms -->\n```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    for line in typed:
        words = shlex.split(line)
        if words[0] == "cat":
            proposed, study = Path(words[1]), Path(words[3])
            marked = [
                row for row in proposed.read_text(encoding="utf-8").splitlines() if "  # TO BE CONF" in row
            ]
            assert len(marked) == 6  # as the page says
            for name, column in tomllib.loads(proposed.read_text(encoding="utf-8"))["domain"][
                "columns"
            ].items():
                confirmed = tomllib.loads(columns)["domain"]["columns"][name]
                assert column.keys() == confirmed.keys() and column["kind"] == confirmed["kind"]
            whole = study.read_text(encoding="utf-8").replace('backend = "replicated"', 'backend = "ideal"')
            study.write_text(whole + columns, encoding="utf-8")
        elif words[:2] == ["python", "-c"]:
            exec(words[2], {})
        elif words[0] == "cosynth" and words[1] != "demo":
            assert main(words[1:]) == 0, (line, capsys.readouterr().err)
    said = capsys.readouterr().out
    assert (
        "for about 4,000 rows (from the tables on this machine" in said and said.count("its table fits") == 2
    )
    assert "cramers_v(pressure, ward)" in said and "3 parties" in said and "against 2,000 real ones" in said
    assert "<svg" in (tmp_path / "pictures.html").read_text(encoding="utf-8")
    (south,) = (
        block
        for block in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if "ignore" in block
    )
    assert south in (tmp_path / "survey" / "south.toml").read_text(encoding="utf-8")


def test_pictures_of_a_page_are_there_and_have_a_text_for_who_cannot_see_them() -> None:
    pages = [*DOCS.rglob("*.md"), *(ROOT / source for source in HOOKS["PROJECT"])]
    seen = 0
    for page in pages:
        for tag in re.findall(r"<img [^>]*>", page.read_text(encoding="utf-8")):
            (source,), (said,) = re.findall(r'src="([^"]+)"', tag), re.findall(r'alt="([^"]+)"', tag)
            assert (page.parent / source).is_file() and len(said) > 20, f"{page}: {tag}"
            seen += 1
    assert seen >= 3
