"""The suite of alignment methods: the same common table as the ideal functionality's, at the announced cost,
or a stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.psu.align import align
from mpc_protocols.psu.forecast import forecast, list_lengths
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, Security
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.method import METHODS, AlignmentMethod
from mpc_protocols.wire import Traffic, Wire
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent, change
from runner.review.conformance.checks import Check, expect, refusal
from runner.review.conformance.guards import Recorder, refusing
from runner.review.conformance.misshapen import Ways, misshapen

NAMES = ("north", "south", "east", "west", "hill", "lake")
MEMBERS = tuple(Member(name, bytes([number]) * 32, number) for number, name in enumerate(NAMES))
WORLDS = (((0, 1), 2), ((1, 0), 3), ((0, 2), 3), ((0, 3), 3), ((3, 4), 3), ((0, 1, 2), 3), ((4, 2, 3), 3))
"""Numbers of the owners in the study's order, and how many parties compute."""
OVERLAPS: Mapping[str, Sequence[Sequence[int]]] = {
    "nothing in common": (range(5), range(10, 14), range(20, 26)),
    "everything in common": ((3, 1, 4, 0, 5), (0, 1, 3, 4, 5), (5, 4, 3, 1, 0)),
    "one in common": ((7, 1, 2), (30, 31, 7, 33), (7,)),
    "several in common, other orders": (range(12), range(15, 5, -1), (11, 2, 8, 40)),
    "an owner without records": ((), range(4), (3, 9)),
    "nobody with a record": ((), (), ()),
    "the same one record": ((6,), (6,), (6,)),
}
NOISY = {"adjacency": "add-remove", "size_epsilon": Fraction(2), "size_delta": Fraction(1, 1000)}

Lists = Sequence[Sequence[int]]
"""Which people each owner has records of."""


def check_alignment(method: AlignmentMethod) -> list[Check]:
    """Every promise of a method that can be seen from outside, for all owners and computing parties that it
    says it can run with.

    A method that is not in the registry is put there while a check runs.
    """
    checks: list[Check] = []
    worlds = [world for world in WORLDS if _fits(method, *world)]

    def add(name: str, body: Callable[..., None], *arguments: object) -> None:
        checks.append(
            Check(f'alignment "{method.name}"', name, partial(_registered, method, body, *arguments))
        )

    add("what it says of itself", _words)
    for owners, computing in worlds:
        world = f"owners {', '.join(map(str, owners))} of {computing} computing"
        add(
            f"rows and costs are right ({world})",
            _right,
            owners,
            computing,
            ("several in common, other orders",),
        )
    owners, computing = worlds[0]
    add("every overlap", _right, owners, computing, tuple(OVERLAPS))
    if method.proofs:
        add("with proofs", _right, owners, computing, ("one in common",), "proofs")
    if not method.weakness("replace") and len(worlds[-1][0]) <= worlds[-1][1] == 3:
        add("where a party may deviate", _right, *worlds[-1], ("one in common",), "semi-honest", True)
    add("noisy sizes are on record before anything is sent", _on_record, *worlds[-1])
    add("a refused record stops its owner before it sends", _refused_record, *worlds[-1])
    add("own lists that break a rule are refused before anything is sent", _own_list, owners, computing)
    add("a message too short or too long stops the run", _bent, owners, computing)
    if method.psu:
        add("padded lists: what travels follows from public sizes", _padded, owners, computing)
        add("a list longer than the study allows stops the run", _too_long, owners, computing)
        add("keys of different types stop the run", _types, owners, computing)
    else:
        add("tables of different lengths stop the run", _unequal, owners, computing)
    return checks


# -- runs
# -----------------------------------------------------------------------------------------------------------------


@dataclass
class Aligned:
    """What a run left, by wire number."""

    results: list[Alignment]
    traffic: list[Traffic]
    guards: list[Recorder]


def _registered(method: AlignmentMethod, body: Callable[..., None], *arguments: object) -> None:
    if METHODS.get(method.name) is method:
        body(method, *arguments)
    else:
        with METHODS.registered(method):
            body(method, *arguments)


def _fits(method: AlignmentMethod, owners: Sequence[int], computing: int) -> bool:
    if method.helper and all(number in owners for number in range(computing)):
        return False
    return method.misfit([NAMES[owner] for owner in owners], NAMES[:computing]) is None


def _context(method: AlignmentMethod, owners: Sequence[int], computing: int) -> Context:
    helpers = [MEMBERS[number] for number in range(computing) if number not in owners]
    return Context(
        bytes(range(32)),
        tuple(MEMBERS[owner] for owner in owners),
        helpers[0] if method.helper else None,
        MEMBERS[:computing],
    )


def _spec(method: AlignmentMethod, **changes: object) -> AlignmentSpec:
    return AlignmentSpec(method.name, **{"min_size": 0, "max_size": 1000, **changes})  # type: ignore[arg-type]


def _entries(people: Sequence[int]) -> list[bytes]:
    return [b"\x00person %d" % person for person in people]


def _own_input(method: AlignmentMethod, people: Sequence[int], kind: str = "text") -> Identifiers | int:
    """What an owner brings; where tables are aligned already, the number of its rows."""
    return Identifiers(_entries(people), np.arange(len(people)), (kind,)) if method.psu else len(people)


def _lists(method: AlignmentMethod, owners: Sequence[int], overlap: str) -> Lists:
    """Where tables are aligned already, everybody has the last owner's number of rows."""
    lists = OVERLAPS[overlap][: len(owners)]
    return lists if method.psu else [range(len(lists[-1]))] * len(owners)


def _run(
    context: Context,
    spec: AlignmentSpec | Mapping[int, AlignmentSpec],
    own: Sequence[Identifiers | int],
    guards: Mapping[int, Recorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
    bend: Bend | None = None,
) -> Aligned:
    """spec: of all, or of each party. own: of each owner. Raises what the first party to fail raised."""
    parties = max(member.number for member in context.members) + 1
    everybody = [(guards or {}).get(number) or Recorder() for number in range(parties)]

    def body(plain: Wire) -> Alignment:
        wire, side = bent(plain, bend), context.side(plain.me)
        mine = spec if isinstance(spec, AlignmentSpec) else spec[wire.me]
        return align(wire, None if side is None else own[side], mine, context, everybody[wire.me])

    network = MemoryNetwork(parties, len(context.computing), tap=tap)
    bodies = [
        body if number in [member.number for member in context.members] else _absent
        for number in range(parties)
    ]
    results = network.run(bodies)
    return Aligned(results, [network.traffic(number) for number in range(parties)], everybody)


def _absent(wire: Wire) -> Alignment:
    """A contributor without columns takes no part."""
    return Alignment(0, np.zeros(0, np.int64), bytes(32))


def _compare(context: Context, lists: Lists, done: Aligned, union: int | None = None) -> int:
    """One table for all: each person a row of its own, the same at every owner. The number of rows, given or
    the union's."""
    people = {person for own in lists for person in own}
    rows = len(people) if union is None else union
    members = [member.number for member in context.members]
    for number in members:
        found = done.results[number]
        expect(found.n_rows == rows, f"party {number} must be told {rows} rows, and was told {found.n_rows}.")
        expect(
            found.digest == done.results[members[0]].digest,
            f"party {number} must hold the digest that party {members[0]} holds, for their tables are one.",
        )
        if context.side(number) is None:
            expect(len(found.rows) == 0, f"party {number} owns nothing and must get no rows.")
    row_of: dict[int, int] = {}
    for owner, own in zip(context.owners, lists, strict=True):
        found = done.results[owner.number]
        expect(
            found.rows.dtype == np.int64 and found.rows.shape == (len(own),),
            f"party {owner.number} must get {len(own)} rows, int64, and got {found.rows.shape}, {found.rows.dtype}.",
        )
        for person, row in zip(own, found.rows.tolist(), strict=True):
            expect(0 <= row < rows, f"a row must lie below {rows}, and party {owner.number} got {row}.")
            expect(
                row_of.setdefault(person, row) == row,
                f"owners must get one row for one identifier; party {owner.number} got {row}, another one {row_of[person]}.",
            )
    expect(len(set(row_of.values())) == len(row_of), "different identifiers must get different rows.")
    return rows


def _compare_costs(
    context: Context, spec: AlignmentSpec, sizes: Sequence[int], rows: int, done: Aligned
) -> None:
    told = forecast(spec, context, sizes, rows)
    sent = {number: traffic.bytes_sent for number, traffic in enumerate(done.traffic) if traffic.bytes_sent}
    due = {number: count for number, count in told.sent.items() if count}
    expect(due == sent, f"the forecast must be the bytes that each party sends, {sent}, and is {due}.")
    rounds = max(traffic.rounds for traffic in done.traffic)
    expect(told.rounds == rounds, f"the forecast must be {rounds} rounds, and is {told.rounds}.")
    expect(all(seconds >= 0 for seconds in told.seconds.values()), "seconds must not be negative.")


# -- checks
# ---------------------------------------------------------------------------------------------------------------


def _words(method: AlignmentMethod) -> None:
    expect(
        method.name and method.owners and method.adversary and method.speed,
        "the table in docs/howto/vertical.md needs words.",
    )
    for what, sentence in (("matched", method.matched), ("trust", method.trust)):
        expect(sentence.endswith("."), f"{what} must be a sentence, and is {sentence!r}.")
    expect(
        method.trust_with_proofs.endswith(".") == method.proofs,
        f"trust_with_proofs must be a sentence if there are proofs, and is {method.trust_with_proofs!r}.",
    )
    weaknesses = [method.weakness("replace"), method.weakness("add-remove")]
    phrases = [method.claim, method.way, *filter(None, weaknesses)]
    phrases += [
        method.sizes_shown(owner, 2, noisy, padded)
        for owner in (False, True)
        for noisy in (False, True)
        for padded in (False, True)
    ]
    for phrase in phrases:
        expect(phrase and not phrase.endswith("."), f"a phrase must have no full stop: {phrase!r}.")
    for owners, computing in WORLDS:
        refused = method.refusal([NAMES[owner] for owner in owners], NAMES[:computing])
        expect(
            refused is None or not refused.endswith("."),
            f"misfit must be the rest of a sentence, without a full stop: {refused!r}.",
        )
    expect(
        any(_fits(method, *world) for world in WORLDS),
        "a method must be able to run with some of the suite's owners.",
    )


def _right(
    method: AlignmentMethod,
    owners: Sequence[int],
    computing: int,
    overlaps: Sequence[str],
    security: Security = "semi-honest",
    malicious: bool = False,
) -> None:
    context = _context(method, owners, computing)
    spec = _spec(method, security=security, malicious=malicious)
    for overlap in overlaps:
        lists = _lists(method, owners, overlap)
        done = _run(context, spec, [_own_input(method, people) for people in lists])
        rows = _compare(context, lists, done)
        _compare_costs(context, spec, [len(people) for people in lists], rows, done)
        for number, guard in enumerate(done.guards):
            expect(not guard.asked, f"sizes are public here, and party {number} recorded {guard.events}.")


def _padded(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    """Two runs whose lists differ, padded to the same sizes, with the same cost function; only the union's
    size may matter."""
    context = _context(method, owners, computing)
    spec = _spec(method, **NOISY, pad_to=(20,) * len(owners))
    for overlap in ("several in common, other orders", "nothing in common"):
        lists = OVERLAPS[overlap][: len(owners)]
        done = _run(context, spec, [_own_input(method, people) for people in lists])
        rows = done.results[owners[0]].n_rows
        _compare(context, lists, done, rows)
        longest = sum(list_lengths(spec, [20] * len(owners)))
        expect(rows <= longest, f"there must be at most {longest} rows, one an entry, and are {rows}.")
        _compare_costs(context, spec, [len(people) for people in lists], rows, done)


def _noted(
    method: AlignmentMethod, owners: Sequence[int], computing: int, refuser: int | None
) -> tuple[list[tuple[str, int]], Mapping[int, Recorder], Context]:
    """A run with noisy sizes: what was sent and put on record, in order; the guards."""
    context, spec = _context(method, owners, computing), _spec(method, **NOISY)
    log: list[tuple[str, int]] = []
    lock = threading.Lock()

    def note(what: str, party: int) -> None:
        with lock:
            log.append((what, party))

    guards = {owner: refusing() if owner == refuser else Recorder() for owner in owners}
    for owner, guard in guards.items():
        guard.on_event = lambda event, owner=owner: note("recorded", owner)
    own = [_own_input(method, people) for people in _lists(method, owners, "one in common")]
    try:
        _run(context, spec, own, guards, lambda frame: note("sent", frame.sender))
    except BudgetRefused:
        if refuser is None:
            raise
    return log, guards, context


def _on_record(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    log, guards, context = _noted(method, owners, computing, None)
    for owner in owners:
        recipients = {member.name for member in method.recipients(context, owner)}
        expect(NAMES[owner] not in recipients, "an owner learns nothing from its own sizes.")
        expect(
            bool(guards[owner].asked) == bool(recipients),
            f"owner {owner} must record what its sizes tell to {sorted(recipients)}, and recorded {guards[owner].events}.",
        )
        for event in guards[owner].events:
            named = event.detail["recipients"]
            expect(
                isinstance(named, list) and set(named) <= recipients,
                f"an event must name recipients among {sorted(recipients)}, and names {named}.",
            )
        places = [place for place, entry in enumerate(log) if entry == ("recorded", owner)]
        expect(
            not places or ("sent", owner) not in log[: places[-1]],
            f"owner {owner} must record before it sends its first message.",
        )


def _refused_record(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    for owner in owners:
        log, guards, context = _noted(method, owners, computing, owner)
        if method.recipients(context, owner):
            expect(guards[owner].refused == 1, f"the guard of owner {owner} must be asked, and once only.")
            expect(("sent", owner) not in log, f"owner {owner} must not send after its guard has refused.")


def _own_list(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    context, spec = _context(method, owners, computing), _spec(method, min_size=3, max_size=8)
    others: list[Identifiers | int] = [_own_input(method, range(4)) for _ in owners[1:]]
    bad: dict[str, Identifiers | int] = {"a list longer than max_size": _own_input(method, range(9))}
    if method.psu:
        bad["a list shorter than min_size"] = _own_input(method, range(2))
        bad["a list with duplicates"] = _own_input(method, [1, 2, 3, 1])
    for what, own in bad.items():
        sent: list[int] = []
        with refusal(DataRefused, what):
            _run(context, spec, [own, *others], tap=lambda frame, sent=sent: sent.append(frame.sender))  # type: ignore[misc]
        expect(owners[0] not in sent, f"nothing may be sent by the owner of {what}.")
    wrong = replace(context, computing=MEMBERS[: computing - 1]) if computing > 1 else context
    if not _fits(method, owners, computing - 1):
        with refusal(StudyInvalid, f"{computing - 1} computing parties"):
            wrong.check(spec)


def _too_long(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    """The first owner goes by another study, which allows its list."""
    context = _context(method, owners, computing)
    specs = {member.number: _spec(method, max_size=8) for member in context.members}
    specs[owners[0]] = _spec(method, max_size=9)
    own = [_own_input(method, range(9)), *(_own_input(method, range(8)) for _ in owners[1:])]
    with refusal(ProtocolAborted, "a list of 9 where the other parties' study allows 8"):
        _run(context, specs, own)


def _bent(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    context, spec, ways = _context(method, owners, computing), _spec(method), Ways()
    own = [_own_input(method, people) for people in _lists(method, owners, "several in common, other orders")]
    _run(context, spec, own, tap=ways)
    for way, number, how, words in misshapen(ways.counts):
        what = f"message {number} from party {way[0]} to party {way[1]}, {words},"
        with refusal(CosynthError, what) as caught:
            _run(context, spec, own, bend=change(way, number, how))
        expect(
            isinstance(caught[0], ProtocolAborted),
            f"{what} must stop its receiver with exit code 40, not with {caught[0].exit_code} ({caught[0].sentence})",
        )


def _types(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    context, spec = _context(method, owners, computing), _spec(method)
    own = [_own_input(method, range(4), "integer" if side else "text") for side, _ in enumerate(owners)]
    with refusal(ProtocolAborted, "numbers that are to be matched with texts"):
        _run(context, spec, own)


def _unequal(method: AlignmentMethod, owners: Sequence[int], computing: int) -> None:
    context, spec = _context(method, owners, computing), _spec(method)
    with refusal(ProtocolAborted, "tables of 4 and 5 rows"):
        _run(context, spec, [4 + (side == 0) for side, _ in enumerate(owners)])
