"""A drop box: an inbox that takes bundles over HTTPS, from contributors whom the study lists (`upload` has
the message).

    box = DropBox(inbox, tls, print)
    server = await box.listen("0.0.0.0", 8443)

One request a connection: its head within HEAD_S, at most MAX_HEAD bytes; then, if a contributor of the study
has signed for exactly this body, the body, at MIN_RATE bytes a second at least. Everybody else is answered in
one sentence and closed: no stranger makes this party keep a byte. Connections that have not signed have
places as strangers have at a party's port (`parties.session.admission.strangers`), and a contributor has one
upload at a time, MAX_AN_HOUR in an hour, whatever comes of them; MAX_AT_ONCE bodies are held in memory. HTTP
is parsed by h11, TLS is the standard library's.

What is stored, and whether, is `Inbox.take`'s to decide. Nothing here is secret but who uploads, which the
line's TLS hides.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import h11

from mpc_protocols.backends.bundles.bundle import file_bytes
from mpc_protocols.backends.bundles.sealing import SIGNATURE_BYTES, verifies
from mpc_protocols.errors import CosynthError, PeerIdentity
from parties.certificates import check_private
from parties.inbox.store import InboxUnusable
from parties.inbox.upload import CHUNK, CONTRIBUTOR, DIGEST, PATH, SIGNATURE, Upload
from parties.session.admission.strangers import Strangers

if TYPE_CHECKING:
    from parties.inbox.store import Inbox

HEAD_S = 20.0
"""For TLS and the head of a request."""
MAX_HEAD = 8192
MIN_RATE = 4096
LINGER_S = 2.0
MAX_AT_ONCE = 16
MAX_AN_HOUR = 20
HOUR_S = 3600.0
_HEAD_ENDS = re.compile(rb"\n\r?\n")


def server_tls(cert: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.3 with this party's certificate. Raises `PeerIdentity` for files that are none, or a key that
    others can read."""
    check_private(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(cert, key)
    except OSError as error:
        raise PeerIdentity(
            f"{cert} and {key} are no certificate with its key ({error.strerror or error.args[0]})."
        ) from None
    return context


class _RefusedError(Exception):
    """A request that is answered with a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class DropBox:
    """Takes bundles for one inbox. tell: what becomes of each upload, a line."""

    def __init__(self, inbox: Inbox, tls: ssl.SSLContext, tell: Callable[[str], None]) -> None:
        self._inbox, self._tls, self._tell = inbox, tls, tell
        self._public = inbox.collection
        self._most = file_bytes(self._public.layout.cells)
        self._strangers = Strangers(())
        self._under_way = set[str]()
        self._uploads = {name: deque[float](maxlen=MAX_AN_HOUR) for name in self._public.contributors}
        self._storing = asyncio.Lock()
        self._tasks = set[asyncio.Task[None]]()

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Serve from now on. Raises OSError if the port cannot be had."""
        return await asyncio.start_server(self._begin, host, port, limit=CHUNK)

    async def close(self) -> None:
        """End all connections."""
        for task in (under_way := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection has come. Its task is this box's own, which may be cancelled: asyncio would log that
        of its own."""
        task = asyncio.get_running_loop().create_task(self._connected(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = str(writer.get_extra_info("peername")[0])
        sock: socket.socket = writer.get_extra_info("socket")
        stranger = self._strangers.admit(sock, host)
        stranger.task = asyncio.current_task()
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        line = _Line(connection, reader, writer)
        try:
            try:
                async with asyncio.timeout(HEAD_S):
                    await writer.start_tls(self._tls, ssl_handshake_timeout=HEAD_S)
                    upload = self._proved(await line.head())
                self._count(upload.contributor)
                self._strangers.leave(stranger)
                status, answer = await self._take(line, upload)
            except _RefusedError as refused:
                status, answer = refused.status, {"error": refused.sentence}
                self._strangers.dropped(host, refused.sentence)
            async with asyncio.timeout(HEAD_S):
                await line.answer(status, answer)
        except (OSError, h11.ProtocolError, EOFError) as error:  # TimeoutError and ssl.SSLError are OSErrors
            self._strangers.dropped(host, type(error).__name__)
        finally:
            self._strangers.leave(stranger)
            writer.transport.abort()  # whoever does not end its side is not waited for

    def _proved(self, request: h11.Request) -> Upload:
        """What a request announces, if a contributor of this study has signed that. Raises `_RefusedError`."""
        if request.target != PATH:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "This is a drop box: bundles go to /bundle.")
        if request.method != b"PUT":
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "This is a drop box: a bundle is PUT here.")
        given = dict(request.headers)
        length = given.get(b"content-length", b"")
        if not length.isdigit():
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "The bundle's length must be announced.")
        name = given.get(CONTRIBUTOR, b"").decode("utf-8", "replace")
        try:
            digest, signature = (
                bytes.fromhex(given.get(key, b"").decode("ascii")) for key in (DIGEST, SIGNATURE)
            )
        except ValueError:
            digest = signature = b""
        upload, key = Upload(name, digest, int(length[:12])), self._public.contributors.get(name)
        signed = key is not None and len(digest) == 32 and len(signature) == SIGNATURE_BYTES
        if (
            key is None
            or not signed
            or not verifies(key, signature, upload.signed(self._public.study, self._inbox.party))
        ):
            raise _RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "No contributor of this study has signed for this upload; use its key and its study file.",
            )
        if upload.length > self._most:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A bundle of this study has at most {self._most} bytes."
            )
        return upload

    async def _take(self, line: _Line, upload: Upload) -> tuple[HTTPStatus, dict[str, str]]:
        """Take the body in. Raises `_RefusedError`."""
        try:
            async with asyncio.timeout(HEAD_S + upload.length / MIN_RATE):
                content = await line.body(upload.length)
            if hashlib.sha256(content).digest() != upload.digest:
                raise _RefusedError(
                    HTTPStatus.BAD_REQUEST, "The bundle was damaged on its way; send it again."
                )
            async with self._storing:
                outcome, contributor = await asyncio.to_thread(self._store, content, upload)
        except InboxUnusable as error:
            self._tell(error.sentence)
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "The inbox cannot take a bundle now; send it again later."
            ) from None
        except CosynthError as error:
            self._tell(error.sentence)
            raise _RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, error.sentence) from None
        finally:
            self._under_way.discard(upload.contributor)
        self._tell(f"uploaded: {outcome}, of {contributor}")
        return HTTPStatus.OK, {"outcome": outcome, "contributor": contributor}

    def _store(self, content: bytes, upload: Upload) -> tuple[str, str]:
        """Outcome and contributor. Raises `InboxUnusable`, and what the bundle is refused for."""
        try:
            self._inbox.ready()
        except CosynthError as error:
            raise InboxUnusable(error.sentence) from None
        return self._inbox.take(content, datetime.now(UTC), f"that {upload.contributor} uploaded")

    def _count(self, contributor: str) -> None:
        """Begin an upload. Raises `_RefusedError` for one too many."""
        now, made = time.monotonic(), self._uploads[contributor]
        if contributor in self._under_way or (len(made) == MAX_AN_HOUR and now - made[0] < HOUR_S):
            raise _RefusedError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "Uploads of this contributor come too fast; send it again later.",
            )
        if len(self._under_way) >= MAX_AT_ONCE:
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "Many bundles are arriving; send it again in a minute."
            )
        made.append(now)
        self._under_way.add(contributor)


class _Line:
    """One connection, as events of HTTP. Raises OSError, EOFError, and what h11 raises."""

    def __init__(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._connection, self._reader, self._writer = connection, reader, writer

    async def head(self) -> h11.Request:
        """The request's head, counted as it comes: h11 bounds only what is not yet whole. Raises
        `_RefusedError`."""
        received = bytearray()
        while True:
            data = await self._reader.read(CHUNK)
            received += data
            end = _HEAD_ENDS.search(received)
            if (len(received) if end is None else end.end()) > MAX_HEAD:
                raise _RefusedError(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"The head of a request has at most {MAX_HEAD} bytes.",
                )
            if end is not None or not data:
                break
        try:
            self._connection.receive_data(bytes(received))
            event = await self._next()
        except h11.RemoteProtocolError:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "This is no request of HTTP/1.1.") from None
        if not isinstance(event, h11.Request):
            raise EOFError
        return event

    async def body(self, length: int) -> bytes:
        """The request's body, asked for if its sender waits. h11 sees to it that it has the length announced."""
        if self._connection.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[]))
        content = bytearray()
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if not isinstance(event, h11.Data) or len(content) + len(event.data) > length:
                raise EOFError
            content += event.data
        return bytes(content)

    async def answer(self, status: HTTPStatus, said: dict[str, str]) -> None:
        """The answer, after which the connection ends. What the other side still sends, and its end, is
        waited for a moment, so that it reads this."""
        content = json.dumps(said).encode()
        headers = [
            (b"Content-Type", b"application/json"),
            (b"Content-Length", str(len(content)).encode()),
            (b"Connection", b"close"),
        ]
        await self._send(h11.Response(status_code=status, reason=status.phrase.encode(), headers=headers))
        await self._send(h11.Data(data=content))
        await self._send(h11.EndOfMessage())
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(CHUNK):
                    pass

    async def _next(self) -> object:
        while (event := self._connection.next_event()) is h11.NEED_DATA:
            self._connection.receive_data(await self._reader.read(CHUNK))
        return event

    async def _send(self, event: h11.Event) -> None:
        self._writer.write(self._connection.send(event) or b"")
        await self._writer.drain()
