"""A library that loads when it is first used: looked up once, and again when the interpreter has another."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from mpc_protocols.process import later


def test_the_import_system_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def imported(name: str) -> ModuleType:
        asked.append(name)
        return importlib.import_module(name)

    monkeypatch.setattr(later, "import_module", imported)
    library = later.Later("json")
    assert asked == []
    assert [library.dumps(number) for number in range(3)] == ["0", "1", "2"]
    assert asked == ["json"]


def test_a_library_that_has_gone_or_is_another_one_is_not_the_one_from_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library, other = later.Later("json"), ModuleType("json")
    assert library.dumps([]) == "[]"
    monkeypatch.setitem(sys.modules, "json", other)
    monkeypatch.setattr(other, "dumps", lambda _: "other", raising=False)
    assert library.dumps([]) == "other"
    monkeypatch.setitem(sys.modules, "json", None)
    with pytest.raises(ImportError):
        library.dumps([])
