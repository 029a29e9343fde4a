"""What the parties of a proof of matrix products hear is masked by streams that they do not know, each used
once.

Factors and masks of products are the same in all runs, keys are new. Where all factors are 0, what is sent is
the mask alone: the rows that a right verifier sends are T D and T E, a prover's values are G, its last one G
plus the product of D and E. Each comparison takes at least 4,000 bits and allows 8 standard deviations: false
alarms below 1.3e-15 each, 1,000 of them in a test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products import functional
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.matrix_products import inner
from mpc_protocols.backends.replicated.proof.matrix_products.multiplication import ProductSum, reshare_sums
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import check_tag_keys, outcomes
from tests.mpc_protocols.backends.replicated.proof.test_secrecy import me, random

ROWS = 200
BATCHES = 2
HIDDEN, VALUES = 2 * 64 * 25, 2 * 64 * (27 + 8)
"""Bytes of the messages of 200 rows and 3 variables: no other message of a run is as long."""


class Heard:
    """All that is said in one run with new keys, and which key each party used for its tags."""

    def __init__(self, components: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """components: of A and B, (2, 3, ROWS, 1)."""
        frames: list[Frame] = []
        self.tag_keys: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
        self.drawable: dict[int, set[bytes]] = {}
        tag = functional.message_tag

        def noted_tag(key: bytes, content: Any) -> bytes:
            self.tag_keys[me()].append(key)
            return tag(key, content)

        def body(wire: Any) -> str:
            trio = Trio(wire)
            for _ in range(BATCHES):
                transcript, product = Transcript(), ProductSum((1, 1))
                product.add(*(RingShare(of[trio.me], of[trio.right]) for of in components))
                reshare_sums(trio, transcript, [product])
                prove(trio, transcript)
            self.drawable[trio.me] = {
                mask(16, np.uint8, operation).tobytes()
                for mask in (trio.own_mask, trio.next_mask)
                for operation in range(trio.operation())
            }
            return "proved"

        with monkeypatch.context() as patched:
            patched.setattr(inner, "message_tag", noted_tag)
            assert outcomes(body, network=MemoryNetwork(3, tap=frames.append)) == ["proved"] * 3
        self.sent = [
            [np.frombuffer(f.payload, np.uint64) for f in frames if f.sender == i and len(f.payload) == size]
            for i in range(3)
            for size in (HIDDEN, VALUES)
        ]


def test_what_is_sent_is_masked_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for components in (
        np.zeros((2, 3, ROWS, 1), np.uint16),
        np.random.default_rng(3).integers(0, 1 << 16, (2, 3, ROWS, 1), np.uint16),
    ):
        runs = [Heard(components, monkeypatch) for _ in range(2)]
        assert [len(of) for of in runs[0].sent] == [2 * BATCHES, BATCHES] * 3
        for size in range(2):
            seen = [message for run in runs for of in run.sent[size::2] for message in of]
            for number, message in enumerate(seen):
                assert random(message)
                assert all(random(message ^ other) for other in seen[:number])


def test_every_tag_has_a_key_that_its_right_verifier_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party tags first and checks the tag of its right neighbour then. Streams are compared, every
    operation of them."""
    runs = [Heard(np.zeros((2, 3, ROWS, 1), np.uint16), monkeypatch) for _ in range(2)]
    check_tag_keys(runs, BATCHES)
