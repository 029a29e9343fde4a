"""dh2: private set union of two owners, symmetric, each building the union itself, with deviations that are
noticed.

The two-owner default. Flights, names and the argument: `docs/design/psu.md` 1.2. Owner A (side 0) holds X and
secret exponents a1, alpha, kappa, owner B (side 1) holds Y and b1, beta, all fresh and dropped at the end
(Python cannot wipe them). The tag of a record is H(x)^{a1 b1}, its point T = Hg(tag), the name of a common
record N(T^{alpha beta}): no power of H(x), so that an owner that entered H(y)^c could not take c out again
and find y in the union.

    0  sizes, commitments, public keys      1  both lists, shuffled, with traps (`traps`)      2  `matching`
    3  powers of the points where common, random elements elsewhere: names      4  a private equality test (`equality`)

Who learns what: both owners the sizes and u; B the number k of common records one message before A. Nothing
else if both follow the protocol, under DDH with the hashes random oracles. An owner that deviates learns no
more about whether the other holds y than sizes and u say of the list it chose to enter, without being
noticed, except with probability 1 / (t + 1) < 1 / 1000 per run, or by one right guess of which of its records
are common.

Cost, exactly: `cost`. With n records each, half common: 6 n exponentiations, n / 2 of the generator and 2 n
hashes to the group at each owner, 208 n bytes in all; 10 rounds while blocks fit the window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.dh2.equality import equal
from mpc_protocols.psu.dh2.matching import Answering, Asking, Matching
from mpc_protocols.psu.dh2.traps import SEED_BYTES, TRAPS, Lists, trap_identifiers
from mpc_protocols.psu.dummies import full_pool
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.group import Elements, Group, concatenated
from mpc_protocols.psu.groups.hashing import NAME_BYTES, Names, digest, row_names
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.psu.two_owners.exchange import Exchange, blocks
from mpc_protocols.wire import Wire

COMMITMENT_BYTES = 32
RECORD = b"psu dh2 record"
KEYS = (3, 2)
"""Public keys of each side: of the list, of names, and A's of the matching."""


class Owner:
    """One owner's run; the methods are the flights, in order."""

    answering: type[Answering] = Answering
    asking: type[Asking] = Asking

    def __init__(
        self,
        wire: Wire,
        entries: Sequence[bytes],
        spec: AlignmentSpec,
        context: Context,
        group: Group,
        entropy: Entropy = system,
        traps: int = TRAPS,
    ) -> None:
        """entries: distinct canonical identifiers, with add-remove the own full pool among them. traps: 1 to
        65536."""
        self.exchange = Exchange(wire, context, spec)
        self.group, self.entropy, self.traps, self.size = group, entropy, traps, len(entries)
        self.proven = spec.security == "proofs"
        self.exponents = group.random_exponents(KEYS[self.exchange.side], entropy)
        self.list_key, self.name_key = self.exponents[:2]
        self.public = [key.tobytes() for key in group.generate(self.exponents)]
        self.seed = entropy(SEED_BYTES)
        listed = [*entries, *trap_identifiers(self.seed, traps)]
        self.order = permutation(len(listed), entropy)
        self.own_list = group.power(group.hash_many(listed, self.exchange.sid)[self.order], self.list_key)
        self.opened_positions = self._positions(entries)

    def run(self) -> Alignment:
        """The whole protocol."""
        self.exchange_lists()
        self.points, self.common = self.matching().run()
        self.exchange_names()
        return self.finish()

    def exchange_lists(self) -> None:
        """Flights 0 and 1: sizes, commitments and public keys; then P and Q, committed before either was
        seen."""
        group, exchange = self.group, self.exchange
        extra = self._commitment(concatenated(self.own_list)) + b"".join(self.public)
        self.their_size, theirs = exchange.announce(
            self.size, extra, COMMITMENT_BYTES + KEYS[1 - exchange.side] * group.element_bytes
        )
        keys = group.parse(theirs[COMMITMENT_BYTES:])
        with exchange.judging("public keys"):
            group.check(keys)
        self.their_public = [key.tobytes() for key in keys]
        self.their_list = exchange.lists(self.own_list, self.their_size + self.traps, group.element_bytes)
        if self._commitment(concatenated(self.their_list), 1 - exchange.side) != theirs[:COMMITMENT_BYTES]:
            exchange.abort("sent a list other than it had committed to")
        exchange.distinct(self.their_list, "a list")

    def matching(self) -> Matching:
        """Flight 2, to be run."""
        lists = Lists(
            self.own_list,
            self.their_list,
            self.list_key,
            self.public[0],
            self.their_public[0],
            self.seed,
            self.opened_positions,
            self.traps,
        )
        if self.exchange.side == 0:
            return self.answering(
                self.exchange, self.group, lists, self.public[2], self.proven, self.entropy, self.exponents[2]
            )
        return self.asking(self.exchange, self.group, lists, self.their_public[2], self.proven, self.entropy)

    def exchange_names(self) -> None:
        """Flight 3: names of own records, in the own list's order, and of the other's that are not common."""
        group, exchange = self.group, self.exchange
        self.own_names: Names = np.empty(self.size, f"S{NAME_BYTES}")
        given = self.given_names()

        def consume(part: slice, payload: memoryview) -> None:
            with exchange.judging("names"):
                named = group.power(group.parse(payload), self.name_key)
            self.own_names[part] = row_names(exchange.sid, RECORD, named)

        exchange.stream(
            self.their_size, self.size, lambda part: given[part].tobytes(), consume, group.element_bytes
        )
        exchange.distinct(self.own_names.view(np.uint8).reshape(-1, NAME_BYTES), "names")

    def given_names(self) -> Elements:
        """W or V, in the order of the other's list, and the names of its records that are not common.

        All before any is sent, common ones first: the other knows its order, and if it had to wait longer for
        a block with fewer common records, it would learn how many of a group of its choice there are.
        """
        given = self.group.rows(self.their_size)
        base = self.group.parse(self.their_public[1])
        self.other_names: list[Names] = []
        common, others = np.flatnonzero(self.common), np.flatnonzero(~self.common)
        for part in blocks(len(common)):
            given[common[part]] = self.group.power(self.points[common[part]], self.name_key)
        for part in blocks(len(others)):
            fresh = self.group.random_exponents(part.stop - part.start, self.entropy)
            given[others[part]] = self.group.generate(fresh)
            named = self.group.power_each(
                np.broadcast_to(base, (len(fresh), self.group.element_bytes)), fresh
            )
            self.other_names.append(row_names(self.exchange.sid, RECORD, named))
        return given

    def finish(self) -> Alignment:
        """The table, sorted by name; flight 4."""
        exchange, own = self.exchange, self.own_names
        records = np.concatenate([own, *self.other_names])
        order = np.argsort(records, kind="stable")
        table = records[order]
        rank = np.empty(len(records), np.int64)
        rank[order] = np.arange(len(records))
        rows = np.empty(self.size, np.int64)
        rows[self.order[self.order < self.size]] = rank[: self.size]
        union = digest(b"psu union", exchange.sid, concatenated(np.ascontiguousarray(table).view(np.uint8)))
        value = digest(b"psu dh2 table", exchange.transcript, union)
        if (
            table[1:] == table[:-1]
        ).any():  # the other deviated: to end here would tell it that a record is not common
            value = self.entropy(len(value))
        if not equal(exchange, self.group, value, self.entropy):
            exchange.abort("did not arrive at the same union; one of the two did not follow the protocol")
        return Alignment(len(table), rows, union, self.group.operations)

    def _positions(self, entries: Sequence[bytes]) -> NDArray[np.int64]:
        """Where in the own list stand the full pool and the traps."""
        spec, exchange = self.exchange.spec, self.exchange
        pool = full_pool(spec, exchange.sid, exchange.side)
        pool_set = set(pool)
        number = {entry: i for i, entry in enumerate(entries) if entry in pool_set}
        if len(number) < len(pool):
            raise ValueError(
                "The own list lacks entries of the pool that it must hold: `dummies.assemble` makes it."
            )
        place = np.empty(len(self.order), np.int64)
        place[self.order] = np.arange(len(self.order))
        return place[[*(number[entry] for entry in pool), *range(self.size, self.size + self.traps)]]

    def _commitment(self, message: memoryview, side: int | None = None) -> bytes:
        """Hash commitment of one side. No nonce: a list under a secret exponent cannot be guessed."""
        role = self.exchange.side if side is None else side
        return digest(b"psu commitment", self.exchange.sid, bytes([role]), message)


def align(
    wire: Wire,
    entries: Sequence[bytes],
    spec: AlignmentSpec,
    context: Context,
    group: Group,
    entropy: Entropy = system,
    traps: int = TRAPS,
) -> Alignment:
    """One owner's part. entries: its distinct canonical identifiers, with its fakes (`dummies.assemble`).

    Raises `ProtocolAborted` when the other owner sends something the protocol does not allow, or deviated.
    """
    return Owner(wire, entries, spec, context, group, entropy, traps).run()
