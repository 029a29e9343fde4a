"""What a proof sends, from the sizes of its statements (`products.prove`): the same at every party."""

from __future__ import annotations

from mpc_protocols.replicated.proof.field import BLOCK
from mpc_protocols.replicated.proof.form import Form, ProofSizes
from mpc_protocols.replicated.proof.matrix_products.inner import DEGREE, elements_sent, variables_for
from mpc_protocols.replicated.proof.products import VARIABLES
from mpc_protocols.replicated.proof.verdict import VERDICT_BYTES

_COIN = 32
_LEFT, _RIGHT = 2, 1
"""Offsets of the neighbours modulo 3."""


def proof_steps(sizes: ProofSizes, form: Form, variables: int = VARIABLES) -> list[list[tuple[int, int]]]:
    """Step by step what party i sends, as (to party i + offset, bytes), if all provers' sizes are alike."""
    hidden = [(_RIGHT, block) for block in sizes.hidden_bytes(form, variables)]
    inner = [_inner_product(element, rows) for element, rows in sorted(sizes.matrices.items())]
    coin = [[(_LEFT, _COIN), (_RIGHT, _COIN)]] * 2
    second = [[(_RIGHT, BLOCK * sizes.second_values(form))], *coin] if form.in_stages else []
    return [
        *coin,
        [(_RIGHT, BLOCK * sizes.first_values(form, variables)), *(of[0] for of in inner)],
        *coin,
        *second,
        [*hidden, *hidden, (_RIGHT, BLOCK), (_LEFT, BLOCK), *(sent for of in inner for sent in of[1:])],
        [(_LEFT, VERDICT_BYTES), (_RIGHT, VERDICT_BYTES)],
    ]


def _inner_product(element: int, rows: int) -> list[tuple[int, int]]:
    """The prover's values; the hidden rows and the share of a right verifier; a tag."""
    values, hidden = elements_sent(rows, variables_for(rows))
    size = DEGREE * element
    rows_sent = [(_RIGHT, size * hidden // 2)] * 2 if rows else []
    return [(_RIGHT, size * values), *rows_sent, (_RIGHT, size), (_LEFT, BLOCK)]
