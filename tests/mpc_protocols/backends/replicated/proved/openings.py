"""Who opens what the engine with proofs computes, and when: what a party says in the end does not tell it."""

from __future__ import annotations

from typing import Any

import pytest

from mpc_protocols.backends.replicated.proved.gates import ProvedGates


def noted_openings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Takes the number of each party that begins to open something, in order."""
    began, opened = list[int](), ProvedGates.opened

    def noted(self: ProvedGates, own: Any, following: Any) -> Any:
        began.append(self.trio.me)
        return opened(self, own, following)

    monkeypatch.setattr(ProvedGates, "opened", noted)
    return began
