"""`audit --target`: strangers at the ports of a deployment that waits on this machine."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from parties import certificates
from parties.session.admission.identity import GREETING, Greeting
from parties.session.transport import frames
from runner.__main__ import main
from runner.review.audit.subjects.processes.deployment import deployed, wait_for
from tests.runner import small


def test_a_waiting_party_withstands_strangers(tmp_path: Path) -> None:
    with deployed() as deployment:
        north = deployment["north"]
        north.start()
        wait_for(lambda: north.happened("connect", "waiting"), "That party north waits")
        found = tmp_path / "found.json"
        target = north.folder / "study.toml"
        assert main(["audit", "--target", str(target), "--quick", "--json", str(found)]) == 0
        assert north.running.poll() is None
    [group] = json.loads(found.read_text())["groups"]
    assert [check["verdict"] for check in group["checks"]] == ["pass"] * 4
    assert f"--target {target}" in group["checks"][0]["repro"]


def test_a_deployment_that_does_not_wait_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path)
    assert main(["audit", "--target", str(trial.path), "--quick"]) == 3
    assert "No party waits for others" in " ".join(capsys.readouterr().out.split())


def test_nobody_elses_machine_is_attacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path)
    text = trial.path.read_text()
    trial.path.write_text(text.replace("127.0.0.1", "192.0.2.7"))
    assert main(["audit", "--target", str(trial.path)]) == 2
    assert "on this machine only" in capsys.readouterr().err
    assert main(["audit", "--target", str(trial.path), "--mutations"]) == 2


class Careless(threading.Thread):
    """Answers greetings at a port and lets everybody in; or answers so many and is gone."""

    def __init__(self, folder: Path, name: str, port: int, answers: int) -> None:
        super().__init__(daemon=True)
        self._answers = answers
        self._said = Greeting(frames.PROTOCOL, True, 0, name, b"").pack()
        certificates.make_all(folder, [name])
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        self.listening = socket.create_server(("127.0.0.1", port))

    def run(self) -> None:
        for _ in range(self._answers):
            with suppress(OSError, ssl.SSLError):
                sock, _ = self.listening.accept()
                with sock:
                    sock.settimeout(20)
                    *_, named, certified = GREETING.unpack(sock.recv(GREETING.size, socket.MSG_WAITALL))
                    if named + certified:
                        sock.recv(named + certified, socket.MSG_WAITALL)
                    sock.sendall(self._said)
                    with self._context.wrap_socket(sock, server_side=True) as tls:
                        tls.sendall(frames.control(frames.Kind.PING))
        self.listening.close()


@contextmanager
def careless(folder: Path, answers: int) -> Iterator[Path]:
    """A study whose first party is careless."""
    trial = small.write(folder / "study")
    server = Careless(folder / "certificates", "north", trial.ports["north"], answers)
    server.start()
    try:
        yield trial.path
    finally:
        server.listening.close()


def test_a_party_that_lets_anybody_in_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with careless(tmp_path, 10_000) as path:
        assert main(["audit", "--target", str(path), "--quick", "--only", "X.identity"]) == 1
    assert "let somebody in as south with a certificate of another CA" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_party_that_answers_no_more_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with careless(tmp_path, 4) as path:
        assert main(["audit", "--target", str(path), "--quick", "--only", "X.garbage"]) == 1
    assert "answers no greeting any more" in " ".join(capsys.readouterr().out.split())
