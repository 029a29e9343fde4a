"""What a proof sends, from the sizes of its statements (`products.prove`): the same at every party."""

from __future__ import annotations

from collections.abc import Mapping

from mpc_protocols.replicated.proof.field import BLOCK
from mpc_protocols.replicated.proof.products import VARIABLES
from mpc_protocols.replicated.proof.verdict import VERDICT_BYTES

_COIN = 32
_LEFT, _RIGHT = 2, 1
"""Offsets of the neighbours modulo 3."""


def proof_steps(statements: Mapping[int, int], variables: int = VARIABLES) -> list[list[tuple[int, int]]]:
    """Step by step what party i sends, as (to party i + offset, bytes). statements: words by number of entries."""
    rows, values = 1 << variables, 3 ** (variables + 1) - (1 << variables)
    hidden = [
        (_RIGHT, 8 * rows * entries * -(-words // rows)) for entries, words in sorted(statements.items())
    ]
    coin = [[(_LEFT, _COIN), (_RIGHT, _COIN)]] * 2
    return [
        *coin,
        [(_RIGHT, BLOCK * values)],
        *coin,
        [*hidden, *hidden, (_RIGHT, BLOCK), (_LEFT, BLOCK)],
        [(_LEFT, VERDICT_BYTES), (_RIGHT, VERDICT_BYTES)],
    ]
