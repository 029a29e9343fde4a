"""Replicated gates whose products are noted and proved (`replicated.proof`), as the shared code of the engine
uses them.

Each gate sends what a semi-honest one sends. What it computed with is noted besides, and `verify` proves all
of it: before anything is opened, and when as many products have come together as fit into memory. Nothing
else is ever sent by one party and believed by another: numbers stay bits (`numbers`), so no bit is turned
into an element of a ring by somebody who could lie.

Of an arg max it is opened whether all of a candidate's comparisons were won, and the products that say so are
proved before, so that nobody chooses a part last, as in `sharing.bit_gates.zero_rows`: comparisons are ANDed together
by halves, and of what is left the losses are multiplied by words that nobody knows and added up, 0 or uniform. All by
halves takes ceil(lg (n - 1)) rounds, all multiplied 1 (`test_halvings`).

Threat model: one of the three parties deviates as it likes; the two others stop before they open anything.
Assumption: `prg`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.products import VARIABLES, prove
from mpc_protocols.backends.replicated.proof.transcript import Transcript, merged
from mpc_protocols.backends.replicated.proved.addition import (
    PROVED_WORD_BYTES,
    carry_saved,
    compress,
    stacked,
    top_bit,
)
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers, concatenated, placed
from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates, standing_of
from mpc_protocols.backends.replicated.sharing.boolean import ALL, BitShare
from mpc_protocols.backends.replicated.sharing.copies import confirm, receive_confirmed, receive_missing
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_bits, words_for
from mpc_protocols.engine.noise.alias import Runs, lookup_terms, multiplied_out
from mpc_protocols.errors import ProtocolAborted

MIN_BILINEAR: Final = 1 << 20
EVALUATED: Final = 256
"""From so many products of draws and columns of a table a lookup is proved as a form: MIN_BILINEAR, for the
further rounds, and EVALUATED for each entry at each point of the grid of the outer index, which takes as long
as so many products."""
TEST_BITS: Final = 128
"""A candidate that lost is taken for one that did not with probability 2^-TEST_BITS."""
MAX_UNPROVED: Final = 1 << 26
"""Once so many products of a stream have come together, they are proved; they take a byte each in memory."""


class ProvedGates(TrioBitGates):
    """The gates of a trio, with a transcript of their products. beside: gates that are proved together with
    these."""

    def __init__(self, trio: Trio, beside: ProvedGates | None = None) -> None:
        super().__init__(trio)
        self.transcript = Transcript()
        self.agreed = b""
        """Names the public inputs so far, on which all three have agreed: coins and proofs are bound to it."""
        self._beside = beside
        self._proofs = 0
        """Proofs under way of products that were noted here."""
        self._failed = False
        """Whether one of them has failed, for good: no later proof covers its products."""

    def verify(self) -> None:
        """Prove and verify all products so far. 7 rounds, 0 if there are none; besides, the rest of a proof
        under way beside, which may be of products that were noted here.

        Raises `ProtocolAborted` if any is wrong, also if an earlier proof has failed.
        """
        parts = [self, *([self._beside] if self._beside else [])]
        while any(part._proofs for part in parts):  # alike at all parties (`interleave`)
            self.turn()
        if any(part._failed for part in parts):
            raise ProtocolAborted(
                "Products of this run were not found to be right, so nothing that depends on them is opened; start a new run."
            )
        self._prove(parts)

    def _prove(self, parts: Sequence[ProvedGates]) -> None:
        """Prove the products noted so far by these; a failure is remembered by all of them."""
        for part in parts:
            part._proofs += 1
        try:
            self._prove_noted(parts)
        except BaseException:
            for part in parts:
                part._failed = True
            raise
        finally:
            for part in parts:
                part._proofs -= 1

    def _prove_noted(self, parts: Sequence[ProvedGates]) -> None:
        """The proof itself; what is noted from now on belongs to the next one."""
        together = merged([part.transcript for part in parts])
        for part in parts:
            part.transcript = Transcript()
        if together.gates or together.matrices:
            prove(self.trio, together, agreed=self.agreed)

    def and_bits(self, x: BitShare, y: BitShare) -> BitShare:
        shape = np.broadcast_shapes(x.shape, y.shape)
        flat = [_flat(of, shape) for of in (x, y)]
        return self._sums(flat[0], flat[1]).reshape(*shape)

    def and_pairs(self, pairs: Sequence[tuple[BitShare, BitShare]]) -> list[BitShare]:
        shapes = [np.broadcast_shapes(x.shape, y.shape) for x, y in pairs]
        x, y = (
            BitShare(
                *(np.concatenate(parts, axis=1) for parts in zip(*(of.parts for of in side), strict=True))
            )
            for side in zip(
                *([_flat(of, shape) for of in pair] for pair, shape in zip(pairs, shapes, strict=True)),
                strict=True,
            )
        )
        together = self._sums(x, y)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        return [
            together[int(end - np.prod(shape)) : int(end)].reshape(*shape)
            for end, shape in zip(ends, shapes, strict=True)
        ]

    def factor(self, y: BitShare) -> BitShare:
        return y

    def look_up(self, inner: BitShare, outer: BitShare, runs: Runs) -> BitShare:
        """As `engine.noise.alias` looks up: of many draws the bilinear form is proved, of few the products
        one by one."""
        if worth_a_form(64 * inner.shape[1], len(outer), len(inner)):
            return self._bilinear(inner, outer, runs)
        return multiplied_out(self, inner, outer, runs)

    def _bilinear(self, inner: BitShare, outer: BitShare, runs: Runs) -> BitShare:
        """A lookup, noted. 1 round, a bit an output."""
        trio, shape = self.trio, (runs[0][0].outputs, inner.shape[1])
        operation = trio.operation()
        own, following = (mask(shape, np.uint64, operation) for mask in (trio.own_mask, trio.next_mask))
        mine, message = np.zeros(shape, np.uint64), own ^ following
        for index, x, (of_own, of_next) in lookup_terms(inner, outer, runs):
            products = of_own & x.own
            mine[index] ^= np.bitwise_xor.reduce(products, axis=-2)
            of_own &= x.next
            of_own ^= products
            of_next &= x.own
            of_own ^= of_next
            message[index] ^= np.bitwise_xor.reduce(of_own, axis=-2)
        received = trio.pass_left(message)
        start = 0
        for table, words in runs:
            piece = slice(start, start + words)
            self.transcript.lookup(
                outer[:, piece],
                inner[:, piece],
                table.output_bits,
                *(of[:, piece] for of in (own, following, received, mine)),
            )
            start += words
        self._prove_if_many()
        return BitShare(message, received)

    def and_sums(
        self, shape: tuple[int, ...], terms: Iterable[tuple[Any, BitShare, Iterable[NDArray[Any]]]]
    ) -> BitShare:
        places: NDArray[np.intp] = np.arange(int(np.prod(shape))).reshape(shape)
        xs: list[BitShare] = []
        ys: list[BitShare] = []
        order = []
        for index, x, parts in terms:
            y = BitShare(
                *(np.array(part) for part in parts)
            )  # (rows, entries, words): a part may be overwritten
            entries = y.shape[-2]
            xs.append(BitShare(*(_by_entry(np.broadcast_to(part, y.shape), entries) for part in x.parts)))
            ys.append(BitShare(*(_by_entry(part, entries) for part in y.parts)))
            order.append(places[index].reshape(-1))
        x, y = (
            BitShare(*(np.concatenate(p, axis=1) for p in zip(*(o.parts for o in of), strict=True)))
            for of in (xs, ys)
        )
        found = self._sums(x, y)
        where = np.concatenate(order)
        results = []
        for part in found.parts:
            result = np.empty(len(where), np.uint64)
            result[where] = part
            results.append(result.reshape(shape))
        return BitShare(*results)

    def _sums(self, x: BitShare, y: BitShare) -> BitShare:
        """XOR over the first axis of x & y, (entries, words) to (words,), noted. 1 round."""
        trio, words = self.trio, x.shape[1]
        operation = trio.operation()
        own, following = (
            trio.own_mask(words, np.uint64, operation),
            trio.next_mask(words, np.uint64, operation),
        )
        part = y.own ^ y.next
        part &= x.own
        part ^= x.next & y.own
        message: Words = part[0] if len(part) == 1 else np.bitwise_xor.reduce(part, axis=0)
        message ^= own
        message ^= following
        received = trio.pass_left(message)
        self.transcript.product(x, y, own, following, received)
        self._prove_if_many()
        return BitShare(message, received)

    def note_of(self, prover: int, first: Words | None, second: Words | None, right_side: Words) -> None:
        """Statements that one party proves and of whose factors each verifier holds one, the left one the
        first.

        first, second: (words,) at the prover both, at a verifier its own one; None is zeros. right_side: a
        verifier's share, nothing at the prover. No message; proved with the products, at once if many have
        come together.
        """
        trio = self.trio
        factors = [part.reshape(1, -1) for part in (first, second) if part is not None]
        first, second = (
            factors
            if len(factors) == 2
            else (
                (factors[0], np.zeros_like(factors[0]))
                if second is None
                else (np.zeros_like(factors[0]), factors[0])
            )
        )
        role = "proving" if trio.me == prover else "left" if trio.right == prover else "right"
        getattr(self.transcript, role).note(first, second, right_side)
        self.transcript.gates += 64 * first.shape[1]
        self._prove_if_many()

    def _prove_if_many(self) -> None:
        if self.transcript.gates >= MAX_UNPROVED:
            self._prove([self])

    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, BitShare]]) -> NDArray[np.bool_]:
        blocks = [bits for _, bits in rows]
        lost = BitShare(
            *(np.concatenate(parts, axis=1) for parts in zip(*(b.parts for b in blocks), strict=True))
        )
        cells = shape[0] * shape[1]
        halvings = test_halvings(lost.shape[2], words_for(cells), self.latency_bytes)
        standing = standing_of(self, lost, halvings)
        if len(standing) > 1:
            standing = self._tested(self.complement(standing))
        self.verify()
        opened = np.bitwise_and.reduce(self.opened(standing.own, standing.next), axis=0)
        return np.asarray(to_bits(opened, cells, np.uint8).reshape(shape), np.bool_)

    def _tested(self, lost: BitShare) -> BitShare:
        """TEST_BITS planes, all 1 where no plane of lost is 1, else uniform: (losses, words). 1 round."""
        losses, words = lost.shape
        tests = self._unknown((losses, TEST_BITS * words))
        spread = BitShare(*(np.concatenate([part] * TEST_BITS, axis=1) for part in lost.parts))
        return self.complement(self._sums(spread, tests)).reshape(TEST_BITS, words)

    def _unknown(self, shape: tuple[int, ...]) -> BitShare:
        """Uniform words that nobody knows."""
        operation = self.trio.operation()
        return BitShare(
            *(mask(shape, np.uint64, operation) for mask in (self.trio.own_mask, self.trio.next_mask))
        )

    def opened(
        self, own: NDArray[Any], following: NDArray[Any], join: np.ufunc = np.bitwise_xor
    ) -> NDArray[Any]:
        """Reveal shared words or integers, given this party's components; what they depend on is proved. join: how
        components make the value. 1 round.

        Raises `ProtocolAborted` if the two holders of a component disagree.
        """
        found: NDArray[Any] = join(join(own, following), receive_missing(self.trio, own, following))
        return found

    def known_integers(self, size: int, ring: UInt) -> dict[int, Elements]:
        """Uniform integers, one vector known to each two parties: those that this party knows, by component.
        Local."""
        trio, operation = self.trio, self.trio.operation()
        return {
            trio.me: trio.own_mask(size, ring, operation),
            trio.right: trio.next_mask(size, ring, operation),
        }

    def opened_to_two(self, x: Summand) -> Elements:
        """XOR-shared integers, opened to P1 and P2; zeros at P0. What they depend on is proved. 1 round. Raises
        `ProtocolAborted`.

        P1 lacks component 0, which P0 sends and P2 has, too; P2 lacks component 1, which P1 sends and P0 has,
        too.
        """
        trio, me = self.trio, self.trio.me
        if me == 0:
            trio.send(1, x.own)
            confirm(trio, 2, x.next)
        elif me == 1:
            trio.send(2, x.own)
        else:
            confirm(trio, 1, x.next)
        trio.turn()
        if me == 0:
            return np.zeros_like(x.own)
        sender, other = (0, 2) if me == 1 else (1, 0)
        dtype = x.own.dtype.type
        missing = receive_confirmed(trio, sender, other, x.own.shape, dtype, "a masked value")
        found: Elements = x.own ^ x.next ^ missing
        return found

    # -- numbers
    # -------------------------------------------------------------------------------------------------------------

    def weighted_sum(self, bits: BitShare, weights: Sequence[int], cells: int, ring: UInt) -> SummedNumbers:
        """Local: the bits of each weight say where the bit stands."""
        return placed(bits, weights, cells, ring)

    def add_public(self, x: SummedNumbers, public: NDArray[Any]) -> SummedNumbers:
        return x.plus_public(public)

    def scaled(self, x: SummedNumbers, factor: int) -> SummedNumbers:
        return x.scaled(factor)

    def concatenate(self, numbers: Sequence[SummedNumbers]) -> SummedNumbers:
        return concatenated(numbers)

    def negative(self, x: SummedNumbers) -> BitShare:
        """See `Gates`; the numbers are added up for it, but for their last carries."""
        return self._top(carry_saved(self, x).parts, x.ring, 0)

    def less(self, left: SummedNumbers, right: SummedNumbers) -> BitShare:
        """As `Gates.less`, of numbers that are added up already: in one part (`addition.add_up`), 1 + ceil(lg (K -
        1)) rounds, or in two (`addition.carry_saved`), up to 2 rounds more."""
        inverted = [self._inverted(of) for of in right.parts]  # left - right = left + ~right + 1
        return self._top([*left.parts, *inverted], left.ring, len(inverted))

    def _inverted(self, x: Summand) -> Summand:
        """~x. Local."""
        everything = np.invert(np.zeros_like(x.own))
        own, following = (holder % 3 == 0 for holder in (self.trio.me, self.trio.right))
        return Summand(x.own ^ everything if own else x.own, x.next ^ everything if following else x.next)

    def _top(self, summands: Sequence[Summand], ring: UInt, ones: int) -> BitShare:
        """The highest bit of a sum of integers and of so many ones, at most one for each integer but the first."""
        planes = 8 * np.dtype(ring).itemsize
        flat = [of.map(lambda part: part.reshape(-1)) for of in summands]
        numbers, counts = stacked(flat, planes), np.array([len(flat)])
        if len(flat) > 2:
            nothing = np.zeros((len(flat), numbers.shape[2]), np.uint64)
            extra = np.zeros_like(nothing)
            extra[:ones] = ALL
            numbers, _, used = compress(
                self, numbers, counts, planes, self.xor_public(BitShare(nothing, nothing), extra)
            )
            ones = max(0, ones - int(used[0]))
        if len(flat) == 1:
            return numbers[planes - 1, 0]
        return top_bit(self, numbers[:, 0], numbers[:, 1], bool(ones))


def test_halvings(losses: int, words: int, latency_bytes: int) -> int:
    """How often so many words of losses are ANDed together, by halves, before what is left is multiplied by words that
    nobody knows: the least rounds * latency_bytes + bytes, alike at all parties. As often as it takes to leave one
    bit, where nothing is multiplied."""
    cost, spent, halvings = list[int](), 0, 0
    while losses > 1:
        cost.append(spent + latency_bytes + PROVED_WORD_BYTES * TEST_BITS * losses * words)
        spent += latency_bytes + PROVED_WORD_BYTES * (losses // 2) * words
        losses -= losses // 2
        halvings += 1
    cost.append(spent)
    return min(range(len(cost)), key=lambda number: cost[number])


def worth_a_form(draws: int, outer: int, inner: int) -> bool:
    """Whether so many draws from a table of so many columns are proved as a bilinear form, from public sizes."""
    points = int(3 ** (outer.bit_length() - 1))
    least = MIN_BILINEAR + EVALUATED * points * inner
    return outer <= 1 << VARIABLES and draws * outer * inner >= least


def _flat(x: BitShare, shape: tuple[int, ...]) -> BitShare:
    """One entry of all words."""
    return BitShare(*(np.broadcast_to(part, shape).reshape(1, -1) for part in x.parts))


def _by_entry(part: Words, entries: int) -> Words:
    """(rows, entries, words) to (entries, rows * words)."""
    return np.moveaxis(part, -2, 0).reshape(entries, -1)
