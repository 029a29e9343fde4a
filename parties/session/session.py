"""A party's session from the first connection to the last goodbye (`docs/design/session.md`).

The main thread runs an asyncio loop that moves bytes, keeps heartbeats and watches for silence and signals;
the party's work runs in a daemon thread and sees only the wire. Every end goes the same way: the first cause
is recorded, all pending calls of all threads raise it, the peers are told (an exit code and a party's number,
never a text), the links are closed so that the peers can still read that, and the cause is raised from
`run_session`.

Who learns what: peers learn that this party stopped, when, and the class of the reason (for example: budget
refused); before all have assembled (`SessionWire.all_assembled`) they do not learn the class of a reason of
its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, NoReturn, TypeVar, cast

from mpc_protocols.errors import (
    BadInput,
    CosynthError,
    Interrupted,
    PeerIdentity,
    PeerLost,
    PeerUnreachable,
    ProtocolAborted,
)
from mpc_protocols.functionality import Observe
from mpc_protocols.process.resources import lacking
from mpc_protocols.process.threads import start_thread
from parties import mpyc_environment
from parties.session.admission.agreement import Agreement
from parties.session.admission.config import SessionConfig
from parties.session.admission.connect import Connector
from parties.session.admission.identity import Identity, ended, own_identity_or_doubt, refused, refuses
from parties.session.ending import KEPT, WITHDREW, Signals, error_of
from parties.session.party import Party, SessionWire, Tap
from parties.session.transport import frames, link
from parties.session.transport.channel import Channel
from parties.session.transport.frames import BadFrame, Kind
from parties.session.transport.inbox import Inbox
from parties.session.transport.link import Link
from parties.session.transport.reading import Reading
from parties.session.transport.sockets import in_thread

log = logging.getLogger("cosynth.session")

T = TypeVar("T")

HEARTBEAT_S = 1.0
_FLUSH_S = 2.0
_WORKER_S = 3.0
_EXPLAIN_S = 1.0
_LINGER_S = 3.0
_SWITCH_S = 0.001
_MAX_DOUBTS = 8
"""Most events about claims that were not proved; strangers can make any number of them."""


def run_session(
    config: SessionConfig,
    body: Callable[[SessionWire], T],
    observe: Observe,
    tap: Tap | None = None,
    local_work: Callable[[], None] | None = None,
) -> T:
    """Connect, agree, run `body(wire)` in a worker thread, say goodbye; what `body` returned.

    local_work: work that starts at once in a thread of its own, while the parties connect (reading this
    party's table); `body` begins when it is done, and what it raises ends the session at that moment, as if
    `body` had raised it.

    Blocks; call it in the main thread. SIGINT and SIGTERM become `Interrupted` at any moment. Raises what
    `body` raised or the first cause seen by any party: `PeerUnreachable`, `PeerIdentity`, `StudiesDiffer`,
    `ProtocolAborted`, `PeerLost`, `Interrupted`. A `body` stuck in a long computation does not hold this up
    for more than a few seconds: it is left behind in its daemon thread; then leave the process by `leave`.
    """
    mpyc_environment.settle()
    interval = sys.getswitchinterval()
    loop = asyncio.SelectorEventLoop(None if config.way_in is None else config.way_in.selector())
    try:
        sys.setswitchinterval(_SWITCH_S)
        return loop.run_until_complete(_Session(loop, config, body, observe, tap, local_work).run())
    finally:
        sys.setswitchinterval(interval)
        _cancel_all(loop)
        loop.close()


def leave(code: int) -> NoReturn:
    """End the process now, whatever other threads compute; standard streams and logs are flushed first."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class _Session(Generic[T]):
    """One run. All methods belong to the loop's thread, except those of the `Party` it holds."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: SessionConfig,
        body: Callable[[SessionWire], T],
        observe: Observe,
        tap: Tap | None,
        local_work: Callable[[], None] | None,
    ) -> None:
        self._loop, self._config, self._body, self._observe = loop, config, body, observe
        self._local_work = local_work
        self._names = [peer.name for peer in config.numbered]
        self._reading = Reading(loop)
        self._party = Party(config.number, self._names, len(config.computing), self._reading, tap)
        self._agreement = Agreement(
            config, lambda peer, kind, payload: self._party.links[peer].control(kind, payload)
        )
        self._over = asyncio.Event()
        self._byes: set[int] = set()
        self._bye_changed = asyncio.Event()
        self._finished = self._interrupted = False
        self._own: Identity | None = None
        self._last_words = frames.abort(1, config.number)
        self._closing: list[asyncio.Task[None]] = []
        self._doubts: set[tuple[int | None, str]] = set()
        self._connector: Connector | None = None
        self._loading: asyncio.Task[Any] | None = None
        self._outcome: asyncio.Future[T] | None = None
        loop.set_exception_handler(
            lambda _, context: log.debug("%s", type(context.get("exception")).__name__)
        )

    async def run(self) -> T:
        with Signals(self._loop, self._config.me, self._stop):
            beat = asyncio.ensure_future(self._beat())
            local_work_done = self._loop.create_future()
            try:
                if self._local_work is not None:
                    start_thread(
                        self._run_local_work, self._local_work, local_work_done, name="cosynth-local-work"
                    )
                else:
                    local_work_done.set_result(None)
                await self._unless_over(self._connect())
                await self._unless_over(local_work_done)
                outcome = await self._work()
                await self._unless_over(self._say_goodbye())
                self._end_links(None)
                return outcome
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self._stop(error)
                await self._tell_latecomers()
                await self._await_worker()
                raise (self._party.failure or error) from None
            finally:
                beat.cancel()
                if self._connector is not None:
                    self._connector.close()
                await asyncio.gather(*self._closing, *(self._connector.parting if self._connector else ()))
                if self._loading is not None:  # a thread in the middle of an import had better finish it
                    await asyncio.wait([self._loading], timeout=_FLUSH_S)
                self._reading.close()

    # Phases.

    async def _connect(self) -> None:
        own = self._own = own_identity_or_doubt(self._config)
        self._party.lapse = lambda: None if (expired := own.expired()) is None else ended(expired)
        self._connector = connector = Connector(
            own, self._linked, lambda error, culprit: self._stop(error, culprit=culprit), self._doubted
        )
        if own.doubt:  # the others hear it, as far as they come soon (`_tell_latecomers`)
            with suppress(PeerUnreachable):
                await connector.open()
            raise PeerIdentity(own.doubt)
        watch = asyncio.ensure_future(self._report_waiting())
        try:
            async with asyncio.timeout(self._config.connect_s):
                await connector.open()
                if self._config.own.role == "compute":
                    self._loading = asyncio.ensure_future(in_thread(self._load_mpyc))
                self._party.secrets, self._party.mpyc = await self._agreement.run(self._loading)
        except TimeoutError:
            self._missing()
        finally:
            watch.cancel()
        connector.close()
        self._party.session_id = self._agreement.session_id
        self._party.announcements = self._agreement.announcements
        self._observe("agree", "agreed", session=self._party.session_id.hex(), parties=self._names)

    def _load_mpyc(self) -> Any:
        from parties.session import mpyc_runtime

        return mpyc_runtime.load(self._config.number, len(self._config.computing))

    def _missing(self) -> NoReturn:
        """The deadline has passed: say for whom this party waited, and why it did not meet it."""
        seconds, missing = self._config.connect_s, self._agreement.missing()
        culprit = (missing or self._agreement.undecided() or [self._config.number])[0]
        name = self._names[culprit]
        if missing:
            also = f", nor did {', '.join(self._names[p] for p in missing[1:])}" if missing[1:] else ""
            why = self._connector.reasons.get(culprit, "") if self._connector else ""
            error = PeerUnreachable(
                f"Party {name} at {self._config.numbered[culprit].address} did not come within "
                f"{seconds:.0f} s{also}{f' ({why})' if why else ''}; start it, or check its address."
            )
        else:
            error = PeerUnreachable(f"Party {name} came, but did not meet all others within {seconds:.0f} s.")
        self._stop(error, culprit=culprit)
        raise error

    def _doubted(self, error: CosynthError, number: int | None, host: str) -> None:
        """Somebody claimed to be a party and did not prove it: an event, for it may be that party's mistake;
        no more."""
        if (number, error.sentence) in self._doubts or len(self._doubts) == _MAX_DOUBTS:
            return
        self._doubts.add((number, error.sentence))
        claimed = "a party of another study" if number is None else f"party {self._names[number]}"
        log.warning("who came from %s and said to be %s was refused: %s", host, claimed, error.sentence)
        self._observe("connect", "refused", source=host, claimed=claimed, why=error.sentence)

    async def _report_waiting(self) -> None:
        told: list[int] | None = None
        while True:
            missing = self._agreement.missing()
            if missing and missing != told:
                self._observe("connect", "waiting", **{"for": [self._names[p] for p in missing]})
            told = missing
            await asyncio.sleep(0.5)

    async def _work(self) -> T:
        self._outcome = self._loop.create_future()
        start_thread(self._run_body, name="cosynth-body")
        return cast(T, await self._unless_over(self._outcome))

    def _run_body(self) -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = self._body(SessionWire(self._party))
        except BaseException as caught:  # re-raised by run_session
            error = caught
        with suppress(RuntimeError):  # the loop is closed: this thread was left behind
            self._loop.call_soon_threadsafe(self._body_done, value, error)

    def _run_local_work(self, local_work: Callable[[], None], done: asyncio.Future[None]) -> None:
        error: BaseException | None = None
        try:
            local_work()
        except BaseException as caught:  # re-raised by run_session
            error = caught
        with suppress(RuntimeError):  # the loop is closed: this thread was left behind
            self._loop.call_soon_threadsafe(self._local_work_done, error, done)

    def _local_work_done(self, error: BaseException | None, done: asyncio.Future[None]) -> None:
        if error is not None:
            self._stop(error)
        elif not done.done():
            done.set_result(None)

    def _body_done(self, value: T | None, error: BaseException | None) -> None:
        if self._outcome is None or self._outcome.done():
            return
        if error is None:
            self._outcome.set_result(value)  # type: ignore[arg-type]
        else:
            self._outcome.set_exception(error)

    async def _tell_latecomers(self) -> None:
        """Who has not met all others yet stays a moment, so that they hear why there is no run instead of
        waiting in vain."""
        connector = self._connector
        if connector is None or connector.closed or isinstance(self._party.failure, PeerUnreachable):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while not (self._interrupted or connector.met.issuperset(self._config.peers)):
                    connector.progress.clear()
                    await connector.progress.wait()

    async def _await_worker(self) -> None:
        """Give the body a moment to notice (it may write its last lines); it is a daemon and can be left
        behind."""
        outcome = self._outcome
        if outcome is not None:
            patience = 1.0 if isinstance(self._party.failure, Interrupted) else _WORKER_S
            await asyncio.wait([outcome], timeout=patience)
            if outcome.done() and not outcome.cancelled():
                outcome.exception()  # seen

    async def _say_goodbye(self) -> None:
        self._finished = True
        for peer in self._config.peers:
            self._party.links[peer].goodbye()
        try:
            async with asyncio.timeout(self._config.closing_s):
                while len(self._byes) < len(self._config.peers):
                    self._bye_changed.clear()
                    await self._bye_changed.wait()
                while not all(each.idle or each.ended for each in self._party.links.values()):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            late = ", ".join(
                self._names[p]
                for p in self._config.peers
                if p not in self._byes or not self._party.links[p].idle
            )
            raise PeerLost(
                f"Party {late} did not finish within {self._config.closing_s:.0f} s of this one."
            ) from None

    async def _unless_over(self, work: Any) -> Any:
        """The work's result, or the recorded failure as soon as there is one."""
        task, over = asyncio.ensure_future(work), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not (self._over.is_set() and task.exception()):
                return task.result()
            assert self._party.failure is not None
            raise self._party.failure
        finally:
            over.cancel()
            if task is not self._outcome:
                task.cancel()

    # Ends.

    def _stop(self, error: BaseException, code: int | None = None, culprit: int | None = None) -> None:
        """Record the cause, wake everybody, tell the peers: `code` (by default the error's) and who caused it
        (this party)."""
        if isinstance(error, BadInput) and culprit is None:
            culprit = error.contributors[0]
        if isinstance(error, Interrupted):
            self._interrupted = True
            if self._connector is not None:
                self._connector.progress.set()
        if self._party.fail(error):
            own = (error if isinstance(error, CosynthError) else lacking(error) or CosynthError).exit_code
            if own in KEPT and not self._party.assembled:
                own = WITHDREW
            self._last_words = frames.abort(
                own if code is None else code, self._config.number if culprit is None else culprit
            )
            self._over.set()
        self._end_links(self._last_words)

    def _end_links(self, last: bytes | None) -> None:
        for each in self._party.links.values():
            self._end_link(each, last)

    def _end_link(self, each: Link, last: bytes | None) -> None:
        if not each.ended:
            each.end(last)
            self._closing.append(asyncio.ensure_future(each.close(_FLUSH_S)))

    # Links (Hub).

    def _linked(self, number: int, channel: Channel) -> None:
        made = Link(
            self._loop, channel, number, self._names[number], self, self._reading, self._config.way_in
        )
        self._party.links[number] = made
        if self._over.is_set():  # too late, but it is to hear why
            self._end_link(made, self._last_words)
            return
        made.start()
        self._observe("connect", "connected", peer=self._names[number])
        self._agreement.greet(number)

    def inbox(self, peer: int, stream: int) -> Inbox:
        if not self._agreement.ready(peer):
            raise BadFrame("a message out of turn")
        return self._party.inbox(peer, stream)

    def waiting(self) -> bool:
        return self._party.waiting()

    def depart(self, peer: int) -> None:
        self._party.depart(peer)

    def on_frame(self, source: Link, kind: Kind, payload: bytes) -> None:
        if kind is Kind.ABORT:
            code, culprit = frames.parse_abort(payload)
            self._stop(error_of(self._config, source, code, culprit), code, culprit)
        elif kind is Kind.BYE:
            if not self._agreement.ready(source.number):
                raise BadFrame("a BYE frame out of turn")
            self._byes.add(source.number)
            self._bye_changed.set()
        else:
            self._agreement.on_frame(source.number, kind, payload)

    def lost(self, source: Link, error: CosynthError | ssl.SSLError | None) -> None:
        if source.ended:
            return
        if error is None and self._finished and source.number in self._byes:
            self._end_link(source, None)  # it has all goodbyes, this party's too
            return
        if isinstance(error, ssl.SSLError) and refuses(error):
            self._stop(refused(self._config, source.name))
            return
        if isinstance(error, ssl.SSLError | None) and self._again(source):
            return
        if isinstance(error, ssl.SSLError):
            error = ProtocolAborted(
                f"The TLS connection with party {source.name} broke ({error.reason or 'no reason given'}): "
                "bytes were changed on the way, or one side's software is at fault."
            )
        if error is None and not self._agreement.ready(source.number):
            # it left while the parties were meeting, perhaps because of a third one, who can say why
            self._end_link(source, None)
            self._loop.call_later(
                _EXPLAIN_S, self._stop, link.connection_closed(source.name), None, source.number
            )
            return
        self._stop(error or link.connection_closed(source.name), culprit=source.number)

    def _again(self, source: Link) -> bool:
        """Whether a link that this party opened is opened anew: it ended before a word was heard on it, as it
        does when the other side had to give up the connection before it had seen who this is."""
        connector = self._connector
        if connector is None or connector.closed or self._over.is_set():
            return False
        if source.number not in self._config.dials or source.number not in self._agreement.missing():
            return False
        self._end_link(source, None)
        connector.again(source.number)
        return True

    async def _beat(self) -> None:
        """Heartbeats, and the limit on silence. A pause of this very process is not held against the peers."""
        limit, answer = self._config.silence_s, self._config.answer_s
        given = self._config.deadline_s
        deadline = left = None if callable(given) else given
        pause = min(HEARTBEAT_S, limit / 3)
        last = self._loop.time()
        while True:
            await asyncio.sleep(pause)
            now = self._loop.time()
            stalled = now - last - pause
            last = now
            for each in tuple(self._party.links.values()):
                if each.ended:
                    continue
                if stalled > pause:
                    each.heard_at += stalled
                if now - each.heard_at > limit:
                    self._stop(link.silent(each.name, limit), culprit=each.number)
                    return
                each.ping()
            if self._own is not None and (expired := self._own.expired()) is not None:
                self._stop(ended(expired), culprit=self._party.names.index(expired.party))
                return
            if self._party.assembled and given is not None:
                if left is None and callable(given):
                    deadline = left = given()
                left = (left or 0.0) - pause  # a pause of this very process does not count
                if left < 0:
                    self._stop(link.overran(deadline or 0.0))
                    return
            if answer is not None and self._party.assembled:
                late = self._party.overdue(answer, stalled if stalled > pause else 0.0)
                if late is not None:
                    self._stop(link.owing(self._names[late], answer), culprit=late)
                    return
