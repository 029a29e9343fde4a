"""Why a session ends: what one party's reason to stop becomes at the others, and signals
(`docs/design/session.md` 6, `docs/reference/exit-codes.md`).

What travels is an exit code and the number of the party that caused it. The party that stopped for a reason
of its own (budget refused: 50) exits with its code, the others with 40, naming it. A reason that one party
sees in another (lost, unreachable, not who it claims to be, another study) is the same reason at everybody,
naming the same culprit.

Until all have assembled, a reason of a party's own may be an answer about its data to whoever proposed the
study: a value outside the domain, more rows than max_rows, a cap. All of these travel as WITHDREW
(`docs/design/accounts.md`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from mpc_protocols.errors import (
    CosynthError,
    Interrupted,
    PeerIdentity,
    PeerLost,
    PeerUnreachable,
    ProtocolAborted,
    StudiesDiffer,
)
from parties.session.admission.config import SessionConfig
from parties.session.admission.identity import refused
from parties.session.transport.frames import BadFrame
from parties.session.transport.link import Link

WITHDREW = 3
"""In an ABORT frame, no exit code of any process: a party does not take part, and keeps to itself why."""
REASONS = {
    1: "internal error",
    2: "wrong usage",
    10: "the study is invalid",
    20: "a party is unreachable",
    21: "a party's identity is in doubt",
    22: "the studies differ",
    30: "its data does not fit the study",
    40: "the protocol was aborted",
    41: "a party was lost",
    50: "budget refused",
    60: "its machine lacks room, memory, descriptors or leave to write",
    130: "it was interrupted",
}
"""What an exit code in an ABORT frame means, in words."""

KEPT = frozenset({1, 2, 10, 30, 50, 60})
"""Reasons of a party's own that travel as WITHDREW before all have assembled."""

_SEEN: dict[int, tuple[type[CosynthError], str]] = {
    20: (PeerUnreachable, "it waited in vain for"),
    21: (PeerIdentity, "it does not accept the identity of"),
    22: (StudiesDiffer, "its study, software or role differs from that of"),
    40: (ProtocolAborted, "it could not accept what came from"),
    41: (PeerLost, "it lost"),
}
"""Reasons one party sees in another: a third party ends with the same code and names the same culprit."""


def error_of(config: SessionConfig, source: Link, code: int, culprit: int) -> CosynthError:
    """The error at this party for an ABORT frame of another. Raises `BadFrame` if its numbers mean nothing."""
    names = [peer.name for peer in config.numbered]
    if culprit >= len(names) or code not in REASONS.keys() | {WITHDREW}:
        raise BadFrame("an ABORT frame with numbers out of range")
    name, about = source.name, names[culprit]
    if code == WITHDREW:
        return ProtocolAborted(
            f"Party {about} stopped: it refuses this study or cannot take part, and says why only at its own place; nothing of "
            "its data was sent."
        )
    if code == PeerIdentity.exit_code and culprit in (config.number, source.number):
        return (
            refused(config, name)
            if culprit != source.number
            else PeerIdentity(f"Party {name} stopped: another party refused its certificate.")
        )
    if culprit == source.number or code not in _SEEN:
        perhaps = (
            ", perhaps because of what another party sent it"
            if code == ProtocolAborted.exit_code and len(names) > 2
            else ""
        )
        return ProtocolAborted(f"Party {about} stopped: {REASONS[code]} (exit {code}){perhaps}.")
    kind, what = _SEEN[code]
    return kind(f"Party {name} stopped: {what} party {about}.")


class Signals:
    """SIGINT and SIGTERM become the session's failure while it runs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, me: str, stop: Callable[[BaseException], None]
    ) -> None:
        self._loop, self._me, self._stop = loop, me, stop
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number, what in ((signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")):
            self._before[number] = signal.getsignal(number)
            self._loop.add_signal_handler(
                number, self._stop, Interrupted(f"Party {self._me} was interrupted ({what}).")
            )

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)
