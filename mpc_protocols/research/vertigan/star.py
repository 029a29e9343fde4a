"""Owners train with a server: in each round a model goes out to each of them and its gradient comes back.

Problem: owners of different columns train one generator without showing records. The messages, all of a size
that both ends know:

    owner -> server      how many rows it has, noisily: 8 bytes, once
    server -> owner      seed of the generator's batch (16 bytes) and the owner's parameters, float32
    owner -> server      its gradient in them, float32                                               in every round

2 rounds of communication and 4 bytes a parameter each way in each round of training, and one round before
(Jiang et al. 2023, algorithm 1, a star: owners need no links with each other).

Who learns what, and from whom one is safe. Semi-honest parties. What an owner sends is differentially private
by the owner's own noise, before it leaves: the promise holds against the server, all other owners and
recipients together, without any assumption about who works with whom. The protocol hides nothing else and
proves nothing: gradients travel as they are, inside the session's encryption. An owner sees its own branch of
the model and the trunk, and no other owner's. A server that deviates can waste the training, and cannot make
an owner take more steps than were charged (the owner counts). What arrives is not believed: another size, a
number that is not finite or beyond the norm that all have agreed on ends the run (40).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from mpc_protocols.errors import ProtocolAborted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.vertical.owners import Trainer
    from mpc_protocols.wire import Wire

    Vector = NDArray[np.float32]

SEED_BYTES: Final = 16
COUNT_BYTES: Final = 8
MAX_ROWS: Final = 1 << 48
"""An owner's noisy number of rows lies between plus and minus this."""
MAX_VALUE: Final = 1e6
"""No number of a model or of a gradient is larger: RMSprop never takes one there."""


class Server:
    """The server's view of all owners, each by its name.

    wire: a stream of the training's own. numbers: of the owners on it. sizes: parameters of each. local: the
    server's own side where it owns columns itself. Raises `ProtocolAborted`, `PeerLost`.
    """

    def __init__(
        self, wire: Wire, numbers: Mapping[str, int], sizes: Mapping[str, int], local: Trainer | None = None
    ) -> None:
        self._wire, self._numbers, self._sizes, self._local = wire, dict(numbers), dict(sizes), local

    def counts(self) -> dict[str, int]:
        """See `synth.algorithm.OwnersTraining`."""
        found = {}
        for name, number in self._numbers.items():
            if self._is_local(number):
                found[name] = self._own_trainer().count()
                continue
            found[name] = int.from_bytes(self._wire.receive(number, COUNT_BYTES), "big", signed=True)
            if not -MAX_ROWS <= found[name] <= MAX_ROWS:
                raise ProtocolAborted(
                    f"Party {number} sent a number of rows that no owner has; nothing is trained."
                )
        return found

    def gradients(self, parameters: Mapping[str, Vector], seed: bytes) -> dict[str, Vector]:
        """See `synth.algorithm.OwnersTraining`. seed: 16 bytes."""
        for name, number in self._numbers.items():
            if not self._is_local(number):
                self._wire.send(number, seed + parameters[name].astype("<f4").tobytes())
        return {
            name: self._own_trainer().gradient(parameters[name], seed)
            if self._is_local(number)
            else vector(self._wire.receive(number, 4 * self._sizes[name]), number)
            for name, number in self._numbers.items()
        }

    def _is_local(self, number: int) -> bool:
        return number == self._wire.me

    def _own_trainer(self) -> Trainer:
        if self._local is None:
            raise ValueError("The server owns columns and has brought no records.")
        return self._local


def serve(wire: Wire, server: int, trainer: Trainer, size: int, rounds: int) -> None:
    """An owner's part, all rounds of it. Raises `ProtocolAborted`, `PeerLost`. Blocks."""
    wire.send(server, trainer.count().to_bytes(COUNT_BYTES, "big", signed=True))
    for _ in range(rounds):
        message = wire.receive(server, SEED_BYTES + 4 * size)
        gradient = trainer.gradient(vector(message[SEED_BYTES:], server), bytes(message[:SEED_BYTES]))
        wire.send(server, gradient.astype("<f4").tobytes())


def traffic(size: int, rounds: int) -> tuple[int, int]:
    """Bytes that an owner of a model of so many parameters sends in so many rounds, and receives."""
    return COUNT_BYTES + 4 * rounds * size, rounds * (SEED_BYTES + 4 * size)


def vector(payload: memoryview, sender: int) -> Vector:
    """The numbers that a party sent. Raises `ProtocolAborted` for one that no party comes to."""
    found = np.frombuffer(payload, "<f4").astype(np.float32)
    if not (np.abs(found) <= MAX_VALUE).all():  # also for what is not a number
        raise ProtocolAborted(
            f"Party {sender} sent numbers that are infinite, too large or none at all; nothing more is trained."
        )
    return found
