"""The engine with proofs as it counts: the same code on blank arrays, which sends nothing and notes what each
party would send.

What the three parties send is alike but for who deals and who leads, and follows from public sizes alone. So
one party's code, run once on arrays without content (`engine.blank`), gives the messages of all three, in
their order: costs need no formulas that could differ from the code. So it is with proofs (`proof.costs`).
Nothing here is a share of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.form import ProofSizes
from mpc_protocols.backends.replicated.proof.costs import Row, proof_steps
from mpc_protocols.backends.replicated.proof.transcript import Transcript, kept_as_products
from mpc_protocols.backends.replicated.proved.addends import AddendCache
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.inputs import explicit_component, held
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.proved.vertical.counted import CountedVertical
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.agreement import Confirm
from mpc_protocols.engine.bitwise.bitslice import UInt, words_for
from mpc_protocols.engine.blank import BlankBytes, blank
from mpc_protocols.engine.by_shape import Messages
from mpc_protocols.engine.inputs.check.costs import CheckModel, CheckSizes
from mpc_protocols.engine.inputs.contribution import SEED_BYTES, block_cells
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import Runs
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Clique, Handle, Level, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.state import PublicState
from mpc_protocols.vertical.partition import Partition

LEADER = 1
"""Whose part is played."""


class CountedTrio:
    """Three parties' messages on one tally. `turn` as of any trio, between the sends and the receives."""

    me, left, right = LEADER, 0, 2

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.latency_bytes = LATENCY_BYTES
        self.turn: Callable[[], None] = alone

    def all_send(self, messages: Row) -> None:
        """Every party sends these."""
        self.send([(i, (i + offset) % 3, size) for i in range(3) for offset, size in messages])

    def send(self, transfers: Sequence[tuple[int, int, int]]) -> None:
        """Some send: as `Tally.step`."""
        travelling = self.tally.leave(transfers)
        self.turn()
        self.tally.arrive(travelling)

    def count_proof(self) -> None:
        """See `Wire`."""
        self.tally.proofs += 1


class WiredTrio(CountedTrio):
    """One party's part of these messages, on a wire that counts."""

    def __init__(self, trio: Trio) -> None:
        self.me, self.left, self.right = trio.me, trio.left, trio.right
        self.latency_bytes, self.turn = trio.latency_bytes, alone
        self._wire = trio.wire

    def send(self, transfers: Sequence[tuple[int, int, int]]) -> None:
        for sender, receiver, size in transfers:
            if size and sender == self.me:
                self._wire.send(receiver, BlankBytes(size))
        self.turn()
        for sender, receiver, size in transfers:
            if size and receiver == self.me:
                self._wire.receive(sender, size)

    def count_proof(self) -> None:
        self._wire.count_proof()


class CountedGates(ProvedGates):
    """Gates on blank words."""

    def __init__(self, trio: CountedTrio, beside: CountedGates | None = None) -> None:
        super().__init__(cast(Any, trio), beside)
        self._counted = trio
        self.messages = Messages(
            repeats=False
        )  # any place in an array is as good as any other (`by_shape.is_dry`)
        self.unproved = _unproved()
        """Of each prover, what is to be proved."""
        self.matrices: list[int] = []
        """Rows of each product of matrices to be proved."""
        self.products = 0
        """Of the whole run."""
        self.most_unproved = 0
        """Products that were proved together."""
        self.winners: list[int] = []
        """Where the next tests of rows are to find their zeros; at the first row where none is told."""

    def note(self, entries: int, words: int) -> None:
        """Statements of so many words of every prover."""
        for of_prover in self.unproved:
            of_prover.gates[entries] += words
        self.transcript.gates += 64 * entries * words
        self.products += 64 * entries * words

    def note_of_one(self, prover: int, words: int) -> None:
        """`note_of` of so many words."""
        self.unproved[prover].gates[1] += words
        self.transcript.gates += 64 * words
        self.products += 64 * words // 3  # a third of the work of a product, which all three prove
        self._prove_if_many()

    def note_matrices(self, rows: int) -> None:
        """A product of matrices of so many rows, sums over them or not."""
        self.matrices.append(rows)

    def _bilinear(self, inner: BitShare, outer: BitShare, runs: Runs) -> BitShare:
        outputs, words = runs[0][0].outputs, inner.shape[1]
        self._counted.all_send([(2, 8 * outputs * words)])
        for of_prover in self.unproved:
            of_prover.lookups.append((len(outer).bit_length() - 1, words))
        kept = kept_as_products(len(outer), len(inner), words)
        self.transcript.gates += kept
        self.products += kept
        self._prove_if_many()
        return zero_bits((outputs, words))

    def release_bits(self, release: bytes) -> BitSource:
        return zero_bits

    def _unknown(self, shape: tuple[int, ...]) -> BitShare:
        return zero_bits(shape)

    def opened(
        self, own: NDArray[Any], following: NDArray[Any], join: np.ufunc = np.bitwise_xor
    ) -> NDArray[Any]:
        self._counted.all_send([(1, own.nbytes), (2, DIGEST_BYTES)])
        return np.zeros_like(own)

    def known_integers(self, size: int, ring: UInt) -> dict[int, NDArray[Any]]:
        return {component: blank(size, ring) for component in (self._counted.me, self._counted.right)}

    def opened_to_two(self, x: Summand) -> NDArray[Any]:
        sent = x.own.nbytes
        self._counted.send([(0, 1, sent), (0, 2, DIGEST_BYTES), (1, 2, sent), (2, 1, DIGEST_BYTES)])
        return np.zeros_like(x.own)

    def zero_rows(self, shape: tuple[int, int], rows: Any) -> NDArray[np.bool_]:
        super().zero_rows(shape, rows)
        found = np.zeros(shape, np.bool_)
        found[:, self.winners.pop(0) if self.winners else 0] = True
        return found

    def count(self, words: int, entries: int = 1) -> None:
        """An AND of so many words, or sums of so many of them."""
        self._counted.all_send([(2, 8 * words)])
        self.note(entries, words)
        self._prove_if_many()

    def _sums(self, x: BitShare, y: BitShare) -> BitShare:
        entries, words = x.shape
        self.count(words, entries)
        return zero_bits((words,))

    def _prove_noted(self, parts: Sequence[ProvedGates]) -> None:
        together, matrices, due = _unproved(), list[int](), 0
        for part in cast("Sequence[CountedGates]", parts):
            due += part.transcript.gates
            together = tuple(one.together(more) for one, more in zip(together, part.unproved, strict=True))
            matrices += part.matrices
            part.transcript, part.unproved, part.matrices = Transcript(), _unproved(), []
        self.most_unproved = max(self.most_unproved, due)
        if due or matrices:
            self._counted.count_proof()
            for transfers in proof_steps(together, self._counted.latency_bytes, matrices=matrices):
                self._counted.send(transfers)


class CountedEngine(ProvedEngine):
    """The leading party over `CountedGates`; marginals are blank numbers of the right size."""

    def __init__(
        self, tally: Tally, facts: StudyFacts, contributors: int, split: Partition | None = None
    ) -> None:
        """tally: of three parties and the contributors, which are all checked where any are. split: of split
        columns."""
        trio = CountedTrio(tally)
        self._facts, self._leader, self._tally, self._counting = facts, facts.leader, tally, trio
        self.wire = cast(Any, _Wire(trio, contributors))
        self.counted_beside = CountedGates(CountedTrio(tally))
        self.counted_gates = CountedGates(trio, self.counted_beside)
        self.gates, self.beside = self.counted_gates, self.counted_beside
        self._trio = cast(Any, trio)
        self._zeros = _Zeros()
        self._marginals = cast(Any, self._zeros)
        self._addends = AddendCache(self._deal)
        self._checks = CheckModel(facts, 3 + contributors)
        self.vertical = None if split is None else CountedVertical(self.counted_gates, trio, split, facts)
        self.picked: Sequence[int] = ()
        """Of a selection of several: the candidates that are picked."""
        self.check_cost = 0, 0
        """Rounds and bytes of all checks of inputs."""

    def announce(self, value: bytes) -> Confirm:
        size, tally = len(value), self._tally
        travelling = tally.leave([(i, (i + offset) % 3, size) for i in range(3) for offset in (1, 2)])

        def confirm() -> None:
            tally.arrive(travelling)

        return confirm

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """What `CustodiansMarginals` sends, and the check of all custodians."""
        self._zeros.filled = True
        if self.vertical is not None:
            return self.vertical.share(cliques, levels)
        cells = block_cells(self._facts.with_levels(levels), cliques)
        contributors = self.wire.contributors
        for q in contributors:
            explicit = explicit_component(self.wire, q)
            for party in range(3):
                seeds = sum(j != explicit for j in held(party))
                self._tally.step([(q, party, DIGEST_BYTES + SEED_BYTES * seeds)])
                if explicit in held(party):
                    for block in cells:
                        self._tally.step([(q, party, 4 * block)])
        for block in cells:
            self._counting.all_send([(1, 4 * block)])
        if contributors:
            self._counting.all_send([(offset, DIGEST_BYTES) for _ in contributors for offset in (1, 2)])
        if (check := self._checks.next(cliques, levels)) is not None:
            rounds, sent = (
                self.check_cost[0] - self._tally.rounds,
                self.check_cost[1] - sum(self._tally.sent),
            )
            self._check(check)
            self.check_cost = rounds + self._tally.rounds, sent + sum(self._tally.sent)
        return sum(cells)

    def _check(self, check: CheckSizes) -> None:
        """`InputCheck.inconsistent`."""
        for _ in range(2):
            self._counting.all_send([(1, DIGEST_BYTES), (2, DIGEST_BYTES)])
        for numbers, _ in check.batches:
            self.gates.negative(SummedNumbers.of(_zeros(numbers)))
        bits = BitShare(*(blank((check.contributors, 1, 64), np.uint8) for _ in range(2)))
        self.gates.zero_rows((check.contributors, 1), [(slice(0, 1), bits)])

    def picks(self, keys: SummedNumbers, plan: SelectionPlan) -> list[int]:
        lists = [plan.candidates(self.picked[:number]) for number in range(len(self.picked))]
        self.counted_gates.winners = [
            left.index(pick) for left, pick in zip(lists, self.picked, strict=True) if len(left) > 1
        ]
        return super().picks(_blanked(keys), plan)

    def largest(self, keys: SummedNumbers) -> int:
        return super().largest(_blanked(keys))

    def _deal(self, trio: Any, transcript: Transcript, x: RingShare, planes: int) -> Summand:
        words = planes * words_for(len(x))
        self._counting.send([(0, 1, 8 * words)])
        self.counted_gates.note_of_one(0, words)
        return Summand(blank(len(x), np.uint32), blank(len(x), np.uint32))


class _Wire:
    """The leader's messages to single parties."""

    computing, me, session_id = 3, LEADER, bytes(32)

    def __init__(self, trio: CountedTrio, contributors: int) -> None:
        self._trio, self.contributors = trio, range(3, 3 + contributors)

    def send(self, peer: int, payload: bytes) -> None:
        self._trio.tally.step([(LEADER, peer, len(payload))])


class _Zeros:
    """Shares of marginals."""

    public = sharing = b""
    apart: tuple[()] = ()
    """Their check is counted where they are shared."""

    def __init__(self) -> None:
        self.filled = False

    def marginal(self, state: PublicState, handle: Handle) -> RingShare:
        return _zeros(state.cells(handle))

    def rows(self) -> RingShare | None:
        return _zeros(1) if self.filled else None


def _unproved() -> tuple[ProofSizes, ...]:
    """Nothing of each prover."""
    return tuple(ProofSizes() for _ in range(3))


def zero_bits(shape: tuple[int, ...]) -> BitShare:
    """Words without content."""
    return BitShare(blank(shape, np.uint64), blank(shape, np.uint64))


def _blanked(numbers: SummedNumbers) -> SummedNumbers:
    """As many numbers, in as many parts, without content."""
    return numbers.map(lambda part: blank(part.shape, part.dtype))


def _zeros(cells: int) -> RingShare:
    return RingShare(blank(cells, np.uint32), blank(cells, np.uint32))
