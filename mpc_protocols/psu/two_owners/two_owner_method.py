"""What the protocols of two owners have in common: types of keys are compared first, and other computing
parties are told u.

Order of things at an owner: types of key columns, the protocol, u and the table's digest to every computing
party that owns nothing (they hold shares of the common table later, so they must know its rows). Standard
library only at import.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.process.later import Later, np
from mpc_protocols.psu.method import AlignmentMethod, Misfit

if TYPE_CHECKING:
    from mpc_protocols.psu import forecast, functionality
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, Own
    from mpc_protocols.psu.identifiers import normalise
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.psu.two_owners.cost import Cost
    from mpc_protocols.wire import Wire
else:
    forecast = Later("mpc_protocols.psu.forecast")
    functionality = Later("mpc_protocols.psu.functionality")
    normalise = Later("mpc_protocols.psu.identifiers.normalise")

COUNT_BYTES, DIGEST_BYTES = 8, 32


class TwoOwners(AlignmentMethod):
    """A private set union of exactly two owners."""

    two_owners = True

    @abstractmethod
    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        """An owner's part in the protocol itself."""

    @abstractmethod
    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        """Cost of `between` (and `help`) for lists of these lengths; `forecast` adds what all protocols of
        two owners send."""

    def help(
        self, wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> list[tuple[int, bytes]]:
        """The part of a party without data before it is told u: what it knows of the common table by itself."""
        return []

    def misfit(self, owners: Sequence[str], computing: Sequence[str]) -> Misfit | None:
        if len(owners) > 2:
            more = 'let three parties compute (via = "merge3")' if len(computing) > 3 else ""
            return Misfit(f"aligns two owners, and there are {len(owners)} ({', '.join(owners)})", more)
        outside = [name for name in owners if computing and name not in computing]
        if len(outside) > 1:
            return Misfit(
                f"needs a connection between the owners, and {' and '.join(outside)} do not compute, so they have none",
                "let one of them compute",
            )
        return None

    def align(
        self, wire: Wire, own: Own, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        if own is None:
            return self._outside(wire, spec, context, entropy)
        assert not isinstance(own, int)
        peer = next(owner for owner in context.owners if owner.number != wire.me)
        _compare_kinds(wire, peer.number, peer.name, own.kinds)
        result = self.between(wire, own.entries, spec, context, entropy)
        for member in _idle(context):
            wire.send(member.number, result.n_rows.to_bytes(COUNT_BYTES, "big") + result.digest)
        return result

    def _outside(
        self, wire: Wire, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> functionality.Alignment:
        """Everybody else's part: help, or be told u."""
        tables = self.help(wire, spec, context, entropy)
        if wire.me in [member.number for member in _idle(context)]:
            for owner in context.owners:
                message = bytes(wire.receive(owner.number, COUNT_BYTES + DIGEST_BYTES))
                tables.append((int.from_bytes(message[:COUNT_BYTES], "big"), message[COUNT_BYTES:]))
        if len(set(tables)) != 1:
            raise ProtocolAborted(
                f"Parties {context.owners[0].name} and {context.owners[1].name} did not arrive at the same common "
                "table; the alignment was stopped."
            )
        return functionality.Alignment(tables[0][0], np.zeros(0, np.int64), tables[0][1])

    def forecast(
        self, spec: AlignmentSpec, context: Context, lengths: Sequence[int], union: int, columns: int
    ) -> forecast.Forecast:
        cost = self.cost(spec, lengths[0], lengths[1], union)
        numbers = [owner.number for owner in context.owners]
        if self.helper:
            numbers.append(context.helper.number if context.helper else -1)
        idle = len(_idle(context))
        beside = columns + idle * (COUNT_BYTES + DIGEST_BYTES)
        return forecast.Forecast(
            {number: cost.sent[i] + (beside if i < 2 else 0) for i, number in enumerate(numbers)},
            {
                number: cost.seconds(i) + forecast.HASH_S * (lengths[i] if i < 2 else sum(lengths))
                for i, number in enumerate(numbers)
            },
            1 + max(cost.rounds, max(cost.clocks[:2]) + (idle > 0)),
            {number: cost.powers[i] for i, number in enumerate(numbers)},
        )


def _idle(context: Context) -> list[Member]:
    """Computing parties that own nothing."""
    return [member for member in context.computing if member not in context.owners]


def _compare_kinds(wire: Wire, peer: int, name: str, kinds: Sequence[str]) -> None:
    """Both owners must hold the same types in their key columns: a number never equals a text that looks like
    it."""
    wire.send(peer, bytes(normalise.KINDS.index(kind) for kind in kinds))
    theirs = bytes(wire.receive(peer, len(kinds)))
    for column, (own, code) in enumerate(zip(kinds, theirs, strict=True)):
        other = normalise.KINDS[code] if code < len(normalise.KINDS) else "unknown values"
        if "untyped" not in (own, other) and own != other:
            raise ProtocolAborted(
                f"Key column {column + 1} of the alignment holds {other} at party {name} and {own} here; "
                "give both the same type."
            )
