"""What is said of lookups cannot hide wrong products: only its sum is checked, so it must have a coefficient
of its own."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products import products
from mpc_protocols.backends.replicated.proof.bit_products.batch import Batch, FirstValues
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.tags import Pairs
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.trio import Trio
from tests.mpc_protocols.backends.replicated.proof.cheating import multiplied, outcomes
from tests.mpc_protocols.backends.replicated.proof.test_stages import looked_up, refused

WORDS, OUTER, CHEAT = 300, 8, 1


@pytest.mark.parametrize("halvings", [0, 1, 2])
def test_lookups_do_not_make_up_for_wrong_products(halvings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover flips the same bit of every segment of its first two rows, and says, where products are
    outside the cube and in the cube of lookups, what would make up for it if both were simply added up."""
    form = Form(True, halvings)
    monkeypatch.setattr(ProofSizes, "form", lambda *_: form)
    segment = form.width(WORDS, 64)
    wrong = [(row * form.segments + number) * segment for row in range(2) for number in range(form.segments)]
    here = threading.local()

    class Lying(Batch):
        def first(self, masks: Pairs | None) -> FirstValues:
            said = super().first(masks)
            if not getattr(here, "lies", False):
                return said
            column = np.zeros((1, segment), np.uint64)
            column[0, 0] = 1
            error = np.zeros(16, np.uint8)
            for functional, piece in self._functionals[0]:
                error ^= functional.of(np.ascontiguousarray(column[:, piece]))[0]
            digits = np.array(list(np.ndindex(*(3,) * 6)))[self._free]
            hidden = (digits[:, :3] != 1).all(axis=1) & (digits[:, 3:5] == 0).all(axis=1) & (digits[:, 5] < 2)
            said.gates[:, hidden] ^= error
            said.lookups[0][0] ^= error  # the last variable 1, the others 0; at 0 it follows from the sum
            return said

    monkeypatch.setattr(products, "Batch", Lying)

    def spoil(part: NDArray[np.uint64]) -> None:
        part[wrong] ^= np.uint64(1)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        here.lies = trio.me == CHEAT
        multiplied(trio, transcript, WORDS, 1, spoil if here.lies else None)
        looked_up(trio, transcript, OUTER, 4, 2)
        prove(trio, transcript)
        return "proved"

    assert refused(outcomes(body), CHEAT)
