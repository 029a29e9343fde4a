"""What a proof sends, from the sizes of its statements (`products.prove`): the same at every party."""

from __future__ import annotations

from mpc_protocols.replicated.proof.field import BLOCK
from mpc_protocols.replicated.proof.form import ProofSizes
from mpc_protocols.replicated.proof.products import VARIABLES
from mpc_protocols.replicated.proof.verdict import VERDICT_BYTES

_COIN = 32
_LEFT, _RIGHT = 2, 1
"""Offsets of the neighbours modulo 3."""


def proof_steps(
    sizes: ProofSizes, latency_bytes: int, variables: int = VARIABLES
) -> list[list[tuple[int, int]]]:
    """Step by step what party i sends, as (to party i + offset, bytes)."""
    form = sizes.form(variables, latency_bytes)
    hidden = [(_RIGHT, block) for block in sizes.hidden_bytes(form, variables)]
    coin = [[(_LEFT, _COIN), (_RIGHT, _COIN)]] * 2
    second = [[(_RIGHT, BLOCK * sizes.second_values(form))], *coin] if form.in_stages else []
    return [
        *coin,
        [(_RIGHT, BLOCK * sizes.first_values(form, variables))],
        *coin,
        *second,
        [*hidden, *hidden, (_RIGHT, BLOCK), (_LEFT, BLOCK)],
        [(_LEFT, VERDICT_BYTES), (_RIGHT, VERDICT_BYTES)],
    ]
