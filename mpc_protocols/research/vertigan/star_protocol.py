"""Descriptor of the protocol by which owners train with a server (`star`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.vertical.owners import StarProtocol

if TYPE_CHECKING:
    from mpc_protocols.research.vertigan import star
    from mpc_protocols.vertical.owners import Trainer
    from mpc_protocols.wire import Wire
else:
    star = Later("mpc_protocols.research.vertigan.star")


class Star(StarProtocol):
    """A model out to each owner and its gradient back, in each round."""

    name = "star"

    def server(
        self, wire: Wire, numbers: Mapping[str, int], sizes: Mapping[str, int], own: Trainer | None
    ) -> star.Server:
        return star.Server(wire, numbers, sizes, own)

    def take_part(self, wire: Wire, server: int, own: Trainer, size: int, rounds: int) -> None:
        star.serve(wire, server, own, size, rounds)

    def rounds_on_wire(self, rounds: int) -> int:
        return 1 + 2 * rounds

    def traffic(self, size: int, rounds: int) -> tuple[int, int]:
        return star.traffic(size, rounds)


STAR_PROTOCOL = Star()
