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
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from mpc_protocols.process.foreign_text import printable
from runner.party.options import Progress
from runner.party.record.brief import Brief
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
            words = WORDS.get((phase, name), _plain)(event)
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


def clique_words(clique: Sequence[str], bins: Mapping[str, int] | None = None) -> str:
    """A clique as people read it. bins: of columns that are asked for over bins, their number."""
    sizes = bins or {}
    return " x ".join(f"{name} ({sizes[name]} bins)" if name in sizes else name for name in clique)


def _selected(event: Mapping[str, Any]) -> str:
    if "step" in event:
        return f"step {event['step']}: one of {event['candidates']} candidates chosen, {event['cells']:,} cells compared"
    of = f" of {event['rounds']}" if event.get("rounds") else ""
    clique = clique_words(event["clique"], event.get("bins"))
    return f"round {event['round']}{of}: {clique} (1 of {event['candidates']} candidates)"


def _measured(event: Mapping[str, Any]) -> str:
    if "cliques" in event:
        total = f", about {event['noisy_total']:,.0f} rows" if "noisy_total" in event else ""
        what = "single columns" if max(map(len, event["cliques"])) == 1 else "marginals"
        return f"round {event['round']}: {len(event['cliques'])} {what}, noise sd {event['sigma']:.3g}{total}"
    clique = clique_words(event["clique"], event.get("bins"))
    text = f"round {event['round']}: {clique}, {event['cells']:,} cells, noise sd {event['sigma']:.3g}"
    if "noisy_l1_to_model" in event:
        text += (
            f", {event['noisy_l1_to_model']:,.0f} from the model (noise alone: {event['l1_of_noise']:,.0f})"
        )
    return text


def _batch(event: Mapping[str, Any]) -> str:
    first, last = event["rounds"]
    named = "; ".join(clique_words(clique, bins) for clique, bins in event["marginals"])
    more = f" and {event['more']} more" if event["more"] else ""
    return f"round {first}{f' to {last}' if last != first else ''}: {named}{more}"


def _fitted(event: Mapping[str, Any]) -> str:
    size, steps, seconds = event["model_mb"], event["iterations"], event["seconds"]
    return f"round {event['round']}: model of {size:.2f} MiB, {steps} iterations, {seconds:.2f} s"


def _summed(event: Mapping[str, Any]) -> str:
    return (
        f"round {event['round']}: {event['marginals']} marginal{'s' * (event['marginals'] != 1)} of {event['clients']} clients, "
        f"{event['cells']:,} cells, noise sd {event['sigma']:.3g}"
    )


def _raised(event: Mapping[str, Any]) -> str:
    chosen = (
        "; ".join(clique_words(clique) for clique in event["chosen"]) or "nothing that enough clients chose"
    )
    return f"round {event['round']} of {event['rounds']}, {event['cohort']} clients: {chosen}"


WORDS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], str]] = {
    ("select", "selected"): _selected,
    ("select", "exhausted"): lambda event: (
        f"{event['charged']} selections were paid and {event['found']} made: no candidate was left for more"
    ),
    ("select", "left_out"): lambda event: (
        f"round {event['round']}: {clique_words(event['clique'], event['bins'])} does not fit beside the others: not measured"
    ),
    ("select", "fallback"): lambda event: str(event["reason"]),
    ("measure", "measured"): _measured,
    ("measure", "batch"): _batch,
    ("measure", "total"): lambda event: (
        f"about {event['noisy_total']:,.0f} rows, noise sd {event['sigma']:.3g}"
    ),
    ("measure", "estimates"): lambda event: (
        f"{event['pairs']} pairs across owners, noise sd {event['sd']:.3g} a count: "
        f"{len(event['joined'])} told from independence"
    ),
    ("measure", "summed"): _summed,
    ("agree", "arriving"): lambda event: f"waiting for round {event['round']} of arrivals to close",
    ("agree", "closed"): lambda event: (
        (f"round {event['round']} of arrivals" if "round" in event else "the collection")
        + f" is closed with {event['bundles']} bundles"
    ),
    ("select", "voted"): lambda event: (
        f"round {event['round']}: {event['cohort']} clients chose, each one of {event['candidates']} candidates"
    ),
    ("fit", "raised"): _raised,
    ("fit", "fitted"): _fitted,
    ("fit", "trained"): lambda event: (
        f"{event['round']:,} of {event['rounds']:,} rounds of training"
        if "round" in event
        else f"{' and '.join(event['owners'])} have trained their halves of the model"
    ),
    ("fit", "epoch"): lambda event: (
        f"{event['party']} has been through the rows {event['number']} of {event['of']} times"
    ),
    ("measure", "opened"): lambda event: f"step {event['step']}: {event['cells']:,} noisy counts opened",
    ("connect", "waiting"): lambda event: f"{event['party']} is waiting for {', '.join(event['for'])}",
    ("connect", "connected"): lambda event: (
        " and ".join(sorted((event["party"], event["peer"]))) + " are connected"
    ),
    ("connect", "refused"): lambda event: (
        f"who came to {event['party']} from {event['source']} and said to be {event['claimed']} was refused: {event['why']}"
    ),
    ("agree", "agreed"): lambda event: (
        f"{len(event['parties'])} parties hold the same study (session {event['session'][:12]})"
    ),
    ("agree", "resumed"): lambda event: (
        f"run {event['run'][:12]}, which was interrupted, goes on: {event['opened']} steps are known"
    ),
    ("agree", "paced"): lambda event: (
        f"a message between computing parties takes {event['delay_us'] / 1000:.3g} ms"
    ),
    ("input", "counted"): lambda event: f"{event['party']} is ready; {event['custodians']} custodians",
    ("input", "assembled"): lambda event: (
        f"all {event['parties']} parties are ready; none has sent anything of its data yet"
    ),
    ("align", "started"): lambda event: (
        f"the records of {event['owners']} owners are being joined ({event['via']})"
    ),
    ("align", "aligned"): lambda event: f"the records of {event['owners']} owners are joined",
    ("input", "left_out"): lambda event: (
        f"{event['contributor']} sent counts that are those of no table: they are left out"
    ),
    ("input", "shared"): lambda event: f"{event['marginals']} marginals are shared, {event['cells']:,} cells",
    ("sample", "sampled"): lambda event: f"{event['rows']:,} synthetic rows",
    ("report", "written"): lambda event: f"{event['party']} has its results",
}
