"""The preflight, a meeting of the parties without a run: every pair of parties proves who they are and
compares the study (`docs/design/session.md` 3).

For `check --connect`. The links are those of a run: who listens, who dials, greetings, TLS 1.3 with both
identities, HELLO. Then each side knows what a run would end with on this link, and so does the other: a
certificate that one side does not accept is refused at the other too (a TLS alert, or an ABORT frame). Unlike
in a run, one link's failure ends nothing, and nothing follows the HELLO: no nonce is confirmed, no key drawn,
no session made.

It waits for the others until the deadline of a run. Until it has met all of them it goes on meeting those
that it has met, so that whoever corrects something and starts again is met again; only what changes is told.
One that started again just before the last one was met would wait in vain for a party that is through: so it
stays until it has met those again that it met some time ago, for LINGER_S at most.

A preflight and a run do not meet: their greetings begin differently, each says so, drops the other's
connection and tries again, as with any stranger. So a check cannot end a run that is waiting. Threat model
and who learns what: as at a run's start (`identity`, `agreement`); an announcement is not made. Unlike a run,
a check tells what somebody claimed who did not prove it: a stranger who knows a party's name can make it say
something wrong of that party, and nothing else.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from mpc_protocols.errors import CosynthError, PeerIdentity, PeerLost, PeerUnreachable, ProtocolAborted
from parties.session.admission.agreement import Agreement
from parties.session.admission.config import SessionConfig
from parties.session.admission.connect import Connector
from parties.session.admission.identity import PREFLIGHT, own_identity_or_doubt, refused, refuses
from parties.session.transport import frames
from parties.session.transport.channel import Channel, Closed
from parties.session.transport.frames import HEADER, BadFrame, Kind
from parties.session.transport.sockets import close_gently

AGAIN_S = 2.0
"""Until a party that was met is dialled again."""
LINGER_S = 3.0
"""Longer than AGAIN_S and the pause between two attempts of one who dials; a party that is there is met in
that time."""
_FRESH_S = 0.2
"""A party that was met so shortly ago has not started again since."""
_FIRST_S = 1.0
"""For parties that are there already; then it reports whom it waits for, every _REPORT_S."""
_REPORT_S = 10.0
_LINK_S = 10.0
_MAX_DOUBTS = 32
"""Most different claims, not proved, that are told; strangers can make any number of them."""


@dataclass(frozen=True)
class Met:
    """What came of the link to `name`: None, or what a run would end with."""

    name: str
    error: CosynthError | None


@dataclass(frozen=True)
class Waiting:
    """Whom this party waits for, and what its last attempt met with where it is the one that dials; seconds
    waited."""

    parties: tuple[tuple[str, str], ...]
    seconds: float


def meet(config: SessionConfig, linger_s: float = LINGER_S) -> Iterator[Met | Waiting]:
    """Meet every party that this one has a link with in a run, as it comes; what is new, as it is. Ends when
    all have been met, or after config.connect_s with a `PeerUnreachable` for each that has not.

    Raises `PeerIdentity` (this party's own certificate) once the others have been told, or after linger_s,
    and `PeerUnreachable` (its own address) at once.
    """
    loop = asyncio.SelectorEventLoop()
    preflight = None
    try:
        preflight = _Preflight(loop, config, linger_s)
        loop.run_until_complete(preflight.open())
        while (news := loop.run_until_complete(preflight.next())) is not None:
            yield news
    finally:
        if preflight is not None:
            loop.run_until_complete(preflight.close())
        loop.close()


class _Preflight:
    """All links of one party. Its methods run in the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, config: SessionConfig, linger_s: float) -> None:
        self._loop, self._config, self._linger_s = loop, config, linger_s
        own = replace(own_identity_or_doubt(config), magic=PREFLIGHT)
        self._doubt = own.doubt
        self._connector = Connector(own, self._linked, self._failed, self._doubted)
        self._began = loop.time()
        self._outcomes: dict[int, str | None] = {}
        self._met_at: dict[int, float] = {}
        self._through: float | None = None
        self._news: asyncio.Queue[Met] = asyncio.Queue()
        self._links: set[asyncio.Task[None]] = set()
        self._doubts: set[tuple[int, str]] = set()
        self._reported = 0.0

    async def open(self) -> None:
        """Listen and dial; with a certificate that is not in order, only to say so. Raises `PeerIdentity`
        then."""
        if not self._doubt:
            await self._connector.open()
            return
        with suppress(PeerUnreachable, TimeoutError):
            await self._connector.open()
            async with asyncio.timeout(self._linger_s):
                while not self._connector.met.issuperset(self._config.peers):
                    self._connector.progress.clear()
                    await self._connector.progress.wait()
        raise PeerIdentity(self._doubt)

    async def next(self) -> Met | Waiting | None:
        """What is new; None when there will be nothing more."""
        while True:
            if not self._news.empty():
                return self._news.get_nowait()
            missing = [number for number in self._config.peers if number not in self._outcomes]
            if not missing:
                if (rest := self._lingering()) <= 0:
                    return None
                with suppress(TimeoutError):
                    return await asyncio.wait_for(self._news.get(), rest)
                continue
            now = self._loop.time() - self._began
            if now >= self._config.connect_s:
                return self._absent(missing[0])
            tell = self._reported + (_REPORT_S if self._reported else _FIRST_S)
            if now >= tell:
                self._reported = now
                names, reasons = self._config.numbered, self._connector.reasons
                return Waiting(
                    tuple((names[number].name, reasons.get(number, "")) for number in missing), now
                )
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._news.get(), min(tell, self._config.connect_s) - now)

    def _lingering(self) -> float:
        """Seconds to stay for parties that may have started again since they were met; looked at again when
        one is met."""
        now = self._loop.time()
        if self._through is None:
            self._through = max(self._met_at.values(), default=now)
        in_time = now - self._began < self._config.connect_s
        again = in_time and any(at < self._through - _FRESH_S for at in self._met_at.values())
        return min(self._through + self._linger_s - now, AGAIN_S / 10) if again else 0.0

    def _absent(self, number: int) -> Met:
        """One that has not come."""
        peer, config = self._config.numbered[number], self._config
        why = self._connector.reasons.get(number, "")
        if number in config.dials:
            reached = f" ({why})" if why else ""
            words = (
                f"Party {peer.name} did not answer at {peer.address} within {config.connect_s:g} s{reached}"
            )
        else:
            words = f"Party {peer.name} did not come to {config.own.address} within {config.connect_s:g} s"
        self._outcomes[number] = words
        return Met(
            peer.name,
            PeerUnreachable(
                f"{words}; have `check --connect` started there at the same time, and see that the "
                "address is right and no firewall in between."
            ),
        )

    async def close(self) -> None:
        """End all links; what the others are still to read is let through first."""
        self._connector.close()
        if under_way := {*self._links, *self._connector.parting}:
            await asyncio.wait(under_way, timeout=AGAIN_S)
        rest = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    # Links.

    def _failed(self, error: CosynthError, number: int) -> None:
        self._settle(number, error)

    def _doubted(self, error: CosynthError, number: int | None, host: str) -> None:
        """Report it as it is claimed: it ends nothing, and most likely that party has made a mistake."""
        claimed = self._config.number if number is None else number
        if len(self._doubts) < _MAX_DOUBTS or (claimed, error.sentence) in self._doubts:
            self._doubts.add((claimed, error.sentence))
            self._settle(claimed, error)

    def _linked(self, number: int, channel: Channel) -> None:
        task = self._loop.create_task(self._compare(number, channel))
        self._links.add(task)
        task.add_done_callback(self._links.discard)

    def _settle(self, number: int, error: CosynthError | None) -> None:
        """Tell what is new of this link, and be ready to meet its party again.

        That a party which was met is through, and leaves while it is being met again, is nothing new.
        """
        outcome = None if error is None else error.sentence
        self._met_at[number] = self._loop.time()
        # (this party's own number stands for somebody who is not in the study)
        left = isinstance(error, PeerLost) and number in self._outcomes
        if not left and (number not in self._outcomes or self._outcomes[number] != outcome):
            self._outcomes[number] = outcome
            self._news.put_nowait(Met(self._config.numbered[number].name, error))
        self._loop.call_later(AGAIN_S, self._connector.again, number)

    async def _compare(self, number: int, channel: Channel) -> None:
        """Exchange HELLO with a party that has proved who it is, and part."""
        try:
            async with asyncio.timeout(_LINK_S):
                error = await self._hear(number, channel)
        except TimeoutError:
            error = PeerUnreachable(
                f"Party {self._config.numbered[number].name} proved who it is and then said nothing for "
                f"{_LINK_S:.0f} s; have it start again."
            )
        self._settle(number, error)
        await close_gently(channel.sock)

    async def _hear(self, number: int, channel: Channel) -> CosynthError | None:
        """What is wrong with what this party says; None if nothing is."""
        name = self._config.numbered[number].name
        agreement = Agreement(
            self._config, lambda _, kind, payload: channel.put(frames.control(kind, payload))
        )
        try:
            agreement.greet(number)
            channel.flush()
            header = frames.parse(await _exactly(channel, HEADER.size))
            payload = await _exactly(channel, header.length)
            if header.kind is not Kind.HELLO:  # an ABORT: it does not take this party for what it says
                return refused(self._config, name)
            agreement.on_frame(number, header.kind, payload)
        except Closed:
            return PeerLost(
                f"Party {name} closed the connection before it had said which study it has; have it start again."
            )
        except ssl.SSLError as error:
            return (
                refused(self._config, name)
                if refuses(error)
                else ProtocolAborted(
                    f"Party {name} broke the TLS connection ({error.reason or 'no reason given'})."
                )
            )
        except BadFrame as error:
            return ProtocolAborted(
                f"Party {name} sent {error}; install releases of one protocol version everywhere."
            )
        except CosynthError as error:
            return error
        return None


async def _exactly(channel: Channel, size: int) -> bytes:
    """The next bytes of a link. Raises `Closed`."""
    loop, view, filled = asyncio.get_running_loop(), memoryview(bytearray(size)), 0
    while filled < size:
        try:
            filled += channel.read_into(view[filled:])
        except BlockingIOError:
            readable = loop.create_future()
            loop.add_reader(channel.sock, readable.set_result, None)
            try:
                await readable
            finally:
                loop.remove_reader(channel.sock)
    return bytes(view)
