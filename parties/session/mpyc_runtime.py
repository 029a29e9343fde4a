"""The MPyC runtime of a computing party, made safe (`docs/design/session.md` 2): the only file that imports
MPyC.

MPyC parses `sys.argv` when it is imported (`--out x` would end the process), configures logging and the event
loop policy, opens unauthenticated connections in `start`, and unpickles what peers send. Here it is imported
under a private argument list, with what it changed put back (its own MPYC_MAXWORKERS, which it reads later, is
set before: `mpyc_environment`); it sends and receives through the session's links on a stream of its own,
encodes with `codec`, and uses keys to which all who share them contribute (`admission.keys`). A lost peer
fails whatever waits.

MPyC computes in the thread that calls `attach` (a protocol's, not the network's), on an event loop of its
own. Threat model: MPyC's own, semi-honest, honest majority; plus what `link` says about hostile bytes.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError, ProtocolAborted
from mpc_protocols.process.threads import start_thread
from parties.session.transport import codec

if TYPE_CHECKING:
    from parties.session.party import Party, SessionWire

log = logging.getLogger("cosynth.session")

_LABEL = struct.Struct("<q")
_MAX_UNEXPECTED = 1 << 28
"""Most bytes of one peer that MPyC has not asked for yet (each message counts _OVERHEAD more)."""

_OVERHEAD = 256


PARTS = (
    "finfields",
    "thresha",
    "asyncoro",
    "sectypes",
    "mpctools",
    "secgroups",
    "random",
    "statistics",
    "seclists",
    "secpols",
)
"""What MPyC's runtime imports of its own."""


def prepare() -> None:
    """Import of MPyC all but its runtime: in a process that parties are forked from."""
    with _arguments("--no-log", "--no-uvloop"):
        for part in PARTS:
            import_module(f"mpyc.{part}")


def load(number: int, computing: int) -> Runtime:
    """Import MPyC and build its runtime for this party; once per process. Safe in any thread, once
    `mpyc_environment.settle` was called."""
    with _arguments(*(["-P", "party"] * computing), "-I", str(number), "--no-log", "--no-uvloop"):
        import mpyc.runtime
    mpc = mpyc.runtime.mpc
    if (mpc.pid, len(mpc.parties)) != (number, computing):
        raise RuntimeError("MPyC was imported before this session started.")
    runtime = Runtime(mpc)
    mpyc.runtime.pickle = SimpleNamespace(dumps=codec.dumps, loads=runtime.loads)
    return runtime


@contextmanager
def _arguments(*arguments: str) -> Iterator[None]:
    """MPyC's command line, while it is imported; what that changes is put back."""
    argv, root = sys.argv, logging.getLogger()
    handlers, level = root.handlers[:], root.level
    sys.argv = ["mpyc", *arguments]
    try:
        yield
    finally:
        sys.argv = argv
        root.handlers[:] = handlers
        root.setLevel(level)


class Runtime:
    """MPyC's runtime object and its place in the session."""

    def __init__(self, runtime: Any) -> None:
        self._mpc = runtime
        self._exchangers: dict[int, _Exchanger] = {}
        self._bad: CosynthError | None = None
        self._error: BaseException | None = None

    def loads(self, payload: bytes) -> Any:
        """Decode a message for MPyC, whose tasks lose the exception if it is not remembered here."""
        try:
            return codec.loads(payload)
        except CosynthError as error:
            self._bad = error
            raise

    def use_prss_keys(self, keys: Mapping[tuple[int, ...], bytes]) -> None:
        """The keys of pseudorandom secret sharing, by the set of parties that shares each, instead of those
        that MPyC drew."""
        if keys.keys() != set(self._sets()):
            raise ValueError("MPyC shares keys among other sets of parties.")
        self._mpc._prss_keys = dict(keys)
        self._mpc.prfs.cache_clear()

    def prss_key(self, members: tuple[int, ...]) -> bytes:
        """The key of one such set. Raises `ValueError` if this party shares none with exactly these."""
        key: bytes | None = self._mpc._prss_keys.get(members)
        if key is None:
            raise ValueError(f"This party shares no key with the set {members}.")
        return key

    def _sets(self) -> Iterator[tuple[int, ...]]:
        count = len(self._mpc.parties)
        return (
            each for each in combinations(range(count), count - self._mpc.threshold) if self._mpc.pid in each
        )

    def attach(self, party: Party, wire: SessionWire) -> Any:
        """MPyC's `mpc` for the calling thread: secure types, `input`, `output`, `mpc.run(...)`. One thread
        only."""
        mpc = self._mpc
        if self._exchangers:
            return mpc
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._remember)
        mpc._loop = loop
        for peer in range(party.computing):
            if peer != party.me:
                exchanger = _Exchanger(loop, party, wire, peer)
                self._exchangers[peer] = mpc.parties[peer].protocol = exchanger
                start_thread(exchanger.pump)

        def run(work: Any) -> Any:
            """As MPyC's `run`; raises the session's failure, or what is wrong with a peer's messages, when
            that ended it."""
            self._error = None
            try:
                self._check(party)
                with party.waits():
                    return type(mpc).run(mpc, work)
            except Exception as error:
                self._check(party)
                raise (self._error or error) from None

        async def nothing() -> None:
            """The session connects and closes, not MPyC."""

        mpc.run, mpc.start, mpc.shutdown = run, nothing, nothing
        return mpc

    def _remember(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """MPyC's tasks stop the loop when they fail, and the error only passes here (its text may hold
        values: not logged)."""
        error = context.get("exception")
        log.debug("MPyC: %s", type(error).__name__)
        self._error = self._error or error

    def _check(self, party: Party) -> None:
        if party.failure is not None:
            party.raise_failure()
        for bad in (self._bad, *(exchanger.bad for exchanger in self._exchangers.values())):
            if bad is not None:
                raise bad


class _Exchanger:
    """MPyC's connection to one peer, over a stream of the session: its program counter labels each message."""

    def __init__(self, loop: asyncio.AbstractEventLoop, party: Party, wire: SessionWire, peer: int) -> None:
        self._loop, self._party, self._wire, self._peer = loop, party, wire, peer
        self._messages: dict[int, bytes | asyncio.Future[bytes]] = {}
        self._unexpected = 0
        self._departed = False
        self.nbytes_sent = 0
        self.bad: CosynthError | None = None

    def send(self, label: int, payload: bytes) -> None:
        """MPyC sends `payload` under this program counter."""
        self._wire.send(self._peer, _LABEL.pack(label) + bytes(payload))
        self.nbytes_sent += len(payload)

    def receive(self, label: int) -> bytes | asyncio.Future[bytes]:
        """The payload under this program counter, or a future for it."""
        message = self._messages.pop(label, None)
        if isinstance(message, bytes):
            self._unexpected -= len(message) + _OVERHEAD
            return message
        future: asyncio.Future[bytes] = asyncio.Future(loop=self._loop)
        self._messages[label] = future
        if self._departed:
            self._fail(self._finished())
        return future

    def close_connection(self) -> None:
        """The link belongs to the session and stays."""

    def pump(self) -> None:
        """Bring the peer's messages to MPyC's loop, until the session fails or the process ends."""
        while True:
            try:
                message = self._wire.listen(self._peer)
            except CosynthError as error:
                self._call(self._fail, error)
                return
            if message is None:
                self._call(self._depart, None)
                return
            self._call(self._deliver, bytes(message))

    def _call(self, function: Any, argument: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(function, argument)

    def _depart(self, _: object) -> None:
        """The peer has said goodbye: no failure unless MPyC waits for it, now or later."""
        self._departed = True
        if any(isinstance(waiting, asyncio.Future) for waiting in self._messages.values()):
            self._fail(self._finished())

    def _finished(self) -> ProtocolAborted:
        return ProtocolAborted(
            f"Party {self._party.names[self._peer]} has finished its part while MPyC still waits for a message of it."
        )

    def _deliver(self, message: bytes) -> None:
        if len(message) < _LABEL.size:
            self._fail(
                ProtocolAborted(f"Party {self._party.names[self._peer]} sent a message without MPyC's label.")
            )
            return
        label, payload = _LABEL.unpack_from(message)[0], message[_LABEL.size :]
        waiting = self._messages.pop(label, None)
        if isinstance(waiting, asyncio.Future):
            waiting.set_result(payload)
            return
        self._unexpected += len(payload) + _OVERHEAD
        if waiting is not None or self._unexpected > _MAX_UNEXPECTED:
            self._fail(
                ProtocolAborted(f"Party {self._party.names[self._peer]} sent what MPyC did not ask for.")
            )
            return
        self._messages[label] = payload

    def _fail(self, error: CosynthError) -> None:
        """Stop MPyC's loop, now or when it next runs: MPyC itself would swallow an exception in a future and
        wait for ever."""
        self.bad = error
        self._loop.stop()
