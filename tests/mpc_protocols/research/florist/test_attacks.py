"""What a deviating party learns in FLORIST as printed, without being noticed (`docs/design/psu.md` 4): why it
is semi-honest only.

The honest party here follows the protocol and makes every check of `florist`; it finishes normally in all
attacks but the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.groups.group import Elements
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.randomness import permutation
from mpc_protocols.psu.two_owners.exchange import COUNT_BYTES, Exchange
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, ids, run, spec_of

SPEC = spec_of("florist")
N = 60
MINE, THEIRS = ids(range(N)), ids(range(N // 2, N // 2 + N))
TRUE = {e: e in THEIRS for e in MINE}
JUNK = [b"\x02 nobody %d" % i for i in range(N)]


@dataclass
class Loot:
    """What the active party computed along the way."""

    sid: bytes
    group: Ristretto255
    own_both: Elements  # step 4
    both: Elements  # step 6, shuffled by ourselves
    records: dict[bytes, bytes]  # of what was asked in step 11
    union: set[bytes]


def union_of(group: Ristretto255, sid: bytes, own_both: Elements, both: Elements) -> Elements:
    """The honest merger."""
    return np.unique(np.concatenate([own_both, both]), axis=0)


def active(
    listed: list[bytes],
    asked: list[bytes],
    loot: list[Loot],
    extra: Callable[[Ristretto255, bytes], Elements] | None = None,
    merge: Callable[[Ristretto255, bytes, Elements, Elements], Elements] = union_of,
) -> Callable[[Wire], None]:
    """FLORIST's active party with its inputs to step 3 and step 11 taken apart, and a merger of its own."""

    def body(wire: Wire) -> None:
        exchange, group = Exchange(wire, CONTEXT, SPEC), Ristretto255()
        s1, s2, s3 = group.random_exponents(3)
        q, width = group.order, group.element_bytes
        set_of, questions = (group.hash_many(entries, exchange.sid) for entries in (listed, asked))
        if extra is not None:
            set_of, questions = (np.concatenate([e, extra(group, exchange.sid)]) for e in (set_of, questions))
        n = len(set_of)
        m, _ = exchange.announce(n)
        theirs = exchange.lists(group.power(set_of[permutation(n)], s1), m, width)
        their_questions = exchange.lists(group.power(questions, s2), m, width)
        both = group.power(theirs, s1)
        own_both = exchange.lists(both, n, width)
        answered = exchange.lists(group.power(their_questions, s1 * s2 % q * s3 % q), n, width)
        records = group.power(answered, s1 * s3 % q)
        merged = merge(group, exchange.sid, own_both, both)
        exchange.send(len(merged).to_bytes(COUNT_BYTES, "big"))
        exchange.lists(group.power(merged[permutation(len(merged))], s2 * s3 % q), 0, width)
        union = exchange.lists(merged[:0], len(merged), width)
        loot.append(
            Loot(
                exchange.sid,
                group,
                own_both,
                both,
                {e: r.tobytes() for e, r in zip(asked, records, strict=False)},
                {row.tobytes() for row in union},
            )
        )

    return body


def test_set_swap() -> None:
    """Junk in steps 3 to 8, the real set in step 11: u(x) lies in U exactly if the other party holds x. All
    of them."""
    loot: list[Loot] = []
    done = run(SPEC, active(JUNK, MINE, loot), THEIRS)
    assert {e: r in loot[0].union for e, r in loot[0].records.items()} == TRUE
    assert done.results[1].n_rows == 2 * N  # the victim finished


def test_the_merger_drops_its_own_elements() -> None:
    """The union of the other's set alone, padded with junk to the true size: the same test, with one honest
    list."""
    loot: list[Loot] = []

    def theirs_only(group: Ristretto255, sid: bytes, own_both: Elements, both: Elements) -> Elements:
        size = len(np.unique(np.concatenate([own_both, both]), axis=0))
        return np.concatenate([both, group.hash_many(JUNK, sid)[: size - len(both)]])

    done = run(SPEC, active(MINE, MINE, loot, merge=theirs_only), THEIRS)
    assert {e: r in loot[0].union for e, r in loot[0].records.items()} == TRUE
    assert done.results[1].n_rows == N + N // 2


def test_related_elements_survive_the_shuffle() -> None:
    """h and h^c side by side in the own set: their pair is recognised after the shuffle and looked up in the
    other list."""
    loot: list[Loot] = []
    targets = MINE[N // 2 - 10 : N // 2 + 10]
    powers = [3 + 2 * i for i in range(len(targets))]
    done = run(
        SPEC,
        active(MINE, MINE, loot, lambda group, sid: group.power_each(group.hash_many(targets, sid), powers)),
        THEIRS,
    )
    group, shuffled = loot[0].group, {row.tobytes() for row in loot[0].own_both}
    theirs = {row.tobytes() for row in loot[0].both}
    learnt = {}
    for target, power in zip(targets, powers, strict=True):
        (found,) = [
            base.tobytes()
            for base, raised in zip(loot[0].own_both, group.power(loot[0].own_both, power), strict=True)
            if raised.tobytes() in shuffled
        ]
        learnt[target] = found in theirs
    assert learnt == {t: TRUE[t] for t in targets}
    assert done.results[1].n_rows == N + N // 2 + len(targets)


@pytest.mark.parametrize("target", [N // 2, N + 1])
def test_a_record_dropped_from_the_union_is_a_question(target: int) -> None:
    """The passive party replaces the record of its y in U by junk: the other aborts exactly if it holds y."""

    def passive(wire: Wire) -> None:
        exchange, group = Exchange(wire, CONTEXT, SPEC), Ristretto255()
        t1, t2, t3 = group.random_exponents(3)
        q, width = group.order, group.element_bytes
        hashed = group.hash_many(THEIRS, exchange.sid)
        m, _ = exchange.announce(N)
        theirs = exchange.lists(group.power(hashed[permutation(N)], t1), m, width)
        questions = exchange.lists(group.power(hashed, t2), m, width)
        exchange.lists(group.power(theirs, t1)[permutation(m)], N, width)
        answered = exchange.lists(group.power(questions, t1 * t2 % q * t3 % q), N, width)
        records = group.power(answered, t1 * t3 % q)
        merged = exchange.lists(theirs[:0], int.from_bytes(exchange.receive(COUNT_BYTES), "big"), width)
        union = group.power(merged, t2 * t3 % q)
        y = THEIRS.index(ids([target])[0])
        place = int(np.flatnonzero((union == records[y]).all(axis=1))[0])
        union[place] = group.hash_many(JUNK[:1], exchange.sid)[0]
        exchange.lists(union, 0, width)

    if target < N:
        with pytest.raises(ProtocolAborted, match="left records of this party out of the union"):
            run(SPEC, MINE, passive)
    else:
        assert run(SPEC, MINE, passive).results[0].n_rows == N + N // 2
