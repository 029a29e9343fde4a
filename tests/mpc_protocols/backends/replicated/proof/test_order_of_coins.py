"""Every challenge is drawn from a coin that follows what it is for: a prover that knew it before could say
what fits."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from mpc_protocols.backends.replicated.proof.bit_products import products
from mpc_protocols.backends.replicated.proof.bit_products.batch import Batch
from mpc_protocols.backends.replicated.proof.bit_products.folding import Fold
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.trio import Trio
from tests.mpc_protocols.backends.replicated.proof.cheating import multiplied, outcomes
from tests.mpc_protocols.backends.replicated.proof.test_stages import looked_up


class Coins:
    """Which coin of a proof, the first being 0, each of its functions is given a stream of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used: defaultdict[str, set[int]] = defaultdict(set)
        self._numbers: dict[bytes, int] = {}
        self._streams: list[tuple[Any, int]] = []
        self._lock = threading.Lock()

        def tossed(trio: Trio, public: bytes) -> bytes:
            coin = toss(trio, public)
            with self._lock:
                self._numbers.setdefault(coin, len(self._numbers))
            return coin

        def streamed(coin: bytes, purpose: bytes) -> Any:
            reader = stream(coin, purpose)
            self._streams.append((reader, self._numbers[coin]))
            return reader

        def batched(part: Any, seed: bytes, *given: Any) -> Any:
            self.used["Batch"].add(self._numbers[seed])
            return Batch(part, seed, *given)

        monkeypatch.setattr(products, "toss", tossed)
        monkeypatch.setattr(products, "stream", streamed)
        monkeypatch.setattr(products, "Batch", batched)
        for name in ("Combined", "challenge", "weights_of"):
            monkeypatch.setattr(products, name, self._noting(name, getattr(products, name)))
        monkeypatch.setattr(Fold, "draw", self._noting("draw", Fold.draw))

    def _noting(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            self.used[name].update(
                number for stream, number in self._streams if any(stream is each for each in given)
            )
            return plain(*given)

        return noted


def test_each_challenge_is_of_a_coin_that_follows_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first, functionals of products and weights of outputs; of the second, after the first values,
    the point and the weights of lookups among products; of the third, after the second values, the point of
    the segments."""
    monkeypatch.setattr(ProofSizes, "form", lambda *_: Form(True, 1))
    coins = Coins(monkeypatch)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        multiplied(trio, transcript, 300)
        looked_up(trio, transcript, 8, 4, 2)
        products.prove(trio, transcript)
        return "proved"

    assert outcomes(body) == ["proved"] * 3
    assert coins.used == {"Combined": {0}, "Batch": {0}, "challenge": {1}, "weights_of": {1}, "draw": {2}}
