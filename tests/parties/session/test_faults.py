"""Parties that die, stop, hurry or fail, as real processes: the contract's code, and one sentence that names
the culprit.

In time: unless a test says otherwise, silence is suffered for minutes and parties are waited for as long as a
test may last (`trio.configs`), so that neither can be what ends one.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, ProtocolAborted, StudyInvalid
from parties.session import Peer, SessionConfig, SessionWire
from parties.session.ending import WITHDREW
from parties.session.session import _Session
from parties.session.transport import frames
from tests.parties.session import bodies
from tests.parties.session.conftest import Start
from tests.trio import Child, configs, decode


def said(child: Child) -> str:
    assert child.outcome is not None
    return str(child.outcome["sentence"])


def ready(children: list[Child]) -> None:
    for child in children:
        child.until("ready")


@pytest.mark.parametrize(
    "body, arguments",
    [(bodies.wait_for, (1,)), (bodies.stream_for_ever, (20 << 20,)), (bodies.mpyc_waits, (1,))],
)
def test_a_killed_party_is_noticed_at_once(
    started: Start, credentials: Path, body: object, arguments: tuple[int]
) -> None:
    children = started(configs(credentials), body, *arguments)
    ready(children)
    children[1].kill(signal.SIGKILL)
    for child in (children[0], children[2]):
        assert child.wait() == 41, child.outcome
        assert "party south" in said(child).lower()


def test_a_killed_contributor_is_noticed(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=2, contributors=1), bodies.wait_for, 2)
    ready(children)
    children[2].kill(signal.SIGKILL)
    for child in children[:2]:
        assert child.wait() == 41 and "party east" in said(child).lower()


@pytest.mark.slow
def test_a_stopped_party_is_noticed_by_its_silence(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, silence_s=5.0), bodies.wait_for, 2)
    ready(children)
    children[2].kill(signal.SIGSTOP)
    for child in children[:2]:
        assert child.wait() == 41, child.outcome
        assert "party east" in said(child).lower()
    assert any("silent" in said(child) for child in children[:2])
    children[2].kill(signal.SIGCONT)  # it wakes up alone, and must not blame anybody for its own pause only
    assert children[2].wait() in (40, 41)


@pytest.mark.slow
def test_who_is_alive_and_sends_nothing_is_waited_for_so_long(started: Start, credentials: Path) -> None:
    """Heartbeats alone hold nobody. Which of the two tells the other is a matter of chance."""
    children = started(configs(credentials, computing=2, answer_s=1.0), bodies.owe)
    assert [child.wait() for child in children] == [40, 40]
    assert any("is alive and has kept this party waiting for 1 s" in said(child) for child in children)


@pytest.mark.slow
def test_a_run_has_a_deadline_of_its_own(started: Start, credentials: Path) -> None:
    """Whoever is alive, and answers in time as far as anybody says."""
    children = started(configs(credentials, computing=2, deadline_s=1.0), bodies.owe)
    assert [child.wait() for child in children] == [40, 40]
    assert any("has taken more than 1 s since all assembled" in said(child) for child in children)


@pytest.mark.slow
def test_a_certificate_that_expires_in_mid_run_ends_it(started: Start, credentials: Path) -> None:
    children = started(configs(credentials), bodies.years_later)
    assert [child.wait() for child in children] == [21, 21, 21]
    assert "certificate of party north has expired while the run was under way" in said(children[0])


@pytest.mark.slow
def test_a_short_pause_is_forgiven(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=2, silence_s=60.0), bodies.compute, 1, 3.0, True)
    children[1].until("ready")
    children[1].kill(signal.SIGSTOP)
    time.sleep(1.5)
    children[1].kill(signal.SIGCONT)
    assert [child.wait() for child in children] == [0, 0]


@pytest.mark.parametrize(
    "body, arguments, who",
    [
        (bodies.wait_for, (0,), 1),
        (bodies.stream_for_ever, (20 << 20,), 2),
        (bodies.compute, (0, 1000.0, False), 0),
        (bodies.compute, (0, 1000.0, True), 0),
    ],
)
def test_ctrl_c_at_work(
    started: Start, credentials: Path, body: object, arguments: tuple[int], who: int
) -> None:
    children = started(configs(credentials), body, *arguments)
    children[who].until("ready")
    children[who].kill(signal.SIGINT)
    assert children[who].wait() == 130
    assert said(children[who]).startswith(f"Party {children[who].name} was interrupted")
    for child in children:
        if child is not children[who]:
            assert child.wait() == 40
            assert f"Party {children[who].name} stopped: it was interrupted" in said(child)


def test_sigterm_while_connecting(started: Start, credentials: Path) -> None:
    children = started(configs(credentials)[:2], bodies.meet)
    for child in children:
        child.until("connected")
    children[0].kill(signal.SIGTERM)
    assert children[0].wait() == 130 and "SIGTERM" in said(children[0])
    assert children[1].wait() == 40 and "Party north stopped: it was interrupted" in said(children[1])


def test_ctrl_c_before_anybody_came(started: Start, credentials: Path) -> None:
    (child,) = started(configs(credentials)[2:], bodies.meet)
    assert child.until("waiting")["for"] == ["north", "south"]
    child.kill(signal.SIGINT)
    assert child.wait() == 130


def test_killed_while_others_are_awaited(started: Start, credentials: Path) -> None:
    children = started(configs(credentials)[:2], bodies.meet)
    for child in children:
        child.until("connected")
    children[1].kill(signal.SIGKILL)
    assert children[0].wait() == 41 and "party south" in said(children[0]).lower()


@pytest.mark.slow
def test_a_party_that_never_comes(started: Start, credentials: Path) -> None:
    settings = configs(credentials, connect_s=10.0)
    children = started(settings[:2], bodies.meet)
    assert children[0].until("waiting")["for"]
    for child in children:
        assert child.wait() == 20, child.outcome
        assert "party east" in said(child).lower()
    assert any(f"127.0.0.1:{settings[0]['parties'][2]['port']}" in said(child) for child in children)


def test_a_first_party_that_never_comes_is_named_with_its_reason(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2, connect_s=1.0)
    (child,) = started(settings[1:], bodies.meet)
    assert child.wait() == 20
    assert "Party north at 127.0.0.1:" in said(child) and "connection refused" in said(child)


def test_a_port_in_use(started: Start, credentials: Path) -> None:
    settings = configs(credentials)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings[2]["parties"][2]["port"]))
        taken.listen()
        (child,) = started(settings[2:], bodies.meet)
        assert child.wait() == 20
        assert "party east" in said(child).lower() and "in use" in said(child)
        assert f":{settings[2]['parties'][2]['port']}" in said(child)


def test_a_refused_budget_is_told_without_its_text(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=3, contributors=1), bodies.refuse, 1, "budget")
    assert [child.wait() for child in children] == [40, 50, 40, 40]
    assert "4711" in said(children[1])
    for child in (children[0], children[2], children[3]):
        assert (
            "Party south stopped: budget refused (exit 50)" in said(child)
            and "4711" not in said(child) + child.errors()
        )


def test_before_all_have_assembled_every_refusal_looks_alike(started: Start, credentials: Path) -> None:
    """A peer that proposes studies must not learn whether a value, a number of rows or a cap stood against
    it."""
    heard = []
    for why, code in (("budget", 50), ("data", 30), ("study", 10), ("bug", 1)):
        children = started(configs(credentials, computing=3, contributors=1), bodies.refuse, 1, why, False)
        assert [child.wait() for child in children] == [40, code, 40, 40]
        heard += [said(child) for number, child in enumerate(children) if number != 1]
    assert len(set(heard)) == 1 and heard[0].startswith("Party south stopped: it refuses this study")


@pytest.mark.parametrize("assembled", [False, True])
@pytest.mark.parametrize("kind", [StudyInvalid, DataRefused, BudgetRefused, ProtocolAborted])
def test_the_code_of_a_refusal_travels_only_after_all_have_assembled(
    kind: type[CosynthError], assembled: bool
) -> None:
    """What is on the wire, whatever a peer makes of it."""
    parties = tuple(Peer(name, "127.0.0.1", 7101 + i) for i, name in enumerate(("north", "south", "east")))
    config = SessionConfig("south", parties, bytes(32), 1, insecure_loopback=True)
    loop = asyncio.SelectorEventLoop()
    try:
        session = _Session[None](loop, config, lambda wire: None, lambda *_, **__: None, None, None)
        if assembled:
            SessionWire(session._party).all_assembled()
        session._stop(kind("4711."))
        code, culprit = frames.parse_abort(session._last_words[frames.HEADER.size :])
    finally:
        loop.close()
    kept = not assembled and kind is not ProtocolAborted
    assert (code, culprit) == (WITHDREW if kept else kind.exit_code, 1)


def test_a_bug_at_one_party_stops_all(started: Start, credentials: Path) -> None:
    children = started(configs(credentials), bodies.refuse, 2, "bug")
    assert [child.wait() for child in children] == [40, 40, 1]
    assert "ValueError" in said(children[2])
    for child in children[:2]:
        assert (
            "Party east stopped: internal error" in said(child) and "4711" not in said(child) + child.errors()
        )


@pytest.mark.slow
def test_heartbeats_go_on_while_python_computes(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, silence_s=5.0), bodies.compute, 0, 12.0, True)
    assert [child.wait() for child in children] == [0, 0, 0]
    assert [decode(child.outcome["value"]) for child in children if child.outcome] == ["done"] * 3


def test_who_is_done_early_waits_for_the_others(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=3, contributors=1), bodies.late, 2, 2.0)
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    assert all(child.errors() == "" for child in children)


def test_the_last_message_arrives_before_the_goodbye(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=2), bodies.last_word, 150 << 20)
    assert [child.wait() for child in children] == [0, 0]
    assert children[1].outcome is not None and decode(children[1].outcome["value"]) == 150 << 20


@pytest.mark.slow
def test_who_never_gets_done_is_named(started: Start, credentials: Path) -> None:
    children = started(configs(credentials, computing=2, closing_s=1.0), bodies.late, 1, 100.0)
    assert children[0].wait() == 41 and "Party south did not finish" in said(children[0])
    children[1].wait()


@pytest.mark.parametrize(
    "kind",
    [
        "garbage",
        "wrong size",
        "streams",
        "hello again",
        "abort",
        "data after goodbye",
        "round 64",
        "round 62",
        "memory",
        pytest.param("flood", marks=pytest.mark.slow),
    ],
)
def test_a_peer_that_breaks_the_rules(started: Start, credentials: Path, kind: str) -> None:
    children = started(configs(credentials, computing=2), bodies.attack, kind)
    assert children[0].wait() == 40, children[0].outcome
    assert said(children[0]).startswith(
        (
            "Party south sent ",
            "Party south has finished its part" if "goodbye" in kind else "Party south sent ",
        )
    )
    assert children[1].wait() == 40 and "party south" in said(children[1]).lower()


@pytest.mark.parametrize("mpyc", [False, True])
def test_nobody_waits_for_who_has_finished(started: Start, credentials: Path, mpyc: bool) -> None:
    children = started(configs(credentials), bodies.leaves_early, mpyc)
    assert [child.wait() for child in children] == [40, 40, 40], [said(child) for child in children]
    assert any(
        "Party south has finished its part while" in said(child) for child in (children[0], children[2])
    )


def test_who_is_done_may_be_far_ahead_of_who_still_reads(started: Start, credentials: Path) -> None:
    """What it had sent before its goodbye arrives first."""
    children = started(configs(credentials, computing=2), bodies.last_words, 200)
    assert [child.wait() for child in children] == [0, 0], [said(child) for child in children]
    assert children[0].outcome is not None and decode(children[0].outcome["value"]) == 200


def test_pickles_are_not_opened(started: Start, credentials: Path, tmp_path: Path) -> None:
    marker = tmp_path / "opened"
    children = started(configs(credentials), bodies.pickled, str(marker))
    assert [child.wait() for child in children] == [40, 40, 40]
    assert not marker.exists()
