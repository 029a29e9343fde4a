"""A drop box over real sockets: what it takes, from whom, and what strangers cannot do to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h11
import pytest

from mpc_protocols.errors import CosynthError, PeerIdentity, PeerUnreachable, ProtocolAborted, UsageError
from parties import certificates
from parties.inbox import drop_box, upload
from parties.inbox.drop_box import DropBox, server_tls
from parties.inbox.upload import Box, Upload, client_tls
from runner.__main__ import main
from tests.worlds import collecting
from tests.worlds.collecting import World
from tests.worlds.ports import free_ports


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    certificates.make_all(folder, ["north", "south"])
    return folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return collecting.write(tmp_path, 4)


@contextmanager
def serving(world: World, certs: Path, told: list[str] | None = None, party: str = "north") -> Iterator[Box]:
    """A drop box in a thread of its own."""
    lines = [] if told is None else told
    [port] = free_ports(1)
    ready, ends = threading.Event(), list[Callable[[], object]]()

    problems: list[dict[str, Any]] = []

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, problem: problems.append(problem))
        tls = server_tls(certs / f"{party}.crt", certs / f"{party}.key")
        box = DropBox(world.inbox("north"), tls, lines.append)
        async with await box.listen("127.0.0.1", port):
            ends.append(lambda: loop.call_soon_threadsafe(over.set))
            ready.set()
            await over.wait()
        await box.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield Box("north", "127.0.0.1", port, client_tls(certs / "ca.crt"), "north")
    finally:
        ends[0]()
        thread.join(60)
    assert not problems


def status_of(
    box: Box, head: dict[bytes, bytes], body: bytes = b"", method: bytes = b"PUT"
) -> tuple[int, bytes]:
    """The answer to a request that anybody could make."""
    connection = h11.Connection(h11.CLIENT)
    with (
        socket.create_connection((box.host, box.port), 60) as plain,
        box.tls.wrap_socket(plain, server_hostname="north") as link,
    ):
        headers = [(b"Host", b"x"), *head.items(), (b"Expect", b"100-continue")]
        link.sendall(connection.send(h11.Request(method=method, target=b"/bundle", headers=headers)) or b"")
        status, answer = 0, b""
        while True:
            event: Any = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(link.recv(1 << 16))
            elif isinstance(event, h11.InformationalResponse):
                link.sendall(body)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                answer += event.data
            else:
                return status, answer


def broken_off(box: Box, head: dict[bytes, bytes], body: bytes) -> None:
    """Announce an upload, send less, and go. Raises what a client meets that waits for an answer all the
    same."""
    connection = h11.Connection(h11.CLIENT)
    with (
        socket.create_connection((box.host, box.port), 60) as plain,
        box.tls.wrap_socket(plain, server_hostname="north") as link,
    ):
        request = h11.Request(method=b"PUT", target=b"/bundle", headers=[(b"Host", b"x"), *head.items()])
        link.sendall((connection.send(request) or b"") + body)
        plain = link.unwrap()
        plain.shutdown(socket.SHUT_WR)
        connection.receive_data(plain.recv(1 << 16))
        connection.next_event()


def signed(world: World, content: bytes, name: str = "c00", **changes: Any) -> dict[bytes, bytes]:
    """The head of an upload of `content`, or of what `changes` say of it, by this contributor's key."""
    announced = replace(Upload(name, hashlib.sha256(content).digest(), len(content)), **changes)
    sign = world.contribution(name)._sign
    return {
        b"Content-Length": str(announced.length).encode(),
        upload.CONTRIBUTOR: name.encode(),
        upload.DIGEST: announced.digest.hex().encode(),
        upload.SIGNATURE: sign(announced.signed(world.collection.study, "north")).hex().encode(),
    }


def test_a_bundle_is_taken_once_and_known_after_that(world: World, certs: Path) -> None:
    file, told = world.contribute("c00"), list[str]()
    with serving(world, certs, told) as box:
        assert world.contribution("c00").deliver(file, box) == "accepted"
        assert world.contribution("c00").deliver(file, box) == "known"
    assert told == ["uploaded: accepted, of c00", "uploaded: known, of c00"]
    assert list(world.inbox("north").accepted(datetime.now(UTC)).values()) == ["c00"]


def test_the_commands(world: World, certs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two parties' boxes, one of which is not there: the other gets the bundle all the same."""
    file = world.contribute("c01")
    own = world.folder / "c01.toml"
    own.write_text(f'ca = "{certs / "ca.crt"}"\n' + own.read_text())
    [nobody] = free_ports(1)
    command = [
        "contribute",
        str(world.trial.path),
        "--party",
        "c01",
        "--private",
        str(own),
        "--send",
        str(file),
    ]
    with serving(world, certs) as box:
        places = [f"south=127.0.0.1:{nobody}", f"north=127.0.0.1:{box.port}"]
        assert main([*command, "--to", *places]) == PeerUnreachable.exit_code
    shown = capsys.readouterr()
    assert "north: accepted" in shown.out and "1 of 2 parties did not take the bundle" in shown.err
    assert main([*command, "--to", "east=127.0.0.1:1"]) == UsageError.exit_code
    assert main(command) == UsageError.exit_code
    assert "--send needs --to" in capsys.readouterr().err
    listen = ["inbox", str(world.trial.path), "--party", "north", "--listen", "127.0.0.1:1"]
    assert main(listen) == UsageError.exit_code
    assert "name `cert` and `key`" in capsys.readouterr().err


def test_nobody_but_contributors_is_listened_to(world: World, certs: Path) -> None:
    """A stranger, another's key, another study, another length: 401 before a byte of the body is asked for."""
    content = world.contribute("c00").read_bytes()
    good = signed(world, content)
    other = world.contribution("c01")._sign(
        Upload("c00", hashlib.sha256(content).digest(), len(content)).signed(world.collection.study, "north")
    )
    elsewhere = world.contribution("c00")._sign(
        Upload("c00", hashlib.sha256(content).digest(), len(content)).signed(bytes(32), "north")
    )
    announced = Upload("c00", hashlib.sha256(content).digest(), len(content))
    at_south = world.contribution("c00")._sign(announced.signed(world.collection.study, "south"))
    bad = [
        {b"Content-Length": b"5"},
        good | {upload.CONTRIBUTOR: b"c99"},
        good | {upload.CONTRIBUTOR: b"\xff\xfe"},
        good | {upload.SIGNATURE: other.hex().encode()},
        good | {upload.SIGNATURE: elsewhere.hex().encode()},
        good | {upload.SIGNATURE: at_south.hex().encode()},
        good | {upload.SIGNATURE: b"00"},
        good | {upload.SIGNATURE: b"no hex"},
        good | {upload.DIGEST: b"00" * 32},
        good | {b"Content-Length": str(len(content) - 1).encode()},
    ]
    with serving(world, certs) as box:
        assert [status_of(box, head, content)[0] for head in bad] == [401] * len(bad)
        assert status_of(box, good, content, b"GET")[0] == 405
        assert (
            status_of(box, {key: value for key, value in good.items() if key != b"Content-Length"})[0] == 411
        )
        assert status_of(box, good, content)[0] == 200
    assert list(world.inbox("north").accepted(datetime.now(UTC)).values()) == ["c00"]


def test_what_is_no_bundle_of_the_study_is_refused_with_a_reason(world: World, certs: Path) -> None:
    content = world.contribute("c00").read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    with serving(world, certs) as box:
        assert status_of(box, signed(world, flipped), flipped)[0] == 422
        assert status_of(box, signed(world, content), flipped)[0] == 400
        long = signed(world, content, length=10**9)
        assert status_of(box, long)[0] == 413
        with pytest.raises(ProtocolAborted, match=r"status 422.*that c00 uploaded is refused"):
            upload.send(box, b"nonsense", world.collection.study, "c00", world.contribution("c00")._sign)
    assert not world.inbox("north").accepted(datetime.now(UTC))


def test_a_contributor_that_cheats_changes_nobody_s_counts(world: World, certs: Path) -> None:
    """By its own key: altered, cut off, another's, with another's counts, broken off, more than announced, a
    second."""
    other, content = (world.seal(name).read_bytes() for name in ("c00", "c01"))
    changed = [
        content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        for at in (0, 40, 200, 900, -1 % len(content))
    ]
    mixed = content[: len(content) // 2] + other[len(content) // 2 :]
    refused = [*changed, content[:1], content[: len(content) // 2], content[:-1], content + b"0", mixed]
    with serving(world, certs) as box:
        for bad in refused:
            status, said = status_of(box, signed(world, bad, "c01"), bad)
            assert status in (413, 422) and json.loads(said)["error"].count("\n") == 0
        with pytest.raises((OSError, h11.RemoteProtocolError)):
            broken_off(box, signed(world, content, "c01"), content[:-10])
        assert not world.inbox("north").accepted(datetime.now(UTC))
        status, said = status_of(box, signed(world, other, "c01"), other)
        assert (status, json.loads(said)["contributor"]) == (200, "c00")  # it is c00's whoever brings it
        assert status_of(box, signed(world, content, "c01"), content + other)[0] == 200
        second = world.seal("c01").read_bytes()
        assert status_of(box, signed(world, second, "c01"), second)[0] == 422
        for bundle, name in ((content, "c01"), (other, "c00")):
            assert json.loads(status_of(box, signed(world, bundle, name), bundle)[1])["outcome"] == "known"
    inbox = world.inbox("north")
    assert sorted(inbox.accepted(datetime.now(UTC)).values()) == ["c00", "c01"]
    assert not list(inbox.folder.rglob("*.part"))


def test_a_contributor_cannot_keep_the_box_busy(
    world: World, certs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_box, "MAX_AN_HOUR", 2)
    content = world.contribute("c00").read_bytes()
    with serving(world, certs) as box:
        found = [status_of(box, signed(world, content), content)[0] for _ in range(3)]
        assert found == [200, 200, 429]
        second = world.contribute("c01").read_bytes()
        assert status_of(box, signed(world, second, "c01"), second)[0] == 200


def test_connections_that_say_nothing_keep_nobody_out(world: World, certs: Path) -> None:
    """More of them than an address has places: the oldest go. Half of them have begun with TLS, some with a
    request."""
    file = world.contribute("c00")
    with ExitStack() as open_, serving(world, certs) as box:
        for number in range(30):
            sock = open_.enter_context(socket.create_connection((box.host, box.port), 60))
            if number % 2:
                link = box.tls.wrap_socket(sock, server_hostname="north", do_handshake_on_connect=False)
                open_.enter_context(link)
                link.setblocking(False)
                with suppress(ssl.SSLWantReadError):  # a server that is quick has answered by then
                    link.do_handshake()
        assert world.contribution("c00").deliver(file, box) == "accepted"


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4000, b"PUT /bundle HTTP/1.1\r\n" + b"a: b\r\n" * 5000]
)
def test_noise_ends_its_own_connection_only(world: World, certs: Path, noise: bytes) -> None:
    """In the clear, and within TLS."""
    file = world.contribute("c00")
    with serving(world, certs) as box:
        for tls in (False, True):
            with ExitStack() as open_:
                sock: socket.socket = open_.enter_context(socket.create_connection((box.host, box.port), 60))
                if tls:
                    sock = open_.enter_context(box.tls.wrap_socket(sock, server_hostname="north"))
                try:
                    sock.sendall(noise)
                    while sock.recv(1 << 16):
                        pass
                except OSError:
                    pass
        assert world.contribution("c00").deliver(file, box) == "accepted"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"PUT /bundle HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 3000 + b"\r\n", b"431"),
        (b"PUT /bundle HTTP/1.1\r\nHost: x\r\na: " + b"b" * 20_000 + b"\r\n\r\n", b"431"),
        (b"PUT /bundle HTTP/1.1\r\nHost: x\r\na: " + b"b" * 20_000, b"431"),
        (b"PUT bundle\r\n\r\n", b"400"),
        (b"GET /bundle HTTP/1.1\r\nHost: x\r\na: " + b"b" * 8000 + b"\r\n\r\n", b"405"),
    ],
)
def test_a_head_that_is_too_long_or_none_is_answered(
    world: World, certs: Path, head: bytes, status: bytes
) -> None:
    with (
        serving(world, certs) as box,
        socket.create_connection((box.host, box.port), 60) as plain,
        box.tls.wrap_socket(plain, server_hostname="north") as link,
    ):
        link.sendall(head)
        answer = b""
        while b"\r\n\r\n" not in answer and (more := link.recv(1 << 16)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_box_that_is_not_the_party_s_gets_nothing(world: World, certs: Path, tmp_path: Path) -> None:
    """Another party's certificate, another authority, no TLS at all."""
    file = world.contribute("c00")
    other = tmp_path / "other"
    other.mkdir()
    certificates.make_all(other, ["north"])
    deliver = world.contribution("c00").deliver
    with serving(world, certs, party="south") as box, pytest.raises(PeerIdentity, match="is not north"):
        deliver(file, box)
    with serving(world, certs) as box, pytest.raises(PeerIdentity):
        deliver(file, replace(box, tls=client_tls(other / "ca.crt")))
    with pytest.raises(PeerIdentity, match="is no certificate of an authority"):
        client_tls(file)
    (certs / "north.key").chmod(0o644)
    try:
        with pytest.raises(CosynthError, match="can be read by other users"):
            server_tls(certs / "north.crt", certs / "north.key")
    finally:
        (certs / "north.key").chmod(0o600)


def test_an_inbox_that_can_take_nothing_says_so_and_not_why(world: World, certs: Path) -> None:
    """The reason is this party's business: its sentence names a place on this machine."""
    content, told = world.contribute("c00").read_bytes(), list[str]()
    key = world.inbox("north").folder / "receiver.key"
    key.rename(key.with_suffix(".away"))
    with serving(world, certs, told) as box:
        status, answer = status_of(box, signed(world, content), content)
    assert status == 503 and str(world.folder).encode() not in answer
    assert len(told) == 1 and str(key.parent) in told[0]
