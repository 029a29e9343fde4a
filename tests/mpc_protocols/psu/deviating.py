"""Runs of dh2 of which one owner deviates, for the tests of attacks."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame
from mpc_protocols.psu.dh2.matching import Answering, Asking, Matching
from mpc_protocols.psu.dh2.owner import Owner
from mpc_protocols.psu.dummies import assemble
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, TRAPS, ids, run, spec_of
from tests.patience import PATIENCE_S

N, K = 40, 20
MINE, THEIRS = ids(range(N)), ids(range(N - K, 2 * N - K))
UNION = 2 * N - K
SEMI_HONEST, PROOFS = spec_of("dh2"), spec_of("dh2+proofs")


@dataclass
class Outcome:
    """The deviating owner; the honest one, its result, and what it said ("" if it noticed nothing); all
    messages."""

    deviating: Any
    honest: Owner
    result: Alignment | None
    said: str
    frames: list[Frame]

    def received(self, side: int, message: int) -> bytes:
        """What an owner was sent, by number (as in `test_faults`)."""
        return [frame.payload for frame in self.frames if frame.receiver == side][message]


def attack(
    kind: type[Owner],
    side: int,
    spec: AlignmentSpec = SEMI_HONEST,
    mine: list[bytes] = MINE,
    theirs: list[bytes] = THEIRS,
    traps: int = TRAPS,
) -> Outcome:
    """One run, the deviating owner with `mine` on that side."""
    owners: dict[int, Owner] = {}
    results: list[Alignment] = []
    said: list[str] = []
    met = threading.Barrier(2, timeout=PATIENCE_S)

    def build(wire: Wire) -> Owner:
        make, entries = (kind, mine) if wire.me == side else (Owner, theirs)
        if spec.adjacency == "add-remove":
            entries = assemble(entries, spec, CONTEXT.salt(spec, wire.session_id), wire.me, "x").entries
        owners[wire.me] = make(wire, entries, spec, CONTEXT, Ristretto255(threads=1), traps=traps)
        met.wait()
        return owners[wire.me]

    def deviate(wire: Wire) -> None:
        owner: Any = build(wire)
        owner.honest = owners[1 - side]  # for tests of what a right guess does
        with suppress(ProtocolAborted, PeerLost):
            owner.run()

    def follow(wire: Wire) -> None:
        owner = build(wire)
        with suppress(PeerLost):
            try:
                results.append(owner.run())
            except ProtocolAborted as error:
                said.append(error.sentence)

    done = run(spec, *((deviate, follow) if side == 0 else (follow, deviate)))
    return Outcome(
        owners[side], owners[1 - side], results[0] if results else None, said[0] if said else "", done.frames
    )


def deviating(step: type[Matching]) -> type[Owner]:
    """An owner whose matching step, on either side, is overridden by the methods of `step`."""

    class Deviating(Owner):
        answering = type("DeviatingAnswering", (step, Answering), {})
        asking = type("DeviatingAsking", (step, Asking), {})

        def matching(self) -> Matching:
            self.step = super().matching()
            return self.step

    return Deviating
