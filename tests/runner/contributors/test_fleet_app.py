"""The app of `examples/fleet/`, both of its ends, on a stand-in for Flower in one process."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from parties import core_dumps
from tests.worlds import flower
from tests.worlds.fleet import PARTIES, Fleet
from tests.worlds.flower import Context, Grid, Message

APP = Path(__file__).resolve().parents[3] / "examples" / "fleet"
Ends = tuple[ModuleType, ModuleType]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    """ServerApp and ClientApp."""
    flower.install(monkeypatch)
    monkeypatch.syspath_prepend(APP)
    monkeypatch.setattr(core_dumps, "forbid_core_dumps", lambda: None)  # it is for processes of their own
    yield (
        importlib.import_module("cosynth_fleet.server_app"),
        importlib.import_module("cosynth_fleet.client_app"),
    )
    for name in [name for name in sys.modules if name.startswith("cosynth_fleet")]:
        del sys.modules[name]


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path, 4, (6, 5, 4, 3))


def node(ends: Ends, fleet: Fleet, number: int) -> Callable[[Message], Message]:
    """A SuperNode that names a settings file."""
    context = Context(node_config={"settings": str(fleet.settings(number))})
    return lambda message: ends[1].app.function(message, context)


def config(fleet: Fleet, **changes: object) -> Context:
    given = {"study": str(fleet.study), "arrivals": str(fleet.folder / "arrivals")}
    return Context({**given, "rounds": 3, "share": 1.0, "pause-s": 0.0, "timeout-s": 10.0, **changes})


def rounds(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def test_who_drops_by_is_in_the_sum_exactly_and_is_not_asked_again(
    ends: Ends, fleet: Fleet, capfd: pytest.CaptureFixture[str]
) -> None:
    grid = Grid({number: node(ends, fleet, number) for number in range(3)})
    ends[0].app.function(grid, config(fleet))
    agreed = fleet.take_in()
    assert agreed.contributors == ("n0000", "n0001", "n0002")
    assert (fleet.opened(agreed) == fleet.clear(agreed.contributors)).all()
    assert grid.asked == [0, 1, 2]
    assert [told["bundles"] for told in rounds(capfd.readouterr().out)] == [3, 0, 0]


def test_a_journey_ends_when_all_have_delivered(
    ends: Ends, fleet: Fleet, capfd: pytest.CaptureFixture[str]
) -> None:
    ends[0].app.function(Grid({number: node(ends, fleet, number) for number in range(4)}), config(fleet))
    assert [told["in_all"] for told in rounds(capfd.readouterr().out)] == [4]


def test_nodes_that_refuse_fail_or_lie_end_no_journey_and_what_they_say_stays_with_them(
    ends: Ends, fleet: Fleet, capfd: pytest.CaptureFixture[str]
) -> None:
    replies: list[Message] = []
    refusing = node(ends, fleet, 1)
    (fleet.folder / "n0001.csv").write_text("c0,c1,c2,c3\n0,0,0,99\n")

    def listened(message: Message) -> Message:
        replies.append(refusing(message))
        return replies[-1]

    def lying(content: dict[str, Any]) -> Callable[[Message], Message]:
        return lambda message: Message(content, reply_to=message)

    def failing(message: Message) -> Message:
        raise RuntimeError("a SuperNode that is gone")

    lies: list[dict[str, Any]] = [
        {"bundle": {"bundle": b"rubbish"}},
        {"bundle": {"bundle": 7}},
        {"bundle": {}},
        {"other": {}},
        {},
    ]
    grid = Grid({0: node(ends, fleet, 0), 1: listened, 2: failing})
    grid.nodes |= {10 + number: lying(content) for number, content in enumerate(lies)}
    ends[0].app.function(grid, config(fleet, rounds=1))
    captured = capfd.readouterr()
    assert fleet.take_in().contributors == ("n0000",)
    assert [reply.content for reply in replies] == [{}]
    assert "no bundle: " in captured.err and "n0001.csv" in captured.err
    assert "n0001.csv" not in captured.out
    assert captured.out.count("not passed on: It is not a bundle") == 3


def test_nobody_is_asked_where_the_share_is_nought(ends: Ends, fleet: Fleet) -> None:
    grid = Grid({number: node(ends, fleet, number) for number in range(4)})
    ends[0].app.function(grid, config(fleet, share=0.0))
    assert not grid.asked
    assert not any(list(fleet.arrivals(party).iterdir()) for party in PARTIES)


def test_a_simulated_node_has_settings_of_its_number(
    ends: Ends, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_FLEET", str(fleet.folder))
    settings = ends[1].settings
    assert settings(Context(node_config={"partition-id": 3, "num-partitions": 4})) == fleet.settings(3)
    named = Context(node_config={"settings": "/srv/clinic/fleet.toml", "partition-id": 3})
    assert settings(named) == Path("/srv/clinic/fleet.toml")
    assert settings(Context({"settings": "/elsewhere"}, {"partition-id": 1})) == fleet.settings(1)
