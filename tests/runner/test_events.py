"""Events of the log and keys of the private file are declared once: what the program writes and reads, and what
the reference pages say, is what is declared."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from parties.data.harmony.rules import Dialect
from runner.api import Synthesizer
from runner.party.record.event_kinds import EVENTS, KINDS, page, words_of
from runner.party.record.events import PHASES
from runner.study import private_file
from runner.study.declared.private_keys import COLUMN, HarmoniseKeys, LedgerKeys, PrivateKeys
from tests.source_files import nodes

ROOT = Path(__file__).parents[2]

COMMON = {"t", "party", "phase", "event", "bytes_sent"}
PRODUCT = ("mpc_protocols", "synth", "parties", "runner")


def emitted() -> Iterator[tuple[str, tuple[str, str], set[str], bool]]:
    """Where the program tells an event: the place, which, its fields, and whether it has others besides."""
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for call in nodes(file) if "observe" in file.read_text("utf-8") else ():
                if not isinstance(call, ast.Call) or len(call.args) != 2:
                    continue
                phase, name = (one.value if isinstance(one, ast.Constant) else None for one in call.args)
                if phase in PHASES and "observe" in ast.unparse(call.func):
                    fields = {keyword.arg for keyword in call.keywords}
                    yield (
                        f"{file.relative_to(ROOT)}:{call.lineno}",
                        (str(phase), str(name)),
                        {field for field in fields if field},
                        None in fields,
                    )


def test_every_event_that_the_program_tells_is_declared_with_its_fields() -> None:
    places = list(emitted())
    assert len(places) > 40
    for place, key, fields, more in places:
        assert key in EVENTS, place
        assert fields <= EVENTS[key].known, place
        assert more or EVENTS[key].required <= fields, place
    # "begun" is told to the log itself
    assert EVENTS.keys() - {key for _, key, _, _ in places} == {("connect", "begun")}
    assert len(EVENTS) == len(KINDS)


def test_a_run_writes_what_is_declared(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [0, 1] * 60, "b": [0, 0, 1, 1] * 30, "c": [1, 2, 0, 1] * 30})
    Synthesizer({"a": 2, "b": 2, "c": 3}, epsilon=10.0).fit(frame, out=tmp_path / "out")
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    assert {"begun", "counted", "selected", "measured", "written"} <= {event["event"] for event in events}
    for event in events:
        kind = EVENTS[event["phase"], event["event"]]
        assert kind.required <= event.keys() <= kind.known | COMMON, event
        assert (words_of(kind.phase, kind.name, event) is None) == (kind.words is None)


def test_the_page_has_the_events_that_are_declared() -> None:
    text = (ROOT / "docs/reference/outputs.md").read_text(encoding="utf-8")
    assert page(text) == text


def test_the_page_shows_every_key_of_a_private_file_and_the_reader_takes_them(tmp_path: Path) -> None:
    section = (
        (ROOT / "docs/reference/study-file.md")
        .read_text(encoding="utf-8")
        .partition("## The private file\n")[2]
    )
    example = textwrap.dedent("\n".join(re.findall(r"^(?:    .*)?$", section, re.MULTILINE)))
    file = tmp_path / "north.toml"
    file.write_text(example, encoding="utf-8")
    assert private_file.problems(file) == []
    for keys in (
        PrivateKeys.options(),
        Dialect.options(),
        HarmoniseKeys.options(),
        COLUMN,
        LedgerKeys.options(),
    ):
        for key in keys:
            assert re.search(rf"^(?:\[[a-z.]*)?{key}\b", example, re.MULTILINE), key


def test_what_is_wrong_in_a_private_file_is_said_by_its_declaration(tmp_path: Path) -> None:
    file = tmp_path / "north.toml"
    file.write_text(
        'workers = 0\nallow_empty = 1\nout = ""\n[csv]\ndecimal = ";"\n[harmonise]\nmissing_ids = "leave"\nfilter = ""\n'
        '[harmonise.columns.a]\nfrom = 3\n[ledger]\ncap_epsilon = 0\ncap_delta = 1\ncap_adjacency = "add"\nmax_alignments = -1\n',
        encoding="utf-8",
    )
    assert {problem.removeprefix(f"{file}: ") for problem in private_file.problems(file)} == {
        'out must be a path, got "".',
        "workers must be a whole number of at least 1 and at most 256, got 0.",
        "allow_empty must be true or false, got 1.",
        '[csv] decimal must be "." or ",", got ";".',
        '[harmonise] filter must be an expression in DuckDB\'s SQL, got "".',
        '[harmonise] missing_ids must be "refuse" or "leave out", got "leave" (did you mean "leave out"?).',
        "[harmonise.columns.a] from must be the name of a column of the data, got 3.",
        "[ledger] cap_epsilon must be a number greater than 0, got 0.",
        "[ledger] cap_delta must be a number greater than 0 and less than 1, got 1.",
        '[ledger] cap_adjacency must be "add-remove" or "replace", got "add".',
        "[ledger] max_alignments must be a whole number of at least 0, got -1.",
    }
