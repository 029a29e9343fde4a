"""Cohorts of clients in the three-party engine: sums of their vectors with noise that nobody knows, choices
that nobody sees.

    leader -> followers    every step          leader -> clients    the question, when they are asked
    client -> two computing parties            a 16-byte seed to one, its vector minus the seed's stream to the next;
                                               with each the hash of the question that it answers
    among the three        `share_own` of what each holds; noise from shared bits; openings

A vote of `popular` is kept per client, so that it can be counted again without those who left; only [sum >=
least] of each position is opened (a sign, 7 rounds for 32 bits). A custodian that computes is a client like
any other: it adds its own vector to its parts.

Who learns what: recipients and computing parties what is opened; clients the questions. Nobody learns a
client's vector, a sum without noise (but `reveal`'s, which clients have made private), or the noise. Threat
model: semi-honest, at most one of the three corrupted; clients semi-honest: votes are not checked for form,
and whoever leads may ask what the guards of the others admit. Cost of a sum of L entries: 4 L + 80 bytes from
each client; among the three one round of 4 L bytes, the noise's, an opening of 4 L. Assumption: AES-CTR
(`prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.gates import TrioGates
from mpc_protocols.backends.replicated.sharing.boolean import complement, open_bits
from mpc_protocols.backends.replicated.sharing.ring import (
    RingShare,
    add_public,
    centred,
    open_ring,
    segment_sums,
    share_own,
)
from mpc_protocols.backends.replicated.sharing.sign import signs
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.arrays import receive_array, send_array
from mpc_protocols.engine.bitwise.bitslice import Elements, to_bits
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.noise.sampling import gaussian_noise
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, binding, derive
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import (
    POPULAR,
    REVEAL,
    SUM,
    Answered,
    Clique,
    Cohorts,
    Event,
    Guard,
    Indices,
    LocalVector,
    Question,
)
from mpc_protocols.mechanisms.measurement import MeasurePlan
from mpc_protocols.public.cohorts.public import CohortState, checked
from mpc_protocols.public.cohorts.steps import DIGEST_BYTES, END, MAX_BYTES, CohortStep, StepGuard, parse
from mpc_protocols.wire import Wire

CELL_BITS: Final = 32
STREAM: Final = "cohorts"
"""Of the wire, once in a run: a second object over one wire would use the first one's masks and noise again."""


class _Party:
    """One of the three that compute. holders: numbers of the parties that answer, in the study's order."""

    def __init__(self, wire: Wire, own: LocalVector | None, holders: Sequence[int], guard: Guard) -> None:
        self.wire, self._own = wire.fork(STREAM), own
        self.trio, self.holders = Trio(self.wire, f"/{STREAM}"), tuple(holders)
        self.state = CohortState(wire.session_id, guard)
        self._votes: tuple[tuple[int, ...], RingShare] | None = None

    def sum(self, step: CohortStep) -> NDArray[np.int64]:
        """A noisy sum."""
        plan = self.state.begin_sum(self.holders, step.question, step.clients, step.sigma2, step.cliques)
        self._agree()
        noisy = self._total(step) + self._noise(plan, step.question.length)
        return self._opened(noisy)

    def reveal(self, step: CohortStep) -> NDArray[np.int64]:
        """An exact sum."""
        self.state.begin_reveal(self.holders, step.question, step.clients, step.event)
        self._agree()
        return self._opened(self._total(step))

    def popular(self, step: CohortStep) -> tuple[int, ...]:
        """Positions of enough votes."""
        fresh, positions = self.state.begin_popular(
            self.holders, step.question, step.clients, step.least, step.event, step.among
        )
        if fresh != step.asked:
            raise ProtocolAborted("The leading party asks clients for what they have answered; stop the run.")
        self._agree()
        if fresh:
            self._votes = step.clients, share_own(self.trio, self._parts(step))
        assert self._votes is not None
        clients, votes = self._votes
        kept = votes[[clients.index(client) for client in step.clients]]
        columns = np.array(positions, np.intp)
        if not len(columns):
            return ()
        counted = segment_sums(
            RingShare(kept.own.T[columns].reshape(-1), kept.next.T[columns].reshape(-1)),
            np.full(len(columns), len(step.clients)),
        )
        below = signs(
            self.trio, add_public(self.trio, counted, np.full(len(columns), -step.least)), CELL_BITS, "tree"
        )
        bits = to_bits(open_bits(self.trio, complement(self.trio, below)), len(columns))
        found = tuple(int(q) for q in columns[bits.nonzero()])
        self.state.opened(np.array(found, np.int64))
        return found

    def run(self, step: CohortStep) -> NDArray[np.int64] | tuple[int, ...]:
        """Any step."""
        if step.kind == POPULAR:
            return self.popular(step)
        return self.sum(step) if step.kind == SUM else self.reveal(step)

    def _agree(self) -> None:
        peer = self.trio.differing(self.state.transcript)
        if peer is not None:
            raise ProtocolAborted(f"Party {peer} of the session has another transcript; stop the run.")

    def _parts(self, step: CohortStep) -> Elements:
        """This party's part of every client's vector: (clients, length), modulo 2^32."""
        length = step.question.length
        parts = np.zeros((len(step.clients), length), np.uint32)
        for row, client in enumerate(step.clients):
            if client == self.wire.me:
                assert self._own is not None
                parts[row] = checked(step.question, self._own(step.question), client).astype(np.uint32)
            elif client >= self.wire.computing:
                seed_to, masked_to = _pair_of(self.wire, client)
                if self.wire.me == seed_to:
                    stream = _stream(self.wire, self._part(step, client, SEED_BYTES).tobytes())
                    parts[row] = stream.draw(length, np.uint32, 0)
                elif self.wire.me == masked_to:
                    parts[row] = self._part(step, client, 4 * length).view(np.uint32)
        return parts

    def _part(self, step: CohortStep, client: int, size: int) -> NDArray[np.uint8]:
        """What a client has sent as its answer to this step, and to no other that the leader may have sent
        it."""
        message = receive_array(self.wire, client, size + DIGEST_BYTES, np.uint8)
        if (message[size:] != np.frombuffer(step.digest, np.uint8)).any():
            raise ProtocolAborted(
                f"Client {client} was asked something else than this party was; stop the run."
            )
        return message[:size]

    def _total(self, step: CohortStep) -> RingShare:
        return share_own(self.trio, self._parts(step).sum(axis=0, dtype=np.uint32))

    def _noise(self, plan: MeasurePlan, length: int) -> RingShare:
        gates = TrioGates(self.trio)
        source = gates.release_bits(binding(b"cohorts", self.wire.session_id, self.state.transcript))
        return gaussian_noise(gates, source, plan.samplers[0], length, np.uint32)

    def _opened(self, share: RingShare) -> NDArray[np.int64]:
        values = centred(open_ring(self.trio, share))
        self.state.opened(values)
        return values


class ReplicatedCohorts(Cohorts):
    """Cohorts at the leading party. Followers and clients end with `close`, or at the end of a block that
    went well."""

    def __init__(self, wire: Wire, own: LocalVector | None, holders: Sequence[int], guard: Guard) -> None:
        """own: how this party answers; None if it only computes. holders: the numbers of all parties that
        answer."""
        self._party = _Party(wire, own, holders, guard)

    def __enter__(self) -> ReplicatedCohorts:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    @property
    def clients(self) -> Sequence[int]:
        return self._party.holders

    @property
    def transcript(self) -> bytes:
        """Hash of all that is public so far."""
        return self._party.state.transcript

    def sum(
        self, question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique] = ()
    ) -> NDArray[np.int64]:
        """See `Cohorts`."""
        step = CohortStep(SUM, question, tuple(clients), sigma2=sigma2, cliques=tuple(cliques))
        return self._party.sum(self._tell(step))

    def popular(
        self, question: Question, clients: Indices, least: int, event: Event, among: Indices | None = None
    ) -> tuple[int, ...]:
        """See `Cohorts`."""
        positions = None if among is None else tuple(among)
        fresh = not self._party.state.answered(question)
        step = CohortStep(POPULAR, question, tuple(clients), fresh, least=least, among=positions, event=event)
        return self._party.popular(self._tell(step))

    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> NDArray[np.int64]:
        """See `Cohorts`."""
        return self._party.reveal(self._tell(CohortStep(REVEAL, question, tuple(clients), event=event)))

    def close(self) -> None:
        """Let followers and clients end."""
        self._tell(CohortStep(END, clients=tuple(self._party.holders)))

    def _tell(self, step: CohortStep) -> CohortStep:
        """Send a step to all that take part in it, as bytes that they will find canonical."""
        wire, payload = self._party.wire, step.to_bytes()
        if not set(step.clients) <= set(self.clients):
            raise StudyInvalid("A cohort needs clients of the study, each of them once.")
        computing = [peer for peer in range(wire.computing) if peer != wire.me]
        asked = [client for client in step.clients if client >= wire.computing] if step.asked else []
        for peer in (*computing, *asked):
            wire.send(peer, payload)
        return parse(payload)


def follow(
    wire: Wire, own: LocalVector | None, holders: Sequence[int], guard: StepGuard, leader: int
) -> list[Answered]:
    """The two others that compute: execute the leader's steps until it ends; what was opened of each
    question, in order. Blocks.

    guard: it also admits each step before anything of it is done.
    Raises `ProtocolAborted`, `BudgetRefused` (the guard), `DataRefused` (own vector), `PeerLost`.
    """
    party, opened = _Party(wire, own, holders, guard), list[Answered]()
    while (step := parse(bytes(party.wire.receive_up_to(leader, MAX_BYTES)))).kind != END:
        guard.admit(step)
        opened.append((step.question, party.run(step)))
    return opened


def answer(wire: Wire, own: LocalVector, leader: int, guard: StepGuard) -> None:
    """A client that does not compute: answer what it is asked, until the leader ends the run. Blocks.

    guard: its own account; it admits a step, and is told what it charges, before anything leaves.
    Raises what `own` and the guard raise,
    `DataRefused` (its vector), `ProtocolAborted`, `PeerLost`.
    """
    wire = wire.fork(STREAM)
    while (step := parse(bytes(wire.receive_up_to(leader, MAX_BYTES)))).kind != END:
        if not step.asked or wire.me not in step.clients:
            raise ProtocolAborted("The leading party sent this client a question to others; stop the run.")
        guard.admit(step)
        guard.authorise(step.charge, step.digest)
        vector = checked(step.question, own(step.question), wire.me).astype(np.uint32)
        seed = secrets.token_bytes(SEED_BYTES)
        seed_to, masked_to = _pair_of(wire, wire.me)
        wire.send(seed_to, seed + step.digest)
        vector -= _stream(wire, seed).draw(len(vector), np.uint32, 0)
        digest = np.frombuffer(step.digest, np.uint8)
        send_array(wire, masked_to, np.concatenate((vector.view(np.uint8), digest)))


def _pair_of(wire: Wire, contributor: int) -> tuple[int, int]:
    """The computing parties that get a client's seed and its masked vector."""
    index = list(wire.contributors).index(contributor)
    return index % wire.computing, (index + 1) % wire.computing


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, wire.session_id))
