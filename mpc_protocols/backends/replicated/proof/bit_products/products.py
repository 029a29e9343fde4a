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

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.basis import challenge
from mpc_protocols.backends.replicated.proof.bit_products.batch import Batch, Grids, Part
from mpc_protocols.backends.replicated.proof.bit_products.folding import Fold, folded
from mpc_protocols.backends.replicated.proof.bit_products.lookups import Combined, weights_of
from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks, read, read_all, write, write_all
from mpc_protocols.backends.replicated.proof.matrix_products.inner import InnerProduct
from mpc_protocols.backends.replicated.proof.tags import Pairs, Tagger, hidden_columns
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proof.verdict import Finding, exchange
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.prg import binding

VARIABLES = 6
"""2^6 rows: the field is GF(2^64)."""


def prove(trio: Trio, transcript: Transcript, variables: int = VARIABLES, agreed: bytes = b"") -> None:
    """Prove this party's products and verify the others'. Raises `ProtocolAborted` at all honest parties if
    any is wrong.

    variables: of the rows; fewer than 6 only to see in tests that the bound on forged proofs is about right.
    agreed: names the public inputs so far, which all must have alike. 7 or 10 rounds (`form`).
    """
    sizes = transcript.sizes()
    form = sizes.form(variables, trio.latency_bytes)
    public = binding(b"products", repr((variables, transcript.gates, form)).encode(), agreed)
    sharing, masking, again, tagging = (trio.operation() for _ in range(4))
    inner = [InnerProduct(trio, transcript.matrices, 1 << variables)] if transcript.matrices else []
    public = binding(public, *(of.public for of in inner))
    parts = [
        Part.of(role, variables, form) for role in (transcript.proving, transcript.left, transcript.right)
    ]

    seed, grids = toss(trio, public), Grids()
    combined = Combined([of.table for of in parts[0].lookups], stream(seed, b"lookups"), variables)
    proving, left, right = (Batch(part, seed, variables, form, combined, grids) for part in parts)
    masks = proving.masks(trio.next_reader(masking))
    message = proving.first(None if form.in_stages else masks).together()
    _send_masked(trio, message, sharing)
    for of in inner:
        of.send_values(seed)
    trio.turn()
    shares = right.split(trio.receive(trio.left, right.first_shape, np.uint8))
    for of in inner:
        of.receive_values()
    shares_left = left.split(trio.next_mask(left.first_shape, np.uint8, sharing))

    coin = toss(trio, public)
    point = challenge(stream(coin, b"point"), variables)
    weights = weights_of(stream(coin, b"lookups"), sizes.lookups.keys(), variables)
    whole = proving.whole(point, weights)
    in_cube, others = right.at_point(shares, point, weights)
    in_cube_left, others_left = left.at_point(shares_left, point, weights)
    if form.in_stages:
        message = write_all(proving.second(whole, masks, point))
        _send_masked(trio, message, again)
        trio.turn()
        others = read_all(trio.receive(trio.left, message.shape, np.uint8))
        others_left = read_all(trio.next_mask(message.shape, np.uint8, again))
        fold = Fold.draw(stream(toss(trio, public), b"fold"), point, form.halvings)
    else:
        fold = Fold.at_once(point)

    hidden = hidden_columns(
        right.part.pairs, right.whole(point, weights), right.masks(trio.own_reader(masking)), fold
    )
    for array in (array for pair in hidden for array in pair):
        trio.send(trio.right, array)
    trio.wire.send(trio.right, write(fold.value_of(in_cube, others)))
    tagger = Tagger(trio.own_mask(BLOCK, np.uint8, tagging).tobytes(), 1 << variables)
    trio.wire.send(trio.left, tagger.predicted(proving.part.pairs, whole, masks, fold))
    for of in inner:
        of.send_opening(coin)
    trio.turn()

    columns = [(folded(x, fold.matrices), folded(y, fold.matrices)) for x, y in left.part.pairs]
    seen: Pairs = [
        (x ^ trio.receive(trio.left, x.shape, np.uint64), y ^ trio.receive(trio.left, y.shape, np.uint64))
        for x, y in [*columns, *left.whole(point, weights)]
    ]
    claimed = read(bytes(trio.wire.receive(trio.left, BLOCK)))
    tag = bytes(trio.wire.receive(trio.right, BLOCK))
    tagger = Tagger(trio.next_mask(BLOCK, np.uint8, tagging).tobytes(), 1 << variables)
    holds = left.product(seen, point) == claimed ^ fold.value_of(in_cube_left, others_left)
    found = [(tag == tagger.known(seen), holds), *(of.verdicts() for of in inner)]
    exchange(trio, Finding.of(*(all(each) for each in zip(*found, strict=True))), public)


def _send_masked(trio: Trio, values: Blocks, operation: int) -> None:
    """Send a prover's values to the right, masked by a stream of this party and the left one."""
    trio.send(trio.right, values ^ trio.own_mask(values.shape, np.uint8, operation))
