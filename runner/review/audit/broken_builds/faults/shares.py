"""Faults of shares, masks and openings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

import numpy as np

from mpc_protocols.backends.pair.circuits.kept_cells import KeptCells
from mpc_protocols.backends.pair.transfers import transfer_pool
from mpc_protocols.backends.replicated.engine import ReplicatedEngine, ReplicatedL1Sums
from mpc_protocols.backends.replicated.scores import shared_sign
from mpc_protocols.backends.replicated.sharing import boolean, copies, ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine import prg
from mpc_protocols.engine.agreement import Confirm, announce
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.inputs import contribution, sourced_engine
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.wire import Wire
from parties.session.admission.keys import SharedKeys
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch


@contextmanager
def _repeated_masks() -> Iterator[None]:
    """Two operations share a stream; where masks are transfers, each is given away again and again."""
    counter, take = prg._counter, transfer_pool.TransferPool.take

    def taken(self: Any, words: int) -> Any:
        found = take(self, words)
        self._start -= words
        return found

    with (
        mock.patch.object(prg, "_counter", lambda operation, block=0: counter(operation // 2, block)),
        mock.patch.object(transfer_pool.TransferPool, "take", taken),
    ):
        yield


@contextmanager
def _masks_of_another_selection() -> Iterator[None]:
    """Every selection begins at the same number of an operation; where masks are kept, at the same use of them."""
    compute, l1_sums = ReplicatedL1Sums.compute, KeptCells.l1_sums
    begun = WeakKeyDictionary[Trio, int]()

    def computed(self: Any) -> Any:
        trio = self._gates.trio
        trio._operation = begun.setdefault(trio, trio._operation)
        return compute(self)

    def summed(self: Any, *given: Any) -> Any:
        found = l1_sums(self, *given)
        self._use = 0
        return found

    with (
        mock.patch.object(ReplicatedL1Sums, "compute", computed),
        mock.patch.object(KeptCells, "l1_sums", summed),
    ):
        yield


def _no_zero_shares() -> Patch:
    """What is sent on in a resharing is the product itself."""
    stack = ExitStack()
    for name, dtype in (("zero_bits", np.uint64), ("zero_ring", None)):

        def zero(self: Any, shape: Any, kind: Any = dtype) -> Any:
            self.operation()
            return np.zeros(shape, kind)

        stack.enter_context(mock.patch.object(Trio, name, zero))
    return stack


@contextmanager
def _known_signs() -> Iterator[None]:
    """The signs of a release's noise come from a stream that every party can compute."""
    begin = ComputingParty.__init__

    def began(self: Any, engine: Any, *given: Any, **named: Any) -> None:
        for each in (engine.gates, engine.beside):
            each.release_bits = _with_known_signs(each, each.release_bits)
        begin(self, engine, *given, **named)

    with mock.patch.object(ComputingParty, "__init__", began):
        yield


def _with_known_signs(bit_gates: Any, plain: Any) -> Any:
    def release_bits(release: bytes) -> Any:
        source, stream = plain(release), prg.KeyStream(prg.derive(release, prg.NOISE))

        def draw(shape: tuple[int, ...]) -> Any:
            bits = source(shape)
            known = bit_gates.xor_public(bits[-1:] ^ bits[-1:], stream.draw((1, *shape[1:]), np.uint64, 1))
            return concatenate([bits[:-1], known])

        return draw

    return release_bits


def _uncompared_copies() -> Patch:
    """Openings are used without their hash from the second holder, which comes all the same."""

    def receive_missing(trio: Any, own: Any, following: Any) -> Any:
        trio.send(trio.right, own)
        if own.size:
            trio.wire.send(trio.left, copies.digest(following))
        trio.turn()
        missing = trio.receive(trio.left, own.shape, own.dtype.type)
        if own.size:
            trio.wire.receive(trio.right, copies.DIGEST_BYTES)
        return missing

    stack = ExitStack()
    for module in (copies, ring, boolean):
        stack.enter_context(mock.patch.object(module, "receive_missing", receive_missing))
    return stack


def _carry_in_the_clear() -> Patch:
    """A comparison's last carry goes to a neighbour that lacks one part of it."""

    plain = shared_sign.dealt_signs

    def signs(trio: Any, *given: Any) -> Any:
        roles, found = plain(trio, *given)
        trio.send(trio.right, found.own)
        trio.turn()
        trio.receive(trio.left, found.own.shape, np.uint64)
        return roles, found

    return mock.patch.object(shared_sign, "dealt_signs", signs)


def _keys_of_one() -> Patch:
    """A key is made of what its first holder has drawn, and of nothing else."""

    def key(self: Any, members: Any, session_id: bytes) -> bytes:
        return prg.derive(self._parts[members, members[0]].ljust(32), b"key", session_id)

    return mock.patch.object(SharedKeys, "_key", key)


def _known_mask() -> Patch:
    """A custodian masks its counts by a stream that everybody can compute."""
    return mock.patch.object(
        contribution,
        "_stream",
        lambda wire, seed: prg.KeyStream(prg.derive(wire.session_id, prg.CONTRIBUTION)),
    )


class _Shallow(prg.KeyStream):
    """Streams whose words have 8 low bits of 0."""

    def draw(self, shape: Any, dtype: Any, operation: int) -> Any:
        return super().draw(shape, dtype, operation) & ~np.array(255, dtype)


def _bare_low_bits() -> Patch:
    return mock.patch.object(
        contribution,
        "_stream",
        lambda wire, seed: _Shallow(prg.derive(seed, prg.CONTRIBUTION, wire.session_id)),
    )


def _opened_beside() -> Patch:
    """Scores are opened by the parties' own hands, where nobody who watches an engine sees it."""
    plain = ReplicatedEngine.keys

    def keys(self: Any, *given: Any) -> Any:
        made = plain(self, *given)
        ring.open_ring(self._trio, ring.replicated(self._trio, made))
        return made

    return mock.patch.object(ReplicatedEngine, "keys", keys)


@contextmanager
def _uncompared_contributions() -> Iterator[None]:
    """What a contributor sends two parties alike is not compared; the hashes travel all the same."""

    def same_copies(trio: Any, given: Any) -> None:
        for copy in given:
            trio.wire.send(copy.peer, copies.digest(copy.array))
        trio.turn()
        for copy in given:
            trio.wire.receive(copy.peer, copies.DIGEST_BYTES)

    with (
        mock.patch("mpc_protocols.backends.replicated.proved.inputs.same_copies", same_copies),
        mock.patch("mpc_protocols.backends.replicated.vertical.inputs.same_copies", same_copies),
    ):
        yield


@contextmanager
def _uncompared_transcripts() -> Iterator[None]:
    """The parties tell one another what they take for public, and do not look at what they hear; nor at
    hashes of openings.

    By these alone a party that takes something else for public stands out: its streams are others.
    """

    def unheeded(stream: Wire, value: bytes) -> Confirm:
        theirs = announce(stream, value)

        def confirm() -> None:
            theirs()

        return confirm

    with mock.patch.object(sourced_engine, "announce", unheeded), _uncompared_copies():
        yield


MUTATIONS = (
    Mutation("M7", "signs of noise that one party can compute", ("U.noise",), _known_signs),
    Mutation("M11", "two operations under the same masks", ("V.streams", "U.repeated"), _repeated_masks),
    Mutation("M46", "a selection under the masks of another", ("U.repeated",), _masks_of_another_selection),
    Mutation("M12", "a product sent on without its share of zero", ("U.gates",), _no_zero_shares),
    Mutation("M13", "a mask from a key that the receiver has", ("V.masks",), _known_mask),
    Mutation("M14", "8 low bits of a share without a mask", ("V.masks",), _bare_low_bits),
    Mutation("M16", "a carry in the clear", ("U.gates",), _carry_in_the_clear),
    Mutation("M42", "a contributor's copies that nobody compares", ("N.copies",), _uncompared_contributions),
    Mutation("M43", "transcripts and openings that nobody compares", ("N.steps",), _uncompared_transcripts),
    Mutation("M41", "scores opened beside the protocol", ("T.counted",), _opened_beside),
    Mutation("M40", "keys that their first holder draws for the others", ("U.keys",), _keys_of_one),
    Mutation("M31", "two copies of an opening that nobody compares", ("N.openings",), _uncompared_copies),
)
