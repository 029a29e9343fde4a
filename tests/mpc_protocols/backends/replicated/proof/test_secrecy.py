"""What the parties of a proof hear is masked by streams that they do not know: each mask is looked at alone.

Shares and products are the same in all runs, keys are new. What masks is a sender's message XOR what it would
send unmasked. Each comparison takes at least 1,280 bits and allows 8 standard deviations: false alarms below
2.6e-14 each (Hoeffding), 800 of them in a test.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof import tags
from mpc_protocols.backends.replicated.proof.bit_products import basis, functional, products
from mpc_protocols.backends.replicated.proof.bit_products import batch as values
from mpc_protocols.backends.replicated.proof.bit_products.folding import folded
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.prg import derive
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import (
    check_tag_keys,
    multiplied,
    outcomes,
    proved,
)
from tests.mpc_protocols.backends.replicated.proof.test_stages import looked_up

WORDS = 256
"""Four words in each of 64 rows."""
FORMS = [Form(), Form(True, 2)]
"""At once, and halved twice."""
COMPONENTS = np.random.default_rng(3).integers(0, 2**64, (2, 3, 1, WORDS), np.uint64)
"""Of x and y: three each."""
BATCHES = 2


def factors(trio: Trio) -> tuple[BitShare, BitShare]:
    x, y = (BitShare(of[trio.me], of[trio.right]) for of in COMPONENTS)
    return x, y


def random(content: NDArray[Any]) -> bool:
    """Whether half of the bits are ones, and half of those by which each word differs from the one before."""
    words = np.ascontiguousarray(content).reshape(-1).view(np.uint64)
    for of in (words, words[1:] ^ words[:-1]):
        ones, bits = int(np.bitwise_count(of).sum()), 64 * len(of)
        if abs(ones - bits / 2) > 8 * bits**0.5 / 2:
            return False
    return True


def me() -> int:
    """The party whose thread this is."""
    return int(threading.current_thread().name.removeprefix("party-"))


class Heard:
    """All that the parties of one run with new keys say to each other, the plain values of the provers, and
    the keys of tags."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
        frames: list[Frame] = []
        self.plain: dict[int, list[NDArray[np.uint8]]] = defaultdict(list)
        self.columns: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
        self.tag_keys: dict[int, list[bytes]] = defaultdict(list)
        self.drawable: dict[int, set[bytes]] = {}
        send, hidden, tag = products._send_masked, tags.hidden_columns, functional.message_tag

        def noted_values(trio: Trio, values: Any, operation: int) -> None:
            self.plain[me()].append(values)
            send(trio, values, operation)

        def noted_columns(pairs: Any, whole: Any, masks: Any, fold: Any) -> Any:
            self.columns[me()] += [folded(of, fold.matrices) for pair in pairs for of in pair]
            return hidden(pairs, whole, masks, fold)

        def noted_tag(key: bytes, content: Any) -> bytes:
            self.tag_keys[me()].append(key)
            return tag(key, content)

        def body(wire: Any) -> str:
            trio = Trio(wire)
            for _ in range(BATCHES):
                transcript = Transcript()
                multiplied(trio, transcript, WORDS, factors=factors(trio))
                prove(trio, transcript)
            self.drawable[trio.me] = {
                derive(mask(16, np.uint8, operation).tobytes(), b"all")
                for mask in (trio.own_mask, trio.next_mask)
                for operation in range(trio.operation())
            }
            return "proved"

        with monkeypatch.context() as patched:
            patched.setattr(ProofSizes, "form", lambda *_: form)
            patched.setattr(products, "_send_masked", noted_values)
            patched.setattr(products, "hidden_columns", noted_columns)
            patched.setattr(tags, "message_tag", noted_tag)
            assert outcomes(body, network=MemoryNetwork(3, tap=frames.append)) == ["proved"] * 3
        self.to_the_right = {
            sender: [f.payload for f in frames if f.sender == sender and f.receiver == (sender + 1) % 3]
            for sender in range(3)
        }

    def hidden(self, sender: int) -> list[NDArray[np.uint64]]:
        """t D and t E of every batch, which hide the columns of x and y that a right verifier sends to the
        left one."""
        return self._masked(sender, self.columns[sender])

    def masks(self, prover: int) -> list[NDArray[np.uint8]]:
        """What masks the prover's messages of every batch."""
        return self._masked(prover, self.plain[prover])

    def _masked(self, sender: int, plain: list[Any]) -> list[Any]:
        """What was sent XOR what it would have been."""
        sizes = {of.nbytes for of in plain}
        sent = [p for p in self.to_the_right[sender] if len(p) in sizes]
        return [np.frombuffer(p, of.dtype) ^ of.reshape(-1) for p, of in zip(sent, plain, strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_hidden_rows_and_values_are_masked_afresh(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Heard(monkeypatch, form), Heard(monkeypatch, form)
    for kind in (Heard.hidden, Heard.masks):
        of_batch = 2 if kind is Heard.hidden or form.in_stages else 1
        seen = [mask for run in (first, second) for sender in range(3) for mask in kind(run, sender)]
        assert len(seen) == 2 * 3 * BATCHES * of_batch
        for number, mask in enumerate(seen):
            assert random(mask)
            assert all(random(mask ^ other) for other in seen[:number] if len(other) == len(mask))


def test_every_tag_has_a_key_that_its_right_verifier_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party tags first and checks the tag of its right neighbour then. Streams are compared, every
    operation of them."""
    runs = [Heard(monkeypatch, FORMS[1]) for _ in range(2)]
    check_tag_keys(runs, BATCHES)


# -- a functional of its own for every piece and block: errors that would cancel under the same one
# ------------------------------

CHANCES = 10
"""Proofs over GF(2^8): each misses an error with a probability below (8 / 0.29 + 3) / 2^8 = 0.12 (16 of 6,000
seen), all ten below 7e-10; errors that cancel are missed every time."""


def refused(found: list[Any], cheat: int) -> bool:
    said = (
        f"Party {(cheat - 1) % 3} says that party {cheat} sent it products that are not those of its shares"
    )
    return all(isinstance(of, str) and said in of for of in found)


def test_errors_that_are_alike_in_two_pieces_do_not_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 rows of 16 words in pieces of 8: the same error at the same place of both pieces of a row."""
    for module in (functional, values, basis):
        monkeypatch.setattr(module, "PIECE", 8)

    def spoil(part: Any) -> None:
        part[[0, 8]] ^= np.uint64(8)

    assert outcomes(proved([(128, 1)], 3)) == ["proved"] * 3
    assert any(refused(outcomes(proved([(128, 1)], 3, 1, spoil=spoil)), 1) for _ in range(CHANCES))


def test_errors_that_are_alike_in_two_blocks_do_not_cancel() -> None:
    """8 rows of 4 words of products, and as many of sums of two: the same error at the same place of both."""

    def spoil(part: Any) -> None:
        part[0] ^= np.uint64(8)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        for entries in (1, 2):
            multiplied(trio, transcript, 32, entries, spoil if trio.me == 1 else None)
        prove(trio, transcript, 3)
        return "proved"

    assert any(refused(outcomes(body), 1) for _ in range(CHANCES))


def test_lookups_are_hidden_by_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a right verifier sends of them is both vectors at the point, each plus such rows times a factor
    that is not 0."""
    given, hidden = list[NDArray[np.uint64]](), tags.hidden_columns

    def noted(pairs: Any, whole: Any, masks: Any, fold: Any) -> Any:
        given.extend(of for pair in masks for of in pair)
        return hidden(pairs, whole, masks, fold)

    monkeypatch.setattr(products, "hidden_columns", noted)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        multiplied(trio, transcript, WORDS)
        looked_up(trio, transcript, 8, 4, 16)
        prove(trio, transcript)
        return "proved"

    assert outcomes(body) == ["proved"] * 3
    assert len(given) == 3 * 2 * 2 and all(random(of) for of in given)
    assert len({of.tobytes() for of in given}) == len(given)
