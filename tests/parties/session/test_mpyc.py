"""MPyC over the session's links: its secure types work, its pickle is gone, its import leaves nothing behind."""

from __future__ import annotations

import re

from tests.parties.session import jobs
from tests.trio import ROOT, Trio


def test_secure_types_work_without_pickle(trio: Trio) -> None:
    results = trio.run(jobs.secure_arithmetic)
    for result in results:
        assert result["product"] == 2 * 3 * 4 and result["less"] == 1
        assert result["squares"] == [4, 1, 0, 1, 4] and result["absolute"] == [2, 1, 0, 1, 2]
        assert result["bits"] == results[0]["bits"] and set(result["bits"]) <= {0, 1}
        assert result["transferred"] == [
            {"me": p, "list": [1, -(2**70), None, True, 0.5, b"raw", (1, "two")]} for p in range(3)
        ]
        assert result["beside"] == b"beside" and result["same"]
        assert result["sent"] > 1000  # MPyC's messages are counted with the others


def test_the_import_leaves_nothing_behind(trio: Trio) -> None:
    for me, state in enumerate(trio.run(jobs.mpyc_state)):
        assert state["argv"] == [] and state["handlers"] == 0
        assert (state["parties"], state["pid"], state["codec"]) == (3, me, "SimpleNamespace")


def test_wire_keys_come_from_mpycs_prss_keys(trio: Trio) -> None:
    assert [(state["derived"], state["keys"]) for state in trio.run(jobs.mpyc_state)] == [(True, 2)] * 3


def test_only_one_file_imports_mpyc() -> None:
    """A second import, in a process of another kind, would parse that process's arguments
    (`docs/design/session.md` 2)."""
    pattern = re.compile(
        r"^\s*(import\s+mpyc|from\s+mpyc)|import_module\(\s*['\"]mpyc|__import__\(\s*['\"]mpyc", re.MULTILINE
    )
    found = {
        str(path.relative_to(ROOT))
        for package in ("mpc_protocols", "synth", "parties", "runner")
        for path in (ROOT / package).rglob("*.py")
        if pattern.search(path.read_text())
    }
    assert found == {"parties/session/mpyc_runtime.py"}
