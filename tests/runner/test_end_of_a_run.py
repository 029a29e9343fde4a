"""The end of a run: what happens beside what, and what nothing may come before."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpc_protocols.errors import BudgetRefused
from runner.party.course import table
from tests.patience import PATIENCE_S


def finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settle: Any, write: Any) -> list[str]:
    """What `finish` does of what is watched, in order. settle, write: of the ledger, and of the files, before they
    are signed."""
    done: list[str] = []

    def write_outputs(
        folder: Path, release: object, domain: object, facts: object, result: object, sign: Any, *_: Any
    ) -> None:
        write(done)
        sign(folder)
        done.append("in place")

    def judge(release: object, domain: object) -> str:
        done.append("judged")
        return "verdict"

    def describe(*_: Any, judged: Any) -> dict[str, Any]:
        assert judged() == "verdict"
        return {}

    monkeypatch.setattr(table, "write_outputs", write_outputs)
    monkeypatch.setattr(table, "describe", describe)
    monkeypatch.setattr(table, "relations_of", judge)
    run: Any = SimpleNamespace(
        study=SimpleNamespace(domain=None, leader=SimpleNamespace(name="south")),
        attempt=SimpleNamespace(
            serves=False, digest=lambda *_: b"", finish=lambda _: done.append("finished")
        ),
        closing=None,
        collective=SimpleNamespace(leads=False),
        meter=SimpleNamespace(mark=lambda _: None),
        counters=lambda: {},
        custodian=SimpleNamespace(settle=lambda: settle(done)),
        options=SimpleNamespace(certs=None, out=tmp_path, shared=None),
        **dict.fromkeys(("digest", "plan", "id", "mode")),
        events=lambda *_, **__: None,
    )
    try:
        table.finish(run, SimpleNamespace(codes=SimpleNamespace(shape=(1, 1))), None)  # type: ignore[arg-type]
    except BudgetRefused:
        done.append("refused")
    return done


def test_files_are_made_beside_the_settling_and_in_place_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = threading.Event()

    def settle(done: list[str]) -> None:
        assert made.wait(PATIENCE_S)  # else they are not beside each other
        done.append("settled")

    def write(done: list[str]) -> None:
        done.append("made")
        made.set()

    assert finished(monkeypatch, tmp_path, settle, write) == [
        "judged",
        "made",
        "settled",
        "in place",
        "finished",
    ]


def test_no_file_is_in_its_place_where_the_ledger_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def settle(done: list[str]) -> None:
        raise BudgetRefused("The ledger cannot be used.")

    assert finished(monkeypatch, tmp_path, settle, lambda done: done.append("made")) == [
        "judged",
        "made",
        "refused",
    ]
