"""A run as it happens, on standard output: one line per step, tidy enough to watch and regular enough to
grep.

Events come as JSON lines, from this process (`echo`, as the stream that `EventLog` of `runner.party.record.events` copies to) or
from several party processes (`Display.feed`). Lines read `seconds  phase  what`; select, measure and fit are told once, by the
leader; the rest is told by whoever has something new to say. A reader that goes away (a closed pipe) does not end a run that has
spent privacy budget: the display falls silent. On a terminal there are bars instead (`runner.report.watch.bars`), which
load rich; lines need the standard library only.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO, cast

from mpc_protocols.process.foreign_text import printable
from runner.party.options import Progress
from runner.party.record.brief import Brief
from runner.party.record.event_kinds import words_of
from runner.report.watch.story import Story
from synth.budget.accounting import epsilon_about
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from runner.report.watch.bars import Bars
    from runner.study import Study

LEADERS = frozenset({"select", "measure", "fit", "sample"})
SHOWN_VALUES = 12


class Output:
    """Standard output that may be closed by its reader."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stdout

    def line(self, text: str) -> None:
        """Write one line at once."""
        if self._stream is None:
            return
        try:
            self._stream.write(printable(text, line=True) + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self._stream = None


class Display:
    """Turns events of any number of parties into lines."""

    def __init__(
        self, progress: Progress, study: Study, only: str | None = None, output: Output | None = None
    ) -> None:
        """only: the party whose process this is; None if events of all parties arrive."""
        self._json, self._output = progress == "json", output or Output()
        self._quiet = progress == "quiet"
        self._brief = Brief() if progress == "human" else None
        self._told_by, self._leader = only or study.leader.name, study.leader.name
        self._delta, self._epsilon = float(study.privacy.delta), float(study.privacy.epsilon)
        self._printed: set[str] = set()
        self._start = time.monotonic()
        self._story = Story(only)
        self._bars: Bars | None = None
        self._draws = (
            progress == "human"
            and output is None
            and sys.stdout.isatty()
            and os.environ.get("TERM") != "dumb"
        )

    def feed(self, line: str) -> None:
        """Show one line of a party's events; anything that is not an event is left out."""
        try:
            event = json.loads(line)
            phase, name, party = str(event["phase"]), str(event["event"]), str(event["party"])
        except (ValueError, KeyError, TypeError):
            return
        if self._quiet:
            return
        if self._json:
            self._output.line(line)
            return
        if self._draws:
            self._draw(event)
            return
        if name == "begun":
            return
        if phase in LEADERS and (party != self._told_by or (party == self._leader and "step" in event)):
            return  # a computing party's own account of a step; the leader knows more about it
        for told in (event,) if self._brief is None else self._brief.condense(phase, name, event):
            text = self._words(told["phase"], told["event"], told)
            if f"{told['phase']} {text}" not in self._printed:
                self._printed.add(f"{told['phase']} {text}")
                self.say(told["phase"], text)

    def say(self, phase: str, text: str) -> None:
        """Show a line of this program's own, unless lines are for machines."""
        if self._bars is not None:
            self._bars.say(text)
        elif not self._json and not self._quiet:
            self._output.line(f"{time.monotonic() - self._start:7.1f} s  {phase:<8} {text}")

    def close(self) -> None:
        """Leave bars as they are; lines need no end."""
        if self._bars is not None:
            self._bars.close()
            self._bars = None

    def _draw(self, event: Mapping[str, Any]) -> None:
        """On a terminal, as bars."""
        from runner.report.watch.bars import Bars

        self._story.take(event)
        if self._bars is None:
            self._bars = Bars(self._story)
        self._bars.show()

    def _words(self, phase: str, name: str, event: Mapping[str, Any]) -> str:
        try:
            words = words_of(phase, name, event) or _plain(event)
        except (KeyError, TypeError, ValueError):
            words = _plain(event)
        return ", ".join((words, *filter(None, (self._spent(event), _traffic(event)))))

    def _spent(self, event: Mapping[str, Any]) -> str:
        rho = event.get("rho_spent")
        if not isinstance(rho, int | float) or not rho > 0:
            return ""
        return f"epsilon {rounded_up(epsilon_about(rho, self._delta), 3):g} of {self._epsilon:g}"


class _Echo(io.TextIOBase):
    """A stream whose lines are events."""

    def __init__(self, display: Display) -> None:
        self._display, self._lock = display, threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            for line in text.splitlines():
                self._display.feed(line)
        return len(text)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """The process's display ends with it."""
        with self._lock:
            self._display.close()
        super().close()


def echo(progress: Progress, study: Study, party: str | None = None) -> TextIO:
    """The stream to which a process copies its own events: it shows them on standard output."""
    return cast(TextIO, _Echo(Display(progress, study, only=party)))


def _plain(event: Mapping[str, Any]) -> str:
    """An event nobody has given words to: its name, its party and its fields."""
    fields = [f"{key}={_short(value)}" for key, value in event.items() if key not in SAID]
    return " ".join([f"{event['party']}:", str(event["event"]).replace("_", " "), *fields])


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN_VALUES} more" if len(value) > SHOWN_VALUES else ""
        return ",".join(_short(item) for item in value[:SHOWN_VALUES]) + more
    return str(value)


SAID = frozenset({"t", "party", "phase", "event", "rho_spent", "rho", "bytes_sent"})


def _traffic(event: Mapping[str, Any]) -> str:
    sent = event.get("bytes_sent")
    return f"{sent / 1e6:.2f} MB sent" if isinstance(sent, int | float) else ""
