"""The journal: what was written is read back; a torn last line is dropped, anything else odd is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused, DataRefused, OutOfResources, UsageError
from mpc_protocols.functionality import Event
from parties.budget.journal import Header, Journal, Release, read

HEADER = Header(b"\x01" * 32, b"\x02" * 32, "north", "0.1.0")
EVENTS = [
    Event("select", Fraction(1, 7), Fraction(1, 2**69), {"round": 1}),
    Event("measure", Fraction(3, 11), Fraction(0), {"clique": ["age", "größe"]}),
    Event("measure", Fraction(0), Fraction(0)),
]


def write(path: Path) -> Journal:
    journal = Journal(path, HEADER)
    for i, event in enumerate(EVENTS):
        journal.events([(event, bytes([i] * 32))])
        if i != 1:
            journal.opened(i + 1)
    return journal


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = write(path)
    expected = tuple(Release(event, bytes([i] * 32), i != 1) for i, event in enumerate(EVENTS))
    record = read(path)
    assert (record.header, record.attempts, record.releases, record.code) == (HEADER, 1, expected, None)
    journal.end(0)
    assert (read(path).code, read(path).sound) == (0, path.stat().st_size)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_released_is_on_disk_before_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crash of this machine could take back a charge whose result is out already."""
    path, synced = tmp_path / "journal.jsonl", list[int]()
    journal = Journal(path, HEADER)
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(path.stat().st_size))
    journal.events([(EVENTS[0], bytes(32))])
    assert synced == [path.stat().st_size]
    journal.alignment(EVENTS[1], bytes(32))
    assert synced[1:] == [path.stat().st_size]
    journal.events([(event, bytes(32)) for event in EVENTS])
    assert synced[2:] == [path.stat().st_size]  # of several, one wait
    journal.events([])
    assert len(synced) == 3


def test_several_events_are_written_as_one_by_one(tmp_path: Path) -> None:
    journals = [Journal(tmp_path / name, HEADER) for name in ("single", "together")]
    releases = [(event, bytes([i] * 32)) for i, event in enumerate(EVENTS)]
    for release in releases:
        journals[0].events([release])
    journals[1].events(releases)
    single, together = (read(tmp_path / name) for name in ("single", "together"))
    assert single.releases == together.releases and len(together.releases) == len(EVENTS)
    journals[1].opened(len(EVENTS))
    with pytest.raises(ValueError, match="not on record"):
        journals[1].opened(len(EVENTS) + 1)


def test_the_format_is_the_documented_one(tmp_path: Path) -> None:
    journal = write(tmp_path / "j")
    journal.end(41)
    lines = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()]
    assert all(isinstance(line.pop("t"), float) for line in lines[1:])
    assert lines[:3] == [
        {
            "record": "header",
            "format": 3,
            "study": "01" * 32,
            "session": "02" * 32,
            "party": "north",
            "version": "0.1.0",
        },
        {"record": "attempt", "attempt": 1},
        {
            "record": "event",
            "release": 1,
            "what": "select",
            "rho": "1/7",
            "beta": f"1/{2**69}",
            "detail": {"round": 1},
            "inputs": "00" * 32,
        },
    ]
    assert lines[3] == {"record": "opened", "release": 1} and lines[-1] == {"record": "end", "code": 41}


def test_an_alignment_is_on_record_beside_the_releases(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, HEADER)
    begun = [
        Event("alignment.started", Fraction(0), Fraction(0), {"owners": ["north", "south"]}),
        Event("alignment.size", Fraction(1, 200), Fraction(1, 10**9), {"of": "intersection"}),
    ]
    for event in begun:
        journal.alignment(event, b"\x07" * 32)
    journal.events([(EVENTS[0], bytes(32))])
    journal.opened(1)  # releases are numbered alike at all parties, with and without sizes
    journal.end(41)
    record = read(path)
    assert record.alignment == tuple(begun) and len(record.releases) == 1 and record.code == 41


def test_every_cut_is_a_torn_line_or_too_short(tmp_path: Path) -> None:
    """A crash leaves a prefix of the file: whatever its length, all whole lines are kept and nothing is
    invented."""
    write(tmp_path / "whole").end(0)
    content = (tmp_path / "whole").read_bytes()
    start = content.index(b"\n", content.index(b"\n") + 1) + 1  # header and first attempt
    for length in range(len(content) + 1):
        (tmp_path / "cut").write_bytes(content[:length])
        if length < start:
            with pytest.raises(DataRefused, match="ends before its run began"):
                read(tmp_path / "cut")
            continue
        record = read(tmp_path / "cut")
        whole = content[:length].count(b"\n") - 2
        assert record.sound == content.rfind(b"\n", 0, length) + 1
        assert (len(record.releases), sum(release.opened for release in record.releases), record.code) == [
            (0, 0, None),
            (1, 0, None),
            (1, 1, None),
            (2, 1, None),
            (3, 1, None),
            (3, 2, None),
            (3, 2, 0),
        ][whole]


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r'"release": 2', '"release": 3'),
        (r'"release": 2', '"release": "2"'),
        (r'"rho": "3/11"', '"rho": "-3/11"'),
        (r'"rho": "3/11"', '"rho": "3/0"'),
        (r'"rho": "3/11"', '"rho": null'),
        (r'"inputs": "01', '"inputs": "0g'),
        (r'"what": "measure"', '"what": 5'),
        (r'"format": 3', '"format": 1'),
        (r'"party": "north"', '"party": 5'),
        (r'"record": "opened"', '"record": "closed"'),
        (r'"record": "opened", "release": 1', '"record": "opened", "release": 2'),
        (r'"attempt": 1', '"attempt": 2'),
        (r'"detail": \{\}', '"detail": []'),
        (r'"code": 0', '"code": true'),
        (r'\{"record": "attempt".*\n', ""),
        (r'\{"record": "header".*\n', ""),
        (r'"t": ', '"s": '),
        (r'"t": ', '"x": 1, "t": '),
        (r'\n\{"record": "end"', '\n\n{"record": "end"'),
        (r'"record": "end"', '"record": [1]'),
        (r'("record": "end".*\n)', r'\1{"a": 1}\n'),
    ],
)
def test_an_altered_journal_is_refused(tmp_path: Path, pattern: str, replacement: str) -> None:
    write(tmp_path / "j").end(0)
    content = (tmp_path / "j").read_text()
    altered = re.sub(pattern, replacement, content, count=1)
    assert altered != content
    (tmp_path / "j").write_text(altered)
    with pytest.raises(DataRefused, match=r"line \d+"):
        read(tmp_path / "j")


def test_a_second_attempt_may_follow_a_failure_only(tmp_path: Path) -> None:
    for code, follows in ((41, True), (0, False)):
        path = tmp_path / str(code)
        write(path).end(code)
        with path.open("a") as file:
            file.write('{"record": "attempt", "attempt": 2, "t": 0.5}\n')
        if follows:
            assert (read(path).attempts, read(path).code, len(read(path).releases)) == (2, None, 3)
        else:
            with pytest.raises(DataRefused):
                read(path)


def test_a_journal_is_never_overwritten_or_read_as_another_file(tmp_path: Path) -> None:
    write(tmp_path / "j").close()
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(UsageError, match="another run"):
        Journal(tmp_path / "j", HEADER)
    assert (tmp_path / "j").read_bytes() == before
    with pytest.raises(DataRefused, match="cannot be read"):
        read(tmp_path / "absent")
    with pytest.raises(BudgetRefused, match="cannot be written"):
        Journal(tmp_path / "absent" / "j", HEADER)


def test_a_disk_that_is_full_stops_the_run_before_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = write(tmp_path / "j")
    whole = os.write
    monkeypatch.setattr("os.write", lambda descriptor, line: whole(descriptor, line[:9]))
    with pytest.raises(OutOfResources, match="full"):
        journal.events([(EVENTS[0], b"")])
    monkeypatch.undo()
    with pytest.raises(BudgetRefused):  # nothing may follow a torn line
        journal.events([(EVENTS[0], b"")])
    assert len(read(tmp_path / "j").releases) == 3
    with pytest.raises(ValueError, match="not on record"):
        journal.opened(4)


def test_wherever_a_write_of_several_events_ends_their_beginning_is_on_record_and_what_follows_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full, or a crash: whole lines count, a torn one is nowhere, and the next attempt goes on."""
    releases = [(event, bytes(32)) for event in EVENTS]
    whole = os.write
    Journal(tmp_path / "j", HEADER).events(releases)
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)[-len(EVENTS) :]
    ends = [sum(map(len, lines[: count + 1])) for count in range(len(lines))]
    for kept in range(0, ends[-1], 7):
        path = tmp_path / f"j{kept}"
        journal = Journal(path, HEADER)
        monkeypatch.setattr("os.write", lambda descriptor, lines, kept=kept: whole(descriptor, lines[:kept]))
        with pytest.raises(OutOfResources, match="full"):
            journal.events(releases)
        monkeypatch.setattr("os.write", whole)
        known = read(path)
        there = sum(end <= kept for end in ends)
        assert [release.event for release in known.releases] == EVENTS[:there]
        assert not any(release.opened for release in known.releases)
        Journal.reopen(path, known).events(releases[there:])
        assert [release.event for release in read(path).releases] == EVENTS and read(path).attempts == 2


def test_an_event_survives_kill_9(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from fractions import Fraction; from parties.budget.journal import *; "
        "journal = Journal(sys.argv[1], Header(b'', b'', 'p', 'v')); "
        "journal.events([(Event('measure', Fraction(1, 3), Fraction(0)), b'x')]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "j")])
    assert done.returncode == -9
    assert [release.event.rho for release in read(tmp_path / "j").releases] == [Fraction(1, 3)]
