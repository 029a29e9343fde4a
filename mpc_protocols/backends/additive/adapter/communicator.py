"""What CrypTen takes for its network: the openings of two parties over one of our links, and nothing else.

CrypTen's protocols between two parties only ever open values, which it calls `all_reduce`: sums of additive
shares, XORs of binary ones. Shapes are known to both, so a message is raw elements of a size that its
receiver states. Everything else that CrypTen's communicators offer (objects as pickles, sizes told by the
sender, gathering at one party) is refused.

CrypTen's ring is Z_2^64. What is needed modulo 2^32 only, or is a bit, travels as that: reduction modulo a
power of two commutes with all that CrypTen does to it (+, - and *).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.additive.adapter.library import Library
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.engine.bitwise.bitslice import UInt

Signed = NDArray[np.int64]


class LinkCommunicator:
    """Party 0 or 1 as CrypTen sees it.

    ring: modulo what integers are meant, uint32 or uint64. opens_bits: whether what is opened are single
    bits.
    """

    def __init__(self, link: Link, library: Library) -> None:
        self.link = link
        self.ring: UInt = np.uint64
        self.opens_bits = False
        self._torch = library.torch

    def get_rank(self) -> int:
        """This party's number."""
        return self.link.me

    def get_world_size(self) -> int:
        """The parties that hold shares."""
        return 2

    def all_reduce(self, shares: Any, op: Any = None, async_op: bool = False, batched: bool = False) -> Any:
        """Open one tensor of shares, or with `batched` a list of them in one message. 1 round."""
        tensors: Sequence[Any] = shares if batched else [shares]
        own: Signed = np.concatenate([tensor.numpy().reshape(-1) for tensor in tensors])
        theirs = self._exchange(own)
        opened = own ^ theirs if op == self._torch.distributed.ReduceOp.BXOR else own + theirs
        ends = np.cumsum([tensor.numel() for tensor in tensors])
        found = [
            self._torch.from_numpy(opened[int(end) - tensor.numel() : int(end)].reshape(tuple(tensor.shape)))
            for end, tensor in zip(ends, tensors, strict=True)
        ]
        return found if batched else found[0]

    def _exchange(self, own: Signed) -> Signed:
        if self.opens_bits:
            packed = self.link.exchange(np.packbits(own.astype(np.uint8)))
            return np.unpackbits(packed, count=len(own)).astype(np.int64)
        return self.link.exchange(own.astype(self.ring)).astype(np.int64)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f"CrypTen asked its communicator for {name}: only openings of sizes that both parties know may travel."
        )
