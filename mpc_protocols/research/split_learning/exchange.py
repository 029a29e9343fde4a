"""What two owners who train one network tell each other: raw tensors of sizes that both know
(`docs/design/florist.md` 2).

Source: FLORIST (private set union for vertical federated learning), section 4; split learning (Gupta, Raskar
2018).

    per step of B rows    passive -> active: f(X), B x cut float32
                          active -> passive: d loss / d f(X), B x cut float32, a row each
    before the training   each announces the length of its list, 8 bytes; both commit to 32 bytes of the schedule, then open them
    per held-out row      passive -> active: f(X); nothing comes back

Threat model: semi-honest owners, one link, no third party (others idle). NOTHING IS HIDDEN BY THE PROTOCOL:
the active party, which has the labels, reads every embedding, and embeddings tell features; the passive one
reads every gradient, and gradients tell labels. What protects a label is the response that stands in for it
(`docs/design/florist.md` 5); nothing protects features. Sizes are functions of the study and of the size of
the union, which both owners know. A tensor of another size, or with a value that is no finite number, ends
the run (40).

Cost: 2 rounds and 4 B cut bytes each way a step; no codec. A machine whose floats are not little-endian
converts.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.randomness import Entropy, system
from mpc_protocols.wire import Wire

FLOAT = np.dtype("<f4")
SEED_BYTES = 32


class Exchange:
    """One owner's end of it. peer: the other owner's number on the wire; name: its name; cut: width of an
    embedding."""

    def __init__(self, wire: Wire, peer: int, name: str, cut: int) -> None:
        self._wire, self._peer, self._name, self._cut = wire, peer, name, cut

    def send(self, tensor: NDArray[np.float32]) -> None:
        """Send (B, cut) float32, embeddings or gradients: 4 B cut bytes."""
        if tensor.ndim != 2 or tensor.shape[1] != self._cut:
            raise ValueError(f"A tensor of {self._cut} columns is sent, not one of shape {tensor.shape}.")
        # a copy: whoever computed it may go on computing in the same memory
        self._wire.send(self._peer, np.array(tensor, FLOAT, order="C", copy=True).tobytes())

    def receive(self, rows: int) -> NDArray[np.float32]:
        """The other's next tensor, (rows, cut) float32. Raises `ProtocolAborted`: another size, a number that
        is not finite."""
        payload = self._wire.receive(self._peer, rows * self._cut * FLOAT.itemsize)
        tensor: NDArray[Any] = np.frombuffer(payload, FLOAT).reshape(rows, self._cut)
        if not np.isfinite(tensor).all():
            raise ProtocolAborted(
                f"Party {self._name} sent a tensor with a value that is no finite number; the training ends and no model is "
                "written: try a smaller [florist] rate."
            )
        return tensor.astype(np.float32)

    def announce(self, length: int) -> int:
        """Tell the length of this owner's list, as the alignment has shown it; the other's. Raises
        `ProtocolAborted`."""
        self._wire.send(self._peer, length.to_bytes(8, "little"))
        told = int.from_bytes(self._wire.receive(self._peer, 8), "little")
        if not 0 <= told < 1 << 31:
            raise ProtocolAborted(
                f"Party {self._name} announced a list of impossible length; nothing was trained."
            )
        return told

    def common_seed(self, entropy: Entropy = system) -> bytes:
        """32 bytes that neither owner could choose: each commits to its part before it sees the other's. 2
        rounds.

        Raises `ProtocolAborted` if what the other opens is not what it committed to.
        """
        own = entropy(SEED_BYTES)
        self._wire.send(self._peer, _commitment(self._wire.me, own))
        commitment = bytes(self._wire.receive(self._peer, SEED_BYTES))
        self._wire.send(self._peer, own)
        opened = bytes(self._wire.receive(self._peer, SEED_BYTES))
        if _commitment(self._peer, opened) != commitment:
            raise ProtocolAborted(
                f"Party {self._name} opened another seed than it had committed to; nothing was trained."
            )
        first, second = (own, opened) if self._wire.me < self._peer else (opened, own)
        return hashlib.sha256(b"cosynth split learning seed" + first + second).digest()


def _commitment(owner: int, seed: bytes) -> bytes:
    """Hiding and binding, for the seed has 256 random bits."""
    return hashlib.sha256(b"cosynth split learning commitment" + owner.to_bytes(4, "little") + seed).digest()
