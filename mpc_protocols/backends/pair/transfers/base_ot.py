"""Base oblivious transfers by Diffie-Hellman, in both directions at once, on ristretto255.

Problem: party R has choice bits c_i, party S gets two random keys per bit, R the one that its bit names and
nothing of the other, S nothing of the bit. 130 of them in each direction are all the public-key work of a run
(`ot_extension`).

    S: A = a G                      R: B_i = b_i G + c_i A
    S: keys  h(i, a B_i),  h(i, a (B_i - A))               R: key  h(i, b_i A)

("The simplest protocol for oblivious transfer", Chou and Orlandi 2015, used here against semi-honest parties
only: it is malleable, and a mode with malicious parties would need another.) h is BLAKE2b over session,
stream, direction, i, A, B_i and the point, so no transcript of one run or direction means anything in
another; `a` is fresh in each direction.

Who learns what: R's choices are hidden perfectly (B_i is uniform); the other key is hidden under
computational Diffie-Hellman with h as a random oracle. Points are checked: anything but a canonical encoding,
the identity, and B_i = A abort the run. libsodium multiplies in constant time, and R forms both candidates of
B_i before its bit chooses one.

Cost for n transfers each way: 2 rounds, 32 (n + 1) bytes and 3n + 2 multiplications (about 50 us) a party.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
import rbcl  # type: ignore[import-untyped]
from numpy.typing import NDArray

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.groups.group import Elements, InvalidElement
from mpc_protocols.psu.groups.ristretto import Ristretto255

KEY_BYTES = 16
Keys = NDArray[np.uint64]
"""Keys of 128 bits: the last axis has two words."""


@dataclass(frozen=True)
class BaseTransfers:
    """A party's strings after both directions. Secret, and therefore without a printed form.

    offered: (n, 2, 2) words, both keys of the transfers in which this party is S. choices: (n,) uint8, its
    bits as R. chosen: (n, 2) words, the keys that they name.
    """

    offered: Keys
    choices: NDArray[np.uint8]
    chosen: Keys

    def __repr__(self) -> str:
        return f"BaseTransfers of {len(self.choices)} keys each way"


def base_transfers(link: Link, count: int) -> BaseTransfers:
    """`count` transfers in each direction with fresh choices. 2 rounds. Raises `ProtocolAborted` for an
    invalid point."""
    group = Ristretto255(threads=1)
    own_exponent, *exponents = group.random_exponents(1 + count)
    own_point = group.generate([own_exponent])
    peer_point = _checked(group, link.exchange(own_point))
    choices = np.frombuffer(secrets.token_bytes(count), np.uint8) & np.uint8(1)
    plain = group.generate(exponents)
    shifted = _operate_each(rbcl.crypto_core_ristretto255_add, plain, peer_point)
    blinded = np.where(choices[:, np.newaxis] == 1, shifted, plain)  # both lie ready: no branch on a choice
    received = _checked(group, link.exchange(blinded))
    if (received == own_point).all(axis=1).any():
        raise ProtocolAborted(_INVALID)
    first = group.power(received, own_exponent)
    second = _operate_each(rbcl.crypto_core_ristretto255_sub, first, group.power(own_point, own_exponent))
    of_choice = group.power_each(np.repeat(peer_point, count, axis=0), exponents)
    offering, choosing = (_Hash(link, sender) for sender in (link.me, link.peer))
    offered = [offering(own_point, received, shared) for shared in (first, second)]
    return BaseTransfers(np.stack(offered, axis=1), choices, choosing(peer_point, blinded, of_choice))


_INVALID = (
    "The other computing party sent a point that its part of a key exchange cannot be; "
    "check that versions agree, then stop the run."
)


def _checked(group: Ristretto255, points: Elements) -> Elements:
    """The points, if all of them are canonical and none is the identity."""
    try:
        group.check(points)
    except InvalidElement:
        raise ProtocolAborted(_INVALID) from None
    return points


def _operate_each(operation: object, points: Elements, other: Elements) -> Elements:
    """The group operation on each of these valid points with one other."""
    assert callable(operation)
    fixed = other.tobytes()
    return np.frombuffer(b"".join(operation(point.tobytes(), fixed) for point in points), np.uint8).reshape(
        -1, 32
    )


class _Hash:
    """h of one direction, that in which `sender` is S."""

    def __init__(self, link: Link, sender: int) -> None:
        self._context = link.context(b"base transfers", bytes([sender]))

    def __call__(self, first: Elements, blinded: Elements, shared: Elements) -> Keys:
        point = first.tobytes()
        hashed = b"".join(
            hashlib.blake2b(
                i.to_bytes(4, "big") + point + of_receiver.tobytes() + common.tobytes(),
                key=self._context,
                digest_size=KEY_BYTES,
                person=b"cosynth-base-ot",
            ).digest()
            for i, (of_receiver, common) in enumerate(zip(blinded, shared, strict=True))
        )
        return np.frombuffer(hashed, np.uint64).reshape(-1, 2)
