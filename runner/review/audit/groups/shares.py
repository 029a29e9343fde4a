"""U: what a party holds and receives is uniform whatever is secret, never used twice, and tells no part of
the noise."""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.engine.bitwise.bitslice import from_planes, to_bits, to_planes
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.in_memory.memory_wire import Frame
from parties.session.admission.keys import SharedKeys
from runner.review.audit import statistics
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict, by_name, judged
from runner.review.audit.subjects.in_memory.arena import SESSION, Arena
from runner.review.audit.subjects.in_memory.gates import LESS, PRODUCT, SUM, GateRun, Message, run_gates
from runner.review.audit.subjects.questions import EPSILON, NO_NOISE
from runner.review.audit.subjects.subject import Subject

CELLS = {Profile.QUICK: 1 << 15, Profile.DEFAULT: 1 << 16, Profile.DEEP: 1 << 18}
REPETITIONS = 4
FRESH, RANDOM_BITS, REPEATED_ALARM = 8, 48, 1e-8
"""Runs with other coins, and bits of a word of 64 that are others in one of them: so it is random. Of some 10^6 pairs of
such words two are alike by chance with 4e-9."""
MIN_CELLS = 50
"""Lanes with equal knowledge below which they are left out: chi-square tails would not hold."""
GATES_ALPHA, NOISE_ALPHA = 5e-8, 5e-8
LOUD = Fraction(100)
COLUMNS, WIDE = 4, 2048


def _planes(message: Message, words: int) -> NDArray[np.uint64]:
    """A message as planes of one bit per cell; none if its size is not that of such planes."""
    if len(message.payload) % (8 * words):
        return np.zeros((0, words), np.uint64)
    return np.frombuffer(message.payload, np.uint64).reshape(-1, words)


def _element_bits(message: Message, cells: int) -> NDArray[np.uint64]:
    """The lowest and the highest bit of each element, where a message is an array of 32-bit elements for all
    cells."""
    if len(message.payload) % (4 * cells):
        return np.zeros((0, cells // 64), np.uint64)
    elements = np.frombuffer(message.payload, np.uint32).reshape(-1, cells)
    found = [
        to_planes(bits, 1)[0] for each in elements for bits in (each & np.uint32(1), each >> np.uint32(31))
    ]
    return np.stack(found)


def _known(run: GateRun, message: Message) -> list[NDArray[np.uint64]]:
    """What a message may not depend on: the secrets of its phase, and its receiver's own shares of them."""
    kind = message.phase.split(",")[0]
    parts = run.parts.get(message.receiver, [])
    if kind == PRODUCT:
        return [run.x, run.y, *parts]
    if kind == SUM:
        return [run.x, *parts[: len(parts) // 2]]
    less = from_planes(run.left, 64 * len(run.x)) < from_planes(run.right, 64 * len(run.x))
    return [run.left[0], run.right[0], run.left[-1], run.right[-1], to_planes(less.astype(np.uint32), 1)[0]]


def uniformity(plane: NDArray[np.uint64], key: NDArray[np.uint32], values: int) -> float:
    """p-value of: given the key, the bits of a plane are fair coins. key: of each cell, below `values`.

    Places within words at which all words are alike are left out: what is there whatever the secrets are
    tells nothing.
    """
    varying = np.bitwise_or.reduce(plane ^ plane[0])
    chosen = to_bits(np.full(len(plane), varying), len(key)).astype(bool)
    key = key[chosen]
    counts = np.bincount(key, minlength=values)
    ones = np.bincount(key, weights=to_bits(plane, len(chosen))[chosen], minlength=values)
    used = counts >= MIN_CELLS
    if not used.any():
        return 1.0
    statistic = float((((2 * ones - counts) ** 2)[used] / counts[used]).sum())
    return statistics.chi_square_tail(statistic, int(used.sum()))


def independence(plane: NDArray[np.uint64], secret: NDArray[np.uint32]) -> float:
    """p-value of: the bits of a plane, which need not be fair, do not follow those of a secret."""
    bits = to_bits(plane, len(secret))
    counts = np.bincount(secret, minlength=2)
    ones = np.bincount(secret, weights=bits, minlength=2)
    share = ones.sum() / counts.sum()
    if (counts < MIN_CELLS).any() or not 0 < share < 1:
        return 1.0
    statistic = float(((ones - counts * share) ** 2 / (counts * share * (1 - share))).sum())
    return statistics.chi_square_tail(statistic, 1)


def _key(run: GateRun, message: Message, cells: int) -> tuple[NDArray[np.uint32], int]:
    known = _known(run, message)
    key = np.zeros(cells, np.uint32)
    for plane in known:
        key = 2 * key + to_bits(plane, cells)
    return key, 1 << len(known)


def _secret(run: GateRun, kind: str, cells: int) -> NDArray[np.uint32]:
    """What a gate comes to, of each cell."""
    if kind == PRODUCT:
        return to_bits(run.x & run.y, cells).astype(np.uint32)
    return (from_planes(run.left, cells) < from_planes(run.right, cells)).astype(np.uint32)


def _with_results(run: GateRun, message: Message, cells: int) -> list[float]:
    """p-values of: nothing that is sent makes the receiver's shares of the result tell the result."""
    parts = run.results.get((message.receiver, message.phase), [])
    if not parts:
        return []
    secret, found = _secret(run, message.phase.split(",")[0], cells), []
    for plane in _planes(message, cells // 64):
        for chosen in range(1, 1 << len(parts)):
            mixed = plane.copy()
            for number, part in enumerate(parts):
                if chosen >> number & 1:
                    mixed ^= part
            if mixed.any():  # else it is a share itself
                found.append(independence(mixed, secret))
    return found


def _script(subject: Subject, arena: Arena, cells: int) -> GateRun | None:
    return run_gates(arena, subject.tables(arena.parties, 6), subject.coins("gates"), cells, REPETITIONS)


def _no_engine(backend: DistributedBackend) -> Finding:
    return Finding(
        Verdict.UNINFORMATIVE, f'The gates of backend "{backend.name}" cannot be run: it has no engine.'
    )


def _phases(run: GateRun) -> list[Message]:
    return [each for each in run.messages if each.phase.startswith((PRODUCT, SUM, LESS))]


def gates(subject: Subject) -> Finding:
    """Hold every bit that a party is sent for a gate against the secret operands and its own shares of them."""
    problems, counted, cells = [], {}, CELLS[subject.profile]
    for backend in subject.distributed:
        run = _script(subject, subject.arena(backend), cells)
        if run is None:
            return _no_engine(backend)
        tests = []
        keys: dict[tuple[str, int], tuple[NDArray[np.uint32], int]] = {}
        for message in _phases(run):
            place = message.phase.split(",")[0], message.receiver
            if place not in keys:
                keys[place] = _key(run, message, cells)
            for form in (_planes(message, cells // 64), _element_bits(message, cells)):
                tests += [(uniformity(plane, *keys[place]), message) for plane in form]
            tests += [(p, message) for p in _with_results(run, message, cells)]
        alpha = GATES_ALPHA / max(len(tests), 1) / len(subject.distributed)
        counted[backend.name] = {"planes": len(tests), "least_p": min((p for p, _ in tests), default=1.0)}
        found = [(p, message) for p, message in tests if p < alpha]
        if found:
            p, message = min(found, key=lambda each: each[0])
            problems.append(
                f'backend "{backend.name}": {len(found)} of {len(tests)} planes of bits follow the secret or the receiver\'s own '
                f"shares; the clearest (p {p:.2g}) is sent by party {message.sender} to party {message.receiver} for "
                f"{message.phase.split(',')[0]}."
            )
    return judged(
        problems,
        f"{cells} cells: "
        + by_name(
            counted,
            "{name}: {each[planes]} planes of bits are fair coins given secrets and own shares (least p "
            "{each[least_p]:.2g})",
            joint="; ",
        )
        + ".",
        counted,
    )


def _asked_again(arena: Arena, subject: Subject, number: int) -> list[Frame]:
    """What the computing parties get of each other where the leader asks for the same selection again and again. number:
    of the coins, all of which are others. Contributors have no part in it."""

    def script(oracle: MarginalOracle) -> None:
        columns = list(subject.sizes)
        oracle.measure(oracle.prepare([(name,) for name in columns]), NO_NOISE)
        pairs = list(combinations(columns, 2))
        answers = [np.full(oracle.facts.cells(pair), 1.0) for pair in pairs]
        weights, penalties = [Fraction(1)] * len(pairs), [Fraction(0)] * len(pairs)
        handles = oracle.prepare(pairs)
        for _ in range(REPETITIONS):
            oracle.select(handles, answers, weights, penalties, EPSILON)

    coins = subject.coins(f"the same selection, {number}")
    ran = arena.run(script, subject.tables(arena.parties, 6), coins)
    frames = [frame for party in range(arena.computing) for frame in ran.view(party)]
    return [frame for frame in frames if frame.sender < arena.computing]


def _whole_words(payload: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(payload[: len(payload) & ~7], np.uint64)


def served_twice(runs: Sequence[Sequence[Frame]]) -> tuple[int, list[tuple[Frame, Frame, int]]]:
    """How many pairs of messages of the first run are of one size and way, and of which some words are the same that
    are random: in the other runs, of other coins, bits of them are others almost everywhere."""
    first = [_whole_words(frame.payload) for frame in runs[0]]
    differ = [np.zeros_like(words) for words in first]
    for run in runs[1:]:
        for mask, words, frame in zip(differ, first, run, strict=True):
            mask |= words ^ _whole_words(frame.payload)
    random = [np.bitwise_count(mask) >= RANDOM_BITS for mask in differ]
    alike: defaultdict[tuple[str, int, int, int], list[int]] = defaultdict(list)
    for number, frame in enumerate(runs[0]):
        alike[frame.stream, frame.sender, frame.receiver, len(frame.payload)].append(number)
    pairs, found = 0, []
    for group in alike.values():
        for one, two in combinations(group, 2):
            pairs += 1
            if same := int(((first[one] == first[two]) & random[one] & random[two]).sum()):
                found.append((runs[0][one], runs[0][two], same))
    return pairs, found


def repeated(subject: Subject) -> Finding:
    """Compute the same again from the same shares, gates and whole selections; what is sent must have nothing in
    common with the first time."""
    problems, counted, cells = [], {}, CELLS[Profile.QUICK]
    selections: dict[str, int] = {}
    for backend in subject.distributed:
        run = _script(subject, subject.arena(backend), cells)
        if run is None:
            return _no_engine(backend)
        alike: defaultdict[tuple[str, int, int, int], list[Message]] = defaultdict(list)
        for message in _phases(run):
            kind = message.phase.split(",")[0]
            alike[kind, message.sender, message.receiver, len(message.payload)].append(message)
        pairs = [pair for group in alike.values() for pair in combinations(group, 2)]
        counted[backend.name] = len(pairs)
        for first, second in pairs:
            size = len(first.payload) & ~7
            one, two = (np.frombuffer(each.payload[:size], np.uint64) for each in (first, second))
            if (one == two).any():
                problems.append(
                    f'backend "{backend.name}": two messages of party {first.sender} to party {first.receiver} ({first.phase}; '
                    f"{second.phase}) have {int((one == two).sum())} of {len(one)} words in common."
                )
    for name, arena in subject.arenas.items():
        runs = [_asked_again(arena, subject, number) for number in range(1 + FRESH)]
        if len({tuple(len(frame.payload) for frame in run) for run in runs}) > 1:
            problems.append(f"{name}: the sizes of a selection's messages follow keys or coins.")
            continue
        selections[name], twice = served_twice(runs)
        problems += [
            f"{name}: two messages of party {before.sender} to party {after.receiver} (rounds {before.clock} and "
            f"{after.clock}) in selections from the same answers have {same} random words in common."
            for before, after, same in twice
        ]
    return judged(
        problems,
        "The same computed again from the same shares: no word of 64 bits in common in "
        f"{by_name(counted, '{each} pairs of messages ({name})')}; the same selection asked again: no random one in "
        f"{by_name(selections, '{each} ({name})')}.",
        {"pairs": counted, "selections": selections},
    )


def _noise_of(subject: Subject, backend: DistributedBackend, kept: int, fresh: int) -> NDArray[np.int64]:
    """One release of parties without rows, which is its noise, with all that party `kept` lacks drawn anew if
    `fresh`."""
    columns = {f"column {number}": WIDE for number in range(COLUMNS)}
    arena = Arena.of(backend, columns, row_cap=1024)
    coins = replace(subject.coins("noise of a party"), kept=kept, fresh=fresh)
    ran = arena.run(
        lambda oracle: oracle.measure(oracle.prepare([(name,) for name in columns]), LOUD),
        [np.zeros((0, len(columns)), np.int64)] * arena.parties,
        coins,
    )
    return np.concatenate(ran.answer)


def known_parts(first: NDArray[np.int64], second: NDArray[np.int64]) -> dict[str, float]:
    """Correlations of two draws of which a party knows the same: of values, of magnitudes, of signs, of
    parities."""
    forms = {
        "values": (first, second),
        "magnitudes": (np.abs(first), np.abs(second)),
        "signs": (np.sign(first), np.sign(second)),
        "parities": (first % 2, second % 2),
    }
    return {name: float(np.corrcoef(one, two)[0, 1]) for name, (one, two) in forms.items()}


def noise(subject: Subject) -> Finding:
    """Draw anew what one party lacks: the noise of the same release must have nothing in common with what it
    was."""
    problems, figures = [], {}
    tests = 4 * sum(subject.arena(backend).computing for backend in subject.distributed)
    z = statistics.normal_quantile(1 - NOISE_ALPHA / 2 / max(tests, 1))
    limit = 0.0
    for backend in subject.distributed:
        first = _noise_of(subject, backend, 0, 0)
        for party in range(subject.arena(backend).computing):
            second = _noise_of(subject, backend, party, 1)
            limit = math.tanh(z / math.sqrt(len(first) - 3))
            found = known_parts(first, second)
            figures[f"{backend.name}, party {party}"] = found
            problems += [
                f'backend "{backend.name}": party {party} knows a part of the noise: the {form} of the same release with all '
                f"that it lacks drawn anew have a correlation of {value:+.2f} (limit {limit:.2f}, {len(first)} draws)."
                for form, value in found.items()
                if abs(value) > limit
            ]
    most = max((abs(value) for found in figures.values() for value in found.values()), default=0.0)
    return judged(
        problems,
        f"With all that a party lacks drawn anew, the noise of a release is another: correlations of at most {most:.3f} (limit "
        f"{limit:.3f}, {COLUMNS * WIDE} draws).",
        {"correlations": figures, "limit": limit},
    )


def _exchanged(computing: int, known: int) -> list[SharedKeys]:
    """What each party holds when all have contributed to their keys, of whom one's random numbers are zeros."""
    made = []
    for party in range(computing):
        drawn = bytes if party == known else secrets.token_bytes
        with mock.patch.object(secrets, "token_bytes", drawn):
            made.append(SharedKeys(party, computing))
    for sender, receiver in permutations(range(computing), 2):
        made[receiver].take(sender, made[sender].contribution(receiver))
    return made


def keys(subject: Subject) -> Finding:
    """Agree on keys twice where one party's random numbers are known: none may be what it was, or differ
    among its holders."""
    problems, compared = [], 0
    for computing in sorted({subject.arena(backend).computing for backend in subject.distributed} - {1}):
        for known in range(computing):
            first, second = (_exchanged(computing, known) for _ in range(2))
            for members, key in first[known].prss(SESSION).items():
                compared += 1
                if any(first[member].prss(SESSION)[members] != key for member in members):
                    problems.append(f"Parties {members} of {computing} do not hold the same key.")
                if second[known].prss(SESSION)[members] == key:
                    problems.append(
                        f"Whoever knows the random numbers of party {known} of {computing} knows the key of {members}."
                    )
            pairs = [each[known].pairs(SESSION) for each in (first, second)]
            compared += len(pairs[0])
            problems += [
                f"Whoever knows the random numbers of party {known} of {computing} knows its key with party {peer}."
                for peer, key in pairs[0].items()
                if key in pairs[1].values()
            ]
    return judged(
        problems,
        f"{compared} keys of parties of whom one has random numbers that everybody knows: all are others the next time.",
        {"compared": compared},
    )


GROUP = Group(
    "U",
    "Shares",
    "Is what a party holds worth nothing by itself?",
    (
        Check(
            "gates",
            "What a party is sent for a gate is uniform, given the secrets and its own shares of them.",
            "statistical",
            "A share that is sent on without a fresh mask, a bit that is right more often than not, a carry in the clear.",
            gates,
            GATES_ALPHA,
        ),
        Check(
            "noise",
            "No computing party knows a part of the noise.",
            "statistical",
            "A sign, a magnitude, a parity or an addend of the noise that one party can compute.",
            noise,
            NOISE_ALPHA,
        ),
        Check(
            "keys",
            "No party's random numbers alone decide a key that it shares.",
            "exact",
            "A key that one of its holders draws for the others, or that leaves out what one of them contributes.",
            keys,
        ),
        Check(
            "repeated",
            "No mask serves twice: the same computed again travels as something else.",
            "statistical",
            "A mask or an oblivious transfer that is used in two operations, or in two selections.",
            repeated,
            REPEATED_ALARM,
        ),
    ),
)
