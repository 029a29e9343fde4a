"""Faults in the proof of products."""

from __future__ import annotations

from runner.audit.broken_builds.faults.mutation import Mutation, Patch, replaced
from runner.audit.subjects.proved_products import BET

_PRODUCTS = "mpc_protocols.replicated.proof.bit_products.products"


def _coin_known_early() -> Patch:
    """The common coin is a number that everybody knows before it has sent anything."""
    return replaced(f"{_PRODUCTS}.toss", lambda toss: lambda trio, public: BET)


def _verdict_ignored() -> Patch:
    """What verifiers find has no consequence."""
    return replaced(f"{_PRODUCTS}.exchange", lambda exchange: lambda trio, finding, public: None)


MUTATIONS = (
    Mutation("M32", "a coin of the proofs that is known beforehand", ("N.proofs",), _coin_known_early),
    Mutation("M37", "proofs whose verdict nobody looks at", ("N.proofs",), _verdict_ignored),
)
