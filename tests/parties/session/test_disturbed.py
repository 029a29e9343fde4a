"""Bytes that change on the way: not taken for a wrong certificate; a handshake is tried again, a link says
what happened."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import PeerIdentity
from parties import certificates
from parties.session.admission.identity import explain, own_identity, refuses
from parties.session.transport.sockets import Disturbed
from tests.parties.session import bodies
from tests.parties.session.conftest import Start
from tests.parties.session.test_faults import said
from tests.trio import configs, session_config


class Flipping(threading.Thread):
    """A relay before a port that changes one bit of the first connection: of the byte `place` after the
    greeting, one way."""

    def __init__(self, target: int, place: int, answers: bool, greeting: int) -> None:
        super().__init__(daemon=True)
        self._target, self._place, self._answers = target, place + greeting, answers
        self.connections = 0
        self.flipped = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                self.connections += 1
                for source, sink, answers in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._pass, args=(source, sink, answers), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        flip, passed = answers == self._answers and not self.flipped, 0
        with suppress(OSError):
            while data := bytearray(source.recv(1 << 16)):
                if flip and passed <= self._place < passed + len(data):
                    data[self._place - passed] ^= 4
                    self.flipped = True
                passed += len(data)
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """No further connection."""
        self._server.close()


def disturbed(credentials: Path, place: int, answers: bool) -> tuple[list[dict[str, Any]], Flipping]:
    """North and south, south by way of a relay."""
    settings = configs(credentials, computing=2)
    own = own_identity(session_config(settings[0 if answers else 1]))
    relay = Flipping(settings[0]["parties"][0]["port"], place, answers, len(own.greeting().pack()))
    settings[1]["parties"][0]["port"] = relay.port
    return settings, relay


@pytest.mark.parametrize("answers", [False, True], ids=["asked", "answered"])
@pytest.mark.parametrize("place", [3, 30, 100, 200, 600, 900])
def test_a_bit_that_flips_in_the_handshake_is_no_wrong_certificate(
    started: Start, credentials: Path, place: int, answers: bool
) -> None:
    settings, relay = disturbed(credentials, place, answers)
    children = started(settings, bodies.meet)
    assert [child.wait() for child in children] == [0, 0], [said(child) for child in children]
    assert relay.flipped and relay.connections >= 2
    relay.close()


def test_a_bit_that_flips_later_is_said_to_have_changed_on_the_way(started: Start, credentials: Path) -> None:
    settings, relay = disturbed(credentials, 6000, False)
    children = started(settings, bodies.last_word_of_one)
    codes = [child.wait() for child in children]
    assert relay.flipped and codes[0] == 40 and codes[1] in (40, 41), [said(child) for child in children]
    assert "bytes were changed on the way" in said(children[0])
    assert all("CA" not in said(child) for child in children)
    relay.close()


def unreadable(certificate: Path) -> bytes:
    """A certificate of a version that does not exist, in DER."""
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    return der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05")


def test_a_certificate_of_no_version_cannot_be_read(credentials: Path, tmp_path: Path) -> None:
    config = session_config(configs(credentials)[0])
    shown = unreadable(credentials / "south.crt")
    error = ssl.SSLCertVerificationError(1, "no")
    error.reason, error.verify_message = "CERTIFICATE_VERIFY_FAILED", "no"
    with pytest.raises(PeerIdentity, match="of party south cannot be read"):
        explain(config, config.parties[1], shown, error)
    path = tmp_path / "odd.crt"
    path.write_text(ssl.DER_cert_to_PEM_cert(shown))
    with pytest.raises(PeerIdentity, match="not a PEM certificate that can be read"):
        certificates.read(path)
    with pytest.raises(PeerIdentity, match="holds no PEM certificate"):
        own_identity(session_config({**configs(credentials)[0], "cert": str(path)}))


@pytest.mark.parametrize(
    ("reason", "certificate"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", True),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", True),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", True),
        ("SSLV3_ALERT_BAD_RECORD_MAC", False),
        ("TLSV1_ALERT_DECRYPT_ERROR", False),
        ("TLSV1_ALERT_DECODE_ERROR", False),
        ("CERTIFICATE_VERIFY_FAILED", False),
    ],
)
def test_which_alerts_are_about_a_certificate(credentials: Path, reason: str, certificate: bool) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert refuses(error) == certificate
    config = session_config(configs(credentials)[0])
    with pytest.raises(PeerIdentity if certificate else Disturbed):
        explain(config, config.parties[1], b"", error)
