"""The proof that every product of a batch is what its sender's shares give: distributed zero knowledge over
GF(2^64).

Problem. Prover i claims sum_e X_e Y_e = W for bits of which its two neighbours hold XOR shares
(`transcript`); both are honest if it is not. Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019; Boyle,
Gilboa, Ishai, Nof 2019. The form here, bit-sliced over GF(2^64), with the argument for soundness, zero
knowledge and independence of aborts from data: `docs/design/malicious.md` 4.

With n = 2^v rows of bits x_r, y_r, w_r (v = 6), cut into 2^h segments, and a random functional L of segments
(`functional`), P(u, q) = L(X_q(u) Y_q(u)) has degree 2 in u_1 .. u_v; X_q(u) = sum_r eq_r(u) x_rq. Lookups
have a P of their own (`lookups`).

    coin     L
    prover   P on {0, 1, inf}^v except at r, of every segment, each value masked by a stream of prover and left verifier, to the
             right one; P(r, q) = L(w_rq) is not the prover's to say: the verifiers put their shares of it
    coin     a point rho such that the rows ARE the coordinates of X_q(rho) (`basis`)
    prover   with random columns D, E of prover and right verifier: the missing values of G(w, t), which has degree 2 in
             w_1 .. w_h and t, with G(q, 0) = P(rho, q) (`folding`), masked alike
    coin     a point (sigma, t), t not 0
    right    a = x_right(rho, sigma) + t D, b likewise, and its share of G(sigma, t), to the left verifier
    prover   a tag on A = X(rho, sigma) + t D and B under a key of prover and left verifier (`tags`), to the left one
    left     A = x_left + a and B = y_left + b as the tag says?  <A, B> = G(sigma, t)?      then `verdict`

Small batches are proved at once (`form`): h = 0, and the first message has L((X + D)(Y + E)) and L(D E) on
the grid, too.

Without the tag a right verifier that lies could test a guess of what it does not hold; with it, a verdict
tells no more than that somebody deviated.

10 rounds, 7 at once. For N gates N / 2^(h+2) bytes and 2^h times 10.6 kB, with lookups at most 12 kB more and
16 bytes a draw; at once N / 4 bytes and 34.3 kB. Some 6 ns of CPU a gate in all. Soundness error per prover
below (S / 128 + 3) / 2^128 + (14 / 0.29 + 2 h + 3) / 2^64 < 2^-58, S the bits of a row. Who learns what: that
all products are right, nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.basis import challenge
from mpc_protocols.backends.replicated.proof.bit_products.batch import Batch, Grids, Part
from mpc_protocols.backends.replicated.proof.bit_products.folding import Fold, folded
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.lookups import Combined, weights_of
from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks, read, read_all, write, write_all
from mpc_protocols.backends.replicated.proof.matrix_products.inner import InnerMessages, InnerProduct
from mpc_protocols.backends.replicated.proof.tags import Pairs, Tagger, hidden_columns
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proof.verdict import Finding, exchange
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import binding

VARIABLES = 6
"""2^6 rows: the field is GF(2^64)."""


def prove(trio: Trio, transcript: Transcript, variables: int = VARIABLES, agreed: bytes = b"") -> None:
    """Prove this party's products and verify the others'. Raises `ProtocolAborted` at all honest parties if
    any is wrong.

    variables: of the rows; fewer than 6 only to see in tests that the bound on forged proofs is about right.
    agreed: names the public inputs so far, which all must have alike. 7 or 10 rounds (`form`).
    """
    form = transcript.sizes().form(variables, trio.latency_bytes)
    public = binding(b"products", repr((variables, transcript.gates, form)).encode(), agreed)
    of_bits = BitProducts(trio, transcript, variables, form)
    inner = [InnerProduct(trio, transcript.matrices, 1 << variables)] if transcript.matrices else []
    converse(trio, of_bits, inner, binding(public, *(of.public for of in inner)))


def converse(trio: Trio, of_bits: BitMessages, inner: Sequence[InnerMessages], public: bytes) -> None:
    """The messages of a proof. inner: what is proved beside products of bits."""
    proofs: list[BitMessages | InnerMessages] = [of_bits, *inner]
    seed = toss(trio, public)
    for of in proofs:
        of.send_values(seed)
    trio.turn()
    for of in proofs:
        of.receive_values()
    coin = toss(trio, public)
    of_bits.challenge(coin)
    if of_bits.form.in_stages:
        of_bits.send_second()
        trio.turn()
        of_bits.receive_second()
        of_bits.fold_at(toss(trio, public))
    for of in proofs:
        of.send_opening(coin)
    trio.turn()
    found = [of.verdicts() for of in proofs]
    exchange(trio, Finding.of(*(all(each) for each in zip(*found, strict=True))), public)


class BitMessages(ABC):
    """One party's three roles in the proof of a batch of products of bits, as messages: of what shapes they
    are follows from the sizes of the statements. The calls follow `converse`."""

    def __init__(self, trio: Trio, verified: Sequence[ProofSizes], variables: int, form: Form) -> None:
        """verified: of what this party verifies, as the left and as the right verifier."""
        self._trio, self.variables, self.form = trio, variables, form
        self._left_sizes, self._right_sizes = verified
        self._sharing, self._masking, self._again, self._tagging = (trio.operation() for _ in range(4))

    def send_values(self, seed: bytes) -> None:
        """After the first coin."""
        _send_masked(self._trio, self._values(seed), self._sharing)

    def receive_values(self) -> None:
        """From the left neighbour, and what masks those of the right one."""
        self._shares, self._shares_left = self._verified(
            self._right_sizes.first_values(self.form, self.variables), self._sharing
        )

    @abstractmethod
    def challenge(self, coin: bytes) -> None:
        """After the coin that follows the values."""

    def send_second(self) -> None:
        """In stages: what is missing of G."""
        _send_masked(self._trio, self._second(), self._again)

    def receive_second(self) -> None:
        """As `receive_values`."""
        self._others, self._others_left = self._verified(
            self._right_sizes.second_values(self.form), self._again
        )

    @abstractmethod
    def fold_at(self, coin: bytes) -> None:
        """In stages, after the third coin."""

    def send_opening(self, coin: bytes) -> None:
        """As the right verifier to the left one, and as the prover a tag."""
        trio = self._trio
        for array in self._hidden():
            trio.send(trio.right, array)
        trio.wire.send(trio.right, self._share())
        trio.wire.send(trio.left, self._tag())

    def verdicts(self) -> tuple[bool, bool]:
        """As the left verifier: whether the tag fits, and whether the equation holds."""
        trio, shapes = self._trio, self._left_sizes.hidden_shapes(self.form, self.variables)
        seen = self._seen(
            (trio.receive(trio.left, shape, np.uint64), trio.receive(trio.left, shape, np.uint64))
            for shape in shapes
        )
        claimed = bytes(trio.wire.receive(trio.left, BLOCK))
        return self._judged(seen, claimed, bytes(trio.wire.receive(trio.right, BLOCK)))

    def _verified(self, elements: int, operation: int) -> tuple[Blocks, Blocks]:
        """Shares of a prover's values: of the left neighbour's, and of the right one's."""
        trio, shape = self._trio, (elements, BLOCK)
        return trio.receive(trio.left, shape, np.uint8), trio.next_mask(shape, np.uint8, operation)

    @abstractmethod
    def _values(self, seed: bytes) -> Blocks:
        """P, as a prover says it."""

    @abstractmethod
    def _second(self) -> Blocks:
        """What is missing of G."""

    @abstractmethod
    def _hidden(self) -> Sequence[Words]:
        """a and b of each block, as the right verifier."""

    @abstractmethod
    def _share(self) -> bytes:
        """Of G, as the right verifier."""

    @abstractmethod
    def _tag(self) -> bytes:
        """As the prover."""

    @abstractmethod
    def _seen(self, hidden: Iterator[tuple[Words, Words]]) -> Pairs:
        """A and B of each block, from what comes of the right verifier one after the other."""

    @abstractmethod
    def _judged(self, seen: Pairs, claimed: bytes, tag: bytes) -> tuple[bool, bool]:
        """See `verdicts`."""


class BitProducts(BitMessages):
    """What these messages say."""

    def __init__(self, trio: Trio, transcript: Transcript, variables: int, form: Form) -> None:
        roles = transcript.proving, transcript.left, transcript.right
        super().__init__(trio, [role.sizes() for role in roles[1:]], variables, form)
        self._parts = [Part.of(role, variables, form) for role in roles]

    def challenge(self, coin: bytes) -> None:
        self._point = challenge(stream(coin, b"point"), self.variables)
        outer_bits = self._left_sizes.outer_bits
        self._weights = weights_of(stream(coin, b"lookups"), outer_bits, self.variables)
        self._whole = self._proving.whole(self._point, self._weights)
        self._in_cube, others = self._right.at_point(
            self._right.split(self._shares), self._point, self._weights
        )
        self._in_cube_left, others_left = self._left.at_point(
            self._left.split(self._shares_left), self._point, self._weights
        )
        if not self.form.in_stages:
            self._read, self._read_left = others, others_left
            self._fold = Fold.at_once(self._point)

    def fold_at(self, coin: bytes) -> None:
        self._read, self._read_left = read_all(self._others), read_all(self._others_left)
        self._fold = Fold.draw(stream(coin, b"fold"), self._point, self.form.halvings)

    def _values(self, seed: bytes) -> Blocks:
        tables, grids = [of.table for of in self._parts[0].lookups], Grids()
        combined = Combined(tables, stream(seed, b"lookups"), self.variables)
        self._proving, self._left, self._right = (
            Batch(part, seed, self.variables, self.form, combined, grids) for part in self._parts
        )
        self._masks = self._proving.masks(self._trio.next_reader(self._masking))
        return self._proving.first(None if self.form.in_stages else self._masks).together()

    def _second(self) -> Blocks:
        return write_all(self._proving.second(self._whole, self._masks, self._point))

    def _hidden(self) -> Sequence[Words]:
        of, masks = self._right, self._right.masks(self._trio.own_reader(self._masking))
        hidden = hidden_columns(of.part.pairs, of.whole(self._point, self._weights), masks, self._fold)
        return [array for pair in hidden for array in pair]

    def _share(self) -> bytes:
        return write(self._fold.value_of(self._in_cube, self._read))

    def _tag(self) -> bytes:
        tagger = self._tagger(self._trio.own_mask(BLOCK, np.uint8, self._tagging))
        return tagger.predicted(self._proving.part.pairs, self._whole, self._masks, self._fold)

    def _seen(self, hidden: Iterator[tuple[Words, Words]]) -> Pairs:
        of, matrices = self._left, self._fold.matrices
        columns = [(folded(x, matrices), folded(y, matrices)) for x, y in of.part.pairs]
        columns += of.whole(self._point, self._weights)
        return [(x ^ a, y ^ b) for (x, y), (a, b) in zip(columns, hidden, strict=True)]

    def _judged(self, seen: Pairs, claimed: bytes, tag: bytes) -> tuple[bool, bool]:
        tagger = self._tagger(self._trio.next_mask(BLOCK, np.uint8, self._tagging))
        due = read(claimed) ^ self._fold.value_of(self._in_cube_left, self._read_left)
        return tag == tagger.known(seen), self._left.product(seen, self._point) == due

    def _tagger(self, key: Blocks) -> Tagger:
        return Tagger(key.tobytes(), 1 << self.variables)


def _send_masked(trio: Trio, values: Blocks, operation: int) -> None:
    """Send a prover's values to the right, masked by a stream of this party and the left one."""
    trio.send(trio.right, values ^ trio.own_mask(values.shape, np.uint8, operation))
