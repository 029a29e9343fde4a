"""The proof that every product of a batch is what its sender's shares give: distributed zero knowledge over GF(2^64).

Problem. Prover i claims sum_e X_e Y_e = W for bits of which its two neighbours hold XOR shares (`transcript`); both are honest
if it is not. Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019; Boyle, Gilboa, Ishai, Nof 2019. The form here, bit-sliced
over GF(2^64), with the argument for soundness, zero knowledge and independence of aborts from data: `docs/design/malicious.md` 4.

With n = 2^v rows of bits x_r, y_r, w_r (v = 6) and a random functional L (`functional`), P(u, t) = L((X + t D)(Y + t E)) has
degree 2 in u_1 .. u_v and t; X(u) = sum_r eq_r(u) x_r. D and E are random rows from a stream of prover and right verifier.

    coin     L
    prover   P on {0, 1, inf}^(v+1) except (r, 0), each value masked by a stream of prover and left verifier, to the right one;
             P(r, 0) = L(w_r) is not the prover's to say: the verifiers put their shares of it
    coin     a point (rho, t) such that the rows ARE the coordinates of X(rho) (`basis`)
    right    a = x_right(rho) + t D(rho), b likewise, and its share of P(rho, t), to the left verifier
    prover   a tag on A = X(rho) + t D(rho) and B under a key of prover and left verifier, to the left one
    left     A = x_left + a and B = y_left + b as the tag says?  <A, B> = P(rho, t)?        then `verdict`

Without the tag a right verifier that lies could test a guess of what it does not hold; with it, a verdict tells no more than that
somebody deviated.

7 rounds. For N gates N / 4 bytes and 34.3 kB from each party; some 4 ns of CPU a gate in all. Soundness error per prover below
(S / 128 + 2) / 2^128 + 14 / (0.29 2^64) < 2^-58, S the bits of a row. Who learns what: that all products are right, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import Reader, binding
from mpc_protocols.replicated.proof.basis import Challenge, challenge, plus_times
from mpc_protocols.replicated.proof.coins import stream, toss
from mpc_protocols.replicated.proof.field import BLOCK, Blocks, dots, multiply, read, write
from mpc_protocols.replicated.proof.functional import PIECE, Functional, message_tag, pieces
from mpc_protocols.replicated.proof.grid import Grid, cube
from mpc_protocols.replicated.proof.matrix_products.inner import inner_products
from mpc_protocols.replicated.proof.transcript import Rows, Transcript
from mpc_protocols.replicated.proof.verdict import Finding, exchange
from mpc_protocols.replicated.sharing.trio import Trio

VARIABLES = 6
"""2^6 rows: the field is GF(2^64)."""
Pairs = list[tuple[Words, Words]]
"""Two arrays (rows, entries, words) of every block."""


def prove(trio: Trio, transcript: Transcript, variables: int = VARIABLES, agreed: bytes = b"") -> None:
    """Prove this party's products and verify the others'. Raises `ProtocolAborted` at all honest parties if any is wrong.

    variables: of the rows; fewer than 6 only to see in tests that the bound on forged proofs is about right. agreed: names the
    public inputs so far, which all must have alike. 7 rounds.
    """
    public = binding(b"products", repr((variables, transcript.gates)).encode(), agreed)
    sharing, masking, tagging = (trio.operation() for _ in range(3))
    inner = inner_products(trio, transcript.matrices, 1 << variables)
    public = binding(public, *(of.public for of in inner))
    proving, left, right = (
        role.rows(1 << variables) for role in (transcript.proving, transcript.left, transcript.right)
    )
    free = np.ones((3, 3**variables), np.bool_)
    free[0, cube(variables)] = False

    seed = toss(trio, public)
    masks = _masks(proving, trio.next_reader(masking))
    values = _values(_pairs(proving), masks, seed, variables)[free]
    trio.send(trio.right, values ^ trio.own_mask(values.shape, np.uint8, sharing))
    for of in inner:
        of.send_values(seed)
    trio.turn()
    from_prover = trio.receive(trio.left, values.shape, np.uint8)
    for of in inner:
        of.receive_values()

    coin = toss(trio, public)
    point = challenge(stream(coin, b"point"), variables)
    hidden = _hidden(_pairs(right), _masks(right, trio.own_reader(masking)), point)
    for array in hidden:
        trio.send(trio.right, array)
    trio.wire.send(trio.right, write(_share(right, from_prover, seed, point, free)))
    tag_key = trio.own_mask(BLOCK, np.uint8, tagging).tobytes()
    trio.wire.send(trio.left, message_tag(tag_key, _hidden(_pairs(proving), masks, point)))
    for of in inner:
        of.send_opening(coin)
    trio.turn()

    seen: Pairs = []
    for block in left:
        x, y = (trio.receive(trio.left, part.shape, np.uint64) for part in (block.x, block.y))
        seen.append((block.x ^ x, block.y ^ y))
    claimed = read(bytes(trio.wire.receive(trio.left, BLOCK)))
    tag = bytes(trio.wire.receive(trio.right, BLOCK))
    tag_key = trio.next_mask(BLOCK, np.uint8, tagging).tobytes()
    matches = tag == message_tag(tag_key, [part for pair in seen for part in pair])
    masked = trio.next_mask(values.shape, np.uint8, sharing)
    [product] = dots(point.weights, _products(seen, seed, variables)[np.newaxis])
    holds = product == claimed ^ _share(left, masked, seed, point, free)
    found = [(matches, holds), *(of.found() for of in inner)]
    exchange(trio, Finding.of(*(all(of) for of in zip(*found, strict=True))), public)


def _pairs(blocks: Sequence[Rows]) -> Pairs:
    return [(block.x, block.y) for block in blocks]


def _masks(blocks: Sequence[Rows], reader: Reader) -> Pairs:
    """The random rows D, E of every block."""
    pairs = [(np.empty_like(block.x), np.empty_like(block.y)) for block in blocks]
    for pair in pairs:
        for mask in pair:
            reader.fill(mask)
    return pairs


def _hidden(pairs: Pairs, masks: Pairs, point: Challenge) -> list[Words]:
    """x + t D and y + t E of every block, in the coordinates of the point."""
    return [
        plus_times(of, point.times_factor, mask)
        for both in zip(pairs, masks, strict=True)
        for of, mask in zip(*both, strict=True)
    ]


def _functionals(
    blocks: Sequence[Rows | tuple[Words, Words]], seed: bytes
) -> Iterator[tuple[Functional, int, slice]]:
    """The functional of every piece of every block of rows, the block's number, and the piece."""
    place = 0
    for number, (x, *_) in enumerate(blocks):
        for piece in pieces(x.shape[2], x.shape[1]):
            yield Functional(seed, place, piece.stop - piece.start), number, piece
            place += 1


def _grids(pairs: Pairs, variables: int) -> list[Grid]:
    """Memory for the pieces of each block."""
    return [Grid(variables, x.shape[1], min(x.shape[2], max(1, PIECE // x.shape[1]))) for x, _ in pairs]


def _products(pairs: Pairs, seed: bytes, variables: int) -> Blocks:
    """L of the products at the points of {0, 1, inf}^v, all blocks and pieces together."""
    total = np.zeros((3**variables, BLOCK), np.uint8)
    grids = _grids(pairs, variables)
    for functional, number, piece in _functionals(pairs, seed):
        x, y = pairs[number]
        grids[number].add_products(x[..., piece], y[..., piece], functional, total)
    return total


def _values(pairs: Pairs, masks: Pairs, seed: bytes, variables: int) -> Blocks:
    """P on the grid of v + 1 variables, (3, 3^v, 16): at t = 0, 1, inf the products of X Y, (X + D)(Y + E), D E."""
    values = np.zeros((3, 3**variables, BLOCK), np.uint8)
    grids = _grids(pairs, variables)
    for functional, number, piece in _functionals(pairs, seed):
        grid, (x, y), (d, e) = grids[number], pairs[number], masks[number]
        grid.add_products(x[..., piece], y[..., piece], functional, values[0])
        grid.add_products(d[..., piece], e[..., piece], functional, values[2])
        grid.add_products(x[..., piece] ^ d[..., piece], y[..., piece] ^ e[..., piece], functional, values[1])
    return values


def _share(
    blocks: Sequence[Rows], from_prover: Blocks, seed: bytes, point: Challenge, free: NDArray[np.bool_]
) -> int:
    """A verifier's share of P(rho, t): L of its own share of W on the cube, its share of the prover's values elsewhere."""
    values = np.zeros((*free.shape, BLOCK), np.uint8)
    values[free] = from_prover
    of_rows = np.zeros((int(np.count_nonzero(~free)), BLOCK), np.uint8)
    for functional, number, piece in _functionals(blocks, seed):
        of_rows ^= functional.of(np.ascontiguousarray(blocks[number].w[:, piece]))
    values[~free] = of_rows
    at = dots(point.weights, values)
    t = point.factor
    return at[0] ^ multiply(t, at[0] ^ at[1] ^ at[2] ^ multiply(t, at[2]))
