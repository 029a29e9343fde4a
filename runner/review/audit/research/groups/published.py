"""B: attacks that broke published schemes: they must work where this build offers such a scheme as research,
and nowhere else."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.functionality import StudyFacts, unobserved
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.research.reports.exchange import ReportExchange
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire
from runner.review.audit.check import Check, Finding, Group, judged
from runner.review.audit.research.read_off import read_off, sketches_in
from runner.review.audit.subjects.in_memory.arena import PATIENCE_S, SESSION, Codes
from runner.review.audit.subjects.subject import Subject
from synth.algorithms.vertimrf.algorithm import ALGORITHM
from synth.algorithms.vertimrf.config import VertiMrfConfig
from synth.domain import Domain
from synth.research.vertimrf.plan import EncodedPlan
from synth.research.vertimrf.responses import Responses
from synth.research.vertimrf.responses_encoding import RESPONSES
from synth.research.vertimrf.sketches import Sketches
from synth.research.vertimrf.sketches_encoding import SKETCHES
from synth.workload import Workload

ROWS, COLUMNS, VALUES = 12_000, 16, 3
EPSILON, DELTA = 0.8, 1e-5
LEADER, OWNERS = 1, (0, 2)
"""The leader owns nothing: what it can read, it reads off messages."""
MIN_READ = 1 / 6
"""Of the rows that should be readable, to be read: about four in five are."""
SHARED_ROWS, SHARED_COLUMNS = 300, 6


@dataclass(frozen=True)
class Transcript:
    """Every message of a run, and the plan that was carried out."""

    frames: tuple[Frame, ...]
    plan: Any


def table(subject: Subject, rows: int, columns: int) -> Codes:
    """Rows of nobody: columns of a few values that go with one another."""
    rng = subject.generator("published schemes")
    kind = rng.random((rows, 1)) ** 2
    mixed = np.where(rng.random((rows, columns)) < 0.5, kind, rng.random((rows, columns)))
    return np.minimum((mixed * VALUES).astype(np.int64), VALUES - 1)


def carried_out(rows: Codes, encoder: str, backend: DistributedBackend | None = None) -> Transcript:
    """A run of VertiMRF by three parties, of whom the first and the last own half of the columns each,
    recorded.

    backend: what answers the questions, for marginals on shares.
    """
    names = tuple(f"c{number}" for number in range(rows.shape[1]))
    domain = Domain.from_spec({"file": dict.fromkeys(names, VALUES)})
    half = len(names) // 2
    split = Partition(
        OWNERS,
        {name: OWNERS[place >= half] for place, name in enumerate(names)},
        "intersection",
        {},
        len(rows),
    )
    config = VertiMrfConfig(encoder=encoder, max_columns=2)
    plan = ALGORITHM.plan(
        domain, Workload(domain, (names[:2],)), config, epsilon=EPSILON, delta=DELTA, adjacency="replace"
    ).knowing({name: str(owner) for name, owner in split.columns.items()})
    facts = StudyFacts(domain.sizes, "replace", 1, 1 << 20, SESSION)
    reporting = ALGORITHM.reporting(config)
    exchange = None if reporting is None else ReportExchange(reporting.reporter(plan))
    frames, lock = list[Frame](), threading.Lock()

    def tap(frame: Frame) -> None:
        with lock:
            frames.append(frame)

    def party(wire: Wire) -> None:
        own = None
        if wire.me in OWNERS:
            codes = {name: rows[:, names.index(name)].astype(np.uint8) for name in split.of(wire.me)}
            own = OwnRows(np.arange(len(rows), dtype=np.int64), codes)
        data, guard = VerticalData(split, own), AllowAll()
        if exchange is not None and wire.me == LEADER:
            with exchange.lead(wire, facts, data, guard):
                return
        if exchange is not None:
            exchange.follow(wire, facts, data, guard)
            return
        assert backend is not None
        if wire.me == LEADER:
            with backend.lead(wire, facts, data, guard, unobserved) as oracle:
                ALGORITHM.run(oracle, plan, unobserved)
        else:
            backend.follow(wire, facts, data, guard, unobserved)

    network = MemoryNetwork(3, 3, session_id=SESSION, tap=tap, patience_s=PATIENCE_S)
    network.run([party] * 3)
    return Transcript(tuple(frames), plan)


def claims(transcript: Transcript) -> list[tuple[int, ...]]:
    """The rows that somebody who has every message claims to read, from whatever looks like each owner's
    sketches."""
    names, sizes = transcript.plan.domain.names, transcript.plan.domain.sizes
    half = len(names) // 2
    first, second = (
        [
            found
            for frame in transcript.frames
            if frame.sender == owner
            for found in sketches_in(frame.payload, part, sizes)
        ]
        for owner, part in zip(OWNERS, (names[:half], names[half:]), strict=True)
    )
    told = [VALUES] * len(names)
    return [row for a in first for b in second for row in read_off(np.hstack([a, b]), told)]


def sketches(subject: Subject) -> Finding:
    """Read rows off the sketches that the leader receives."""
    rows = table(subject, ROWS, COLUMNS)
    transcript = carried_out(rows, SKETCHES)
    config, problems = VertiMrfConfig(encoder=SKETCHES), list[str]()
    if ALGORITHM.sound(config) or ALGORITHM.alternative(config) is None:
        problems.append("Sketches are offered as if they protected anybody, or without the research switch.")
    plan = transcript.plan
    assert isinstance(plan, EncodedPlan)
    if not all(event.detail.get("claim") == "none" for event in Sketches(plan).events()):
        problems.append("The events of sketches do not say that there is no claim.")
    expected = Sketches(plan).readable_rows(ROWS)
    real = {tuple(row): count for row, count in zip(*_counted(rows), strict=True)}
    found = claims(transcript)
    exact = [row for row in found if row in real]
    if len(exact) < MIN_READ * expected:
        problems.append(
            f"The attack reads {len(exact)} rows where about {expected:.0f} should be readable: it is broken, or these are "
            "not the sketches that were published."
        )
    if len(exact) < len(found):
        problems.append(f"{len(found) - len(exact)} of {len(found)} rows claimed are nobody's.")
    unique = sum(real[row] == 1 for row in exact)
    figures = {"claimed": len(found), "exact": len(exact), "unique": unique, "expected": expected}
    return judged(
        problems,
        f"As the run's claim says, {len(exact)} of {ROWS:,} rows were read off the messages to the leader, none of them wrong, "
        f"{unique} of them unlike any other; about {expected:.0f} were expected, less ties.",
        figures,
    )


def _counted(rows: Codes) -> tuple[list[tuple[int, ...]], list[int]]:
    different, counts = np.unique(rows, axis=0, return_counts=True)
    return [tuple(row) for row in different.tolist()], counts.tolist()


def transcripts(subject: Subject) -> Finding:
    """The same attack on what the sound ways send."""
    problems, ways, messages = list[str](), list[str](), 0
    runs: dict[str, Transcript] = {
        "randomised responses": carried_out(table(subject, ROWS, COLUMNS), RESPONSES)
    }
    for backend in subject.distributed:
        if "vertical" in backend.partitions and backend.computing[0] <= 3 <= backend.computing[1]:
            small = table(subject, SHARED_ROWS, SHARED_COLUMNS)
            runs[f"marginals on shares ({backend.name})"] = carried_out(
                small, VertiMrfConfig().encoder, backend
            )
    for way, transcript in runs.items():
        ways.append(way)
        messages += len(transcript.frames)
        if found := claims(transcript):
            problems.append(f"{len(found)} rows can be read off the messages of {way}.")
    return judged(
        problems,
        f"Nothing in {messages:,} messages of {' and of '.join(ways)} can be read as sketches, and no row off them.",
        {"messages": messages},
    )


def responses(subject: Subject) -> Finding:
    """What a randomised response is charged, against its divergence summed up in floats by orders of its own."""
    problems, compared, most = list[str](), 0, 0.0
    for epsilon in (0.1, 0.8, 3.2, 16.0):
        plan = _plan(subject, epsilon)
        for response in Responses(plan).responses.values():
            keep, other = float(response.keep), float(response.other)
            numerical = _supremum(keep, other, response.values)
            compared += 1
            most = max(most, numerical / float(response.rho))
            if numerical > float(response.rho) * (1 + 1e-9):
                problems.append(
                    f"A response of {response.values} values that is kept with probability {keep:.6f} costs {numerical:.6g} "
                    f"and is charged {float(response.rho):.6g}."
                )
    return judged(
        problems,
        f"{compared} responses are charged at least what they cost; the closest costs {most:.2%} of its charge.",
        {"compared": compared, "closest": most},
    )


def _plan(subject: Subject, epsilon: float) -> EncodedPlan:
    domain = Domain.from_spec({"file": {"a": 2, "b": 3, "c": 4, "d": 30}})
    plan = ALGORITHM.plan(
        domain,
        Workload(domain, (domain.names[:2],)),
        VertiMrfConfig(encoder=RESPONSES),
        epsilon=epsilon,
        delta=DELTA,
        adjacency="replace",
    )
    assert isinstance(plan, EncodedPlan)
    return plan


def _supremum(keep: float, other: float, values: int) -> float:
    """sup of D_a / a over 4,000 orders from 1 + 1e-6 to 10^6."""
    orders = 1 + np.logspace(-6, 6, 4000)
    up = orders * math.log(keep) + (1 - orders) * math.log(other)
    down = orders * math.log(other) + (1 - orders) * math.log(keep)
    rest = math.log((values - 2) * other) if values > 2 else -math.inf
    total = np.logaddexp(np.logaddexp(up, down), rest)
    return float((total / (orders - 1) / orders)[orders > 1.001].max())


GROUP = Group(
    "B",
    "Broken published schemes",
    "Do attacks that broke published schemes work where such a scheme is offered as research, and nowhere else?",
    (
        Check(
            "sketches",
            "What VertiMRF's sketches reveal is what their claim says: whole rows.",
            "attack",
            "An attack that has stopped working; sketches that are offered with a claim or without the research switch.",
            sketches,
            alarm=5e-9,
        ),
        Check(
            "transcripts",
            "No row can be read off randomised responses, nor off marginals on shares.",
            "exact",
            "An owner's sketches in any message of these runs.",
            transcripts,
        ),
        Check(
            "responses",
            "A randomised response is charged at least what it reveals.",
            "exact",
            "A charge that is a thousandth too small.",
            responses,
        ),
    ),
)
