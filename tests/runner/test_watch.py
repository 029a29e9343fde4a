"""A run that is watched: the state that its events make, the page on the loopback address, the bars of a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mpc_protocols.errors import PeerUnreachable, UsageError
from runner.commands.cli import main
from runner.report.watch.bars import Bars, duration, words
from runner.report.watch.follow import Follower
from runner.report.watch.server import MAX_CONNECTIONS, Watch
from runner.report.watch.story import Story
from runner.results.outdir import claim, install
from tests.runner import small

BEGUN = {
    "t": 0.0,
    "phase": "connect",
    "event": "begun",
    "study": "<b>trial</b>",
    "algorithm": "aim",
    "backend": "replicated",
    "epsilon": 1.0,
    "delta": 1e-6,
    "rounds": 4,
    "leader": "south",
    "parties": [
        {"name": "north", "computes": True},
        {"name": "south", "computes": True},
        {"name": "east", "computes": False},
    ],
    "columns": ["age", "sex", "<script>alert(1)</script>"],
}
EVENTS: list[dict[str, Any]] = [
    {**BEGUN, "party": "south"},
    {"t": 0.0, "party": "south", "phase": "connect", "event": "waiting", "for": ["north", "east"]},
    {"t": 0.0, "party": "south", "phase": "connect", "event": "connected", "peer": "north"},
    {
        "t": 0.0,
        "party": "south",
        "phase": "agree",
        "event": "agreed",
        "session": "00",
        "parties": ["north", "south", "east"],
    },
    {"t": 0.0, "party": "south", "phase": "input", "event": "counted", "custodians": 2},
    {"t": 0.0, "party": "south", "phase": "input", "event": "assembled", "parties": 3},
    {
        "t": 1.0,
        "party": "south",
        "phase": "measure",
        "event": "measured",
        "round": 0,
        "cliques": [["age"], ["sex"]],
        "sigma": 3.0,
        "rho_spent": 0.005,
        "rho": 0.02,
        "bytes_sent": 1000,
    },
    {
        "t": 2.0,
        "party": "south",
        "phase": "select",
        "event": "selected",
        "round": 1,
        "rounds": 4,
        "clique": ["sex", "age"],
        "candidates": 3,
        "rho_spent": 0.006,
        "rho": 0.02,
        "bytes_sent": 4000,
    },
    {
        "t": 2.5,
        "party": "south",
        "phase": "measure",
        "event": "measured",
        "round": 1,
        "clique": ["sex", "age"],
        "rho_spent": 0.01,
        "rho": 0.02,
        "bytes_sent": 5000,
    },
    {"t": 4.0, "party": "south", "phase": "sample", "event": "sampled", "rows": 9, "bytes_sent": 6000},
    {"t": 5.0, "party": "south", "phase": "report", "event": "written", "rows": 9},
]


def told(count: int, only: str | None = None, events: list[dict[str, Any]] = EVENTS) -> Story:
    story = Story(only)
    for event in events[:count]:
        story.take(event)
    return story


def test_who_is_waited_for() -> None:
    assert told(2).waited_for == ["east", "north"] and told(3).waited_for == ["east"]
    assert told(4).waited_for == [] and told(5).waited_for == ["east", "north"]  # these have not counted


def test_rounds_budget_and_time() -> None:
    story = told(9)
    assert (story.round, story.rounds, story.share, story.phase) == (1, 4, 0.25, "measure")
    assert story.left_s == pytest.approx((2.5 - 1.0) * 3)
    assert 0.5 < story.epsilon < 0.8 and story.edges == {("age", "sex"): 2}
    assert [entry["columns"] for entry in story.selected] == [["sex", "age"]]
    adaptive = [{**event, "rounds": None} for event in EVENTS]
    assert told(9, events=adaptive).share == 0.5  # by budget
    assert not story.finished and told(11, "south").finished and told(11).finished
    story = told(11)
    story.take({**BEGUN, "party": "north"})  # another one tells of itself, and has no results yet
    assert not story.finished


def test_a_party_that_obeys_counts_its_steps() -> None:
    events = [
        {**BEGUN, "party": "north"},
        {
            "t": 1.0,
            "party": "north",
            "phase": "select",
            "event": "selected",
            "step": 1,
            "candidates": 3,
            "cells": 9,
            "rho_spent": 0.006,
            "rho": 0.02,
            "bytes_sent": 10,
        },
        {
            "t": 1.5,
            "party": "north",
            "phase": "measure",
            "event": "opened",
            "step": 2,
            "cells": 9,
            "rho_spent": 0.01,
            "rho": 0.02,
            "bytes_sent": 20,
        },
        {
            "t": 2.0,
            "party": "north",
            "phase": "select",
            "event": "selected",
            "step": 3,
            "candidates": 3,
            "cells": 9,
            "rho_spent": 0.011,
            "rho": 0.02,
            "bytes_sent": 30,
        },
    ]
    story = told(4, "north", events)
    assert (story.round, story.rounds, story.selected) == (2, 4, []) and story.rho == 0.011
    assert words(story, "select").startswith("round 2 of 4, epsilon ")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"phase": "other", "event": "x", "party": "p"},
        {"phase": "select", "event": "selected", "party": "south"},
        {"phase": "measure", "event": "measured", "party": "south", "clique": 3},
        {"phase": "report", "event": "written", "party": "south", "rows": "many"},
        {"phase": "connect", "event": "begun", "party": "south"},
    ],
)
def test_events_that_are_not_understood_are_left_out(event: dict[str, Any]) -> None:
    story = told(9)
    story.take(event)
    assert json.loads(json.dumps(story.to_json()))["round"] == 1


def write(directory: Path, count: int) -> None:
    folder = directory / "parties" / "south"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS[:count]))


@pytest.fixture
def under_way(tmp_path: Path) -> Iterator[Path]:
    """A directory whose lock a run holds."""
    with (tmp_path / ".cosynth").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def test_a_directory_is_followed_from_line_to_line(under_way: Path) -> None:
    follower = Follower(under_way)
    assert follower.look()["state"] == "running"
    write(under_way, 3)
    path = under_way / "parties" / "south" / "events.jsonl"
    whole = "".join(json.dumps(event) + "\n" for event in EVENTS)
    path.write_text("")
    for end in range(0, len(whole), 397):  # lines come in pieces
        with path.open("a") as file:
            file.write(whole[end : end + 397])
        found = follower.look()
    assert found["round"] == 1 and found["rows"] == 9 and found["study"]["study"] == "<b>trial</b>"
    path.unlink()
    write(under_way, 2)  # another run takes its place
    assert follower.look()["rows"] is None


def test_lines_that_are_no_events_are_passed_over(under_way: Path) -> None:
    write(under_way, 3)
    path = under_way / "parties" / "south" / "events.jsonl"
    whole = "".join(json.dumps(event) + "\n" for event in EVENTS)
    path.write_text("[" * 200_000 + "\n7\n{\n" + whole)
    assert Follower(under_way).look()["rows"] == 9


def test_a_look_at_the_lock_keeps_no_run_out(tmp_path: Path) -> None:
    """A page holds the lock, shared, for the instant of a look: the run tries again. Another run holds it for long."""
    (tmp_path / ".cosynth").touch()
    waits: list[float] = []
    with (tmp_path / ".cosynth").open() as look:

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                fcntl.flock(look, fcntl.LOCK_UN)

        fcntl.flock(look, fcntl.LOCK_SH)
        with claim(tmp_path, wait=wait):
            assert len(waits) == 2
            with pytest.raises(UsageError, match="in use by another run"), claim(tmp_path, wait=wait):
                raise AssertionError
    assert sum(waits) < 1


def test_a_run_that_ended_is_told_from_one_under_way(tmp_path: Path) -> None:
    assert Follower(tmp_path).look()["state"] == "nothing yet"
    write(tmp_path, 9)
    assert Follower(tmp_path).look()["state"] == "ended"
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    assert Follower(tmp_path).look()["state"] == "ended"  # a copy beside the parties' own
    shutil.rmtree(tmp_path / "parties")
    (tmp_path / "run.json").write_text("{}")
    assert Follower(tmp_path).look()["state"] == "finished"
    (tmp_path / "unfinished.jsonl").write_text(json.dumps(EVENTS[0]) + "\n")  # another has begun since
    assert Follower(tmp_path).look()["round"] == 0


def test_after_the_run_every_party_shows_what_run_json_says(tmp_path: Path) -> None:
    """A party that obeys hears neither what was selected nor what others sent; while it runs that is not known, and no 0."""
    own = [event for event in EVENTS if event["party"] == "north"]
    own[:0] = [{**BEGUN, "party": "north"}]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in own))
    running = Follower(tmp_path).look()
    assert running["state"] != "finished" and running["tells_rounds"] is False and running["selected"] == []
    assert [party["told"] for party in running["parties"] if party["name"] != "north"] == [False, False]
    written = {"t": 9.0, "party": "north", "phase": "report", "event": "written", "rows": 7}
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in [*own, written]))
    facts = {
        "selected": [["age", "sex"]],
        "columns": [{"name": "age"}, {"name": "sex"}],
        "rows": 7,
        "privacy": {
            "rho": 0.5,
            "rho_spent": 0.4,
            "delta": 1e-6,
            "events": [{"what": "measure", "cliques": [["age/4", "sex"], ["age"]]}],
        },
        "parties": [
            {"name": "north", "role": "compute", "bytes_sent": 5},
            {"name": "south", "role": "compute", "bytes_sent": 6},
            {"name": "east", "role": "contribute"},
        ],
        "relations": {"sentence": "Relations kept: 1 of 1."},
        "warnings": [{"code": "x", "text": "Few rows."}],
    }
    (tmp_path / "run.json").write_text(json.dumps(facts))
    found = Follower(tmp_path).look()
    assert found["state"] == "finished" and found["tells_rounds"] and found["edges"] == [["age", "sex", 1]]
    assert [(party["sent"], party["done"]) for party in found["parties"]] == [
        (5, True),
        (6, True),
        (None, True),
    ]
    assert (
        found["verdict"] == "Relations kept: 1 of 1."
        and found["warnings"] == ["Few rows."]
        and found["rho"] == 0.4
    )
    contributor = [{**BEGUN, "party": "east"}, {**written, "party": "east"}]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in contributor))
    heard = Follower(tmp_path).look()
    assert heard["round"] == found["round"] == 1 and heard["epsilon"] == found["epsilon"] > 1
    for damaged in ("{", "[]", '{"selected": 3}', json.dumps({**facts, "parties": [{}]})):
        (tmp_path / "run.json").write_text(damaged)
        assert Follower(tmp_path).look()["state"] == "finished"


def test_a_directory_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "nowhere does not exist; name the --out directory of a run" in capsys.readouterr().err


@pytest.fixture
def watch(under_way: Path) -> Iterator[Watch]:
    write(under_way, 9)
    (under_way / "report.html").write_text("<p>report</p>")
    page = Watch(under_way)
    yield page
    page.told_end = True
    page.close()


def get(address: str, **headers: str) -> tuple[int, dict[str, str], str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_the_page_is_for_who_has_its_address(watch: Watch) -> None:
    assert watch.address.startswith("http://127.0.0.1:")
    for name in ("", "page.css", "page.js", "state", "report.html"):
        code, headers, _ = get(watch.address + name)
        assert code == 200 and headers["X-Content-Type-Options"] == "nosniff", name
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy or name == "report.html", name
        assert "Access-Control-Allow-Origin" not in headers
    root = watch.address.removesuffix(f"{watch.secret}/")
    for address in (
        root,
        root + "x/",
        watch.address + "run.json",
        watch.address + "../run.json",
        root + "state",
    ):
        assert get(address)[0] == 404, address
    assert get(watch.address, Host="example.org")[0] == 404  # another name for this address
    assert get(watch.address, Host=f"localhost:{watch.port}")[0] == 200
    state = json.loads(get(watch.address + "state")[2])
    assert state["state"] == "running" and state["round"] == 1 and state["parties"][0]["sent"] == 5000


def test_connections_without_end_take_nothing_from_the_run(watch: Watch) -> None:
    """Held and refilled by somebody who does not know the secret word: of each, descriptors of the party's process are few."""

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before, held = descriptors(), deque[socket.socket]()
    for number in range(400):
        mine = socket.create_connection(("127.0.0.1", watch.port), timeout=300)
        if number % 3 == 0:
            mine.sendall(b"GET /")
        held.append(mine)
        if len(held) > 80:
            held.popleft().close()
    assert get(watch.address + "state")[0] == 200  # so that the server has taken in all that came before
    assert (
        descriptors() - before <= len(held) + MAX_CONNECTIONS + 4
    )  # the client's ends are this process's, too
    for mine in held:
        mine.close()
    assert get(watch.address + "state")[0] == 200


def test_it_can_only_be_read(watch: Watch) -> None:
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(watch.address, data=b"x", method="POST"))


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline() -> None:
    class Page(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            for name, value in attributes:
                assert not name.startswith("on") and name != "style", (tag, name)
                if name in ("src", "href"):
                    assert value in ("page.css", "page.js", "data:,"), value

    folder = resources.files("runner.report.watch").joinpath("page")
    text = folder.joinpath("page.html").read_text()
    Page().feed(text)
    script, style = folder.joinpath("page.js").read_text(), folder.joinpath("page.css").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script)
    assert "url(" not in style and "@import" not in style
    used = set(re.findall(r'\$\("(\w+)"\)', script))
    assert used <= set(re.findall(r'id="(\w+)"', text)), used


def page_shown(address: str, profile: Path) -> str:
    """What a browser, where there is one, makes of the page after it has asked."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no browser here")
    asked = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
            *("--virtual-time-budget=3000", "--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert asked.stdout, asked.stderr
    return asked.stdout


def test_a_browser_shows_it(watch: Watch, tmp_path: Path) -> None:
    """Names as text."""
    shown = page_shown(watch.address, tmp_path / "profile")
    assert ">1 of 4</dd>" in shown and "age \u00d7 sex" not in shown and "sex \u00d7 age" in shown
    assert (
        "&lt;b&gt;trial&lt;/b&gt;</h1>" in shown
        and "<script>alert" not in shown
        and "&lt;script&gt;" in shown
    )
    assert (
        'class="now"' in shown and "2 columns" not in shown and "3 columns, 1 pair counted together." in shown
    )


def test_what_a_contributor_does_not_hear_is_not_known_and_no_0(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "events.jsonl").write_text(json.dumps({**BEGUN, "party": "east"}) + "\n")
    page = Watch(tmp_path / "out")
    try:
        shown = page_shown(page.address, tmp_path / "profile")
    finally:
        page.told_end = True
        page.close()
    for name in ("round", "epsilon"):
        assert f'id="{name}">not known here</dd>' in shown, name


def test_a_port_in_use_is_said(watch: Watch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PeerUnreachable, match="is in use"):
        Watch(tmp_path, watch.port)
    assert main(["watch", str(tmp_path), "--port", str(watch.port)]) == 20
    assert main(["watch", str(tmp_path), "--port", "70000"]) == 2
    (tmp_path / "file").write_text("")
    assert main(["watch", str(tmp_path / "file")]) == 2
    assert "is not a directory" in capsys.readouterr().err


def test_bars_name_phases_rounds_and_budget() -> None:
    stream = io.StringIO()
    story = Story()
    bars = Bars(story, Console(file=stream, force_terminal=True, width=110, color_system=None))
    for event in EVENTS:
        story.take(event)
        bars.show()
    bars.say("[not markup]")
    bars.close()
    text = stream.getvalue()
    last = text[text.rindex("connect ") :]
    for shown in ("select, measure, fit", "round 1 of 4, epsilon 0.6", "sample", "write results", "9 rows"):
        assert shown in last, last
    assert "[not markup]" in text
    assert (duration(7.4), duration(600), duration(10_000)) == ("7 s", "10 min", "2.8 h")


def test_an_earlier_runs_files_do_not_confuse(tmp_path: Path) -> None:
    """`install` moves a run's events to their place: the story starts anew and is the same."""
    source = tmp_path / "source"
    write(source, 11)
    shutil.copy(source / "parties" / "south" / "events.jsonl", source)
    out = tmp_path / "out"
    out.mkdir()
    (out / "unfinished.jsonl").write_text((source / "events.jsonl").read_text())
    follower = Follower(out)
    before = follower.look()
    install(source, out, {"parties": []})
    after = follower.look()
    assert before["selected"] == after["selected"] != [] and before["rows"] == after["rows"] == 9


def test_a_run_says_where_it_can_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = small.write(tmp_path / "study", changes=[('"replicated"', '"ideal"')])
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out"), "--watch"]) == 0
    (address,) = re.findall(r"watch it: (http://127\.0\.0\.1:\d+/\S+/)\n", capsys.readouterr().out)
    with pytest.raises(urllib.error.URLError):  # it ends with the run
        urllib.request.urlopen(address)
    found = Follower(tmp_path / "out").look()
    assert found["state"] == "finished" and found["rows"] > 800
    assert found["study"]["columns"] == list(small.COLUMNS) and found["round"] == 3
