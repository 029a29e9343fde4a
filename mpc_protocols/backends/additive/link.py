"""One party's end of a computation by two parties and a dealer: messages, and the turns of protocols that run
side by side.

Parties 0 and 1 hold shares and open masked values to each other (`exchange`). Party 2, the dealer, sends
party 0 what it deals, and receives nothing while anything is computed: not one opening. When a result has
been opened, party 0 tells the dealer (`tell`), which must know all that is public. So the dealer runs ahead:
within a step nothing that it sends waits for a message.

What the dealer sends is taken in where it is first needed, after the openings of the same round (`due`): a
round costs one delay.

Sizes are functions of public numbers; an array of another size aborts the run (`wire.receive`). Masks:
`masks`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.held_marginals import Split
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.link import PartLink
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.wire import Wire

DEALER: Final = 2
"""Wire number of the dealer; 0 and 1 hold the shares."""
SPLIT: Final = Split(DEALER)
"""How all others split their counts, the dealer among them: it holds no share of anything, its zeros stand
for them."""


class Link(PartLink):
    """Messages of party `me` in 0, 1, 2."""

    engine = 'backend = "additive"'

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        super().__init__(wire, stream, latency_bytes)
        self._due: list[tuple[NDArray[Any], UInt]] = []

    def _check(self, wire: Wire) -> None:
        if wire.computing != DEALER + 1 or not 0 <= wire.me <= DEALER:
            raise StudyInvalid(
                f"Two parties and a dealer make three that compute; the study names {wire.computing}."
            )

    @property
    def deals(self) -> bool:
        """Whether this party is the dealer."""
        return self.me == DEALER

    def exchange(self, part: NDArray[Any]) -> NDArray[Any]:
        """As of any `PartLink`; the dealer sends nothing and learns nothing: zeros."""
        if self.deals:
            self.turn()
            return np.zeros_like(part)
        theirs = super().exchange(part)
        for target, dtype in self._due:
            target[...] = self.receive(DEALER, target.shape, dtype)
        self._due.clear()
        return theirs

    def deal(self, array: NDArray[Any]) -> None:
        """At the dealer: send party 0 its part of a correlation, which party 0 takes in with the next
        `exchange`."""
        self.send(0, array)

    def due(self, target: NDArray[Any], dtype: UInt) -> None:
        """At party 0: have the next `exchange` write the dealer's next array, sent as elements of `dtype`,
        into `target`."""
        self._due.append((target, dtype))

    def tell(self, opened: NDArray[Any]) -> NDArray[Any]:
        """What parties 0 and 1 have just opened, to the dealer, who passes an array of the same shape and
        dtype. 1 round."""
        if self.deals:
            return self.receive(0, opened.shape, opened.dtype.type)
        if self.me == 0:
            self.send(DEALER, opened)
        return opened
