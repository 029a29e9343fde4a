"""C: what a crash leaves - what is opened stands on record before, and a run that goes on opens nothing a
second time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import MarginalOracle
from parties.budget.run_state import NAME, Opened, RunState
from runner.party.resume.resumption import Offer, continuation
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict, by_name, judged
from runner.review.audit.subjects.in_memory.arena import Codes
from runner.review.audit.subjects.in_memory.bent_wire import Way, change
from runner.review.audit.subjects.in_memory.openings import Openings, Party
from runner.review.audit.subjects.processes.faults import cases, run_with
from runner.review.audit.subjects.questions import every_kind
from runner.review.audit.subjects.subject import Subject
from runner.starting.demo import CUSTODIANS

LOUD = Fraction(25)
"""At which two draws of noise of a whole release are never the same."""
CRASHES = {Profile.QUICK: 2, Profile.DEFAULT: 8, Profile.DEEP: 100}
_RUN, _STUDY = b"the audited run!" * 2, b"the audited study" + bytes(15)


@dataclass
class _Order(Openings):
    """Of each party's thread: how much it has opened, and where less was on record."""

    begun: Counter[str] = field(default_factory=Counter)
    early: list[str] = field(default_factory=list)

    def opens(self, party: Party, picks: int) -> None:
        """Look at what is on record: the party's guard is the arena's."""
        name = threading.current_thread().name
        self.begun[name] += picks or 1
        on_record = len(party._guard.events)  # type: ignore[attr-defined]
        if on_record < self.begun[name]:
            self.early.append(f"{name} opens release {self.begun[name]} with {on_record} on record")


def order(subject: Subject) -> Finding:
    """Ask all kinds of questions; whenever a party begins to open something, look at what it has put on
    record."""
    problems, counted = [], {}
    for name, arena in subject.arenas.items():
        seen = _Order()
        with seen.watched():
            arena.run(
                lambda oracle: _ask(oracle, subject), subject.tables(arena.parties, 6), subject.coins("order")
            )
        counted[name] = seen.begun.total()
        if not seen.begun:
            return Finding(
                Verdict.UNINFORMATIVE,
                f'What backend "{arena.backend.name}" opens cannot be seen: it runs on no engine.',
            )
        if seen.early:
            problems.append(f"{name}: {len(seen.early)} openings too early: {seen.early[0]}.")
    return judged(
        problems,
        "Before each opening its event was on record at the party that opened: "
        f"{by_name(counted, '{name} {each} openings')}.",
        {"openings": counted},
    )


def _ask(oracle: MarginalOracle, subject: Subject) -> list[list[int]]:
    return [each.tolist() for each in every_kind(oracle, list(subject.sizes), LOUD, 20)[1]]


class _Crash(Exception):
    """A party is gone."""


def resume(subject: Subject) -> Finding:
    """End runs in the middle, resume them with fresh keys and coins, and compare what both attempts opened."""
    problems, figures = [], {}
    for backend in subject.distributed:
        if not backend.resumes:
            continue
        arena = subject.arena(backend)
        tables = subject.tables(arena.parties, 6)
        ran = arena.run(lambda oracle: _ask(oracle, subject), tables, subject.coins("crash"))
        ways = Counter(
            (frame.sender, frame.receiver) for frame in ran.frames if frame.sender < arena.computing
        )
        rng, ended = subject.generator(f"crashes {backend.name}"), Counter[str]()
        for number in range(CRASHES[subject.profile]):
            way = sorted(ways)[int(rng.integers(len(ways)))]
            # The first one late: before anything is opened a crash has nothing to show.
            place = way, int(rng.integers(ways[way] * (3 if number == 0 else 1) // 4, ways[way]))
            how, problem = _crashed(subject, backend, tables, place, number)
            ended[how] += 1
            if problem is not None:
                problems.append(
                    f'backend "{backend.name}", party {way[0]} gone at its message {place[1]} to party {way[1]}: {problem}'
                )
        figures[backend.name] = dict(ended)
    if not figures:
        return Finding(Verdict.UNINFORMATIVE, "No audited backend can resume a run.")
    return judged(
        problems,
        "Runs ended in the middle and resumed with other keys: everything that was opened before opens to the same again, in "
        + "; ".join(
            f"{name} {sum(each.values())} ({', '.join(f'{words} {n}' for words, n in each.items())})"
            for name, each in figures.items()
        )
        + ".",
        figures,
    )


def _crashed(
    subject: Subject,
    backend: DistributedBackend,
    tables: Sequence[Codes],
    place: tuple[Way, int],
    number: int,
) -> tuple[str, str | None]:
    """How a run that is cut at a message goes on, and what is wrong with it."""
    arena = subject.arena(backend)
    names = [f"party {me}" for me in range(arena.computing)]

    def crash(payload: bytes) -> bytes:
        raise _Crash

    with TemporaryDirectory(prefix="cosynth-audit-") as folder, ExitStack() as stack:
        places = [Path(folder) / name for name in names]
        states = []
        for name, at in zip(names, places, strict=True):
            at.mkdir()
            states.append(stack.enter_context(RunState.create(at, _STUDY, _RUN, name, "1")))
            states[-1].attempt(b"1" * 32)
        with suppress(_Crash, CosynthError):
            arena.run(
                lambda oracle: _ask(oracle, subject),
                tables,
                subject.coins(f"crash {number}"),
                change(*place, crash),
                states,
                b"1" * 32,
            )
        for state in states:
            state.close()
        again = [
            stack.enter_context(RunState.reopen(at / NAME.format(_RUN.hex()[:16]), _STUDY, name))
            for name, at in zip(names, places, strict=True)
        ]
        before: list[Opened] = max((list(state.results) for state in again), key=len)
        going_on = continuation(
            {name: Offer.of(state, False) for name, state in zip(names, again, strict=True)},
            names,
            names[arena.facts.leader],
        )
        if going_on is None:
            return "nothing opened", None if not before else "what was opened is forgotten."
        for state in again:
            state.attempt(b"2" * 32, going_on.finish_held)
            for missing in before[len(state.results) : going_on.opened]:
                state.learn(len(state.results), missing.inputs, missing.values)
        seen: list[tuple[str, int, list[int]]] = []
        learn = RunState.learn

        def learnt(state: RunState, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
            seen.append((state.party, number, values.tolist()))
            learn(state, number, inputs, values)

        with mock.patch.object(RunState, "learn", learnt):
            arena.run(
                lambda oracle: _ask(oracle, subject),
                tables,
                subject.coins(f"resumed {number}"),
                None,
                again,
                b"2" * 32,
            )
    known = [each.values.tolist() for each in before]
    other = [(party, step) for party, step, values in seen if step < len(known) and values != known[step]]
    how = "finished from shares" if going_on.finish_held else "computed anew"
    if other:
        return (
            how,
            f"{other[0][0]} opens release {other[0][1]} again, and to other values: fresh noise on the same counts.",
        )
    if len({len(state.results) for state in again}) != 1 or len(again[0].results) < len(known):
        return how, "the parties know of different numbers of releases."
    return how, None


def faults(subject: Subject) -> Finding:
    """Runs of processes, each with a fault at one party in the middle."""
    chosen = subject.share(cases(subject.profile, CUSTODIANS))
    problems = []
    for number, case in enumerate(chosen, start=1):
        found = run_with(case)
        problems += [f"{problem}." for problem in found]
        subject.tell("C.faults", number, len(chosen), "; ".join(found))
    return judged(
        problems,
        f"{len(chosen)} runs of which one party "
        + ", ".join(dict.fromkeys(case.fault.words for case in chosen))
        + ": documented exit codes, all results or none, and on record and in the ledgers whatever was seen opened.",
        {"runs": len(chosen)},
    )


GROUP = Group(
    "C",
    "Crashes",
    "Does a crash spend budget unrecorded, or show a value twice?",
    (
        Check(
            "order",
            "A release is on the record of the party that opens it before anything of it is opened.",
            "exact",
            "A record written after or beside the opening, so that a crash between them forgets what was spent.",
            order,
        ),
        Check(
            "resume",
            "A run that is resumed opens what was opened before to the same values, and nothing of it with fresh noise.",
            "exact",
            "Noise drawn again on the same counts, a release that is forgotten, parties that go on from different places.",
            resume,
        ),
        Check(
            "faults",
            "Whatever befalls one party in a run, the parties end with documented codes, and what was opened is on record.",
            "fault",
            "A traceback, a party that hangs, a part of the results, a release that is on no record or in no ledger, after a "
            "signal, a cut link, a full disk, a locked ledger, too little memory, a torn line; each somewhere in a run, "
            "deep at 12 moments and 3 parties.",
            faults,
            profile=Profile.DEFAULT,
        ),
    ),
)
