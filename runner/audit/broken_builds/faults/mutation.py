"""What a broken build is: a fault in words, the checks that must find it, and what breaks this process's build."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest import mock

Patch = AbstractContextManager[Any]


@dataclass(frozen=True)
class Mutation:
    """A fault. words: what is wrong. expected: checks of which at least one must fail. apply: breaks this process's build."""

    name: str
    words: str
    expected: tuple[str, ...]
    apply: Callable[[], Patch]


def replaced(target: str, made: Callable[[Any], Any]) -> Patch:
    """`target`, a function of a module, replaced by what is made of it."""
    module, _, name = target.rpartition(".")
    return mock.patch(target, made(getattr(import_module(module), name)))
