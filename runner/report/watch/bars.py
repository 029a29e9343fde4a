"""A run as bars on a terminal: one a phase, with the round, the budget that is spent, and the time that is
left.

The bar of the rounds goes by the rounds that the study asks for or, where these are adaptive, by the budget;
the time that is left is that at the pace so far. Every party sees its own: one that obeys the leader's steps
counts those, a contributor sees that it waits.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from runner.report.watch.story import Member, Story
from synth.budget.rounding import rounded_up

PHASES = {
    "connect": "connect",
    "agree": "agree",
    "input": "share counts",
    "align": "join records",
    "select": "select, measure, fit",
    "sample": "sample",
    "report": "write results",
}
"""Bars, by the phase that begins them; what comes in turn has one together."""
_TOGETHER = {"measure": "select", "fit": "select"}


class Bars:
    """Bars that live until `close`. story: what they show; `show` after each event."""

    def __init__(self, story: Story, console: Console | None = None) -> None:
        self._story = story
        self._progress = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(bar_width=20, style="bright_black", complete_style="cyan", finished_style="green"),
            TextColumn("{task.fields[words]}"),
            console=console or Console(),
            refresh_per_second=4,
        )
        self._tasks: dict[str, TaskID] = {}
        self._progress.start()

    def show(self) -> None:
        """Draw the story as it stands."""
        story = self._story
        seen = {_TOGETHER.get(phase, phase) for phase in story.phases}
        current = _TOGETHER.get(story.phase, story.phase)
        order = [phase for phase in PHASES if phase in seen]
        for phase in order:
            if phase not in self._tasks:
                self._tasks[phase] = self._progress.add_task(PHASES[phase], total=1.0, words="")
            past = order.index(phase) < (order.index(current) if current in order else len(order))
            share = 1.0 if past or story.finished else self._share(phase)
            self._progress.update(self._tasks[phase], completed=share, words=words(story, phase))

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._progress.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the bars as they are."""
        self._progress.stop()

    def _share(self, phase: str) -> float:
        if phase == "select":
            return self._story.share
        members: list[Member] = list(self._story.members.values())
        if phase == "connect" and members:
            return sum(not member.waits_for for member in members) / len(members)
        if phase == "input" and members:
            return sum(member.counted for member in members) / len(members)
        return 0.0


def words(story: Story, phase: str) -> str:
    """What stands behind a bar."""
    if phase == "select":
        parts = []
        if story.round:
            parts.append(f"round {story.round}" + (f" of {story.rounds}" if story.rounds else ""))
        if story.epsilon:
            parts.append(f"epsilon {rounded_up(story.epsilon, 3):g} of {story.study['epsilon']:g}")
        if (left := story.left_s) is not None:
            parts.append(f"about {duration(left)} left")
        sent = sum(member.sent for member in story.members.values())
        if sent:
            parts.append(f"{sent / 1e6:.2f} MB sent")
        return ", ".join(parts)
    if phase in ("connect", "input") and story.waited_for and story.phase == phase:
        return f"waiting for {', '.join(story.waited_for)}"
    if phase == "report" and story.rows is not None:
        return f"{story.rows:,} rows"
    return ""


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
