"""Compiled code: what loops compute, and when there is none."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mpc_protocols.process.compiled import library
from mpc_protocols.process.compiled.library import ADDRESS, WORD, CompiledOnce, address, functions


def sums() -> Callable[..., None]:
    """sums(values, rows, columns, into): the sum of the odd numbers of each row, of rows that lie one behind
    the other; and the sum of these sums behind them."""
    from llvmlite import ir

    from mpc_protocols.process.compiled import builder

    words = builder.WORD.as_pointer()
    made = ir.Module("sums")
    arguments = {"values": words, "rows": builder.WORD, "columns": builder.WORD, "into": words}
    function = builder.Function(made, "sums", arguments)
    given, build = function.arguments, function.builder
    zero = builder.word(0)
    with function.carrying(given["rows"], zero) as rows:
        start = build.mul(rows.index, given["columns"])
        with function.carrying(given["columns"], zero) as columns:
            value = build.load(function.at(given["values"], start, columns.index))
            odd = build.trunc(value, ir.IntType(1))
            columns.following = [build.select(odd, build.add(columns.values[0], value), columns.values[0])]
        build.store(columns.values[0], function.at(given["into"], rows.index))
        rows.following = [build.add(rows.values[0], columns.values[0])]
    build.store(rows.values[0], function.at(given["into"], given["rows"]))
    build.ret_void()
    return functions(str(made), {"sums": (ADDRESS, WORD, WORD, ADDRESS)})["sums"]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (4, 7)])
def test_loops_of_any_length_carry_what_they_change(shape: tuple[int, int]) -> None:
    pytest.importorskip("llvmlite", reason="make kernel")
    values = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    into = np.full(shape[0] + 2, 99, np.uint64)
    sums()(address(values), *shape, address(into))
    wanted = np.where(values % np.uint64(2) == 1, values, np.uint64(0)).sum(axis=1)
    assert into.tolist() == [*wanted.tolist(), int(wanted.sum()), 99]


def test_it_is_compiled_once_for_who_has_enough_to_compute() -> None:
    pytest.importorskip("llvmlite", reason="make kernel")
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    once = CompiledOnce(make, lambda of: True, 10)
    assert once(9) is None and not made
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(once, [10] * 8))
    assert found == made * 8 and len(made) == 1
    assert once(1) is made[0]


@pytest.mark.parametrize(
    "reason",
    ["no package", "broken package", "no leave", "cannot compile", "lacks something", "other results"],
)
def test_there_is_none(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody tries again."""
    monkeypatch.setattr(library, "find_spec", lambda name: None if reason == "no package" else object())
    if reason == "no leave":

        def refused(*arguments: Any, **named: Any) -> Any:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(mmap, "mmap", refused)
    tried: list[str] = []
    problems = {"broken package": OSError("no library"), "cannot compile": RuntimeError("no target")}

    def make() -> str | None:
        tried.append(reason)
        if reason in problems:
            raise problems[reason]
        return None if reason == "lacks something" else "made"

    once = CompiledOnce(make, lambda of: reason != "other results", 1)
    assert once(1) is None and once(1) is None
    assert len(tried) == (0 if reason in ("no package", "no leave") else 1)
