"""What a proof sends, from the sizes of its statements (`products.prove`): the same at every party."""

from __future__ import annotations

from collections.abc import Mapping

from mpc_protocols.replicated.proof.field import BLOCK
from mpc_protocols.replicated.proof.matrix_products.inner import DEGREE, elements_sent, variables_for
from mpc_protocols.replicated.proof.products import VARIABLES
from mpc_protocols.replicated.proof.verdict import VERDICT_BYTES

_COIN = 32
_LEFT, _RIGHT = 2, 1
"""Offsets of the neighbours modulo 3."""


def proof_steps(
    statements: Mapping[int, int], variables: int = VARIABLES, matrices: Mapping[int, int] | None = None
) -> list[list[tuple[int, int]]]:
    """Step by step what party i sends, as (to party i + offset, bytes).

    statements: words by number of entries. matrices: rows of all products of matrices by the bytes of an element (2, 4).
    """
    rows, values = 1 << variables, 3 ** (variables + 1) - (1 << variables)
    hidden = [
        (_RIGHT, 8 * rows * entries * -(-words // rows)) for entries, words in sorted(statements.items())
    ]
    coin = [[(_LEFT, _COIN), (_RIGHT, _COIN)]] * 2
    inner = [_inner_product(element, rows) for element, rows in sorted((matrices or {}).items())]
    return [
        *coin,
        [(_RIGHT, BLOCK * values), *(of[0] for of in inner)],
        *coin,
        [*hidden, *hidden, (_RIGHT, BLOCK), (_LEFT, BLOCK), *(sent for of in inner for sent in of[1:])],
        [(_LEFT, VERDICT_BYTES), (_RIGHT, VERDICT_BYTES)],
    ]


def _inner_product(element: int, rows: int) -> list[tuple[int, int]]:
    """The prover's values; the hidden rows and the share of a right verifier; a tag."""
    values, hidden = elements_sent(rows, variables_for(rows))
    size = DEGREE * element
    rows_sent = [(_RIGHT, size * hidden // 2)] * 2 if rows else []
    return [(_RIGHT, size * values), *rows_sent, (_RIGHT, size), (_LEFT, BLOCK)]
