"""F: bytes from a hostile peer, or in a file that somebody else wrote, end in a sentence and a documented
exit code.

Never a traceback, never code that runs, never memory that a length field asks for. What is valid here is made
by the product; mutations change lengths, fields and bytes, cut, repeat and replace.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from runner.review.audit.check import Check, Finding, Group, Profile, judged, tallied
from runner.review.audit.subjects.ends import judged_ends, unless_stuck
from runner.review.audit.subjects.in_memory.arena import Arena, Ran
from runner.review.audit.subjects.in_memory.bent_wire import Bend, Way, change
from runner.review.audit.subjects.questions import NO_NOISE, every_kind
from runner.review.audit.subjects.readers import Reader, readers
from runner.review.audit.subjects.subject import Subject

CASES = {Profile.QUICK: 1500, Profile.DEFAULT: 20_000, Profile.DEEP: 10_000_000}
"""Mutated inputs of each reader; of costly ones fewer (`Reader.cost`)."""
TOLD = 100_000
"""After how many inputs a campaign says how far it is."""
RUNS = {Profile.QUICK: 12, Profile.DEFAULT: 40, Profile.DEEP: 2000}
"""Runs of each backend with a message that was changed."""
_NUMBER = re.compile(rb"\d+")
_WORDS = (
    b"Infinity",
    b"NaN",
    b"1e999",
    b"-1",
    b"0",
    b"1.5",
    b"%d" % 2**70,
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
)
"""What may stand where JSON has a number."""
_EXTREMES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
MEMORY = 256 << 20
"""Bytes that reading may take, of Python and NumPy at once, or of the process beyond its peak before: far
above any valid input here, far below what a length field can name."""
NASTY: Sequence[bytes] = (
    b"",
    b"\x00" * 64,
    b"\xff" * 64,
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'"\\ud800"',
    b"9" * 100_000,
    b"NaN",
    b"J" + b"[" * 100_000,
    b'{"step":"total","number":0,"sigma2":[1,0]}',
)


class _Canary:
    """An object whose unpickling writes a file: code of a peer's."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (self.path,)


def mutated(valid: bytes, rng: np.random.Generator) -> bytes:
    """Bytes near valid ones: a few changes of a byte, a length, a cut, a repetition, an extreme number,
    another JSON value."""
    data = bytearray(valid)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(0, len(data) + 1))
        match int(rng.integers(0, 8)):
            case 0 if data:
                data[place % len(data)] = int(rng.integers(0, 256))
            case 1:
                del data[place:]
            case 2:
                data[place:place] = rng.bytes(int(rng.integers(1, 9)))
            case 3:
                number = _EXTREMES[int(rng.integers(len(_EXTREMES)))]
                data[place : place + 8] = number.to_bytes(8, "little")
            case 4:
                data[place : place + 4] = (2**32 - 1).to_bytes(4, "big")
            case 5:
                data += data[place:]
            case 6 if numbers := [found.span() for found in _NUMBER.finditer(data)]:
                start, stop = numbers[int(rng.integers(len(numbers)))]
                data[start:stop] = _WORDS[int(rng.integers(len(_WORDS)))]
            case _ if data:
                data[place % len(data)] ^= 1 << int(rng.integers(0, 8))
    return bytes(data)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Traced:
    """The bytes that Python and NumPy held at most in here, beyond what they held before.

    The process's own peak says nothing where it was higher once: memory that was given back is taken again.
    """

    peak = 0

    def __enter__(self) -> Self:
        self._began = not tracemalloc.is_tracing()
        if self._began:
            tracemalloc.start()
        tracemalloc.reset_peak()
        self._before, _ = tracemalloc.get_traced_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self.peak = tracemalloc.get_traced_memory()[1] - self._before
        if self._began:
            tracemalloc.stop()


def decoders(subject: Subject) -> Finding:
    """Give every reader bytes near valid ones, nasty ones, and pickles."""
    problems: list[str] = []
    outcomes: Counter[str] = Counter()
    part, read = subject.part, 0
    rng = subject.generator("hostile" if part.number == 1 else f"hostile {part.number}")
    before = _peak()
    with _Traced() as traced, tempfile.TemporaryDirectory(prefix="cosynth-audit-") as name:
        folder = Path(name)
        marker = folder / "ran"
        pickles = [pickle.dumps(_Canary(str(marker)), protocol) for protocol in (0, 2, 4)]
        found = readers(subject.study.path, folder)
        due = {reader.name: CASES[subject.profile] // reader.cost // part.of for reader in found}
        for reader in found:
            for valid in reader.valid:
                reader.read(valid)  # else every refusal below would be worth nothing
            hostile = [*NASTY, *reader.hostile, *pickles, *(b"J" + each for each in pickles)]
            near = (mutated(reader.valid[case % len(reader.valid)], rng) for case in range(due[reader.name]))
            for content in chain(hostile, near):
                outcome, problem = _judge(reader, content)
                outcomes[outcome] += 1
                if problem is not None:
                    problems.append(problem)
                read += 1
                if read % TOLD == 0:
                    subject.tell("F.decoders", read, sum(due.values()), reader.name)
        if marker.exists():
            problems.append("A pickle was loaded: bytes of a peer ran as code.")
    grown = max(traced.peak, _peak() - before)
    if grown > MEMORY:
        problems.append(f"Reading hostile bytes took {grown >> 20} MiB of memory.")
    return judged(
        problems,
        f"{outcomes.total()} inputs of {len(due)} readers: {outcomes['refused']} refused with a sentence, "
        f"{outcomes['read']} still valid; no other exception, no pickle loaded.",
        {**outcomes, "grown_bytes": grown},
    )


def _judge(reader: Reader, content: bytes) -> tuple[str, str | None]:
    try:
        reader.read(content)
    except reader.allowed:
        return "refused", None
    except Exception as error:
        return (
            "broken",
            f"{reader.name[0].upper()}{reader.name[1:]}: {type(error).__name__} ({error}) for {content[:40]!r}.",
        )
    return "read", None


CHANGES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda payload: b"" if payload else b"x",
    "a byte short": lambda payload: payload[:-1] if payload else b"x",
    "a byte longer": lambda payload: payload + b"\0",
    "a pickle": lambda payload: pickle.dumps([1, 2]),
    "all ones": lambda payload: b"\xff" * len(payload),
    "turned": lambda payload: payload[::-1],
}


def messages(subject: Subject) -> Finding:
    """Change one message of a run at a time, of any party; see how the others end."""
    problems, figures = [], {}
    rng = subject.generator("messages")
    for backend in subject.distributed:
        arena = subject.arena(backend)
        ways = Counter((frame.sender, frame.receiver) for frame in _run(arena, subject).frames)

        def run(bend: Bend, ends: dict[int, Any], arena: Arena = arena) -> str:
            _run(arena, subject, bend, ends)
            return "went on"

        figures[backend.name], found = endings(RUNS[subject.profile], rng, ways, run)
        problems += [f'backend "{backend.name}": {problem}' for problem in found]
    finding = judged(
        problems, "One message changed in each run, and how it ended: " + tallied(figures) + ".", figures
    )
    return unless_stuck(finding, figures.values())


def _run(arena: Arena, subject: Subject, bend: Bend | None = None, ends: dict[int, Any] | None = None) -> Ran:
    return arena.run(
        lambda oracle: every_kind(oracle, list(subject.sizes), NO_NOISE, 20),
        subject.tables(arena.parties, 10),
        subject.coins("messages"),
        bend,
        ends=ends,
    )


Run = Callable[[Bend, dict[int, Any]], str]
"""(what is changed, each party's end) -> what it comes to if it ends well."""


def endings(
    runs: int, rng: np.random.Generator, ways: Mapping[Way, int], run: Run
) -> tuple[dict[str, int], list[str]]:
    """How so many runs end of which one message each is changed, and what is wrong with them.

    ways: the messages of a run between any two parties.
    """
    ended, problems = Counter[str](), []
    for case in range(runs):
        way = sorted(ways)[int(rng.integers(len(ways)))]
        number, words = int(rng.integers(ways[way])), list(CHANGES)[case % len(CHANGES)]
        how, problem = _ending(way, number, words, run)
        ended[how] += 1
        problems += [problem] if problem is not None else []
    return dict(ended), problems


def _ending(way: Way, number: int, words: str, run: Run) -> tuple[str, str | None]:
    where, ends = f"message {number} from party {way[0]} to party {way[1]}, {words}", dict[int, Any]()
    try:
        return run(change(way, number, CHANGES[words]), ends), None
    except Exception:  # what a party raises is among the ends
        how, problem = judged_ends(ends, way[0])
        return how, None if problem is None else f"{where}: {problem}."


GROUP = Group(
    "F",
    "Hostile peers",
    "What can bytes of others do?",
    (
        Check(
            "decoders",
            "Whatever reads bytes of others takes valid ones or refuses with a sentence.",
            "fault",
            "A traceback, a pickle that runs, memory that a length field asks for, near valid bytes.",
            decoders,
        ),
        Check(
            "messages",
            "A message that is not what the protocol says stops the run with 40 or 41, or is a value of the peer's choice.",
            "fault",
            "A traceback at an honest party, a party that waits for ever, another exit code.",
            messages,
        ),
    ),
)
