"""Faults in the proof of products."""

from __future__ import annotations

from typing import Any
from unittest import mock

from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.backends.replicated.sharing.ring import centred
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, replaced
from runner.review.audit.subjects.in_memory.proved_products import BET

_PRODUCTS = "mpc_protocols.backends.replicated.proof.bit_products.products"


def _coin_known_early() -> Patch:
    """The common coin is a number that everybody knows before it has sent anything."""
    return replaced(f"{_PRODUCTS}.toss", lambda toss: lambda trio, public: BET)


def _verdict_ignored() -> Patch:
    """What verifiers find has no consequence."""
    return replaced(f"{_PRODUCTS}.exchange", lambda exchange: lambda trio, finding, public: None)


def _opened_first() -> Patch:
    """What is released is opened before the products that it comes from are proved."""

    def reveal(self: Any, numbers: Any) -> Any:
        total = add_up(self.gates, numbers).single()
        opened = self.gates.opened(total.own, total.next)
        self.gates.verify()
        return centred(opened)

    return mock.patch.object(ProvedEngine, "reveal", reveal)


def _blamed_alone() -> Patch:
    """Of the two that an honest party cannot tell apart, a sentence names one alone."""
    return replaced(
        "mpc_protocols.backends.replicated.proof.verdict.one_of",
        lambda one_of: lambda suspects, me: one_of([max({*suspects} - {me})], me),
    )


MUTATIONS = (
    Mutation("M32", "a coin of the proofs that is known beforehand", ("N.proofs",), _coin_known_early),
    Mutation("M37", "proofs whose verdict nobody looks at", ("N.proofs", "N.deviations"), _verdict_ignored),
    Mutation("M38", "a release that is opened before it is proved", ("N.deviations",), _opened_first),
    Mutation(
        "M44",
        "a sentence of blame that names one party where two may have done it",
        ("N.proofs",),
        _blamed_alone,
    ),
)
