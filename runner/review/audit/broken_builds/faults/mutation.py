"""What a broken build is: a fault in words, the checks that must find it, and what breaks this process's
build."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

from mpc_protocols.wire import Wire

Patch = AbstractContextManager[Any]


@dataclass(frozen=True)
class Mutation:
    """A fault. words: what is wrong. expected: checks of which at least one must fail. apply: breaks this
    process's build."""

    name: str
    words: str
    expected: tuple[str, ...]
    apply: Callable[[], Patch]


def replaced(target: str, made: Callable[[Any], Any]) -> Patch:
    """`target`, a function of a module, replaced by what is made of it."""
    module, _, name = target.rpartition(".")
    return mock.patch(target, made(getattr(import_module(module), name)))


def opened_to_all(prefix: str) -> Patch:
    """Files whose path holds this are made for everybody to read."""
    plain = os.open

    def opened(path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        return plain(path, flags, 0o644 if prefix in str(path) else mode, **named)

    return mock.patch("os.open", opened)


class Aside:
    """A stream of each wire, on which a broken build sends what nobody should be told."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._streams = WeakKeyDictionary[Wire, Wire]()

    def of(self, wire: Wire) -> Wire:
        """This wire's."""
        if wire not in self._streams:
            self._streams[wire] = wire.fork(self._name)
        return self._streams[wire]
