"""What happens in a run, as it happens: `events.jsonl` at every party, and where the time, bytes and rounds went.

An event is a function of public facts (DESIGN section 8): phase, event, and fields such as the clique selected or the parties
waited for. Lines are flushed one by one, so a run that ends early leaves its story. `Meter` attributes the wire's counters
to phases; bytes and rounds depend on public sizes only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from mpc_protocols.wire import Traffic

WITHHELD = frozenset({"input", "align"})
"""Phases of a vertical run whose traffic is a function of the owners' lists and of their union."""
PHASES = ("connect", "agree", "input", "align", "select", "measure", "fit", "sample", "report")


class EventLog:
    """Writes lines {"t", "party", "phase", "event", ...} to a file, and copies them to `echo`. Thread-safe.

    t: seconds since the log was opened.
    """

    def __init__(self, path: Path, party: str, echo: TextIO | None = None) -> None:
        self._party = party
        self._echo = echo
        self._file = path.open("w", encoding="utf-8")
        self._times: dict[str, list[float]] = {}
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, phase: str, event: str, **fields: Any) -> None:
        """Write one event; fields are public and JSON-able."""
        t = round(time.monotonic() - self._start, 4)
        line = json.dumps({"t": t, "party": self._party, "phase": phase, "event": event, **fields})
        with self._lock:
            self._times.setdefault(phase, []).append(t)
            for stream in (self._file, self._echo):
                if stream is not None and not stream.closed:
                    stream.write(line + "\n")
                    stream.flush()

    def timeline(self) -> dict[str, list[float]]:
        """The times of the events written until now, by phase."""
        with self._lock:
            return {phase: list(times) for phase, times in self._times.items()}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


class Meter:
    """Wall time, rounds and bytes sent per phase of one party.

    Events are told when what they tell of is done: what has passed since the last mark belongs to the phase marked. A phase
    may come many times; its shares add up. `traffic` reads the party's counters, once it has any.

    hidden: phases whose messages follow the size of the owners' common table (WITHHELD, in a vertical run): recipients must not
    learn it, so neither bytes nor rounds of these phases are in what is handed out, nor in the sums. `whole` has them.
    """

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        self._hidden = hidden
        self._shares: dict[str, list[float]] = {}
        self._since = time.monotonic()
        self._seen = Traffic()
        self.traffic: Callable[[], Traffic] = Traffic

    def mark(self, phase: str) -> None:
        """What has passed since the last mark was `phase`."""
        now, traffic = time.monotonic(), self.traffic()
        share = self._shares.setdefault(phase, [0.0, 0, 0, 0])
        share[0] += now - self._since
        share[1] += traffic.rounds - self._seen.rounds
        share[2] += traffic.bytes_sent - self._seen.bytes_sent
        share[3] += traffic.bytes_received - self._seen.bytes_received
        self._since, self._seen = now, traffic

    def phases(self) -> list[dict[str, Any]]:
        """run.json's `phases`, in the order of PHASES."""
        return [
            {**phase, "rounds": 0, "bytes_sent": 0} if phase["name"] in self._hidden else phase
            for phase in self.whole()
        ]

    def whole(self) -> list[dict[str, Any]]:
        """The same with nothing withheld: for the party's private log."""
        return [
            {"name": name, "wall_s": round(share[0], 4), "rounds": int(share[1]), "bytes_sent": int(share[2])}
            for name in PHASES
            if (share := self._shares.get(name))
        ]

    def totals(self) -> dict[str, int]:
        """The party's counters, as they are handed out: bytes_sent, bytes_received, rounds."""
        traffic = self.traffic()
        hidden = [share for name, share in self._shares.items() if name in self._hidden]
        return {
            "bytes_sent": traffic.bytes_sent - int(sum(share[2] for share in hidden)),
            "bytes_received": traffic.bytes_received - int(sum(share[3] for share in hidden)),
            "rounds": traffic.rounds - int(sum(share[1] for share in hidden)),
        }
