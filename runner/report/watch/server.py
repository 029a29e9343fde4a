"""A page about a run on the loopback address, for this user of this machine.

Anybody on the machine can connect to a loopback port: the page's address holds a random word, without which
there is nothing. A page of somebody else's cannot ask for it through the user's browser: requests must name
the loopback address as their host (against DNS rebinding), and no answer allows other origins. The page loads
nothing from elsewhere and shows text only; the content security policy says so. It is read-only: there is
nothing to be changed.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

from mpc_protocols.errors import PeerUnreachable
from runner.report.watch.follow import Follower

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}
MAX_CONNECTIONS = 16
"""At a time: a page asks once a second, in one connection each time."""
DROPPED_S = 1.0
"""How long one that is dropped gets to end before the next one is."""
LAST_LOOK_S = 2.5
"""How long a page that is open gets to see that the run has ended."""


class _Server(ThreadingHTTPServer):
    """Holds `MAX_CONNECTIONS` connections, in the process of a party: for one more the oldest is dropped.
    Whoever connects without end may keep the page from being seen, and takes nothing from the run."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: OrderedDict[socket.socket, None] = OrderedDict()
        self._changes, self._slots = threading.Lock(), threading.Semaphore(MAX_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, once there is room."""
        while not self._slots.acquire(blocking=False):
            with self._changes:
                oldest = next(iter(self._open), None)
                if oldest is not None:
                    del self._open[oldest]
                    with suppress(OSError):  # its thread reads the end, and closes it
                        oldest.shutdown(socket.SHUT_RDWR)
            if self._slots.acquire(timeout=DROPPED_S):
                break
        with self._changes:
            self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In that thread. A slot is free when the descriptor is."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changes:
                self._open.pop(request, None)
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke says nothing: not in the party's stderr either."""


class Watch:
    """A server in a thread of its own. address: what to open in a browser."""

    def __init__(self, directory: Path, port: int = 0) -> None:
        """port: 0 for any. Raises `PeerUnreachable` (20) for a port that is in use."""
        self.follower, self.lock = Follower(directory), threading.Lock()
        self.secret = secrets.token_urlsafe(12)
        self.asked, self.told_end = 0.0, False
        try:
            self._server = _Server((HOST, port), type("Bound", (_Handler,), {"watch": self}))
        except OSError:
            raise PeerUnreachable(
                f"Port {port} of {HOST} is in use; name another with --port, or none."
            ) from None
        self.address = f"http://{HOST}:{self._server.server_port}/{self.secret}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="watch", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    def state(self) -> dict[str, Any]:
        """What the page is told."""
        with self.lock:
            found = self.follower.look()
        self.asked, self.told_end = time.monotonic(), found["state"] != "running"
        return found

    def close(self) -> None:
        """End, after an open page has been told how the run ended."""
        until = time.monotonic() + LAST_LOOK_S
        while time.monotonic() < until and time.monotonic() - self.asked < LAST_LOOK_S and not self.told_end:
            time.sleep(0.05)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def watching(directory: Path, port: int = 0) -> Iterator[Watch]:
    """A page about the run in `directory`, while the block lasts."""
    watch = Watch(directory, port)
    try:
        yield watch
    finally:
        watch.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET; anything else, and any other address, with nothing."""

    watch: Watch
    server_version, sys_version = "cosynth", ""
    protocol_version = "HTTP/1.0"
    timeout = 10

    def do_GET(self) -> None:
        known = {f"{name}:{self.watch.port}" for name in (HOST, "localhost")}
        prefix = f"/{self.watch.secret}/"
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in known or not secrets.compare_digest(
            path[: len(prefix)].encode(), prefix.encode()
        ):
            self._answer(404, "text/plain; charset=utf-8", b"There is nothing here.\n")
            return
        name = path[len(prefix) :]
        if name == "state":
            self._answer(200, "application/json", json.dumps(self.watch.state()).encode())
        elif name in FILES:
            file, kind = FILES[name]
            self._answer(
                200, kind, resources.files("runner.report.watch").joinpath("page", file).read_bytes()
            )
        elif name == "report.html":
            self._report()
        else:
            self._answer(404, "text/plain; charset=utf-8", b"There is nothing here.\n")

    def _report(self) -> None:
        """The run's report, which has a policy of its own inside."""
        try:
            content = (self.watch.follower.directory / "report.html").read_bytes()
        except OSError:
            self._answer(404, "text/plain; charset=utf-8", b"There is no report yet.\n")
            return
        self._answer(200, "text/html; charset=utf-8", content, policy="sandbox")

    def _answer(self, code: int, kind: str, content: bytes, policy: str = POLICY) -> None:
        with suppress(ConnectionError):
            self.send_response(code)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(content))),
                ("Content-Security-Policy", policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their paths hold the secret word."""
