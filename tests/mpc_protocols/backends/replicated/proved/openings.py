"""Who opens what the engine with proofs computes, and when: what a party says in the end does not tell it."""

from __future__ import annotations

from typing import Any

import pytest

from mpc_protocols.backends.replicated.proved.gates import ProvedGates


def noted_openings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Takes the number of each party that begins to open something, in order."""
    began, opened = list[int](), ProvedGates.opened

    def noted(self: ProvedGates, own: Any, following: Any, *join: Any) -> Any:
        began.append(self.trio.me)
        return opened(self, own, following, *join)

    monkeypatch.setattr(ProvedGates, "opened", noted)
    return began


def noted_conversions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The same of values that are opened to two under a mask."""
    began, opened = list[int](), ProvedGates.opened_to_two

    def noted(self: ProvedGates, x: Any) -> Any:
        began.append(self.trio.me)
        return opened(self, x)

    monkeypatch.setattr(ProvedGates, "opened_to_two", noted)
    return began
