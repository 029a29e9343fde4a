"""Faults of whole processes: what befalls a party, at which moment of a run, at which party; and what must
hold afterwards.

every party that ends says so with a documented code, not by an internal error; nobody has a part of results
whatever was seen opened is on the record, and in the ledger, of every party
no process is left

The fault strikes from within (`faulty_program`), before or after one call of a function of the product, so
that the moment is that instruction and not about then.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from mpc_protocols.errors import BudgetRefused, DataRefused
from parties.budget import journal
from parties.budget.ledger import Ledger
from runner.results import outdir
from runner.review.audit.check import Profile
from runner.review.audit.subjects.processes.deployment import Deployment, End, Party, Stuck, deployed

DONE, LOST, UNREACHABLE = 0, (40, 41), 20
"""Exit codes of who has all results, of those that nothing befell but that somebody is gone, and of who waits
for it in vain."""
SILENCE_S, CONNECT_S = 6, 20
PROGRAM = ("-m", "runner.review.audit.subjects.processes.faulty_program")
"""What runs a party's program with a fault; a fault and a moment follow."""
RESULTS = frozenset(
    (outdir.TABLE, "measurements.json", "model.npz", "report.html", outdir.SIGNATURES, outdir.RUN)
)
STRUCK = "struck"
"""The file by which a party says that it has come to the moment."""


@dataclass(frozen=True)
class Fault:
    """words: what befalls the party. codes: with which it may end then, besides LOST; none: it is gone, or is
    killed in the end.

    harmless: whether the run must succeed.
    """

    key: str
    words: str
    codes: tuple[int, ...] = ()
    harmless: bool = False


@dataclass(frozen=True)
class Moment:
    """function: of the product, "module.name" or "module:class.name". after: whether it has returned. number:
    of the call."""

    key: str
    words: str
    function: str
    after: bool = False
    number: int = 1


FAULTS = (
    Fault("killed", "is killed"),
    Fault("asked", "is asked to end", (130,)),
    Fault("stopped", "is stopped until the others have ended", LOST),
    Fault("mute", "can send nothing more to one other", LOST),
    Fault("cut", "loses all its connections", LOST),
    Fault("full", "cannot write files of more than 8 kB", (60,)),
    Fault("locked", "finds its ledger locked by another program", (50,)),
    Fault("later", "has its clock set a day ahead", harmless=True),
    Fault("memory", "gets no more memory", (60,)),
    Fault("torn", "dies in the middle of a line of its journal"),
)
_STEP = "mpc_protocols.engine.step:ComputingParty"
MOMENTS = (
    Moment("greeted", "before all agree", "parties.session.admission.agreement:Agreement.run"),
    Moment("agreed", "when all have agreed", "runner.party.process:_Party._body"),
    Moment("unreserved", "before its budget is reserved", "parties.budget.ledger:Ledger.reserve"),
    Moment("reserved", "when its budget is reserved", "parties.budget.ledger:Ledger.reserve", after=True),
    Moment("shared", "when counts are shared", f"{_STEP}.prepare", after=True),
    Moment("unrecorded", "before a release is on record", "parties.budget.journal:Journal.events", number=3),
    Moment("recorded", "between a record and its opening", "parties.budget.journal:Journal.events", True, 3),
    Moment("selected", "when candidates have been selected", f"{_STEP}.select", True, 2),
    Moment("unmeasured", "before marginals are measured", f"{_STEP}.measure", number=2),
    Moment("measured", "when marginals have been measured", f"{_STEP}.measure", True, 2),
    Moment("unwritten", "before results are put in place", "runner.results.outdir.install"),
    Moment("written", "when results are in place", "runner.results.outdir.install", after=True),
)


@dataclass(frozen=True)
class Case:
    """What befalls whom, and when."""

    fault: Fault
    moment: Moment
    victim: str

    @property
    def comes(self) -> bool:
        """Whether the victim has met the others, or will."""
        return self.fault.harmless or self.moment is not MOMENTS[0]

    @property
    def words(self) -> str:
        """In a sentence."""
        return f"party {self.victim} {self.fault.words} {self.moment.words}"


def cases(profile: Profile, names: Sequence[str]) -> list[Case]:
    """Deep, all at all parties and moments; by default each fault and moment at least once, at parties in
    turn; quick, two."""
    if profile == Profile.DEEP:
        return [Case(*each) for each in product(FAULTS, MOMENTS, names)]
    if profile == Profile.QUICK:
        by_key = {moment.key: moment for moment in MOMENTS}
        return [Case(FAULTS[0], by_key["recorded"], names[0]), Case(FAULTS[4], by_key["measured"], names[1])]
    return [
        Case(FAULTS[number % len(FAULTS)], moment, names[number % len(names)])
        for number, moment in enumerate(MOMENTS)
    ]


def run_with(case: Case) -> list[str]:
    """What is wrong after a run with a fault."""
    waits = dict[str, int]() if case.comes else {"connect_s": CONNECT_S}
    with deployed(silence_s=SILENCE_S, **waits) as deployment:
        for party in deployment.parties:
            party.start(
                program=(*PROGRAM, case.fault.key, case.moment.key) if party.name == case.victim else ()
            )
        victim = deployment[case.victim]
        try:
            ends = {party.name: party.end() for party in deployment.parties if party is not victim}
            if victim.running.poll() is None and case.fault.key == "stopped":
                victim.running.send_signal(signal.SIGCONT)
            ends[case.victim] = victim.end()
        except Stuck as stuck:
            return [f"{case.words}: {stuck}"]
        if not (victim.folder / STRUCK).exists():
            return [f"{case.words}: the run never came to that ({ends[case.victim].complaint.strip()})"]
        return [f"{case.words}: {problem}" for problem in _problems(deployment, ends, case)]


def _problems(deployment: Deployment, ends: dict[str, End], case: Case) -> list[str]:
    problems = []
    for name, end in ends.items():
        party = deployment[name]
        results = RESULTS.intersection(path.name for path in party.out.glob("*"))
        if results not in (set(), RESULTS) and not (name == case.victim and end.code < 0):
            problems.append(f"party {name} has {' and '.join(sorted(results))} alone")
        if not _right(end, outdir.RUN in results, case, name == case.victim):
            problems.append(
                f"party {name} ended with {end.code} {'with' if results else 'without'} results: {end.complaint.strip()}"
            )
        if end.unforeseen:
            problems.append(f"party {name} ended by an internal error: {end.complaint.strip()}")
        if end.code == DONE and (left := [path.name for path in party.out.glob(f"{outdir.STAGING}*")]):
            problems.append(f"party {name} left {left[0]}")
    opened = max(sum("step" in event for event in party.events()) for party in deployment.parties)
    for party in deployment.parties:
        if charged(party) < opened:
            problems.append(
                f"party {party.name} has {charged(party)} releases on record, and {opened} were seen opened"
            )
        if spent(party) < opened:
            problems.append(
                f"the ledger of party {party.name} has {spent(party)} of {opened} releases that were opened"
            )
    return problems


def _right(end: End, has_results: bool, case: Case, is_victim: bool) -> bool:
    """Whether a party may end like this."""
    if end.code == DONE:
        return has_results
    if case.fault.harmless:
        return False
    lost = LOST if case.comes else (*LOST, UNREACHABLE)
    if not is_victim:
        return end.code in lost
    if not case.fault.codes:
        return end.code < 0
    return end.code in (*case.fault.codes, *lost)


def charged(party: Party) -> int:
    """Releases on record; none in a journal that cannot be read."""
    try:
        return sum(len(journal.read(path).releases) for path in party.out.glob("journal-*.jsonl"))
    except DataRefused:
        return 0


def spent(party: Party) -> int:
    """Releases in the ledger, when its runs are known to be dead; none in one that cannot be read."""
    try:
        return sum(len(entry.events) for entry in Ledger(party.folder / "ledger.db").entries())
    except BudgetRefused:
        return 0
