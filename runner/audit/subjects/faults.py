"""Faults of whole processes: a party that is killed, stopped, or cannot write, at some moment of a run; and what must hold after.

every party that ends says so with a documented code, without a traceback; nobody has results of a run that did not end
whatever was seen opened is on the record of every party that can still write
no process is left
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.errors import DataRefused
from parties.budget import journal
from runner.audit.subjects.deployment import Deployment, End, Party, deployed, wait_for
from runner.results.outdir import RUN

OTHERS, VICTIMS = (40, 41), (40, 41, 50, 130)
"""Exit codes of those that nothing befell, and of the one that something did, if it ends by itself."""
SILENCE_S = 4
ROUNDS = 12


@dataclass(frozen=True)
class Fault:
    """words: what befalls the party. sent: a signal, at the moment. prefix: what starts its interpreter.

    ends_by_itself: whether the party is to end with a documented code; else it is killed in the end.
    """

    words: str
    sent: signal.Signals | None = None
    prefix: tuple[str, ...] = ()
    ends_by_itself: bool = True


FAULTS = (
    Fault("is asked to end", signal.SIGTERM),
    Fault("is stopped", signal.SIGSTOP, ends_by_itself=False),
    Fault("is killed", signal.SIGKILL, ends_by_itself=False),
    Fault("cannot write files of more than 24 kB", prefix=("bash", "-c", 'ulimit -f 24; exec "$@"', "bash")),
)
MOMENTS = (("agree", "agreed", 1), ("input", "shared", 1), ("select", "selected", 3))
"""Phase and event of the leader, and its how manieth."""


def run_with(fault: Fault, victim: str, moment: tuple[str, str, int], leader: str) -> list[str]:
    """What is wrong after a run with a fault."""
    with deployed(rounds=ROUNDS, silence_s=SILENCE_S) as deployment:
        for party in deployment.parties:
            party.start(fault.prefix if party.name == victim else ())
        if fault.sent is not None:
            wait_for(lambda: deployment[leader].happened(*moment), f"Event {moment[1]} of phase {moment[0]}")
            deployment[victim].running.send_signal(fault.sent)
        others = [party for party in deployment.parties if party.name != victim]
        ends = {party.name: party.end() for party in others}
        if fault.ends_by_itself:
            ends[victim] = deployment[victim].end()
        else:
            deployment[victim].kill()
        return [f"party {victim} {fault.words}: {problem}" for problem in _problems(deployment, ends, victim)]


def _problems(deployment: Deployment, ends: dict[str, End], victim: str) -> list[str]:
    problems = []
    for name, end in ends.items():
        if end.code not in (VICTIMS if name == victim else OTHERS):
            problems.append(f"party {name} ended with {end.code}: {end.complaint.strip()}")
        if "Traceback" in end.output + end.complaint:
            problems.append(f"party {name} showed a traceback")
    problems += [
        f"party {party.name} has results of a run that did not end"
        for party in deployment.parties
        if (party.out / RUN).exists()
    ]
    opened = max(sum("step" in event for event in party.events()) for party in deployment.parties)
    problems += [
        f"party {party.name} has {charged(party)} releases on record, and {opened} were seen opened"
        for party in deployment.parties
        if charged(party) < opened
    ]
    return problems


def charged(party: Party) -> int:
    """Releases on record; none in a journal that cannot be read."""
    try:
        return sum(len(journal.read(path).releases) for path in party.out.glob("journal-*.jsonl"))
    except DataRefused:
        return 0


def chosen(deep: bool, names: Sequence[str], leader: str) -> list[tuple[Fault, str, tuple[str, str, int]]]:
    """Which faults, at whom, when: each once; deep, all at all parties and moments."""
    if not deep:
        victims = [name for name in names if name != leader]
        return [
            (fault, (leader if number % 2 else victims[0]), MOMENTS[-1])
            for number, fault in enumerate(FAULTS)
        ]
    return [(fault, name, moment) for fault in FAULTS for name in names for moment in MOMENTS]
