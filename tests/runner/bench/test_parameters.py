"""Values on the command line, networks, and which measurements an order means."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc_protocols.errors import UsageError
from runner.bench import benches, registry
from runner.bench.net.network import Net, networks
from runner.bench.parameters import BITS, CELLS, SIGMA, TLS, Parameter, number, spelled
from runner.bench.running.driver import Order, points


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e6", 1e6),
        ("2^20", 2.0**20),
        ("0.25", 0.25),
        (".5", 0.5),
        ("1e-3", 1e-3),
        ("", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1_0", None),
        ("2^99", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


def test_lists_of_values() -> None:
    assert CELLS.parse("1e5, 2^20,100000") == (100_000, 1 << 20)
    assert SIGMA.parse("0.5,10") == (0.5, 10.0) and TLS.parse("off,on") == (False, True)
    for parameter, text, words in (
        (CELLS, "1.5", "whole"),
        (CELLS, "x", "whole"),
        (BITS, "65", "from 2 to 64"),
        (TLS, "yes", "off, on"),
        (CELLS, ",".join(map(str, range(1, 99))), "at most"),
    ):
        with pytest.raises(UsageError, match=words):
            parameter.parse(text)


def test_values_read_as_they_are_spelled() -> None:
    for value in (1, 17, 1000, 48_000, 100_000, 10**6, 1 << 20, 0.25):
        assert number(spelled(value)) == value


def test_networks() -> None:
    assert networks("loopback,wan", None, None, "shim") == [Net("loopback"), Net("wan", 20.0, 100.0)]
    found = networks("lan", "0,5", None, "netns")
    assert [(net.delay_ms, net.rate_mbit, net.by) for net in found] == [
        (0, 1000, "netns"),
        (5, 1000, "netns"),
    ]
    assert networks("loopback", None, "10", "shim")[0].bytes_per_s == 1.25e6
    assert not networks("loopback", "0", None, "shim")[0].emulated
    for wrong in (("moon", None, None), ("lan", "-1", None), ("lan", None, "0")):
        with pytest.raises(UsageError):
            networks(*wrong, "shim")  # type: ignore[call-arg]


def test_every_combination_is_a_point() -> None:
    bench = registry.load()["multiply"]
    nets = networks("loopback,lan", None, None, "shim")
    found = points(Order([bench], {"cells": (5, 6, 7), "tls": (False, True)}, nets, 1, 0))
    assert len(found) == 2 * 3 * 2 * 2 and len(
        {(str(point.net), *point.params.values()) for point in found}
    ) == len(found)
    assert all(point.parties == 3 for point in found)
    with pytest.raises(UsageError, match=r"at most 1,?000"):
        points(Order([bench], {"cells": tuple(range(1, 400)), "bits": (32, 64)}, nets, 1, 0))


def test_namespaces_imply_tls() -> None:
    bench = registry.load()["multiply"]
    nets = networks("loopback", None, None, "netns")
    assert {point.params["tls"] for point in points(Order([bench], {}, nets, 1, 0))} == {True}
    with pytest.raises(UsageError, match="--tls off"):
        points(Order([bench], {"tls": (False,)}, nets, 1, 0))


def test_the_registry_finds_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "later_protocol.py").write_text(
        "from runner.bench.parameters import CELLS\n"
        "from runner.bench.registry import Kernel, Task\n"
        "class Later(Kernel):\n"
        "    name, purpose, counts, parameters = 'later', 'a protocol to come', 'cells', (CELLS,)\n"
        "    def prepare(self, wire, params):\n"
        "        return Task(lambda: None)\n"
        "BENCH = Later()\n",
        encoding="utf-8",
    )
    before = registry.load()
    monkeypatch.setattr(benches, "__path__", [*benches.__path__, str(tmp_path)])
    assert set(registry.load()) - set(before) == {"later"}


def test_every_benchmark_is_complete() -> None:
    found = registry.load()
    assert {
        "multiply",
        "scores",
        "select",
        "gaussian",
        "fit",
        "end-to-end",
        "rounds",
        "share",
        "contingency",
    } <= set(found)
    shared: dict[str, Parameter] = {}
    for name, bench in found.items():
        assert name == bench.name and bench.purpose and bench.counts
        for parameter in bench.parameters:
            known = shared.setdefault(parameter.name, parameter)
            assert known.of() == parameter.of(), f"--{parameter.name} means two things"
            assert (
                parameter.default
                and parameter.parse(",".join(map(spelled, parameter.default))) == parameter.default
            )
        params = {parameter.name: parameter.default[0] for parameter in bench.parameters}
        if bench.parameters:  # a survey counts its runs itself
            assert bench.amount(params) > 0 and bench.problem(params) is None
