"""FLORIST's private set union, as printed (`docs/design/psu.md` 1.1): the reference protocol. Two owners, no
third party.

Active party a with exponents s1, s2, s3, passive party p with t1, t2, t3, H a hash to the group; the record
of x is u(x) = H(x)^{s1 s2 s3 t1 t2 t3}. "Shuffle" is a fresh uniform permutation. Step numbers are the
paper's:

    3  a -> p   shuffle of X_a^{s1}                      5  p -> a   shuffle of X_p^{t1}
    4  p -> a   shuffle of X_a^{s1 t1}                   6  a -> p   shuffle of X_p^{s1 t1}  (nobody uses it)
    8  a -> p   shuffle of (X_a u X_p)^{s1 t1 s2 s3}     9  p -> a   shuffle of that to t2 t3; both sort: U
    11 a -> p   X_a^{s2}; answered ^{t1 t2 t3}; a raises to s1 s3       12 the same for p, with t2, s1 s2 s3 and t1 t3

Threat model: SEMI-HONEST ONLY, under DDH with H a random oracle. Each owner learns both sizes and u, nothing
else. Our additions change no message: uniform order also in the questions of 11 and 12, checks on every
element and list, own records must lie in U. They do not help against a party that deviates: it learns without
being noticed what `tests/mpc_protocols/research/florist/test_attacks.py` shows (`docs/design/psu.md` 4): the
two halves are not bound together (set swap), the merger may drop its own elements, related elements survive a
shuffle, and a record dropped from U makes the other's abort tell. Prefer `dh2`.

Cost: 3 n_a + 2 n_p + u exponentiations at a, 2 n_a + 3 n_p + u at p; 4 (n_a + n_p) + 2 u elements; 7 rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.group import Elements, Group
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.psu.two_owners.exchange import COUNT_BYTES, Exchange
from mpc_protocols.wire import Wire


def align(
    wire: Wire,
    entries: Sequence[bytes],
    spec: AlignmentSpec,
    context: Context,
    group: Group,
    entropy: Entropy = system,
) -> Alignment:
    """One owner's part: the first owner of the context is active. entries: its distinct canonical
    identifiers.

    Raises `ProtocolAborted` when the other owner sends something the protocol does not allow.
    """
    exchange = Exchange(wire, context, spec)
    active = exchange.side == 0
    k1, k2, k3 = group.random_exponents(3, entropy)  # s1, s2, s3 or t1, t2, t3
    q = group.order
    n = len(entries)
    hashed = group.hash_many(entries, exchange.sid)
    m, _ = exchange.announce(n)

    # 3 and 5: own set under the first key. 11 and 12: the same set under the second, in an order of its own.
    theirs = _swap(exchange, group, group.power(hashed[permutation(n, entropy)], k1), m, "its set")
    question_order = permutation(n, entropy)
    questions = _swap(exchange, group, group.power(hashed[question_order], k2), m, "its questions")
    # 4 and 6, and the answers.
    with exchange.judging("its set"):
        both = group.power(theirs, k1)[permutation(m, entropy)]
    with exchange.judging("its questions"):
        answers = group.power(questions, k2 * k3 % q * k1 % q)
    own_both = _swap(exchange, group, both, n, "the set it answered")
    answered = _swap(exchange, group, answers, n, "its answers")
    with exchange.judging("its answers"):
        own = group.power(answered, k1 * k3 % q)

    with exchange.judging("the set it answered"):
        group.check(own_both)
    if active:  # 7 to 9
        merged = np.unique(np.concatenate([_words(own_both), _words(both)]))
        merged_rows = merged.view(np.uint8).reshape(len(merged), group.element_bytes)
        raised = group.power(merged_rows[permutation(len(merged), entropy)], k2 * k3 % q)
        exchange.send(len(merged).to_bytes(COUNT_BYTES, "big"))
        _one_way(exchange, group, raised, 0, "nothing")
        union = _one_way(exchange, group, raised[:0], len(merged), "the union")
        with exchange.judging("the union"):
            group.check(union)
    else:
        count = int.from_bytes(exchange.receive(COUNT_BYTES), "big")
        if not max(n, m) <= count <= n + m:
            exchange.abort("announced a union smaller than a set or larger than both together")
        merged_rows = _one_way(exchange, group, theirs[:0], count, "the union")
        with exchange.judging("the union"):
            union = group.power(merged_rows[permutation(count, entropy)], k2 * k3 % q)
        _one_way(exchange, group, union, 0, "nothing")
    return _result(exchange, group, union, own, question_order)


def _result(
    exchange: Exchange, group: Group, union: Elements, own: Elements, question_order: NDArray[np.int64]
) -> Alignment:
    """Step 10 and the map: U sorted by encoding, own records looked up in it."""
    table = np.sort(_words(union))
    records = _words(own)
    places = np.minimum(np.searchsorted(table, records), max(len(table) - 1, 0))
    if len(records) and (
        len(table) == 0 or (table[places] != records).any() or len(np.unique(places)) != len(places)
    ):
        exchange.abort("left records of this party out of the union")
    rows = np.empty(len(records), np.int64)
    rows[question_order] = places
    return Alignment(len(table), rows, digest(b"psu union", exchange.sid, table.tobytes()), group.operations)


def _swap(exchange: Exchange, group: Group, own: Elements, theirs: int, what: str) -> Elements:
    """Exchange lists; the other's must hold no element twice."""
    received = exchange.lists(own, theirs, group.element_bytes)
    exchange.distinct(received, what)
    return received


_one_way = _swap  # with one of the two lists empty


def _words(rows: Elements) -> NDArray[np.bytes_]:
    """Rows as a vector of byte strings, which sort by their encoding."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)


def cost(active: int, passive: int, union: int, element_bytes: int = 32) -> Cost:
    """Exponentiations, bytes, messages and rounds for the sizes of the two lists and of their union."""
    total = Cost()
    a, p, u = active, passive, union
    total.powers[:2] = [3 * a + 2 * p + u, 2 * a + 3 * p + u]
    total.hashes[:2] = [a, p]
    total.swap(COUNT_BYTES)
    for counts in ((a, p), (a, p), (p, a), (p, a)):
        total.stream(counts, element_bytes)
    total.send(0, 1, COUNT_BYTES)
    total.receive(1, 0)
    total.stream((u, 0), element_bytes)
    total.stream((0, u), element_bytes)
    return total
