"""What proofs send, from the sizes of their statements: the same at every party. Step by step, as (sender,
receiver, bytes)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.products import VARIABLES
from mpc_protocols.backends.replicated.proof.field import BLOCK
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING
from mpc_protocols.backends.replicated.proof.matrix_products.inner import DEGREE, elements_sent, variables_for
from mpc_protocols.backends.replicated.proof.verdict import VERDICT_BYTES
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES

_LEFT, _RIGHT = 2, 1
"""Offsets of the neighbours modulo 3."""
Row = Sequence[tuple[int, int]]
"""What every party i sends in a step: (to i + offset, bytes)."""
_COIN: Final[list[Row]] = [[(_LEFT, DIGEST_BYTES), (_RIGHT, DIGEST_BYTES)]] * 2
_VERDICT: Final[Row] = [(_LEFT, VERDICT_BYTES), (_RIGHT, VERDICT_BYTES)]


def proof_steps(
    by_prover: Sequence[ProofSizes],
    latency_bytes: int,
    variables: int = VARIABLES,
    matrices: Sequence[int] = (),
) -> list[list[tuple[int, int, int]]]:
    """`products.prove`. by_prover: statements of party 0, 1, 2.

    matrices: rows of each product of matrices.
    """
    form = reduce(ProofSizes.largest, by_prover).form(variables, latency_bytes)
    # what differs is what a right verifier opens: party i of the prover i - 1
    by_sender = [_sent(by_prover[i - 1], form, variables, matrices) for i in range(3)]
    return [
        [(i, (i + offset) % 3, size) for i in range(3) for offset, size in steps[i]]
        for steps in zip(*by_sender, strict=True)
    ]


def _sent(sizes: ProofSizes, form: Form, variables: int, matrices: Sequence[int]) -> list[Row]:
    """What one party sends. sizes: of what it verifies on the right."""
    inner = [_inner_product(sum(matrices))] if matrices else []
    hidden = [(_RIGHT, block) for block in sizes.hidden_bytes(form, variables)]
    second = [[(_RIGHT, BLOCK * sizes.second_values(form))], *_COIN] if form.in_stages else []
    return [
        *_COIN,
        [(_RIGHT, BLOCK * sizes.first_values(form, variables)), *(of[0] for of in inner)],
        *_COIN,
        *second,
        [*hidden, *hidden, (_RIGHT, BLOCK), (_LEFT, BLOCK), *(sent for of in inner for sent in of[1:])],
        _VERDICT,
    ]


def _inner_product(rows: int) -> list[tuple[int, int]]:
    """The prover's values; the hidden rows and the share of a right verifier; a tag."""
    values, hidden = elements_sent(rows, variables_for(rows))
    size = DEGREE * RING().nbytes
    rows_sent = [(_RIGHT, size * hidden // 2)] * 2 if rows else []
    return [(_RIGHT, size * values), *rows_sent, (_RIGHT, size), (_LEFT, BLOCK)]
