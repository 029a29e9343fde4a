"""Settings that cannot work are refused before a socket is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from parties.session import Peer, SessionConfig
from runner.study import load
from tests.runner.studies import write_study

PARTIES = (
    Peer("north", "127.0.0.1", 7101),
    Peer("hill", "127.0.0.1", 7104, "contribute"),
    Peer("south", "127.0.0.1", 7102),
    Peer("lake", "127.0.0.1", 7105, "contribute"),
    Peer("east", "127.0.0.1", 7103),
)
CONFIG = SessionConfig("south", PARTIES, bytes(32), 1, cert=Path("c"), key=Path("k"), ca=Path("a"))


def test_numbers_and_directions() -> None:
    """Computing parties first; each pair has one direction; contributors neither listen nor meet."""
    assert [peer.name for peer in CONFIG.numbered] == ["north", "south", "east", "hill", "lake"]
    links = {}
    for name in ("north", "south", "east", "hill", "lake"):
        config = replace(CONFIG, me=name)
        links.update({(config.number, peer): peer in config.dials for peer in config.peers})
    assert {pair for pair in links if 3 in pair and 4 in pair} == set()
    assert all(links[a, b] != links[b, a] for a, b in links)
    assert not any(links[a, b] for a, b in links if b >= 3)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"me": "west"}, "Party west is not in the study"),
        ({"parties": (*PARTIES, PARTIES[0])}, "must differ"),
        ({"parties": (*PARTIES, Peer("x", "127.0.0.1", 7101))}, "the same address 127.0.0.1:7101"),
        ({"parties": PARTIES[:2], "me": "north"}, "At least two"),
        ({"study_digest": b"short"}, "5 bytes instead of 32"),
        ({"listen": ("0.0.0.0", 7102)}, "all interfaces"),
        ({"listen": ("::", 7102)}, "all interfaces"),
        ({"listen": ("", 7102)}, "all interfaces"),
        ({"listen": ("127.0.0.1", 0)}, "port 0"),
        ({"cert": None}, "certificate"),
        ({"ca": None}, "party north has no fingerprint"),
        ({"connect_s": 0}, "connect_s"),
        ({"answer_s": 1.1e6}, "answer_s"),
        ({"deadline_s": -1.0}, "deadline_s"),
        ({"silence_s": float("nan")}, "silence_s"),
        ({"facts": {"x": object()}}, "plain JSON"),
        ({"facts": {"x": "y" * 20_000}}, "at most 16384"),
        ({"insecure_loopback": True, "listen": ("192.0.2.1", 7102)}, "192.0.2.1 is not a loopback"),
        (
            {"insecure_loopback": True, "parties": (*PARTIES, Peer("x", "example.org", 1))},
            "example.org is not a loopback",
        ),
    ],
)
def test_what_cannot_work(change: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyInvalid, match=words):
        replace(CONFIG, **change)


@pytest.mark.parametrize(
    "fields, words",
    [
        (("", "h", 1), "Party name"),
        (("a\nb", "h", 1), "Party name"),
        (("x" * 65, "h", 1), "Party name"),
        (("a", "h", 70000), "port"),
        (("a", "h", 1, "watch"), "role"),
        (("a", "h", 1, "compute", "12:34"), "fingerprint"),
    ],
)
def test_what_is_no_party(fields: tuple[Any, ...], words: str) -> None:
    with pytest.raises(StudyInvalid, match=words):
        Peer(*fields)


def test_fingerprints_are_compared_without_colons_and_case() -> None:
    assert Peer("a", "h", 1, fingerprint=":".join(["AB"] * 32)).fingerprint == "ab" * 32


def test_insecure_loopback_needs_no_files() -> None:
    replace(CONFIG, cert=None, key=None, ca=None, insecure_loopback=True)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "LocalHost", "127.0.0.2", "::1"])
def test_a_loopback_address_is_one_to_reader_and_session_alike(tmp_path: Path, host: str) -> None:
    replace(CONFIG, cert=None, key=None, ca=None, insecure_loopback=True, listen=(host, 7102))
    address = f"[{host}]:7101" if ":" in host else f"{host}:7101"
    study = load(write_study(tmp_path, ("127.0.0.1:7101", address)))
    assert study.parties[0].address == address and study.session.tls == "insecure-loopback"
