"""The page as a whole: self-contained, inert, deterministic, honest about the run, quick, and strict about its inputs."""
# ruff: noqa: RUF001 - the multiplication sign and Greek letters are meant

from __future__ import annotations

import html
import json
import math
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from mpc_protocols.errors import UsageError
from mpc_protocols.process.foreign_text import printable
from runner.report import render
from synth.domain import Categorical, Codes, Domain, Numeric
from tests.runner.report.fake import PEOPLE, marginal, people, write_run

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">\u202e&amp;"


class Page(HTMLParser):
    """Elements with attributes, and the text of each element; complains about unbalanced markup."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        name, parts = self._open.pop()
        assert name == tag, f"</{tag}> closes <{name}>"
        text = "".join(parts)
        self.texts.append((tag, " ".join(text.split())))
        if self._open:
            self._open[-1][1].append(text)

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][1].append(data)

    def first(self, tag: str) -> str:
        return next(text for name, text in self.texts if name == tag)

    @property
    def text(self) -> str:
        return self.first("body")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    write_run(directory)
    render(directory)
    return directory


def page_of(directory: Path, **comparison: object) -> Page:
    return Page(render(directory, **comparison).read_text(encoding="utf-8"))  # type: ignore[arg-type]


def changed(finished: Path, target: Path, **changes: object) -> Path:
    """A copy of the run with entries of run.json replaced (mappings are merged)."""
    target.mkdir(exist_ok=True)
    for name in ("measurements.json", "model.npz", "synthetic.csv"):
        (target / name).write_bytes((finished / name).read_bytes())
    facts = json.loads((finished / "run.json").read_text())
    for key, value in changes.items():
        facts[key] = {**facts.get(key, {}), **value} if isinstance(value, dict) else value
    (target / "run.json").write_text(json.dumps(facts))
    return target


def test_loads_nothing_and_runs_nothing(finished: Path) -> None:
    text = (finished / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    policy = next(
        a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and "default-src 'none'" in policy and "script" not in policy
    forbidden = {"script", "iframe", "object", "embed", "form", "img", "use", "image", "foreignobject"}
    assert not forbidden & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("src", "style", "srcset") for name in attributes), (
            tag,
            attributes,
        )
        target = attributes.get("href")
        assert target is None or target.startswith("#") or target == "data:,", target
    assert not re.search(r"https?:|url\(|@import", text)
    anchors = {a["href"][1:] for tag, a in page.elements if tag == "a" and a.get("href")}  # type: ignore[index]
    assert anchors <= {a.get("id") for _, a in page.elements}


def test_same_files_same_bytes(finished: Path, tmp_path: Path) -> None:
    other = changed(finished, tmp_path / "elsewhere")
    assert render(other).read_bytes() == (finished / "report.html").read_bytes()
    assert sorted(p.name for p in other.iterdir()) == [
        "measurements.json",
        "model.npz",
        "report.html",
        "run.json",
        "synthetic.csv",
    ]


def test_first_paragraph_on_one_machine(finished: Path) -> None:
    assert "a run on one machine protects nobody from that machine" in page_of(finished).first("p")


def test_distributed_run_makes_no_such_remark(finished: Path, tmp_path: Path) -> None:
    assert "one machine" not in page_of(changed(finished, tmp_path, deployment="distributed")).text


def test_it_says_between_which_tables_the_promise_holds_and_what_a_refusal_tells(finished: Path) -> None:
    text = page_of(finished).text
    assert "The promise holds between collections of data that fit the study" in text
    assert "at most 4,194,304 rows at each custodian" in text and "refused and not why" in text


def test_the_epsilon_that_the_cap_was_solved_at_is_printed_where_it_is_less(
    finished: Path, tmp_path: Path
) -> None:
    """At epsilon 20 the samplers' distances, (1 + e^20) beta, would be more than delta: it says what was done instead."""
    page = page_of(finished).text
    assert "which costs (1 + eε)β" in page and "counted on less" not in page
    privacy = json.loads((finished / "run.json").read_text())["privacy"]
    privacy |= {"epsilon": 20.0, "beta": 1e-12, "calibrated_epsilon": 15.4249, "delta_for_zcdp": 5e-6}
    page = page_of(changed(finished, tmp_path, privacy=privacy)).text
    assert "counted on less: everything released is (15.4249, 10⁻⁵)-differentially private" in page
    assert "whose exact conversion at ε = 15.4249 stays within the rest" in " ".join(page.split())
    assert "(1 + e15.4249)β = 5 × 10⁻⁶ of δ" in " ".join(page.split())


def test_ideal_says_that_it_protected_nothing(finished: Path, tmp_path: Path) -> None:
    page = page_of(changed(finished, tmp_path, backend="ideal"))
    paragraphs = [text for tag, text in page.texts if tag == "p"][:2]
    assert paragraphs[0].startswith("This run protected nothing.")
    assert "nobody gathered the data" not in page.text and "computed together" not in page.text
    assert "at every computing party" not in page.text


def test_unencrypted_links_are_not_called_encrypted(finished: Path, tmp_path: Path) -> None:
    claim = "connections are encrypted and both ends prove who they are"
    assert claim in page_of(finished).text
    page = page_of(changed(finished, tmp_path, public_study={"session": {"tls": "insecure-loopback"}}))
    assert claim not in page.text and "were not encrypted" in page.text


def test_a_table_for_predictions_is_called_one(finished: Path, tmp_path: Path) -> None:
    claim = "that column is part of every marginal of its workload"
    assert claim not in page_of(finished).text
    page = page_of(changed(finished, tmp_path, public_study={"workload": {"degree": 2, "label": "income"}}))
    assert claim in page.text


def test_what_a_lying_custodian_can_do_is_stated(finished: Path) -> None:
    """`docs/design/mechanisms.md` 5: impossible counts break the sign bound, so it is more than a spoilt table."""
    text = " ".join(html.unescape((finished / "report.html").read_text(encoding="utf-8")).split())
    assert (
        "with impossible counts it can also make a choice of marginal depend on somebody else’s record"
        in text
    )


def test_statement_follows_adjacency_unit_and_roles(finished: Path, tmp_path: Path) -> None:
    text = page_of(finished).text
    assert "left out or added" in text and "How many rows each party holds is protected too" in text
    assert "Each contributor" not in text
    facts = json.loads((finished / "run.json").read_text())
    parties = [
        *facts["parties"],
        {"name": "coast", "role": "contribute", "bytes_sent": 1, "bytes_received": 2, "rounds": 2},
    ]
    text = page_of(
        changed(
            finished,
            tmp_path,
            parties=parties,
            privacy={"adjacency": "replace", "epsilon": 2.0},
            public_study={"privacy": {"unit": {"id": "person_no", "max_rows": 3, "max_custodians": 2}}},
        )
    ).text
    assert "had held other values" in text and "is not protected" in text and "Each contributor" in text
    assert "person_no" in text and "at most three rows" in text and "most two custodians" in text
    assert "88.1" in text  # e^2 / (1 + e^2) = 0.88080, rounded up
    assert "7.39" in text  # e^2


@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 20.0, 1e5])
def test_extreme_budgets_render(finished: Path, tmp_path: Path, epsilon: float) -> None:
    text = page_of(changed(finished, tmp_path, privacy={"epsilon": epsilon, "delta": 1e-300})).text
    assert "nan" not in text.lower().split() and "inf" not in text.lower().split()


def test_every_text_is_inert(tmp_path: Path) -> None:
    columns = Categorical((HOSTILE, "b")), Categorical(("c", HOSTILE), missing=True)
    domain = Domain((HOSTILE.replace("\u202e", ""), "plain"), columns)
    codes = people(domain, 400)
    plain = (
        "study",
        "algorithm",
        "backend",
        "version",
        "digest",
        "session",
        "started",
        "partition",
        "deployment",
    )
    facts = write_run(
        tmp_path,
        domain=domain,
        codes=codes,
        groups=(domain.names,),
        **dict.fromkeys(plain, HOSTILE),  # type: ignore[arg-type]
    )
    facts["privacy"]["events"].append({"what": HOSTILE, "rho": 1e-9, "cliques": [[HOSTILE]]})
    facts["privacy"] |= {"unit": HOSTILE, "adjacency": HOSTILE}
    facts["public_study"] = {
        "privacy": {"unit": {"id": HOSTILE}},
        "workload": {"label": HOSTILE},
        HOSTILE: {"rounds": 3},
    }
    facts["parties"][0] |= {"name": HOSTILE, "role": HOSTILE}
    facts["phases"][0]["name"] = HOSTILE
    facts["timeline"][HOSTILE] = [9.0]
    (tmp_path / "run.json").write_text(json.dumps(facts))
    comparison = {
        "metrics": {HOSTILE: (0.1, None, HOSTILE)},
        "counts": {"plain": marginal(codes, domain, ("plain",))},
    }
    text = render(tmp_path, comparison=comparison).read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert text.count(html.escape("<script>alert(", quote=False)) > 20
    assert page.first("h1") == " ".join(printable(HOSTILE).split()) and "\u202e" not in text


def test_a_lone_surrogate_does_not_stop_the_report(finished: Path, tmp_path: Path) -> None:
    assert render(changed(finished, tmp_path, study="caf\ud800")).read_bytes().decode("utf-8")


def test_warnings_and_the_verdict_come_before_anything_else(finished: Path, tmp_path: Path) -> None:
    told = {
        "warnings": [{"code": "no-relations", "text": "No two columns of this table are related."}],
        "relations": {"sentence": "No relations kept.", "kept": 0, "visible": 2, "pairs": 3},
    }
    assert not any(
        text.startswith("No relations kept") for tag, text in page_of(finished).texts if tag == "p"
    )
    page = Page(render(changed(finished, tmp_path, **told)).read_text(encoding="utf-8"))
    paragraphs = [text for tag, text in page.texts if tag == "p"]
    assert paragraphs[0].startswith("No two columns") and any(
        text.startswith("No relations kept") for text in paragraphs[:4]
    )


def test_the_result_comes_first_and_every_release_is_listed(finished: Path, tmp_path: Path) -> None:
    told = {
        "relations": {
            "sentence": "Relations kept: 1 of 1.",
            "strongest": [{"columns": ["age", "married"], "strength": 0.4, "kept": 1.0}],
            "kept": 1,
            "visible": 1,
            "pairs": 3,
        }
    }
    page = page_of(changed(finished, tmp_path, **told))
    sections = [a["id"] for tag, a in page.elements if tag == "section"]
    assert sections == ["good", "asked", "privacy", "learned", "cost", "releases", "reading"]
    first = next(text for tag, text in page.texts if tag == "figure")
    assert "married by age" in first and "Cramér’s V" in first
    events = json.loads((finished / "run.json").read_text())["privacy"]["events"]
    text = (tmp_path / "report.html").read_text()
    rows = re.findall(r'<td class="order">(\d+)</td>', text)
    assert f"All {len(events)}, in order" in text and rows == [str(i + 1) for i in range(len(events))]


def test_a_promise_of_little_is_not_called_one(finished: Path, tmp_path: Path) -> None:
    privacy = json.loads((finished / "run.json").read_text())["privacy"]
    page = Page(
        render(changed(finished, tmp_path, privacy={**privacy, "epsilon": 200.0})).read_text(encoding="utf-8")
    )
    text = " ".join(text for _, text in page.texts)
    assert (
        "Hardly anything is promised" in text
        and "no single" not in text
        and "guesses right at most" not in text
    )


def test_columns_that_stand_alone_are_named_in_the_head(tmp_path: Path) -> None:
    names = PEOPLE.names
    write_run(tmp_path / "some", groups=[names[:2]])
    write_run(tmp_path / "all", groups=[])
    write_run(tmp_path / "none", groups=[(names[0], name) for name in names[1:]])

    def alone(folder: str) -> list[str]:
        text = (render(tmp_path / folder)).read_text()
        found = re.search(r"<dt>Independent of all others</dt><dd>(.*?)</dd>", text)
        return re.findall(r"<bdi>(.*?)</bdi>", found.group(1)) or [found.group(1)] if found else []

    assert alone("some") == [html.escape(name) for name in names[2:]]
    assert alone("all") == ["every column"] and alone("none") == []


def test_figures_of_the_run_are_on_the_page(finished: Path) -> None:
    facts = json.loads((finished / "run.json").read_text())
    text = page_of(finished).text.replace("\u00a0", " ")
    for expected in (
        facts["study"],
        f"{facts['rows']:,}",
        "north, south and west",
        "AIM, three rounds",
        "4 November 2025, 09:31 UTC",
        "7.42 s",
        facts["digest"],
        facts["session"],
        "age × work × income",
        "23.1 MB",
        "cosynth query DIR age work",
        "Selected schooling × income among 61 candidates",
        "noise σ = 12 rows",
    ):
        assert expected in text, expected


def test_comparison_is_framed_and_absent_otherwise(finished: Path) -> None:
    assert "Only possible in a demo" not in page_of(finished).text
    counts = {name: marginal(people(PEOPLE, 3000), PEOPLE, (name,)) for name in ("age", "region")}
    page = page_of(
        finished, comparison={"metrics": {"Workload error": (0.1234, 0.5, "mean L1")}, "counts": counts}
    )
    section = next(text for tag, text in page.texts if tag == "section" and "Only possible in a demo" in text)
    assert "0.123" in section and "0.5" in section and "mean L1" in section and "real rows" in section
    render(finished)


def test_every_drawing_has_a_name_and_every_table_headers(finished: Path) -> None:
    page = Page((finished / "report.html").read_text(encoding="utf-8"))
    for tag, attributes in page.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or (
                attributes.get("role") == "img" and attributes.get("aria-label")
            )
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")
    assert (
        sum(tag == "table" for tag, _ in page.elements)
        == sum(tag == "caption" for tag, _ in page.elements)
        >= 5
    )
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in pairwise(levels))


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = (
        [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        if len(colour) == 7
        else [int(c, 16) / 15 for c in colour[1:]]
    )
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_contrast(finished: Path, theme: str) -> None:
    """Texts have a contrast of 4.5 with the page, marks of 3 (WCAG 2.2 AA), in every theme."""
    text = (finished / "report.html").read_text(encoding="utf-8")
    themes = dict(
        zip(("light", "dark", "print"), re.findall(r":root \{(.*?)\}", text, re.DOTALL), strict=True)
    )
    colours: dict[str, str] = {}
    for name in ("light", theme):
        colours.update(re.findall(r"--([\w-]+): (#\w+)", themes[name]))

    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    for ink in (
        "ink",
        "muted",
        "synthetic-ink",
        "h0",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
    ):  # badges: page colour on the hue
        assert contrast(ink, "paper") >= 4.5, (theme, ink)
    assert contrast("warn", "warn-paper") >= 4.5 and contrast("ink", "raised") >= 4.5
    for mark in ("synthetic", "measured", "real", "select"):
        assert contrast(mark, "paper") >= 3, (theme, mark)


@pytest.mark.parametrize("missing", ["run.json", "measurements.json", "model.npz", "synthetic.csv"])
def test_a_missing_or_damaged_file_is_named(finished: Path, tmp_path: Path, missing: str) -> None:
    directory = changed(finished, tmp_path)
    (directory / "report.html").write_text("earlier")
    for damage in (b"", b"{}", b"[1, 2", b"\xff\xfe\x00", None):
        if damage is None:
            (directory / missing).unlink()
        else:
            (directory / missing).write_bytes(damage)
        with pytest.raises(UsageError) as caught:
            render(directory)
        assert missing in caught.value.sentence and caught.value.sentence.endswith(".")
        assert (directory / "report.html").read_text() == "earlier"


def test_files_of_two_runs_are_refused(finished: Path, tmp_path: Path) -> None:
    directory = changed(finished, tmp_path)
    lines = (directory / "synthetic.csv").read_text().splitlines()
    (directory / "synthetic.csv").write_text("\n".join([lines[0].replace("work", "job"), *lines[1:]]))
    with pytest.raises(UsageError, match=r"synthetic\.csv"):
        render(directory)


def test_an_entry_missing_from_run_json_is_refused(finished: Path, tmp_path: Path) -> None:
    whole = json.loads((finished / "run.json").read_text())
    directory = changed(finished, tmp_path)
    for keys in (
        ([key] for key in whole if key != "public_study"),
        (["privacy", key] for key in whole["privacy"]),
        (["phases", 0, key] for key in whole["phases"][0]),
        (["parties", 0, key] for key in whole["parties"][0]),
    ):
        for place in keys:
            facts = json.loads(json.dumps(whole))
            inner = facts
            for key in place[:-1]:
                inner = inner[key]
            del inner[place[-1]]
            (directory / "run.json").write_text(json.dumps(facts))
            if place[-1] in (
                "rho_spent",
                "max_rows",
                "noisy_total",
                "delta_for_zcdp",
                "calibrated_epsilon",
                "timeline",
            ):
                render(directory)
                continue
            with pytest.raises(UsageError, match=r"run\.json"):
                render(directory)


@pytest.mark.parametrize("timeline", [{"fit": [0.5, math.inf]}, {"fit": ["soon"]}, {"fit": 0.5}, [0.5], None])
def test_times_that_are_none_are_refused(finished: Path, tmp_path: Path, timeline: object) -> None:
    facts = json.loads((finished / "run.json").read_text())
    directory = changed(finished, tmp_path)
    (directory / "run.json").write_text(json.dumps({**facts, "timeline": timeline}))
    with pytest.raises(UsageError, match=r"run\.json"):
        render(directory)


def test_a_model_of_other_columns_is_refused(finished: Path, tmp_path: Path) -> None:
    directory = changed(finished, tmp_path / "mixed")
    write_run(tmp_path / "other", domain=Domain(("x", "y"), (Codes(2), Codes(3))), groups=())
    (directory / "model.npz").write_bytes((tmp_path / "other" / "model.npz").read_bytes())
    with pytest.raises(UsageError, match=r"model\.npz"):
        render(directory)


def test_odd_shapes_render(tmp_path: Path) -> None:
    """One column; no groups; constant columns; many columns in many parts."""
    write_run(tmp_path / "one", domain=Domain(("only",), (Codes(1),)), groups=())
    assert "measured one at a time" in page_of(tmp_path / "one").text
    names = tuple(f"a rather long name of column {i}" for i in range(45))
    wide = Domain(names, tuple(Numeric(0, 1, 3) if i % 3 else Codes(2) for i in range(45)))
    groups = (*((names[i], names[i + 1]) for i in range(0, 30, 3)), names[33:36], names[35:38])
    write_run(tmp_path / "wide", domain=wide, groups=groups, parties=6)
    assert "5 columns with fewer joint measurements left out" in page_of(tmp_path / "wide").text


def test_heavy_imports_are_left_out(finished: Path) -> None:
    """Naming the package costs nothing; rendering needs neither pandas nor matplotlib."""
    script = (
        "import sys; from pathlib import Path; import runner.report as report; early = set(sys.modules); "
        f"report.render(Path({str(finished)!r})); "
        "print(bool({'numpy', 'jinja2'} & early), bool({'pandas', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_adult_sized_run_is_quick(tmp_path: Path, quiet_machine: bool) -> None:
    """48,842 rows, 14 columns, 24 measurements of up to 10^4 cells: 1.5 s of CPU, imports excluded."""
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    names = tuple(f"c{i}" for i in range(14))
    domain = Domain(names, tuple(Codes(size) for size in sizes))
    groups = tuple((names[i], names[(i + 3) % 14]) for i in range(10))
    write_run(tmp_path, domain=domain, codes=people(domain, 48842), groups=groups, rounds=25, sigma=30.0)
    render(tmp_path)
    spent = []
    for _ in range(3):
        start = time.process_time()
        render(tmp_path)
        spent.append(time.process_time() - start)
    assert not quiet_machine or min(spent) < 1.5, spent


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path)

    def refused(**_: object) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    with pytest.raises(UsageError, match="cannot be written"):
        render(tmp_path)


def test_every_column_of_a_table_and_every_cell_of_the_associations_says_what_it_is(tmp_path: Path) -> None:
    write_run(tmp_path)
    text = render(tmp_path).read_text()
    heads = re.findall(r"<thead>(.*?)</thead>", text, re.DOTALL)
    assert heads and all(re.findall(r"<th\b", head) and "<td" not in head for head in heads)
    heat = re.search(r'<svg[^>]*class="heat wide".*?</svg>', text, re.DOTALL)
    assert heat is not None
    cells = re.findall(r"<title>[^<]*: (\d\.\d\d)</title>", heat[0])
    written = re.findall(r'class="figure(?: strong)?"[^>]*>([^<]*)<', heat[0])
    assert cells and written == [cell.removeprefix("0") for cell in cells]


def test_a_run_against_a_party_that_deviates_says_so_in_its_head(tmp_path: Path) -> None:
    write_run(tmp_path)
    head = "replicated, horizontal, malicious"
    assert head not in render(tmp_path).read_text()
    facts = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**facts, "security": "malicious"}))
    assert head in render(tmp_path).read_text()
