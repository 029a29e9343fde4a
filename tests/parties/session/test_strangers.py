"""Who may take part: garbage, strangers, impostors, wrong certificates, other studies - against real party
processes."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest

from parties import certificates
from parties.session.admission.identity import GREETING, Greeting
from parties.session.transport import frames
from runner.review.audit.subjects.processes.impostor import expired
from tests.parties.session import bodies
from tests.parties.session.conftest import Start
from tests.parties.session.stranger_campaign import Campaign, greeting
from tests.parties.session.test_faults import said
from tests.patience import PATIENCE_S
from tests.trio import configs


def der(cert: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(cert.read_text())


def reach(settings: dict[str, Any]) -> socket.socket:
    own = next(peer for peer in settings["parties"] if peer["name"] == settings["me"])
    sock = socket.create_connection((own["host"], own["port"]), timeout=PATIENCE_S)
    sock.settimeout(PATIENCE_S)
    return sock


def claim(
    settings: dict[str, Any], name: str, shown: bytes, cert: Path | None, key: Path | None
) -> tuple[ssl.SSLSocket, bytes]:
    """Greet as `name` and do the TLS handshake with this certificate (or none): what an impostor's program
    would do."""
    sock = reach(settings)
    sock.sendall(Greeting(frames.PROTOCOL, True, 0, name, shown).pack())
    head = sock.recv(GREETING.size, socket.MSG_WAITALL)
    *_, named, certified = GREETING.unpack(head)
    sock.recv(named + certified, socket.MSG_WAITALL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if cert is not None and key is not None:
        context.load_cert_chain(cert, key)
    wrapped = context.wrap_socket(sock)
    try:
        answer = wrapped.recv(frames.HEADER.size)
        answer += wrapped.recv(1 << 16)
    except ssl.SSLError as error:
        answer = (error.reason or "").encode()
    return wrapped, answer


def waiting_north(started: Start, settings: list[dict[str, Any]]) -> Any:
    """The party that listens only, waiting for all others."""
    (child,) = started(settings[:1], bodies.meet)
    child.until("waiting")
    return child


def doubts(north: Any) -> str:
    """Why the next one who claimed to be a party was refused."""
    return str(north.until("refused")["why"])


def starts(started: Start, settings: list[dict[str, Any]], north: Any) -> None:
    """What went before has ended nothing: the others come, and all meet."""
    others = started(settings[1:], bodies.meet)
    assert [child.wait() for child in (north, *others)] == [0] * len(settings), said(north)


def test_a_greeting_that_anybody_can_send_ends_nothing(started: Start, credentials: Path) -> None:
    """20 bytes: another version of the protocol in the name of a party; also another kind of protection, and
    no party's name."""
    settings = configs(credentials)
    north = waiting_north(started, settings)
    strangers = [reach(settings[0]) for _ in range(3)]
    strangers[0].sendall(Greeting(9, True, 0, "east", b"").pack())
    assert "speaks version 9" in doubts(north)
    strangers[1].sendall(Greeting(frames.PROTOCOL, False, 0, "east", b"").pack())
    assert "insecure-loopback" in doubts(north)
    strangers[2].sendall(Greeting(frames.PROTOCOL, True, 0, "nobody", b"").pack())
    assert "no party nobody is to connect" in doubts(north)
    starts(started, settings, north)
    for stranger in strangers:
        stranger.close()


def test_who_does_not_come_is_told_with_the_last_reason_of_its_name(
    started: Start, credentials: Path
) -> None:
    settings = configs(credentials, computing=2, connect_s=20.0)
    north = waiting_north(started, settings)
    for version in (7, 8):
        with reach(settings[0]) as stranger:
            stranger.sendall(Greeting(version, True, 0, "south", b"").pack())
            doubts(north)
    assert north.wait() == 20
    assert "Party south at 127.0.0.1:" in said(north) and "did not come within 20 s" in said(north)
    assert "somebody at 127.0.0.1 said to be it" in said(north) and "speaks version 8" in said(north)
    assert "version 7" not in said(north)


def test_garbage_and_silence_at_the_port_do_not_disturb(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    north = waiting_north(started, settings)
    strangers = [reach(settings[0]) for _ in range(5)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\nHost: north\r\n\r\n" * 10)
    strangers[1].sendall(bytes(100_000))
    strangers[2].sendall(
        struct.pack("<8sHBBBH", b"cosynth\n", 1, 1, 0, 64, 16384)
    )  # a greeting that never ends
    strangers[3].sendall(struct.pack("<8sHBBBH", b"cosynth\n", 1, 1, 0, 255, 65535))
    (south,) = started(settings[1:], bodies.meet)
    assert (north.wait(), south.wait()) == (0, 0)
    for stranger in strangers:
        stranger.close()


def test_no_certificate(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    north = waiting_north(started, settings)
    sock, answer = claim(settings[0], "south", b"", None, None)
    assert "Party south presented no certificate" in doubts(north)
    assert b"CERTIFICATE_REQUIRED" in answer
    sock.close()
    starts(started, settings, north)


def test_another_partys_certificate(started: Start, credentials: Path) -> None:
    """The engine's finding about MPyC: party 2's certificate was accepted as party 0. Here the name is bound."""
    settings = configs(credentials)
    north = waiting_north(started, settings)
    cert = credentials / "east.crt"
    sock, answer = claim(settings[0], "south", der(cert), cert, credentials / "east.key")
    assert "presented for party south belongs to 'east'" in doubts(north)
    assert frames.parse(answer[: frames.HEADER.size]).kind is frames.Kind.ABORT
    assert frames.parse_abort(answer[frames.HEADER.size :]) == (21, 1)
    sock.close()
    starts(started, settings, north)


def test_a_certificate_other_than_the_one_shown(started: Start, credentials: Path) -> None:
    settings = configs(credentials)
    north = waiting_north(started, settings)
    sock, _ = claim(
        settings[0],
        "south",
        der(credentials / "south.crt"),
        credentials / "east.crt",
        credentials / "east.key",
    )
    assert "Party south proved another certificate" in doubts(north)
    sock.close()
    starts(started, settings, north)


def test_an_expired_certificate(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    cert, key = expired(credentials, credentials / "expired", "south")
    day = certificates.read(cert).not_after.strftime("%Y-%m-%d")
    north = waiting_north(started, settings)
    sock, answer = claim(settings[0], "south", der(cert), cert, key)
    assert doubts(north) == f"The certificate of party south expired on {day}; issue a new one."
    assert b"CERTIFICATE_EXPIRED" in answer
    sock.close()
    (south,) = started([{**settings[1], "cert": str(cert), "key": str(key)}], bodies.meet)
    assert south.wait() == 21 and f"({cert}) expired on {day}" in said(south)
    starts(started, settings, north)


def test_a_foreign_certificate_is_refused_at_both_sides(
    started: Start, credentials: Path, tmp_path: Path
) -> None:
    certificates.make_all(tmp_path, ["south"])
    settings = configs(credentials, computing=2)
    for field, file in (("cert", "south.crt"), ("key", "south.key"), ("ca", "ca.crt")):
        settings[1][field] = str(tmp_path / file)
    children = started(settings, bodies.meet)
    assert children[1].wait() == 21
    # the dialling side checks first: it refuses north, and north hears that; but from whom is not proved, so
    # it waits on
    assert "party north is not signed by the CA" in said(children[1])
    assert "Party south refused the certificate" in doubts(children[0])


def test_a_foreign_certificate_of_the_dialling_side(
    started: Start, credentials: Path, tmp_path: Path
) -> None:
    certificates.make_all(tmp_path, ["south"])
    both = tmp_path / "both.crt"
    both.write_bytes((credentials / "ca.crt").read_bytes() + (tmp_path / "ca.crt").read_bytes())
    settings = configs(credentials, computing=2)
    for field, file in (("cert", "south.crt"), ("key", "south.key"), ("ca", "both.crt")):
        settings[1][field] = str(tmp_path / file)
    children = started(settings, bodies.meet)
    assert children[1].wait() == 21
    assert "party south is not signed by the CA" in doubts(children[0])
    assert f"Party north refused the certificate {tmp_path / 'south.crt'} of party south" in said(children[1])


def test_the_third_party_hears_about_an_impostor(started: Start, credentials: Path, tmp_path: Path) -> None:
    certificates.make_all(tmp_path, ["south"])
    both = tmp_path / "both.crt"
    both.write_bytes((credentials / "ca.crt").read_bytes() + (tmp_path / "ca.crt").read_bytes())
    settings = configs(credentials)
    for field, file in (("cert", "south.crt"), ("key", "south.key"), ("ca", "both.crt")):
        settings[1][field] = str(tmp_path / file)
    first = started([settings[0], settings[2]], bodies.meet)
    for child in first:
        child.until("connected")
    (impostor,) = started([settings[1]], bodies.meet)
    assert [child.wait() for child in (*first, impostor)] == [21, 21, 21]
    sentences = [said(child) for child in (*first, impostor)]
    assert all("party south" in sentence.lower() for sentence in sentences), sentences


@pytest.mark.parametrize(
    "change, words",
    [
        ({"cert": "east.crt", "key": "east.key"}, "belongs to 'east', not to party south"),
        ({"key": "east.key"}, "does not belong to the certificate"),
        ({"cert": "absent.crt"}, "is missing"),
        ({"key": "absent.key"}, "is missing"),
        ({"ca": "absent.crt"}, "is missing"),
        ({"ca": "east.key"}, "holds no PEM certificate"),
        ({"cert": "south.key"}, "holds no PEM certificate"),
        ({"ca": "east.crt"}, "is not signed by the CA"),
    ],
)
def test_ones_own_files_are_checked_first(credentials: Path, change: dict[str, str], words: str) -> None:
    from mpc_protocols.errors import PeerIdentity
    from parties.session.admission.identity import own_identity
    from tests.trio import session_config

    settings = {
        **configs(credentials)[1],
        **{field: str(credentials / file) for field, file in change.items()},
    }
    with pytest.raises(PeerIdentity, match=words) as caught:
        own_identity(session_config(settings))
    assert str(credentials / next(iter(change.values()))) in caught.value.sentence


def test_a_ca_that_has_expired_is_named_here_and_by_check(credentials: Path, tmp_path: Path) -> None:
    """One home: `check` shows the sentence with which the party would end."""
    from mpc_protocols.errors import PeerIdentity
    from parties.session.admission.identity import own_identity
    from runner.check.run import findings
    from tests.runner.studies import write_study
    from tests.trio import session_config

    ca = certificates.make_ca("old", days=0)
    place = tmp_path / "old"
    file, _ = certificates.write(place, "ca", ca)
    cert, key = certificates.write(place, "north", certificates.issue(ca, "north"))
    with pytest.raises(
        PeerIdentity, match=r"The CA of party north .* expired on .*; issue a new one"
    ) as caught:
        own_identity(session_config({**configs(credentials)[0], "cert": cert, "key": key, "ca": file}))
    private = tmp_path / "private.toml"
    private.write_text(f'cert = "{cert}"\nkey = "{key}"\nca = "{file}"\n')
    told = findings(write_study(tmp_path, ("insecure-loopback", "mutual")), "north", private, False)
    assert caught.value.sentence in [found.error.sentence for found in told if found.error is not None]


def pinned(credentials: Path) -> list[dict[str, Any]]:
    """Settings without a CA: every party pinned."""
    settings = configs(credentials, computing=2, contributors=1)
    for each in settings:
        each["ca"] = None
        for peer in each["parties"]:
            peer["fingerprint"] = certificates.fingerprint(credentials / f"{peer['name']}.crt").upper()
    return settings


def test_pinned_fingerprints_need_no_ca(started: Start, credentials: Path) -> None:
    children = started(pinned(credentials), bodies.meet)
    assert [child.wait() for child in children] == [0, 0, 0], [child.outcome for child in children]


@pytest.mark.parametrize("with_ca", [False, True])
def test_a_wrong_fingerprint_is_refused_at_both_sides(
    started: Start, credentials: Path, with_ca: bool
) -> None:
    settings = pinned(credentials)
    for each in settings:
        each["ca"] = str(credentials / "ca.crt") if with_ca else None
    settings[0]["parties"][1]["fingerprint"] = hashlib.sha256(b"another").hexdigest()
    children = started(settings[:2], bodies.meet)
    assert children[1].wait() == 21
    assert "party south does not have the fingerprint" in doubts(children[0])
    assert "Party north refused the certificate" in said(children[1])


@pytest.mark.parametrize(
    "change, words", [({"study_digest": "ff" * 32}, "study"), ({"protocol": 9}, "protocol version")]
)
def test_studies_that_differ(started: Start, credentials: Path, change: dict[str, str], words: str) -> None:
    settings = configs(credentials, computing=2)
    settings[1].update(change)
    children = started(settings, bodies.meet)
    assert [child.wait() for child in children] == [22, 22]
    for child, other in zip(children, ("south", "north"), strict=True):
        assert said(child).startswith(f"Party {other} has {words} "), said(child)


def test_the_third_party_hears_who_differs(started: Start, credentials: Path) -> None:
    settings = configs(credentials)
    settings[1]["study_digest"] = "ff" * 32
    first = started([settings[0], settings[2]], bodies.meet)
    for child in first:
        child.until("connected")
    (other,) = started([settings[1]], bodies.meet)
    assert [child.wait() for child in (*first, other)] == [22, 22, 22]
    assert all("party south" in said(child).lower() for child in (*first, other)), [
        said(child) for child in (*first, other)
    ]


def test_roles_and_parties_that_differ(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    settings[1]["parties"] = [
        {**peer, "name": "lake" if peer["name"] == "south" else peer["name"]}
        for peer in settings[1]["parties"]
    ]
    settings[1].update(me="lake", cert=str(credentials / "lake.crt"), key=str(credentials / "lake.key"))
    north = waiting_north(started, settings)
    (lake,) = started(settings[1:], bodies.meet)
    assert lake.wait() == 22 and "no party lake" in said(lake)
    assert "no party lake" in doubts(north)


def test_protection_must_be_the_same(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    settings[1]["insecure_loopback"] = True
    children = started(settings, bodies.meet)
    assert children[1].wait() == 22
    assert "insecure-loopback" in said(children[1]) and "insecure-loopback" in doubts(children[0])


def test_it_listens_on_its_own_address_only(started: Start, credentials: Path) -> None:
    settings = configs(credentials, computing=2)
    waiting_north(started, settings)
    port = settings[0]["parties"][0]["port"]
    wanted = f":{port:04X}"
    with open("/proc/net/tcp") as table:
        listening = [
            line.split()[1] for line in table if wanted in line.split()[1] and line.split()[3] == "0A"
        ]
    assert listening == [f"0100007F:{port:04X}"]
    with open("/proc/net/tcp6") as table:
        assert not [line for line in table if wanted in line.split()[1]]


def test_slow_strangers_do_not_take_the_places_of_parties(started: Start, credentials: Path) -> None:
    """Six hundred connections that say nothing, or greet and go no further, before any party has come."""
    settings = configs(credentials)
    north = waiting_north(started, settings)
    words = (b"", greeting("east", der(credentials / "east.crt")))
    strangers = []
    for number in range(600):
        strangers.append(reach(settings[0]))
        strangers[-1].sendall(words[number % 2])
    starts(started, settings, north)
    for stranger in strangers:
        stranger.close()


def test_a_start_under_a_storm_of_strangers(started: Start, credentials: Path) -> None:
    settings = configs(credentials)
    north = waiting_north(started, settings)
    ports = [peer["port"] for peer in settings[0]["parties"][:2]]
    storm = Campaign(ports, "east", der(credentials / "east.crt"), sockets=200, rate=300)
    storm.start()
    try:
        assert storm.full.wait()
        starts(started, settings, north)
        assert not storm.failed or storm.failed < storm.made
    finally:
        storm.stop()
