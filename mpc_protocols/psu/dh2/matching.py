"""Which positions of the other's list hold common records: the matching step of `dh2`, by an oblivious PRF,
with traps (`docs/design/psu.md` 1.2, with its argument).

P = H(X)^{a1} is the first owner's list (side 0, A), Q = H(Y)^{b1} the second's (B), traps among both. The tag
of x is E = H(x)^{a1 b1}: A can compute it for every position of Q, B for every position of P. Tags are
compared through A's PRF under a fresh key kappa, F(E) = hash(G, G^kappa), 16 bytes, with G = Hg(E), in four
flights: A's list O of all F, B's blinded queries; traps shown and answered for; A's answers to the other
queries; B's bitmap of what was in O. Each owner ends up with G for every position of the other's list, and
knows which of these are common; which of its own records are it does not know.

Threat model: either owner MALICIOUS, under the one-more gap Diffie-Hellman assumption, DDH and random
oracles: this is 2HashDH (Jarecki, Kiayias, Krawczyk 2014) of the tags, and traps see to it that each
position's one test is of its tag. Wrong answers spoil matches at random and tell A nothing; proofs turn that
into an abort. B learns the number of common records before A does, and may stop; a false bitmap: see `dh2`.

Cost, with lists of n_a and n_b: `cost`; about 2 n_b + n_a exponentiations at A, 3 n_a at B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.dh2.traps import POSITION_BYTES, Lists, Proofs, show
from mpc_protocols.psu.groups.dleq import scalar_bytes
from mpc_protocols.psu.groups.group import Elements, Group
from mpc_protocols.psu.groups.hashing import NAME_BYTES, Names, digest, row_bytes, row_names
from mpc_protocols.psu.randomness import Entropy, permutation
from mpc_protocols.psu.two_owners.exchange import Exchange, blocks

ENTRY = b"psu dh2 entry"
Positions = NDArray[np.int64]
CommonRecords = tuple[Elements, NDArray[np.bool_]]
"""G of every position of the other's list, in its order and without its traps; which of them are common."""


class Matching(ABC):
    """One owner's part. `tests` says what stands where: the i-th test sent (entry of O or query) is for
    position tests[i]."""

    def __init__(
        self,
        exchange: Exchange,
        group: Group,
        lists: Lists,
        matching_public: bytes,
        proven: bool,
        entropy: Entropy,
    ) -> None:
        """matching_public: g^kappa. proven: whether answers carry proofs."""
        self.exchange, self.group, self.lists, self.entropy = exchange, group, lists, entropy
        self.matching_public, self.proven = matching_public, proven
        self.proofs = Proofs(exchange, group, entropy)
        self.domain = digest(b"psu dh2 point", exchange.sid)
        self.points = group.rows(len(lists.theirs))
        self.tests = permutation(len(lists.theirs), entropy)

    def run(self) -> CommonRecords:
        """The whole step."""
        for part in blocks(len(self.points)):
            self.points[part] = self.hashed(self.tags(part))
        self.exchange_tests()
        self.their_traps = show(self.proofs, self.lists)
        self.answer_traps()
        return self.match()

    def tags(self, part: slice) -> Elements:
        """E for these positions of the other's list. Raising its elements checks them."""
        with self.exchange.judging("a list"):
            return self.group.power(self.lists.theirs[part], self.lists.key)

    def hashed(self, tags: Elements) -> Elements:
        """G = Hg(E)."""
        return self.group.hash_many(row_bytes(tags), self.domain)

    def entries(self, points: Elements, raised: Elements) -> Names:
        """F of tags, from G and G^kappa."""
        return row_names(self.exchange.sid, ENTRY, np.concatenate([points, raised], axis=1))

    @abstractmethod
    def exchange_tests(self) -> None:
        """Flight a."""

    @abstractmethod
    def answer_traps(self) -> None:
        """Flight b, after the traps have been shown. Drops the other's tests of own traps."""

    @abstractmethod
    def match(self) -> CommonRecords:
        """Flights c and d."""

    def raised_traps(self) -> bytes:
        """E of the other's traps, with a proof: the first part of what answers for them."""
        lists, inputs = self.lists, self.lists.theirs[self.their_traps]
        with self.exchange.judging("a list"):
            raised = self.group.power(inputs, lists.key)
        return raised.tobytes() + self.proofs.prove(b"tags", 0, lists.key, lists.public, inputs, raised)

    def check_raised_traps(self, payload: memoryview) -> tuple[Elements, memoryview]:
        """Verify the peer's tags of our traps; return their points, (traps, element_bytes), and the unread
        rest.

        Aborts on a bad proof.
        """
        end = self.lists.traps * self.group.element_bytes
        raised = self.group.parse(payload[:end])
        if not self.proofs.hold(
            b"tags",
            0,
            self.lists.their_public,
            self.lists.own[self.lists.own_traps],
            raised,
            payload[end : end + self.proofs.size],
        ):
            self.exchange.abort("answered for this party's traps with a proof that does not hold")
        return self.hashed(raised), payload[end + self.proofs.size :]

    def places(self) -> bytes:
        """Which of the own tests are for the other's traps."""
        place = np.empty(len(self.tests), np.int64)
        place[self.tests] = np.arange(len(self.tests))
        return place[self.their_traps].astype(f"<u{POSITION_BYTES}").tobytes()

    def check_places(self, payload: memoryview) -> Positions:
        """Verify which of its tests the other says are for own traps: different places, each inside the own
        list."""
        places = np.frombuffer(payload, f"<u{POSITION_BYTES}").astype(np.int64)
        if places.max() >= len(self.lists.own) or len(np.unique(places)) < len(places):
            self.exchange.abort("answered for this party's traps with places that repeat or lie outside")
        return places

    def common_records(self, tests: Positions, common: NDArray[np.bool_]) -> CommonRecords:
        """What `run` returns. tests: positions that were tested. common: which of them turned out common."""
        others = _all_but(len(self.points), self.their_traps)
        at = np.zeros(len(self.points), np.bool_)
        at[tests] = common
        return self.points[others], at[others]


class Answering(Matching):
    """The first owner, A, who holds kappa."""

    def __init__(
        self,
        exchange: Exchange,
        group: Group,
        lists: Lists,
        matching_public: bytes,
        proven: bool,
        entropy: Entropy,
        kappa: int,
    ) -> None:
        super().__init__(exchange, group, lists, matching_public, proven, entropy)
        self.kappa = kappa

    def exchange_tests(self) -> None:
        group, exchange = self.group, self.exchange
        tested: Names = np.empty(len(self.points), f"S{NAME_BYTES}")
        for part in blocks(len(self.points)):
            tested[part] = self.entries(self.points[part], group.power(self.points[part], self.kappa))
        own_entries = tested[self.tests]
        self.queries = group.rows(len(self.lists.own))

        def consume(part: slice, payload: memoryview) -> None:
            self.queries[part] = group.parse(payload)

        exchange.stream(
            len(own_entries),
            len(self.queries),
            lambda part: own_entries[part].tobytes(),
            consume,
            group.element_bytes,
        )
        exchange.distinct(self.queries, "queries")

    def answer_traps(self) -> None:
        group, exchange = self.group, self.exchange
        points = self.points[self.their_traps]
        raised = group.power(points, self.kappa)
        proof = self.proofs.prove(b"entries", 0, self.kappa, self.matching_public, points, raised)
        exchange.send(self.raised_traps() + raised.tobytes() + proof + self.places())
        element, scalar = group.element_bytes, scalar_bytes(group)
        traps = self.lists.traps
        points, rest = self.check_raised_traps(
            exchange.receive(traps * (element + scalar + POSITION_BYTES) + self.proofs.size)
        )
        places = self.check_places(rest[traps * scalar :])
        blinds = _integers(np.frombuffer(rest[: traps * scalar], np.uint8).reshape(-1, scalar))
        if (
            not all(0 < blind < group.order for blind in blinds)
            or (group.power_each(points, blinds) != self.queries[places]).any()
        ):
            exchange.abort("sent queries that leave out traps of this party")
        self.queries = self.queries[_all_but(len(self.queries), places)]

    def match(self) -> CommonRecords:
        exchange = self.exchange
        for part in blocks(len(self.queries)):
            queries = self.queries[part]
            with exchange.judging("queries"):
                answers = self.answers(queries)
            proof = b""
            if self.proven:
                proof = self.proofs.prove(
                    b"answers", part.start, self.kappa, self.matching_public, queries, answers
                )
            exchange.send(answers.tobytes() + proof)
        tests = self.tests[~np.isin(self.tests, self.their_traps)]
        packed = exchange.lists(np.empty((0, 1), np.uint8), -(-len(tests) // 8), 1)
        bits = np.unpackbits(packed.reshape(-1)).astype(np.bool_)
        if bits[len(tests) :].any() or bits.sum() > len(self.queries):
            exchange.abort("claimed more common records than there can be")
        return self.common_records(tests, bits[: len(tests)])

    def answers(self, queries: Elements) -> Elements:
        """The queries under kappa."""
        return self.group.power(queries, self.kappa)


class Asking(Matching):
    """The second owner, B, who asks."""

    def exchange_tests(self) -> None:
        group, exchange = self.group, self.exchange
        self.blinds = np.empty((len(self.points), scalar_bytes(group)), np.uint8)
        self.queries = group.rows(len(self.points) if self.proven else 0)  # proofs are about them
        self.their_entries: Names = np.empty(len(self.lists.own), f"S{NAME_BYTES}")

        def query(part: slice) -> bytes:
            blinds = group.random_exponents(part.stop - part.start, self.entropy)
            self.blinds[part] = _scalars(blinds, self.blinds.shape[1])
            queries = group.power_each(self.points[self.tests[part]], blinds)
            if self.proven:
                self.queries[part] = queries
            return queries.tobytes()

        def consume(part: slice, payload: memoryview) -> None:
            self.their_entries[part] = np.frombuffer(payload, f"S{NAME_BYTES}")

        exchange.stream(len(self.points), len(self.their_entries), query, consume, NAME_BYTES)
        exchange.distinct(self.their_entries.view(np.uint8).reshape(-1, NAME_BYTES), "tags")

    def answer_traps(self) -> None:
        group, exchange = self.group, self.exchange
        places = self.places()
        blinds = self.blinds[np.frombuffer(places, f"<u{POSITION_BYTES}")]
        exchange.send(self.raised_traps() + blinds.tobytes() + places)
        traps, end = self.lists.traps, self.lists.traps * group.element_bytes
        points, rest = self.check_raised_traps(
            exchange.receive(traps * (2 * group.element_bytes + POSITION_BYTES) + 2 * self.proofs.size)
        )
        raised = group.parse(rest[:end])
        if not self.proofs.hold(
            b"entries", 0, self.matching_public, points, raised, rest[end : end + self.proofs.size]
        ):
            exchange.abort("answered for this party's traps with a proof that does not hold")
        where = self.check_places(rest[end + self.proofs.size :])
        if (self.entries(points, raised) != self.their_entries[where]).any():
            exchange.abort("sent tags that leave out traps of this party")
        self.their_entries = self.their_entries[_all_but(len(self.their_entries), where)]

    def match(self) -> CommonRecords:
        group, exchange = self.group, self.exchange
        numbers = np.flatnonzero(~np.isin(self.tests, self.their_traps))
        tests = self.tests[numbers]
        entries: Names = np.empty(len(tests), f"S{NAME_BYTES}")
        for part in blocks(len(tests)):
            size = (part.stop - part.start) * group.element_bytes
            payload = exchange.receive(size + (self.proofs.size if self.proven else 0))
            answers = group.parse(payload[:size])
            if self.proven and not self.proofs.hold(
                b"answers",
                part.start,
                self.matching_public,
                self.queries[numbers[part]],
                answers,
                payload[size:],
            ):
                exchange.abort("sent answers whose proof does not hold")
            with exchange.judging("answers"):
                raised = group.power_each(answers, group.inverses(_integers(self.blinds[numbers[part]])))
            entries[part] = self.entries(self.points[tests[part]], raised)
        common, bits = self.compare(entries)
        packed = np.packbits(bits)
        for part in blocks(len(packed)):
            exchange.send(packed[part].tobytes())
        return self.common_records(tests, common)

    def compare(self, entries: Names) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of these entries are in O, and which entries of O are among these."""
        theirs = self.their_entries
        hit, bits = np.zeros(len(entries), np.bool_), np.zeros(len(theirs), np.bool_)
        if len(theirs):
            order = np.argsort(theirs)
            at = order[np.minimum(np.searchsorted(theirs, entries, sorter=order), len(theirs) - 1)]
            hit = theirs[at] == entries
            bits[at[hit]] = True
        return hit, bits


def _scalars(exponents: list[int], width: int) -> NDArray[np.uint8]:
    """As rows: a Python integer takes twice the memory."""
    return np.frombuffer(b"".join(e.to_bytes(width, "little") for e in exponents), np.uint8).reshape(
        -1, width
    )


def _integers(scalars: NDArray[np.uint8]) -> list[int]:
    return [int.from_bytes(scalar, "little") for scalar in row_bytes(scalars)]


def _all_but(count: int, dropped: Positions) -> NDArray[np.bool_]:
    flags = np.ones(count, np.bool_)
    flags[dropped] = False
    return flags
