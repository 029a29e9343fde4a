"""Products of shared bits among three parties in memory, proved, with one party that sends others than its
shares give.

What the engine that proves its products (`docs/design/malicious.md` 4) does for each batch, and nothing else
of it: gates on random bits, and one proof. A cheat alters its message of products, or one of the proof. It
may also bet on the proof's common coin: under a coin that is known, changed products can be chosen that the
proof cannot see, for its functional is linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.products import VARIABLES, prove
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.arena import PATIENCE_S, SESSION
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent

Words = NDArray[np.uint64]

WIDTH = 3
"""Words of a row: more bits than the proof's functional has, so that some changes have a functional of 0
under a known key."""
WORDS = WIDTH << VARIABLES
BET = bytes(32)
"""The common coin that a cheat bets on."""


def outcomes(cheat: int, error: Words, bend: Bend | None = None) -> list[str | None]:
    """How each party ends: None, or the sentence with which it stopped. error: (WORDS,) what `cheat` adds to
    its products."""
    network = MemoryNetwork(3, session_id=SESSION, patience_s=PATIENCE_S)

    def party(plain: Wire) -> str | None:
        trio, transcript = Trio(bent(plain, bend)), Transcript()
        try:
            _multiply(trio, transcript, error if trio.me == cheat else np.zeros_like(error))
            prove(trio, transcript)
        except (PeerLost, ProtocolAborted) as stopped:
            return stopped.sentence
        return None

    return network.run([party] * 3)


def one_bit(place: int) -> Words:
    """A change of one product."""
    error = np.zeros(WORDS, np.uint64)
    error[place // 64 % WORDS] = np.uint64(1 << place % 64)
    return error


def unseen_under(coin: bytes) -> Words:
    """A change of products of the first row whose functional under this coin is 0: its bits' functionals
    depend on each other."""
    units = np.zeros((64 * WIDTH, WIDTH), np.uint64)
    for place in range(64 * WIDTH):
        units[place, place // 64] = np.uint64(1 << place % 64)
    images = Functional(coin, 0, WIDTH).of(units)
    reduced: dict[
        int, tuple[int, int]
    ] = {}  # by highest bit: a combination's image, and which units are in it
    for place, image in enumerate(images):
        value, members = int.from_bytes(image.tobytes(), "little"), 1 << place
        while value and value.bit_length() in reduced:
            other, theirs = reduced[value.bit_length()]
            value, members = value ^ other, members ^ theirs
        if not value:
            error = np.zeros(WORDS, np.uint64)
            error[:WIDTH] = np.frombuffer(members.to_bytes(8 * WIDTH, "little"), "<u8")
            return error
        reduced[value.bit_length()] = value, members
    raise ArithmeticError("More functionals than bits are independent: the functional is none of rows.")


def _multiply(trio: Trio, transcript: Transcript, error: Words) -> None:
    """Gates on random shared bits."""
    shares = []
    for _ in range(2):
        operation, shape = trio.operation(), (1, WORDS)
        shares.append(
            BitShare(trio.own_mask(shape, np.uint64, operation), trio.next_mask(shape, np.uint64, operation))
        )
    x, y = shares
    operation = trio.operation()
    own, following = (mask(WORDS, np.uint64, operation) for mask in (trio.own_mask, trio.next_mask))
    part: Any = ((x.own & (y.own ^ y.next)) ^ (x.next & y.own))[0] ^ own ^ following ^ error
    transcript.product(x, y, own, following, trio.pass_left(part))
