"""dh2: private set union of two owners, symmetric, each building the union itself (`psu.md` 1.2). The two-party default.

Owner A holds X and secret exponents a1, a2; B mirrors it with Y, b1, b2. The record of x is named by H(x)^{a1 a2 b1 b2}.

    0  commitment to P (and, with proofs, g^{a1}, g^{a1 a2})
    1  P = X^{a1}, shuffled; B sends Q = Y^{b1}
    2  commitment to the tags, then the tags: 16-byte hashes of Q^{a1}, shuffled. Tags common to both lists are common records
    3  R_Y = Q^{a1 a2} in Q's order;  queries F_j = R_{Y,j}^{s_j} for the positions j of Q whose tag is not among B's,
       in random order, each with its own fresh s_j
    4  answers E^{a2} to B's queries E. A raises R_X = X^{a1 b1 b2} to a2: its own records; and B's answers to 1/s_j: the others
    5  hash of the sorted union, committed, then opened

Threat model: two owners, SEMI-HONEST, DDH with H a random oracle; the argument is in `psu.md` 1.2: all A sees is random given X,
|Y| and u (queries are perfectly blinded; tags appear in positions that B permuted).
Deviations (tests: `test_dh2_attacks.py`). There is one list, answered twice, so the set swap and the dropping merger of `florist`
have no place here, and commitments keep anybody from forming its list or tags from the other's. Querying positions that match,
sending false tags, answering with other exponents: each alone is noticed, after the fact, when the tables are compared. Combined
with false answers that fit each other they can pass, unless security = "proofs", which gives every ordered answer a proof that
one committed exponent made it (`dleq`). NOT noticed in either mode: feeding H(y)^c for a secret c in place of H(y). The list then
matches nothing, c comes out of the answers again, and every y that the other holds shows in the union: as in every Diffie-Hellman
union without a proof that inputs are hashes. Against a party that would do this use a third party (`helper`).
Who learns what: both owners the sizes and u; nothing else. Exponents are dropped at the end (Python cannot wipe them).

Cost at A: n_b + 3 u exponentiations (proofs: about 3 u more); 32 (n_a + n_b + u - n_a + u - n_b) + 16 n_b bytes; 9 rounds with
commitments, while blocks fit the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu import dleq
from mpc_protocols.psu.cost import Cost
from mpc_protocols.psu.exchange import BLOCK, COUNT_BYTES, Exchange
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.group import Elements, Group, concatenated
from mpc_protocols.psu.hashing import NAME_BYTES, Names, digest, row_names
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.wire import Wire

COMMITMENT_BYTES = 32
TAG, RECORD = b"psu dh2 tag", b"psu dh2 record"


class Owner:
    """One owner's run; the methods are the flights, in order."""

    def __init__(self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, group: Group,
                 entropy: Entropy = system) -> None:
        """entries: distinct canonical identifiers."""
        self.exchange = Exchange(wire, context, spec)
        self.group, self.entropy = group, entropy
        self.proofs = spec.security == "proofs"
        self.first, self.second = group.random_exponents(2, entropy)  # a1, a2
        self.joint = self.first * self.second % group.order
        self.order = permutation(len(entries), entropy)
        self.own_list = group.power(group.hash_many(entries, self.exchange.sid)[self.order], self.first)
        self.keys = self.their_keys = (b"", b"")  # g^{a1}, g^{a1 a2}; with proofs only

    def run(self) -> Alignment:
        """The whole protocol."""
        self.exchange_lists()
        self.exchange_tags()
        self.answer_lists()
        self.fetch_others()
        return self.finish()

    def exchange_lists(self) -> None:
        """Flights 0 and 1: sizes, commitments and public keys; then P and Q, committed before either was seen."""
        group, exchange = self.group, self.exchange
        if self.proofs:
            generator = group.parse(group.generator)
            self.keys = (group.power(generator, self.first).tobytes(), group.power(generator, self.joint).tobytes())
        commitment = self._commitment(concatenated(self.own_list))
        self.n_theirs, extra = exchange.announce(len(self.own_list), commitment + b"".join(self.keys))
        if self.proofs:
            first, joint = extra[COMMITMENT_BYTES:-group.element_bytes], extra[-group.element_bytes:]
            with exchange.judging("public keys"):
                group.check(group.parse(first + joint))
            self.their_keys = (first, joint)
        self.their_list = exchange.lists(self.own_list, self.n_theirs, group.element_bytes)
        self._opens(concatenated(self.their_list), extra[:COMMITMENT_BYTES], "a list")
        exchange.distinct(self.their_list, "a list")

    def exchange_tags(self) -> None:
        """Flight 2: which positions of Q are none of ours (`missing`). Raising Q's elements checks them."""
        exchange = self.exchange
        tags = self._hashed(TAG, self.their_list, lambda block, _: self.group.power(block, self.first), "a list")
        told = _rows(self.tags_to_send(tags))
        commitment = exchange.swap(self._commitment(concatenated(told)))
        heard = exchange.lists(told, len(self.own_list), NAME_BYTES)
        self._opens(concatenated(heard), commitment, "tags")
        exchange.distinct(heard, "tags")
        self.missing = np.flatnonzero(~np.isin(tags, _names(heard)))
        self.common = self.n_theirs - len(self.missing)

    def tags_to_send(self, tags: Names) -> Names:
        """The tags in an order of their own."""
        return tags[permutation(len(tags), self.entropy)]

    def answer_lists(self) -> None:
        """Flight 3, first half: R_Y to the other's list; R_X comes back for ours. In order."""
        self.given, self.own_answers = self._answer(self.their_list, self.joint, self.own_list, self.group.generator,
                                                    self.group.generator, b"lists")

    def positions_to_query(self) -> NDArray[np.int64]:
        """The other's records that we lack, in random order."""
        return self.missing[permutation(len(self.missing), self.entropy)]

    def fetch_others(self) -> None:
        """Flight 3, second half, and flight 4: queries under one-time exponents, and their answers.

        The other may ask for as many records as it lacks, which we know: n_a - k. One more or less breaks the length.
        """
        group, exchange = self.group, self.exchange
        positions = self.positions_to_query()
        self.blinds = group.random_exponents(len(positions), self.entropy)
        queries = group.rows(len(positions))
        asked = group.rows(len(self.own_list) - self.common)

        def query(part: slice) -> memoryview:
            queries[part] = group.power_each(self.given[positions[part]], self.blinds[part])
            return concatenated(queries[part])

        def heard(part: slice, payload: memoryview) -> None:
            asked[part] = group.parse(payload)

        exchange.stream(len(queries), len(asked), query, heard, group.element_bytes)
        exchange.distinct(asked, "queries")
        _, self.fetched = self._answer(asked, self.second, queries, self.keys[0], self.their_keys[0], b"queries")

    def finish(self) -> Alignment:
        """Own and fetched records, sorted; both owners must hold the same table (flight 5)."""
        group, exchange = self.group, self.exchange
        own = self._hashed(RECORD, self.own_answers, lambda block, _: group.power(block, self.second), "answers")
        unblind = group.inverses(self.blinds)
        others = self._hashed(RECORD, self.fetched, lambda block, part: group.power_each(block, unblind[part]), "answers")
        records = np.concatenate([own, others])
        order = np.argsort(records, kind="stable")
        table = records[order]
        if (table[1:] == table[:-1]).any():
            exchange.abort("sent tags that its answers contradict")
        rank = np.empty(len(records), np.int64)
        rank[order] = np.arange(len(records))
        rows = np.empty(len(own), np.int64)
        rows[self.order] = rank[:len(own)]
        union = digest(b"psu union", exchange.sid, _rows(table).tobytes())
        exchange.agree(union, "union")
        return Alignment(len(table), rows, union, group.operations)

    def _answer(self, questions: Elements, key: int, asked: Elements, base: bytes, their_base: bytes,
                label: bytes) -> tuple[Elements, Elements]:
        """Raise the other's questions to `key`, in order, and take its answers to `asked`; with proofs, one per block."""
        group, exchange = self.group, self.exchange
        given, taken = group.rows(len(questions)), group.rows(len(asked))

        def produce(part: slice) -> bytes:
            with exchange.judging("questions"):
                given[part] = group.power(questions[part], key)
            block = given[part].tobytes()
            if self.proofs:
                block += dleq.prove(group, key, base, self.keys[1], questions[part], given[part],
                                    self._proof_context(exchange.side, label, part, base), self.entropy)
            return block

        def consume(part: slice, payload: memoryview) -> None:
            size = (part.stop - part.start) * group.element_bytes
            taken[part] = group.parse(payload[:size])
            if self.proofs and not dleq.verify(group, their_base, self.their_keys[1], asked[part], taken[part],
                                               self._proof_context(1 - exchange.side, label, part, their_base),
                                               bytes(payload[size:])):
                exchange.abort("sent answers whose proof does not hold")

        exchange.stream(len(questions), len(asked), produce, consume, group.element_bytes,
                        dleq.proof_bytes(group) if self.proofs else 0)
        return given, taken

    def _proof_context(self, prover: int, label: bytes, part: slice, base: bytes) -> bytes:
        return digest(b"psu dh2 proof", self.exchange.sid, bytes([prover]), label, part.start.to_bytes(8, "big"), base)

    def _hashed(self, domain: bytes, elements: Elements, raised: Callable[[Elements, slice], Elements], what: str) -> Names:
        """Names of the elements after `raised`, block by block; an invalid one is the other's fault."""
        out: Names = np.empty(len(elements), f"S{NAME_BYTES}")
        for start in range(0, len(elements), BLOCK):
            part = slice(start, start + BLOCK)
            with self.exchange.judging(what):
                block = raised(elements[part], part)
            out[part] = row_names(self.exchange.sid, domain, block)
        return out

    def _commitment(self, message: memoryview, side: int | None = None) -> bytes:
        """Hash commitment of one side. No nonce: a list or tags under a secret exponent cannot be guessed."""
        role = self.exchange.side if side is None else side
        return digest(b"psu commitment", self.exchange.sid, bytes([role]), message)

    def _opens(self, message: memoryview, commitment: bytes, what: str) -> None:
        if self._commitment(message, 1 - self.exchange.side) != commitment:
            self.exchange.abort(f"sent {what} other than it had committed to")


def align(wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, group: Group,
          entropy: Entropy = system) -> Alignment:
    """One owner's part. entries: its distinct canonical identifiers.

    Raises `ProtocolAborted` when the other owner sends something the protocol does not allow, or deviated.
    """
    return Owner(wire, entries, spec, context, group, entropy).run()


def _rows(names: Names) -> NDArray[np.uint8]:
    return np.ascontiguousarray(names).view(np.uint8).reshape(len(names), NAME_BYTES)


def _names(rows: NDArray[np.uint8]) -> Names:
    return np.ascontiguousarray(rows).view(f"S{NAME_BYTES}").reshape(-1)


def cost(first: int, second: int, union: int, *, proofs: bool = False, element_bytes: int = 32) -> Cost:
    """Exponentiations, bytes, messages and rounds for the sizes of the two lists and of their union (ristretto255's scalars)."""
    total = Cost()
    n, u = (first, second), union
    common = n[0] + n[1] - u
    proof = 64 if proofs else 0
    for i in (0, 1):
        mine, theirs = n[i], n[1 - i]
        total.powers[i] = theirs + 3 * u
        if proofs:
            given, taken = (theirs, mine - common), (mine, theirs - common)  # answers to lists and to queries
            blocks = [sum(-(-count // BLOCK) for count in counts) for counts in (given, taken)]
            total.powers[i] += 2 + sum(given) + 3 * blocks[0] + 2 * sum(taken) + 4 * blocks[1]
    total.swap(COUNT_BYTES + COMMITMENT_BYTES + (2 * element_bytes if proofs else 0))
    total.stream(n, element_bytes)
    total.swap(COMMITMENT_BYTES)
    total.stream((n[1], n[0]), NAME_BYTES)
    total.stream((n[1], n[0]), element_bytes, proof)
    total.stream((n[1] - common, n[0] - common), element_bytes)
    total.stream((n[0] - common, n[1] - common), element_bytes, proof)
    total.agree()
    return total
