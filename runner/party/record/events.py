"""What happens in a run, as it happens: `events.jsonl` at every party, and where the time, bytes and rounds
went.

An event is a function of public facts (`docs/reference/outputs.md`): phase, event, and fields such as the
clique selected or the parties waited for. Lines are flushed one by one, so a run that ends early leaves its
story. `Meter` attributes the wire's counters to phases; bytes and rounds depend on public sizes only.

Times. How long a party reads its table is a function of the table, and these files are passed on. The clock
of a run therefore stands at 0 until all parties have counted and reserved ("assembled"), and stands still in
phases whose work follows the length of an owner's list or of their union (`docs/design/accounts.md`). What a
party's own clock says goes to its private log.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from mpc_protocols.wire import Traffic

WITHHELD = frozenset({"input", "align"})
"""Phases of a vertical run whose traffic is a function of the owners' lists and of their union."""
UNTIMED = WITHHELD | {"connect", "agree"}
"""Its phases whose time is: in "agree", computing parties also lay out the columns of the joined records."""
OF_OWNERS = frozenset({"measure", "fit"})
"""Phases whose time follows how many rows the owners have, in a run whose owners train."""
OF_JOINED = frozenset({"fit"})
"""Phases whose traffic and time follow the size of the owners' common table, in a run that trains on it."""
PHASES = ("connect", "agree", "input", "align", "select", "measure", "fit", "sample", "report")


class EventLog:
    """Writes lines {"t", "party", "phase", "event", ...} to a file, and copies them to `echo`. Thread-safe.

    t: seconds by `clock`, to be set when there is one; 0 until then.
    """

    def __init__(self, path: Path, party: str, echo: TextIO | None = None) -> None:
        self.clock: Callable[[], float] = float
        self._party = party
        self._echo = echo
        self._file = path.open("w", encoding="utf-8")
        self._times: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def __call__(self, phase: str, event: str, **fields: Any) -> None:
        """Write one event; fields are public and JSON-able."""
        t = round(self.clock(), 4)
        line = json.dumps({"t": t, "party": self._party, "phase": phase, "event": event, **fields})
        with self._lock:
            if t:
                self._times.setdefault(phase, []).append(t)
            for stream in (self._file, self._echo):
                if stream is not None and not stream.closed:
                    stream.write(line + "\n")
                    stream.flush()

    def timeline(self) -> dict[str, list[float]]:
        """The times of the events since the clock was started, by phase."""
        with self._lock:
            return {phase: list(times) for phase, times in self._times.items()}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


PROOF_STEPS = (1 << 16, 1 << 32, 1 << 59)
"""Where the number of a run's batches of proofs is not told, one of these bounds it."""


@dataclass
class _Share:
    """What one phase has taken. shared_s: the part of wall_s that the run's clock has counted."""

    wall_s: float = 0.0
    shared_s: float = 0.0
    rounds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    proofs: int = 0


class Meter:
    """Time, rounds and bytes per phase of one party, and the clock of the run.

    Events are told when what they tell of is done: what has passed since the last mark belongs to the phase
    marked. A phase may come many times; its shares add up. `traffic` reads the party's counters, once it has
    any.

    withheld: phases whose messages follow the size of the owners' common table (WITHHELD, in a vertical run):
    recipients must not learn it, so neither bytes nor rounds of these phases are in what is handed out, nor
    in the sums. untimed: phases in which the clock stands still. `whole` has everything.
    """

    def __init__(self, withheld: frozenset[str] = frozenset(), untimed: frozenset[str] = frozenset()) -> None:
        self._withheld, self._untimed = withheld, untimed
        self._shares: dict[str, _Share] = {}
        self._since = time.monotonic()
        self._seen = Traffic()
        self._started: datetime | None = None
        self.traffic: Callable[[], Traffic] = Traffic

    def start(self, phase: str) -> None:
        """All have assembled: what has passed was `phase`, and from now on the clock runs."""
        self.mark(phase)
        self._started = datetime.now(UTC)

    @property
    def started(self) -> datetime:
        """When the clock was started; now if it was not."""
        return self._started or datetime.now(UTC)

    def clock(self) -> float:
        """Seconds of the run at the last mark."""
        return sum(share.shared_s for share in self._shares.values())

    def mark(self, phase: str) -> None:
        """Attribute time and traffic since the last mark to `phase`."""
        now, traffic = time.monotonic(), self.traffic()
        share = self._shares.setdefault(phase, _Share())
        share.wall_s += now - self._since
        if self._started is not None and phase not in self._untimed:
            share.shared_s += now - self._since
        share.rounds += traffic.rounds - self._seen.rounds
        share.bytes_sent += traffic.bytes_sent - self._seen.bytes_sent
        share.proofs += traffic.proofs - self._seen.proofs
        share.bytes_received += traffic.bytes_received - self._seen.bytes_received
        self._since, self._seen = now, traffic

    def phases(self) -> list[dict[str, Any]]:
        """run.json's `phases`, in the order of PHASES, without those that were over before the clock started
        and sent nothing."""
        found = []
        for name, share in self._ordered():
            if name in self._withheld:
                found.append({"name": name, "wall_s": 0.0, "rounds": 0, "bytes_sent": 0})
            elif share.shared_s or share.rounds or share.bytes_sent:
                found.append(
                    {
                        "name": name,
                        "wall_s": round(share.shared_s, 4),
                        "rounds": share.rounds,
                        "bytes_sent": share.bytes_sent,
                    }
                )
        return found

    def whole(self) -> list[dict[str, Any]]:
        """All phases with all their time and traffic: for the party's private log."""
        return [
            {
                "name": name,
                "wall_s": round(share.wall_s, 4),
                "rounds": share.rounds,
                "bytes_sent": share.bytes_sent,
            }
            for name, share in self._ordered()
        ]

    def sent(self) -> list[dict[str, Any]]:
        """Bytes sent per phase, as they are told to the other parties: no time of this party's is in it."""
        return [{"name": phase["name"], "bytes_sent": phase["bytes_sent"]} for phase in self.phases()]

    def totals(self) -> dict[str, int]:
        """The party's counters, as they are handed out: bytes_sent, bytes_received, rounds, proofs.

        The number of proofs bounds a chance, so none is left out. Where it follows a size that recipients
        must not learn, it is rounded up to a step of PROOF_STEPS, of which no run of a size that fits a
        machine takes more than the first.
        """
        traffic = self.traffic()
        hidden = [share for name, share in self._shares.items() if name in self._withheld]
        return {
            "bytes_sent": traffic.bytes_sent - sum(share.bytes_sent for share in hidden),
            "bytes_received": traffic.bytes_received - sum(share.bytes_received for share in hidden),
            "rounds": traffic.rounds - sum(share.rounds for share in hidden),
            "proofs": next(step for step in PROOF_STEPS if step >= traffic.proofs)
            if any(share.proofs for share in hidden)
            else traffic.proofs,
        }

    def _ordered(self) -> list[tuple[str, _Share]]:
        return [(name, self._shares[name]) for name in PHASES if name in self._shares]
