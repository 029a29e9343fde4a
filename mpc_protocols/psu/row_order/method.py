"""Descriptor of `row-order`: the tables are aligned already, row t of every owner is the same record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.psu.method import AlignmentMethod, Misfit

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu import forecast
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, Own
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.psu.row_order import protocol
    from mpc_protocols.wire import Wire
else:
    forecast = Later("mpc_protocols.psu.forecast")
    protocol = Later("mpc_protocols.psu.row_order.protocol")


class RowOrder(AlignmentMethod):
    """Nothing is private about who is in the tables: the explicit unprotected alternative to a private set
    union."""

    name = "row-order"
    rank = 1000
    psu = False
    hides = "records"
    way = "by the order of their rows, which must be the same at all owners; it protects nothing about who is in the data"
    matched = "Nothing was matched: row after row belongs together."
    trust = "It protects nothing about who is in the data."
    owners = "2 to 8, computing or not"
    adversary = "everybody"
    speed = "nothing to compute"

    @property
    def claim(self) -> str:
        return "no claim about who is in the data"

    def misfit(self, owners: Sequence[str], computing: Sequence[str]) -> Misfit | None:
        if len(computing) != 3:
            return Misfit(
                f"needs exactly three computing parties, and {len(computing)} compute",
                "let three parties compute",
            )
        return None

    def weakness(self, adjacency: Adjacency) -> str:
        return ""

    def recipients(self, context: Context, me: int) -> list[Member]:
        return protocol.onlookers(context)

    def sizes_shown(self, owner: bool, owners: int, noisy: bool, padded: bool) -> str:
        return "how many rows there are" + (", with noise" if noisy and not owner else "")

    def align(
        self, wire: Wire, own: Own, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        assert own is None or isinstance(own, int)
        return protocol.align(wire, own, spec, context, entropy)

    def forecast(
        self, spec: AlignmentSpec, context: Context, lengths: Sequence[int], union: int, columns: int
    ) -> forecast.Forecast:
        total = protocol.cost(spec, context)
        numbers = range(len(total.sent))
        return forecast.Forecast(dict(enumerate(total.sent)), dict.fromkeys(numbers, 0.0), total.rounds)


METHOD = RowOrder()
