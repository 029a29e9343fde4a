"""The preflight (`check --connect`): pairs prove who they are and compare studies; no failure ends another
link."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpc_protocols.errors import CosynthError, PeerIdentity, PeerLost, PeerUnreachable
from parties import certificates
from parties.session import SessionConfig
from parties.session.admission import preflight
from parties.session.admission.preflight import LINGER_S, Met, Waiting, meet
from parties.session.transport.channel import Channel
from tests.parties.session import bodies
from tests.parties.session.conftest import Start
from tests.trio import configs, session_config


class Preflight(threading.Thread):
    """One party's, in a thread; what it was told, in order."""

    def __init__(self, config: SessionConfig, linger_s: float = LINGER_S) -> None:
        super().__init__(daemon=True)
        self.config, self.news, self.failure = config, list[Met | Waiting](), None
        self.linger_s = linger_s
        self.start()

    def run(self) -> None:
        try:
            for news in meet(self.config, self.linger_s):
                self.news.append(news)
        except Exception as error:  # looked at by the test
            self.failure = error  # type: ignore[assignment]

    def met(self) -> dict[str, tuple[int, str]]:
        """Exit code and sentence for every party met, the last that was told; 0 and "" if nothing is wrong."""
        return {
            each.name: (each.error.exit_code, each.error.sentence) if each.error else (0, "")
            for each in self.news
            if isinstance(each, Met)
        }

    def end(self) -> dict[str, tuple[int, str]]:
        """What it met, once it is through."""
        self.join()
        assert self.failure is None, (self.news, self.failure)
        return self.met()


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that must come true."""
    while not condition():
        time.sleep(0.01)


def all_of(settings: Sequence[SessionConfig]) -> list[dict[str, tuple[int, str]]]:
    """All parties at once, in a random order; what each met, in the order of `settings`."""
    started = {
        number: Preflight(settings[number]) for number in random.sample(range(len(settings)), len(settings))
    }
    return [started[number].end() for number in range(len(settings))]


def parsed(credentials: Path, **changes: object) -> list[SessionConfig]:
    return [session_config(each) for each in configs(credentials, **changes)]  # type: ignore[arg-type]


def foreign(config: SessionConfig, directory: Path) -> SessionConfig:
    """The same party with a certificate of another CA, which is the one that it trusts."""
    certificates.make_all(directory, [config.me])
    return replace(
        config,
        cert=directory / f"{config.me}.crt",
        key=directory / f"{config.me}.key",
        ca=directory / "ca.crt",
    )


def test_everybody_meets_everybody_and_contributors_the_computing_parties(credentials: Path) -> None:
    settings = parsed(credentials, computing=3, contributors=2)
    for config, found in zip(settings, all_of(settings), strict=True):
        assert found == {config.numbered[number].name: (0, "") for number in config.peers}


def test_without_certificates_on_loopback(credentials: Path) -> None:
    settings = parsed(credentials, insecure_loopback=True, cert=None, key=None, ca=None)
    assert all_of(settings) == [
        {"south": (0, ""), "east": (0, "")},
        {"north": (0, ""), "east": (0, "")},
        {"north": (0, ""), "south": (0, "")},
    ]


@pytest.mark.parametrize("who", [0, 1, 2])
def test_a_foreign_ca_is_said_at_both_sides_and_spoils_no_other_link(
    credentials: Path, tmp_path: Path, who: int
) -> None:
    settings = parsed(credentials)
    settings[who] = foreign(settings[who], tmp_path)
    found, names = all_of(settings), [config.me for config in settings]
    for number, name in enumerate(names):
        for other in set(range(3)) - {number}:
            code, sentence = found[number][names[other]]
            assert code == (21 if who in (number, other) else 0)
            if who == number:
                assert f"arty {names[other]}" in sentence and "CA" in sentence
            elif who == other:
                assert f"arty {names[who]}" in sentence and (
                    "not signed by the CA" in sentence or f"party {name}" in sentence
                )


def test_other_studies_software_and_protection_are_said_at_both_sides(credentials: Path) -> None:
    for changes, words in (
        ({"study_digest": bytes(32)}, "study"),
        ({"protocol": 9}, "protocol version"),
        ({"insecure_loopback": True, "cert": None, "key": None, "ca": None}, "tls"),
    ):
        settings = parsed(credentials)
        settings[1] = replace(settings[1], **changes)
        north, south, east = all_of(settings)
        assert north["east"] == east["north"] == (0, "")
        for code, sentence in (north["south"], south["north"], south["east"], east["south"]):
            assert code == 22 and words in sentence and "arty south" in sentence


def test_who_does_not_come_is_named_in_time_and_whom_it_waits_for_before(credentials: Path) -> None:
    settings = parsed(credentials, connect_s=2.5)
    first, last = Preflight(settings[0]), Preflight(settings[2])
    found = first.end(), last.end()
    assert found[0]["east"] == found[1]["north"] == (0, "")
    (code, here), (_, there) = found[0]["south"], found[1]["south"]
    address = settings[0].own.address
    assert (
        code == 20 and f"Party south did not come to {address} within 2.5 s" in here
    )  # it would dial this party
    assert (
        f"Party south did not answer at {settings[1].own.address} within 2.5 s (connection refused)" in there
    )
    waiting = [each for each in last.news if isinstance(each, Waiting)]
    assert waiting[0].parties == (("south", "connection refused"),) and waiting[0].seconds > 0.9


def test_who_corrects_something_and_starts_again_is_met_again(credentials: Path, tmp_path: Path) -> None:
    """South comes with a certificate of another CA, gives up, and comes again with the right one, while north
    waits for east."""
    settings = parsed(credentials)
    north = Preflight(settings[0])
    wrong = Preflight(replace(foreign(settings[1], tmp_path), connect_s=1.0)).end()
    assert (wrong["north"][0], wrong["east"][0]) == (21, 20) and north.met()["south"][0] == 21
    right = Preflight(settings[1])
    until(lambda: right.met().get("north") == (0, ""))
    east = Preflight(settings[2])
    assert right.end() == {"north": (0, ""), "east": (0, "")} and east.end() == {
        "north": (0, ""),
        "south": (0, ""),
    }
    assert north.end() == {"south": (0, ""), "east": (0, "")}
    told = [
        each.error and each.error.exit_code
        for each in north.news
        if isinstance(each, Met) and each.name == "south"
    ]
    assert told == [21, None]  # nothing twice


def test_who_starts_again_just_before_the_last_one_comes_is_met_too(
    credentials: Path, tmp_path: Path
) -> None:
    """North is through when it has met east, and stays for south, which is about to come again."""
    settings = parsed(credentials)
    north = Preflight(settings[0], linger_s=500)
    Preflight(replace(foreign(settings[1], tmp_path), connect_s=1.0)).end()
    time.sleep(0.5)  # some time passes, at least
    east = Preflight(settings[2])
    until(lambda: "east" in north.met())
    south = Preflight(settings[1])
    assert south.end()["north"] == (0, "")
    assert north.end() == {"south": (0, ""), "east": (0, "")}
    assert east.end()["north"] == (0, "")


def test_who_leaves_while_it_is_met_again_has_been_met(
    credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """North is through; south, which waits for east, meets it once more and finds the connection closed."""
    settings = parsed(credentials, connect_s=1000.0)
    heard = preflight._Preflight._hear
    calls: list[int] = []

    async def once(self: preflight._Preflight, number: int, channel: Channel) -> CosynthError | None:
        calls.append(number)
        if calls.count(0) > 1:
            return PeerLost("Party north closed the connection before it had said which study it has.")
        return await heard(self, number, channel)

    south = Preflight(settings[1])
    monkeypatch.setattr(preflight._Preflight, "_hear", once)
    north = Preflight(settings[0])
    until(lambda: calls.count(0) > 1)
    east = Preflight(settings[2])
    assert south.end()["north"] == (0, "")
    east.end()
    north.end()


def test_a_party_whose_own_certificate_is_bad_is_heard_by_the_others(
    credentials: Path, tmp_path: Path
) -> None:
    """It says so, whoever of two parties dials, and ends; they do not wait for it."""
    for who in range(3):
        settings = parsed(credentials, connect_s=500)
        bad = settings[who] = replace(settings[who], key=settings[who - 1].key)
        started = {
            number: Preflight(config, linger_s=500 if number == who else LINGER_S)
            for number, config in enumerate(settings)
        }
        for number in {0, 1, 2} - {who}:
            found = started[number].end()
            code, sentence = found.pop(bad.me)
            assert (
                code == 21
                and f"Party {bad.me} says that its own certificate or key is not in order" in sentence
            )
            assert set(found.values()) == {(0, "")}
        started[who].join()
        failure = started[who].failure
        assert isinstance(failure, PeerIdentity) and "does not belong to the certificate" in failure.sentence


def test_a_run_that_waits_is_not_disturbed(started: Start, credentials: Path) -> None:
    """A check dials a run, and a run dials a check: they do not meet; the run starts once its own parties
    have come."""
    settings = configs(credentials)
    north, east = started([settings[0], settings[2]], bodies.meet)
    for child in (north, east):
        child.until("waiting")
    check = Preflight(replace(session_config(settings[1]), connect_s=2.0))
    found = check.end()
    assert (
        found["north"][0] == found["east"][0] == 20 and "(a run answers there, no check)" in found["north"][1]
    )
    (south,) = started([settings[1]], bodies.meet)
    assert [child.wait() for child in (north, south, east)] == [0, 0, 0]


def test_what_is_wrong_here_is_said_at_once(credentials: Path, tmp_path: Path) -> None:
    config = parsed(credentials)[0]
    (tmp_path / "nothing.crt").write_text("nothing")
    with pytest.raises(PeerIdentity, match="holds no PEM certificate"):
        next(meet(replace(config, cert=tmp_path / "nothing.crt"), linger_s=0.0))
    first = meet(config)
    assert isinstance(next(first), Waiting)
    with pytest.raises(PeerUnreachable, match="in use"):
        next(meet(config))
    first.close()  # type: ignore[attr-defined]
    again = meet(config)  # nothing of the first is left
    assert isinstance(next(again), Waiting)
    again.close()  # type: ignore[attr-defined]
