"""Strangers at a listening party's port, as many and as nasty as wanted; and starts of three real parties
under them.

    python -m tests.parties.session.stranger_campaign --seconds 60 --rate 500 --sockets 200

Loopback only. A stranger holds its socket until it is dropped or its place in the campaign is needed for the
next one. What they do, in turn: say nothing; garbage; half a greeting; a whole greeting in a party's name and
no more; a greeting and the first TLS bytes of an earlier handshake (replayed); a greeting and garbage for
TLS.
"""

from __future__ import annotations

import argparse
import random
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from parties.session.admission.identity import Greeting
from parties.session.transport import frames
from tests.parties.session import bodies
from tests.trio import configs, start

SOURCES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
"""The first is that of all parties, which the study names."""


def first_flight() -> bytes:
    """The ClientHello of some handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def greeting(claimed: str, certificate: bytes) -> bytes:
    """What a party of this name says first."""
    return Greeting(frames.PROTOCOL, True, 0, claimed, certificate).pack()


class Campaign(threading.Thread):
    """Connections to the ports, `rate` a second (None: as fast as they go), at most `sockets` at a time,
    until `stop`."""

    def __init__(
        self, ports: Sequence[int], claimed: str, certificate: bytes, sockets: int, rate: float | None
    ) -> None:
        super().__init__(daemon=True)
        self._ports, self._sockets, self._rate = ports, sockets, rate
        whole, hello = greeting(claimed, certificate), first_flight()
        self._words = (
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            bytes(4000),
            whole[: len(whole) // 2],
            whole[:20],
            whole,
            whole + hello,
            whole + random.Random(1).randbytes(300),
        )
        self._over = threading.Event()
        self.full = threading.Event()
        self.made = self.failed = 0

    def run(self) -> None:
        open_ones: deque[socket.socket] = deque()
        began = time.monotonic()
        while not self._over.is_set():
            sock = socket.socket()
            sock.settimeout(2)
            try:
                sock.bind((SOURCES[self.made % len(SOURCES)], 0))
                sock.connect(("127.0.0.1", self._ports[self.made % len(self._ports)]))
                sock.sendall(self._words[self.made // len(SOURCES) % len(self._words)])
                open_ones.append(sock)
            except OSError:
                self.failed += 1
                sock.close()
            self.made += 1
            if len(open_ones) > self._sockets:
                self.full.set()
                open_ones.popleft().close()
            if self._rate is not None:
                self._over.wait(max(0.0, began + self.made / self._rate - time.monotonic()))
        for sock in open_ones:
            sock.close()

    def stop(self) -> None:
        """No more of them."""
        self._over.set()
        self.join()


def main() -> None:
    """Starts one after another for so many seconds of a campaign; a line of figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--sockets", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = configs(Path(folder))
        certificate = ssl.PEM_cert_to_DER_cert((Path(folder) / "south.crt").read_text())
        ports = [peer["port"] for peer in settings[0]["parties"][:2]]  # the two that are dialled
        campaign = Campaign(ports, "east", certificate, asked.sockets, asked.rate)
        campaign.start()
        began, took, codes = time.monotonic(), [], []
        while time.monotonic() - began < asked.seconds:
            once = time.monotonic()
            children = start(settings, bodies.meet)
            codes.append([child.wait() for child in children])
            took.append(time.monotonic() - once)
            for child in children:
                child.end()
        campaign.stop()
    good = sum(set(each) == {0} for each in codes)
    print(
        f"{campaign.made} connections ({campaign.failed} found nobody) in {time.monotonic() - began:.0f} s; "
        f"{good} of {len(codes)} starts succeeded, {min(took):.1f} to {max(took):.1f} s each"
    )
    if good < len(codes):
        print("exit codes:", codes, file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
