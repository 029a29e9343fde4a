"""N: a party that cheats - what is noticed, what is not, and that no two honest parties end with different results.

The backends protect against parties that follow the protocol (`docs/design/malicious.md`). So a cheat that goes unnoticed is no
violation of what they promise: it is counted, and stands in the report. What they do promise is looked at: an honest party ends
with 40 or 41 or with the results that the others have, and where a backend says that openings are compared before anything is
done with them, a false one is noticed at once. And where a backend checks what contributors send, impossible counts are found.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mpc_protocols.backends.replicated.sharing.blame import suspects_of
from mpc_protocols.errors import BadInput, CosynthError
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.public.steps import MeasureStep, parse
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict, by_name, judged, tallied
from runner.review.audit.subjects.ends import STUCK, judged_ends, unless_stuck
from runner.review.audit.subjects.in_memory.arena import Arena, Codes, Ran
from runner.review.audit.subjects.in_memory.bent_wire import Bend, Way, change
from runner.review.audit.subjects.in_memory.deviations import chosen, flipped, judged_outcome, settings
from runner.review.audit.subjects.in_memory.openings import Openings, Party
from runner.review.audit.subjects.in_memory.proved_products import BET, WORDS, one_bit, outcomes, unseen_under
from runner.review.audit.subjects.questions import NO_NOISE, every_kind
from runner.review.audit.subjects.subject import Subject

RUNS = {Profile.QUICK: 4, Profile.DEFAULT: 40, Profile.DEEP: 2000}
DEVIATIONS = {Profile.QUICK: 3, Profile.DEFAULT: 40, Profile.DEEP: 1000}
"""Runs with a changed message where a backend claims that it is noticed."""
OPENINGS = 2
"""How many of a run's openings are falsified, each in a run of its own, by each party."""


def _ask(oracle: MarginalOracle, subject: Subject) -> list[list[int]]:
    return [each.tolist() for each in every_kind(oracle, list(subject.sizes), NO_NOISE, 20)[1]]


def _run(arena: Arena, subject: Subject, bend: Bend | None = None, ends: dict[int, Any] | None = None) -> Ran:
    return arena.run(
        lambda oracle: _ask(oracle, subject),
        subject.tables(arena.parties, 6),
        subject.coins("cheats"),
        bend,
        ends=ends,
    )


def _flip(way: Way, number: int, bit: int) -> Bend:
    """A bit of one message."""
    return change(way, number, lambda payload: flipped(payload, bit))


def _different(ran: Ran, leader: int, computing: int) -> str | None:
    """Whether a computing party that ended well was told other noisy counts than the leader; in words."""
    for party in range(computing):
        if party != leader:
            told = [each.tolist() for each in ran.results[party]]
            if told != ran.answer[: len(told)]:
                return f"party {party} and the leader end well with different noisy counts"
    return None


def changed(subject: Subject) -> Finding:
    """Flip one bit of one message of a computing party in each run."""
    problems, figures = [], {}
    for backend in subject.distributed:
        arena = subject.arena(backend)
        honest = _run(arena, subject)
        if (words := _different(honest, arena.facts.leader, arena.computing)) is not None:
            problems.append(f'backend "{backend.name}", with nobody cheating: {words}.')
        ways = Counter(
            (f.sender, f.receiver) for f in honest.frames if f.sender < arena.computing and f.payload
        )
        rng, ended = subject.generator(f"cheats {backend.name}"), Counter[str]()
        for _ in range(RUNS[subject.profile]):
            way = sorted(ways)[int(rng.integers(len(ways)))]
            number = int(rng.integers(ways[way]))
            flip = _flip(way, number, int(rng.integers(1 << 16)))
            outcome, problem = _cheat(arena, subject, honest, flip, way[0])
            ended[outcome] += 1
            if problem is not None:
                problems.append(
                    f'backend "{backend.name}", a bit of message {number} of party {way[0]} to party {way[1]}: {problem}.'
                )
        figures[backend.name] = dict(ended)
    finding = judged(
        problems,
        "One bit of one message flipped in each run: "
        + tallied(figures)
        + ". What is not noticed is what security against parties that follow the protocol does not promise.",
        figures,
    )
    return unless_stuck(finding, figures.values())


def _cheat(arena: Arena, subject: Subject, honest: Ran, bend: Bend, cheat: int) -> tuple[str, str | None]:
    ends = dict[int, Any]()
    try:
        ran = _run(arena, subject, bend, ends)
    except Exception:  # what a party raises is among the ends
        outcome, problem = judged_ends(ends, cheat)
        return STUCK if outcome == STUCK else "noticed", problem
    if (words := _different(ran, arena.facts.leader, arena.computing)) is not None:
        return "different results", words
    return ("without effect" if ran.answer == honest.answer else "other results, unnoticed"), None


class _Falsified(Openings):
    """The `number`th opening of numbers by a party, of which its first message to another one has a bit flipped."""

    def __init__(self, cheat: int, number: int) -> None:
        self.cheat, self.number = cheat, number
        self.opening: dict[int, int] = {}
        self.begun: Counter[int] = Counter()
        self.victim: int | None = None
        self.believed: bool = False

    def bend(self, way: Way, number: int, payload: bytes) -> bytes:
        """Flip a bit of the first message of that opening."""
        sender, receiver = way
        if (
            sender == self.cheat
            and self.victim is None
            and self.opening.get(sender) == self.number
            and threading.current_thread().name == f"party-{sender}"
            and payload
        ):
            self.victim = receiver
            return flipped(payload, 0)
        return payload

    def opens(self, party: Party, picks: int) -> None:
        """Know at which opening it is."""
        if not picks:
            me = party.wire.me
            self.opening[me] = self.begun[me]
            self.begun[me] += 1

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """It goes on, with what it was sent."""
        if not picks and self.opening.pop(party.wire.me) == self.number and party.wire.me == self.victim:
            self.believed = True


def openings(subject: Subject) -> Finding:
    """Falsify what a party sends for an opening, and see whether its receiver goes on with it."""
    problems, figures = [], {}
    for backend in subject.distributed:
        arena, ended = subject.arena(backend), Counter[str]()
        for cheat in range(arena.computing):
            for number in range(OPENINGS):
                outcome = _opening(arena, subject, _Falsified(cheat, number))
                ended[outcome] += 1
                if backend.compares_openings and outcome != "noticed at once":
                    problems.append(
                        f'backend "{backend.name}": opening {number} that party {cheat} falsifies is {outcome}; the backend says '
                        "that openings are compared before they are used."
                    )
        figures[backend.name] = {"compares": backend.compares_openings, **ended}
    return judged(
        problems,
        "Openings falsified by one party: "
        + "; ".join(
            f"{name}{' (which compares them)' if each['compares'] else ''}: "
            + ", ".join(f"{words} {n}" for words, n in each.items() if words != "compares")
            for name, each in figures.items()
        )
        + ".",
        figures,
    )


def _opening(arena: Arena, subject: Subject, falsified: _Falsified) -> str:
    with falsified.watched():
        try:
            ran = _run(arena, subject, falsified.bend)
        except CosynthError:
            return "noticed at once" if not falsified.believed else "noticed later"
    if falsified.victim is None:
        return "not reached"
    different = _different(ran, arena.facts.leader, arena.computing)
    return "not noticed" if different is None else "not noticed, and honest parties differ"


LIES = {"one row more": 1, "a row less than none": -1 - (1 << 20), "half of the ring more": 1 << 31}
"""What is added to the first cell of the largest marginals that a contributor sends."""


class _Lie:
    """A contributor that adds a number to the first cell of its longest message, and is told apart by that message's length."""

    def __init__(self, sender: int, length: int, added: int) -> None:
        self.sender, self.length, self.added = sender, length, added

    def bend(self, way: Way, number: int, payload: bytes) -> bytes:
        """What is sent instead."""
        if way[0] != self.sender or len(payload) != self.length:
            return payload
        first = (int.from_bytes(payload[:4], "little") + self.added) % (1 << 32)
        return first.to_bytes(4, "little") + payload[4:]


def inputs(subject: Subject) -> Finding:
    """A contributor sends counts that no table has: it must be named, or left out, and an honest one must not."""
    problems, figures = [], {}
    for backend in subject.distributed:
        if backend.unchecked:
            figures[backend.name] = f"not checked: {backend.unchecked}"
            continue
        arena = subject.arena(backend)
        liar, tables = arena.computing, subject.tables(arena.parties, 6)
        honest = _run(arena, subject)
        longest = max(len(frame.payload) for frame in honest.frames if frame.sender == liar)
        assert arena.facts.inputs is not None
        lenient = replace(arena, facts=replace(arena.facts, inputs=replace(arena.facts.inputs, exclude=True)))
        absent = [*tables[:liar], tables[liar][:0]]
        without = _measured_last(lenient, subject, absent, None)
        for words, added in LIES.items():
            lie = _Lie(liar, longest, added)
            try:
                _run(arena, subject, lie.bend)
                problems.append(f'backend "{backend.name}": a contributor that sends {words} is not noticed.')
            except BadInput as error:
                if error.contributors != (liar,):
                    problems.append(
                        f'backend "{backend.name}": {error.contributors} are named instead of {liar}.'
                    )
            except CosynthError as error:
                problems.append(
                    f'backend "{backend.name}": a contributor that sends {words} ends the run by accident ({error.sentence})'
                )
                continue
            try:
                left_out = _measured_last(lenient, subject, tables, lie) == without
            except CosynthError:  # such counts may stop a step that takes them for a table's
                left_out = False
            if not left_out:
                problems.append(
                    f'backend "{backend.name}": counts of a contributor that sends {words} are not left out.'
                )
        figures[backend.name] = f"{len(LIES)} lies found"
    return judged(
        problems,
        "Contributors that send one row more, fewer rows than none, or half of the ring more, in one cell: "
        f"{by_name(figures, '{name}: {each}', joint='; ')}. The honest one is never named.",
        figures,
    )


def _measured_last(arena: Arena, subject: Subject, tables: Sequence[Codes], lie: _Lie | None) -> object:
    """Counts that are measured after everything is shared."""
    return arena.run(
        lambda oracle: _ask(oracle, subject)[-1:],
        tables,
        subject.coins("lies"),
        None if lie is None else lie.bend,
    ).answer


PROOF_MESSAGES = 2
"""Messages of the proof to each other party that are altered, each in a run of its own."""


def proofs(subject: Subject) -> Finding:
    """Send products that are none, or other messages of their proof: both honest parties must stop."""
    rng, nothing = subject.generator("proofs"), one_bit(0) ^ one_bit(0)
    problems, noticed = [], 0
    if any(ended is not None for ended in outcomes(0, nothing)):
        problems.append("True products are not proved.")
    for cheat in range(3):
        lies: list[tuple[str, Any, Bend | None]] = [
            ("one product changed", one_bit(int(rng.integers(64 * WORDS))), None),
            ("products changed that a coin known beforehand does not show", unseen_under(BET), None),
        ]
        for receiver in {0, 1, 2} - {cheat}:
            for number in range(PROOF_MESSAGES):
                flip = _flip((cheat, receiver), 1 + number, int(rng.integers(1 << 12)))
                lies.append((f"message {number} of the proof to party {receiver} changed", nothing, flip))
        for words, error, bend in lies:
            ended = outcomes(cheat, error, bend)
            said = [ended[party] for party in range(3) if party != cheat]
            if None in said:
                problems.append(f"Party {cheat}, {words}: an honest party goes on.")
                continue
            noticed += 1
            problems += [
                f"Party {cheat}, {words}: an honest party is blamed: {sentence}"
                for sentence in said
                if sentence is not None and (suspects := suspects_of(sentence)) and cheat not in suspects
            ]
    return judged(
        problems,
        f"{noticed} cheats with {WORDS * 64:,} products or their proof: both honest parties stop each time, and blame "
        "the one who did it, or two of whom it is one.",
        {"noticed": noticed},
    )


def deviations(subject: Subject) -> Finding:
    """Where the claim holds against a party that deviates, change a message to one that computes; see how others end."""
    problems, figures = [], {}
    found = settings(subject)
    if not found:
        return Finding(
            Verdict.UNINFORMATIVE, "No audited backend claims anything against a party that deviates."
        )
    for setting in found:
        honest, ended = setting.run(), Counter[str]()
        if any(isinstance(end, BaseException) for end in honest.ends.values()):
            problems.append(f"{setting.words}: with nobody cheating, a party stops.")
            continue
        rng = subject.generator(f"deviations {setting.words}")
        mine = subject.share(chosen(honest, setting.arena.computing, rng, DEVIATIONS[subject.profile]))
        for done, deviation in enumerate(mine, start=1):
            outcome = setting.run(deviation.bend, deviation.goes_on)
            how, problem = judged_outcome(honest, outcome, deviation.way[0])
            ended[how] += 1
            if problem is not None:
                problem = f"{setting.words}, {deviation.words}: {problem}."
                problems.append(problem)
            subject.tell("N.deviations", done, len(mine), problem or "")
        figures[setting.words] = dict(ended)
        if not any("stopped" in how for how in ended) and not problems:
            return Finding(
                Verdict.UNINFORMATIVE, f"{setting.words}: nobody stopped, whatever was changed.", figures
            )
    finding = judged(
        problems,
        "One message changed in each run, and how the honest parties ended: "
        + tallied(figures)
        + ". None has another result, and nothing else was opened to one.",
        figures,
    )
    return unless_stuck(finding, figures.values())


def copies(subject: Subject) -> Finding:
    """Where the claim holds against a party that deviates, let a contributor tell one computing party something else."""
    problems, told = [], 0
    found = [each for each in settings(subject) if each.arena.contributing]
    if not found:
        return Finding(
            Verdict.UNINFORMATIVE,
            "No audited backend with contributors claims anything against a party that deviates.",
        )
    for setting in found:
        ways = setting.run().ways
        for way, number in sorted(
            (way, number)
            for way, count in ways.items()
            for number in range(count)
            if way[0] >= setting.arena.computing
        ):
            ended = setting.run(_flip(way, number, 5)).ends
            said = [end.sentence for end in ended.values() if isinstance(end, CosynthError)]
            told += 1
            if len(said) < len(ended):
                problems.append(f"{setting.words}, message {number} to party {way[1]}: a party goes on.")
            elif not any(f"party {way[0]} " in sentence.lower() for sentence in said):
                problems.append(
                    f"{setting.words}, message {number} to party {way[1]}: nobody says that it is party {way[0]} who told two "
                    f"parties different things, but: {said[0]}"
                )
    return judged(
        problems,
        f"{told} messages of a contributor of which one computing party was sent another: all stop, and it is named.",
        {"messages": told},
    )


def steps(subject: Subject) -> Finding:
    """Let the leader ask one of the others for marginals in another order than the rest; all must stop."""
    problems, figures = [], {}
    for backend in subject.distributed:
        arena, ended = subject.arena(backend), Counter[str]()
        leader = arena.facts.leader
        for follower in set(range(arena.computing)) - {leader}:
            ends, lie = dict[int, Any](), _OtherStep((leader, follower))
            with lie.watched(), suppress(Exception):  # what a party raises is among the ends
                _run(arena, subject, lie.bend, ends)
            how, problem = judged_ends(ends, leader)
            ended[how] += 1
            if not lie.lied:
                problem = "it is asked for no measurement"
            elif how == "went on":
                problem = "it goes on"
            elif lie.believed and problem is None:
                problem = f"party {lie.believed[0]} has opened what came of it by then"
            if problem is not None:
                problems.append(
                    f'backend "{backend.name}", party {follower} is asked for another order than the rest: {problem}.'
                )
        figures[backend.name] = dict(ended)
    finding = judged(
        problems,
        "One party asked for another order than the rest, and how it ended: " + tallied(figures) + ".",
        figures,
    )
    return unless_stuck(finding, figures.values())


class _OtherStep(Openings):
    """A leader's first measurement, in another order for one of the others: sizes do not give the lie away.

    told: whether that one has been asked. believed: who has opened a release then: the first one is the measurement.
    """

    def __init__(self, way: Way) -> None:
        self.way, self.lied = way, False
        self.believed: list[int] = []

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """It has gone on."""
        self.believed.append(party.wire.me)

    def bend(self, way: Way, number: int, payload: bytes) -> bytes:
        """What is sent instead."""
        if way != self.way or self.lied or not payload.startswith(b"{"):
            return payload
        with suppress(CosynthError):
            step = parse(payload)
            if isinstance(step, MeasureStep):
                self.lied = True
                return replace(step, handles=step.handles[::-1]).to_bytes()
        return payload


GROUP = Group(
    "N",
    "Cheating parties",
    "What does a computing party reach that departs from the protocol?",
    (
        Check(
            "changed",
            "An honest party ends with 40 or 41, or with the same results as the other honest ones, whatever one party sends.",
            "fault",
            "A traceback, another exit code, honest parties that end well with different results. Cheats that go unnoticed are "
            "counted, and are no violation: no backend promises more yet.",
            changed,
        ),
        Check(
            "copies",
            "Where the claim holds against a party that deviates, a contributor that tells two of them other things is named.",
            "fault",
            "Copies that are compared too late or never: then proofs fail, and parties that did nothing are accused.",
            copies,
        ),
        Check(
            "steps",
            "A leader that asks one party for something else than the others is noticed before anything of it is opened.",
            "fault",
            "A transcript that the parties do not compare before they compute.",
            steps,
        ),
        Check(
            "openings",
            "Where a backend compares openings, a false one is noticed before anything is done with it.",
            "fault",
            "A hash of an opening that is compared too late, or never.",
            openings,
        ),
        Check(
            "inputs",
            "Where a backend checks contributors, counts of no table end the run and name who sent them, or are left out.",
            "fault",
            "A check that is not made, whose verdict nobody looks at, or that an honest contributor fails.",
            inputs,
        ),
        Check(
            "proofs",
            "Where products are proved, a party that sends others than its shares give is found out by both honest ones, "
            "who blame no honest party.",
            "fault",
            "A common coin that is known before the products are fixed, a proof whose verdict nobody looks at, a sentence that "
            "names an honest party alone.",
            proofs,
        ),
        Check(
            "deviations",
            "Where the claim holds against a party that deviates, honest ones have the right results, or stop before others.",
            "fault",
            "A message whose change is noticed never, or when something that follows from it is open already, by rows and by "
            "columns, as far as the backend takes them; a contributor's copies that differ.",
            deviations,
        ),
    ),
)
