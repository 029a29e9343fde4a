"""What the events of a run tell so far: a fold over `events.jsonl`, of one party or of several. Standard
library only.

Events are public facts (`runner.party.record.events`), so all of this may be shown to anybody. An event that
is not understood is left out: a newer version's events do not stop a display.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.party.record.event_kinds import EVENTS
from runner.party.record.events import PHASES
from synth.budget.accounting import epsilon_about

IN_TURN = frozenset({"select", "measure", "fit"})
"""Phases that come round after round."""
MAX_SELECTED = 400
"""Entries that are kept for display; the count goes on."""


@dataclass
class Member:
    """One party: bytes it has sent, what it does, for whom it waits, whether it has its results; teller: its
    own events came."""

    name: str
    computes: bool = True
    sent: int = 0
    phase: str = "connect"
    waits_for: list[str] = field(default_factory=list)
    counted: bool = False
    done: bool = False
    teller: bool = False

    def to_json(self) -> dict[str, Any]:
        """What the page shows of it."""
        return {
            **{name: value for name, value in vars(self).items() if name != "teller"},
            "told": self.teller,
        }


@dataclass
class Story:
    """The state. `only`: the party whose process this is; else the leader tells of rounds or, where one
    party's events are all there are, that one."""

    only: str | None = None
    study: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    phases: dict[str, int] = field(default_factory=dict)
    phase: str = "connect"
    t: float = 0.0
    round: int = 0
    rounds: int | None = None
    rho: float = 0.0
    rho_cap: float = 0.0
    selected: list[dict[str, Any]] = field(default_factory=list)
    picks: int = 0
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: int | None = None
    began: float | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """One more event; what is not one is left out."""
        try:
            phase, name, party = str(event["phase"]), str(event["event"]), str(event["party"])
            member = self.members.setdefault(party, Member(party))
            member.teller = True
            if isinstance(sent := event.get("bytes_sent"), int):
                member.sent = max(member.sent, sent)
            if phase not in PHASES:
                return
            member.phase = phase
            self.phases[phase] = self.phases.get(phase, 0) + 1
            later = PHASES.index(phase) > PHASES.index(self.phase)
            if later or (party == self._teller and phase in IN_TURN and self.phase in IN_TURN):
                self.phase = phase
            self.t = max(self.t, float(event.get("t", 0.0)))
            self._apply(member, phase, name, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            return

    @property
    def _teller(self) -> str | None:
        """Whose account of rounds counts."""
        leader, tellers = (
            self.study.get("leader"),
            [name for name, member in self.members.items() if member.teller],
        )
        return self.only or (tellers[0] if len(tellers) == 1 else leader)

    @property
    def tells_rounds(self) -> bool:
        """Whether what is selected is known from these events: the leader tells of it, a party that obeys
        does not."""
        leader = self.study.get("leader")
        return leader is None or self._teller == leader

    def _apply(self, member: Member, phase: str, name: str, event: Mapping[str, Any]) -> None:
        if name == "begun":
            self.study = {key: event[key] for key in EVENTS["connect", "begun"].fields.split()}
            self.rounds = event["rounds"] if isinstance(event["rounds"], int) else None
            for party in event["parties"]:
                self.members.setdefault(party["name"], Member(party["name"])).computes = bool(
                    party["computes"]
                )
        elif name == "waiting":
            member.waits_for = [str(other) for other in event["for"]]
        elif name == "connected":
            member.waits_for = [other for other in member.waits_for if other != event["peer"]]
        elif name in ("agreed", "assembled"):
            for other in self.members.values():
                other.waits_for = []
        elif name == "counted":
            member.counted = True
        elif name == "written":
            member.done, self.rows = True, int(event["rows"])
        elif member.name == self._teller:
            self._round(phase, name, event)

    def _round(self, phase: str, name: str, event: Mapping[str, Any]) -> None:
        if phase in ("select", "measure") and self.began is None:
            self.began = float(event.get("t", 0.0))
        if isinstance(event.get("rho_spent"), float):
            self.rho = max(self.rho, event["rho_spent"])
            self.rho_cap = float(event.get("rho", self.rho_cap))
        if phase == "select" and name == "selected":
            if "clique" in event:
                self.picks += 1
                self.round = int(event["round"])
                self.rounds = int(event["rounds"]) if event.get("rounds") else self.rounds
                clique = [str(column) for column in event["clique"]]
                if len(self.selected) < MAX_SELECTED:
                    self.selected.append({"round": self.round, "columns": clique})
                self._connect(clique)
            elif self._teller != self.study.get("leader"):
                self.picks += 1
                self.round = self.picks  # a party that obeys sees that something was selected, and opened
        elif phase == "measure" and name in ("measured", "reserved"):
            for clique in event.get("cliques", []) if "clique" not in event else [event["clique"]]:
                self._connect([str(column) for column in clique])

    def _connect(self, clique: list[str]) -> None:
        for one, other in itertools.combinations(sorted(clique), 2):
            self.edges[one, other] = self.edges.get((one, other), 0) + 1

    @property
    def share(self) -> float:
        """How much of the way is gone, by rounds or by budget, 0 to 1."""
        if self.finished:
            return 1.0
        by_rounds = self.round / self.rounds if self.rounds else 0.0
        by_budget = self.rho / self.rho_cap if self.rho_cap else 0.0
        return min(1.0, by_rounds or by_budget)

    @property
    def left_s(self) -> float | None:
        """Seconds that are left at the pace so far, up to the last release; None while nothing is known of
        it."""
        if self.began is None or not 0 < self.share < 1 or self.t <= self.began:
            return None
        return (self.t - self.began) * (1 - self.share) / self.share

    @property
    def finished(self) -> bool:
        """Whether all whose events come have their results."""
        tellers = [member for member in self.members.values() if member.teller]
        return bool(tellers) and all(member.done for member in tellers)

    @property
    def epsilon(self) -> float:
        """About what has been spent, in the study's terms."""
        if not (self.rho and self.study):
            return 0.0
        return float(epsilon_about(self.rho, self.study["delta"]))

    @property
    def waited_for(self) -> list[str]:
        """Who has not come, or has not read its table, as far as this is known."""
        missing = {name for member in self.members.values() for name in member.waits_for}
        if not missing and self.phase == "input" and not any(m.sent for m in self.members.values()):
            missing = {member.name for member in self.members.values() if not member.counted}
        return sorted(missing)

    def to_json(self) -> dict[str, Any]:
        """What the page shows."""
        return {
            "study": self.study,
            "phase": self.phase,
            "phases": [{"name": name, "events": self.phases.get(name, 0)} for name in PHASES],
            "t": self.t,
            "round": self.round,
            "rounds": self.rounds,
            "share": self.share,
            "left_s": self.left_s,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rho_cap": self.rho_cap,
            "selected": self.selected,
            "tells_rounds": self.tells_rounds,
            "edges": [[one, other, count] for (one, other), count in self.edges.items()],
            "parties": [member.to_json() for member in self.members.values()],
            "waited_for": self.waited_for,
            "rows": self.rows,
            "finished": self.finished,
        }
