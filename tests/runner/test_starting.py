"""Starting from a table: proposals that stay private and commented out, code books that are public, a schema
for editors."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from parties.data.sql.addresses import SCHEMES, is_server
from runner.commands.cli import main
from runner.starting.files import proposal_file
from runner.starting.proposals import proposal
from runner.starting.template import template
from runner.study import private_file, read
from runner.study.declared.reference import page
from runner.study.declared.schema import schema, schema_text
from synth.domain import column_from_spec

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "study-file.md"
ROWS = 300


def write(path: Path) -> Path:
    lines = ["nr;sex;days in;fine;when;smokes;note;empty;ward"]
    for i in range(ROWS):
        fine = "NA" if i % 9 == 0 else f"{i * 3.25:.2f}".replace(".", ",")
        days = "-9" if i % 7 == 0 else 0 if i % 3 == 0 else i * 2 + 1
        lines.append(
            f"{10**6 + i * 17};{'MF'[i % 2]};{days};{fine};2019-{i % 12 + 1:02}-03;{'yes' if i % 2 else 'no'};wörd {i};;{i % 4}"
        )
    path.write_bytes("\n".join(lines).encode("cp1252"))
    return path


def test_proposals_are_private_and_make_a_domain_once_what_is_marked_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sex.csv").write_text("code,meaning\nM,male\nF,female\nX,other\n")
    out = tmp_path / "study"
    given = ["--from", str(write(tmp_path / "t.csv")), "--codes", f"sex={tmp_path / 'sex.csv'}"]
    assert main(["init", str(out), *given]) == 0
    told = capsys.readouterr().out.replace("\n", " ")
    assert "tell of the data" in told and "an example of three custodians, to be replaced by yours" in told
    assert "append the columns once they are confirmed, and declare the parties" in told
    file = out / "domain.proposed.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    proposed = file.read_text()
    read_off = [
        line for line in proposed.splitlines() if re.match(r"(low|high|values|missing|zero) = ", line)
    ]
    assert len(read_off) >= 10 and all("  # TO BE CONFIRMED: " in line for line in read_off)
    assert "Limits and lists of values taken from data tell of the data" in proposed
    assert "# nr: it looks like an identifier" in proposed and "# note: it looks like" in proposed
    assert "# empty: it holds no value" in proposed and "# sex: in study.toml" in proposed
    columns = tomllib.loads(proposed)["domain"]["columns"]
    assert columns["days in"] == {
        "kind": "integer",
        "low": 0,
        "high": 600,
        "bins": 12,  # 50 wide
        "zero": True,
        "missing": True,
    }
    assert columns["fine"] == {"kind": "numeric", "low": 0.0, "high": 1000.0, "bins": 20, "missing": True}
    assert columns["when"]["kind"] == "date" and columns["smokes"] == {"kind": "boolean"}
    assert columns["ward"]["kind"] == "integer"
    for name, spec in columns.items():
        column_from_spec(spec, name)
    study = (out / "study.toml").read_text()
    assert tomllib.loads(study)["domain"]["columns"] == {
        "sex": {"kind": "categorical", "values": ["M", "F", "X"]}
    }
    private = tomllib.loads((out / "private.example.toml").read_text())
    assert private["data"] == str(tmp_path / "t.csv")
    assert private["csv"] == {"delimiter": ";", "decimal": ",", "encoding": "windows-1252"}
    assert private["harmonise"]["columns"] == {"days in": {"missing": ["-9"]}, "fine": {"missing": ["NA"]}}
    # appended as it is, the study is one, and `check` counts what nobody has confirmed; a person does
    (out / "study.toml").write_text(study + proposed)
    found = read.load(out / "study.toml")
    assert main(["check", str(out / "study.toml")]) == 0
    assert f"{len(read_off)} lines of the study are marked TO BE CONFIRMED" in capsys.readouterr().out
    (out / "study.toml").write_text(study + proposed.replace("TO BE CONFIRMED", "confirmed"))
    assert main(["check", str(out / "study.toml")]) == 0
    assert "TO BE CONFIRMED" not in capsys.readouterr().out
    assert {*found.domain.names} == {"sex", *columns}


@pytest.mark.parametrize(
    ("delimiter", "decimal", "thousands"),
    [(",", ".", ","), (";", ",", "."), (";", ",", " "), (";", ".", "'"), (";", ",", None), (",", ".", None)],
)
def test_amounts_with_grouped_digits_are_numbers(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    delimiter: str,
    decimal: str,
    thousands: str | None,
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    marks = str.maketrans({",": thousands or "", ".": decimal})
    costs = [f"{17.5 + 49.25 * i * i:,.2f}".translate(marks) for i in range(ROWS)]
    lines = [f"sex{delimiter}cost", *(f'f{delimiter}"{cost}"' for cost in costs)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    both = ("north", "south")
    given = [word for name in both for word in ("--from", f"{name}={tmp_path / 't.csv'}")]
    assert main(["init", str(tmp_path / "study"), *given]) == 0
    columns = tomllib.loads((tmp_path / "study" / "domain.proposed.toml").read_text())["domain"]["columns"]
    assert columns["cost"]["kind"] == "numeric" and columns["cost"]["high"] == 5e6
    private = tomllib.loads((tmp_path / "study" / "north.toml").read_text())
    assert private.get("csv", {}).get("thousands") == thousands
    with (tmp_path / "study" / "study.toml").open("a") as study:
        study.write((tmp_path / "study" / "domain.proposed.toml").read_text())
    given = [word for name in both for word in ("--private", f"{name}={tmp_path / 'study' / f'{name}.toml'}")]
    assert main(["check", str(tmp_path / "study" / "study.toml"), *given]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("texts", "kind", "markers"),
    [
        (["1", "2", "3", "-9", "NA"], "integer", ("-9", "NA")),
        (["-20", "-9", "5"], "integer", ()),
        (["0", "1"], "boolean", ()),
        (["0.001", "5", "900000.5"], "numeric", ()),
        (["2020-02-30", "2020-01-01"], "categorical", ()),
        (["2020-02-03 10:00", "2021-01-01 11:30"], "datetime", ()),
        (["a", "b", "NA"], "categorical", ()),
        (["5"], "integer", ()),
        (["5.5"], "numeric", ()),
        (["t", "F"], "boolean", ()),
    ],
)  # fmt: skip
def test_kinds_are_told_from_texts(texts: list[str], kind: str, markers: tuple[str, ...]) -> None:
    found = proposal("x", Counter(texts), len(texts))
    keys: dict[str, Any] = dict(found.keys)
    assert (keys["kind"], found.markers) == (kind, markers)
    column_from_spec(keys, "x")


@pytest.mark.parametrize(
    ("texts", "spellings"),
    [
        (["02.10.1954", "31.12.1999"], ("%d.%m.%Y",)),
        (["2.1.1954"], ("%d.%m.%Y",)),
        (["02/10/1954", "31/12/1999"], ("%d/%m/%Y",)),
        (["02/10/1954", "12/31/1999", "NA"], ("%m/%d/%Y",)),
        (["02/10/1954", "03/04/1999"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["1999/12/31"], ("%Y/%m/%d",)),
        (["31.02.1999", "01.02.1999"], ()),
        (["13/13/1999"], ()),
        (["02.10.1954", "02/10/1954"], ()),
    ],
)  # fmt: skip
def test_days_of_other_spellings_are_days_with_the_rule_that_reads_them(
    tmp_path: Path, texts: list[str], spellings: tuple[str, ...]
) -> None:
    found = proposal("born on", Counter(texts), len(texts))
    keys: dict[str, Any] = dict(found.keys)
    assert found.spellings == spellings and (keys["kind"] == "date") == bool(spellings)
    written = proposal_file("t.csv", [found], {})
    assert tomllib.loads(written)["domain"]["columns"]["born on"]["kind"] == keys["kind"]
    assert ("AMBIGUOUS" in written) == (len(spellings) > 1)
    days = [text for text in texts if text != "NA"]
    rules = re.findall(r"sql = .*", written)
    assert len(rules) == len(spellings)
    for rule in rules:
        (tmp_path / "private.toml").write_text(f'[harmonise.columns."born on"]\n{rule}\n')
        sql = private_file.load(tmp_path / "private.toml").rules.columns["born on"].sql
        read = duckdb.execute(f'SELECT {sql} FROM (SELECT unnest(?) AS "born on")', [days]).fetchall()
        assert len(read) == len(days) and all(keys["low"] <= day.date() <= keys["high"] for (day,) in read)


@pytest.mark.parametrize(
    ("name", "content", "values"),
    [
        ("a.json", '["x", 2, true]', ("x", 2, True)),
        ("a.json", '{"x": "ex", "y": "why"}', ("x", "y")),
        ("a.csv", "code;meaning\n1;one\n2;two\n", ("1", "2")),
    ],
)
def test_code_books_are_read(tmp_path: Path, name: str, content: str, values: tuple[object, ...]) -> None:
    (tmp_path / name).write_text(content)
    assert main(["init", str(tmp_path / "s"), "--codes", f"column={tmp_path / name}"]) == 0
    column = tomllib.loads((tmp_path / "s" / "study.toml").read_text())["domain"]["columns"]["column"]
    assert tuple(column["values"]) == values


@pytest.mark.parametrize("content", ['{"x": ', "3", "[[1]]", "[]", '["x", "x"]'])
def test_what_is_no_code_book_is_refused(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(content)
    assert main(["init", str(tmp_path / "s"), "--codes", f"column={tmp_path / 'a.json'}"]) == 2
    assert capsys.readouterr().err.startswith("--codes") and not (tmp_path / "s").exists()
    assert main(["init", str(tmp_path / "s"), "--codes", "column"]) == 2


def test_the_committed_schema_is_the_readers() -> None:
    committed = ROOT / "docs" / "reference" / "study.schema.json"
    assert committed.read_text(encoding="utf-8") == schema_text(), (
        f"python -m runner.study.declared.schema {committed.relative_to(ROOT)}"
    )


def test_the_committed_reference_has_the_readers_tables_of_keys() -> None:
    committed = PAGE.read_text(encoding="utf-8")
    assert committed == page(committed), f"python -m runner.study.declared.reference {PAGE.relative_to(ROOT)}"
    with pytest.raises(ValueError, match="privacy has no table of keys"):
        page("## [privacy]\n\nWords only.\n")


def keys(node: object, table: str = "") -> set[tuple[str, str]]:
    """The keys of a schema, each with the top table that it is in."""
    found: set[tuple[str, str]] = set()
    if isinstance(node, dict):
        for name, part in node.get("properties", {}).items():
            # columns of a linked table have the keys of [domain.columns]
            found |= {(table, name)} | keys(part, "domain" if name == "columns" else table or name)
        for word in ("items", "additionalProperties"):
            found |= keys(node.get(word), table)
        for word in ("oneOf", "anyOf"):
            for part in node.get(word, []):
                found |= keys(part, table)
    return found


def test_the_reference_names_every_key() -> None:
    headings = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for table, name in sorted(keys(schema())):
        about = [part for part in headings if not table or re.search(rf"\[{table}[].]", part.split("\n")[0])]
        assert any(re.search(rf"\b{name}\b", part) for part in about), (
            f"{PAGE.name} says nothing of [{table}] {name}"
        )


def fits(value: object, form: Any, whole: str = "") -> bool:
    """A validator of the part of JSON Schema that is used here."""
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    if "type" in form:
        names = form["type"] if isinstance(form["type"], list) else [form["type"]]
        if not any(
            isinstance(value, kinds[n]) and (n == "boolean" or not isinstance(value, bool)) for n in names
        ):
            return False
    if "pattern" in form and (not isinstance(value, str) or not re.search(form["pattern"], value)):
        return False
    if ("enum" in form and value not in form["enum"]) or ("const" in form and value != form["const"]):
        return False
    if "not" in form and fits(value, form["not"]):
        return False
    if isinstance(value, dict):
        if not all(fits(name, form.get("propertyNames", {})) for name in value):
            return False
        known, more = form.get("properties", {}), form.get("additionalProperties", True)
        if any(key not in value for key in form.get("required", ())) or len(value) < form.get(
            "minProperties", 0
        ):
            return False
        for key, part in value.items():
            inner = known.get(key, more)
            if inner is False or (inner is not True and not fits(part, inner)):
                return False
    if isinstance(value, list) and not all(fits(part, form.get("items", {})) for part in value):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        limits = form.get("minimum", value) <= value <= form.get("maximum", value)
        if (
            not limits
            or value <= form.get("exclusiveMinimum", value - 1)
            or value >= form.get("exclusiveMaximum", value + 1)
        ):
            return False
    if "anyOf" in form and not any(fits(value, one) for one in form["anyOf"]):
        return False
    return "oneOf" not in form or sum(fits(value, one) for one in form["oneOf"]) == 1


def as_json(text: str) -> Any:
    return json.loads(json.dumps(tomllib.loads(text), default=str))


def test_studies_fit_the_schema_and_mistakes_do_not() -> None:
    studies = [
        template(False),
        template(True),
        *(path.read_text() for path in (ROOT / "examples").rglob("study*.toml")),
    ]
    for study in studies:
        assert fits(as_json(study), schema())
    for before, after in (
        ("epsilon = 1.0", 'epsilon = "1"'),
        ('name = "example"', 'nam = "example"'),
        ("bins = 20", "bin = 20"),
        ('kind = "categorical"', 'kind = "category"'),
        ('partition = "horizontal"', 'partition = "diagonal"'),
    ):
        assert before in studies[0] and not fits(as_json(studies[0].replace(before, after, 1)), schema())
    more = '[[domain.constraints]]\nif = { work = "none" }\nthen = { income = { below = 12500 } }\n'
    assert fits(as_json(studies[0] + more), schema())
    assert not fits(as_json(studies[0] + more.replace("then", "than")), schema())
    for scheme in SCHEMES:
        table = re.sub(
            'data = "north.csv" *#', f'data = {{ url = "{scheme}://a", table = "t" }} #', studies[0]
        )
        assert table != studies[0] and fits(as_json(table), schema()) == (not is_server(f"{scheme}://a"))
