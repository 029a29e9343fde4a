"""`plan --compare` runs the synthesizer once for all backends whose oracles answer the same; what each costs
stays what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backends.ideal.dry_run import IdealDryRun
from runner.forecast import predict, shared_course
from runner.forecast.compare import compare
from runner.forecast.predict import forecast
from runner.forecast.shared_course import SharedCourse
from runner.study import Study, load
from tests.runner import small

OTHERS = ("shamir", "pair", "additive")


def studies(tmp_path: Path) -> dict[str, Study]:
    """The same study by several backends."""
    found = {}
    for name in ("replicated", *OTHERS):
        (tmp_path / name).mkdir()
        changes = [] if name == "replicated" else [('"replicated"', f'"{name}"')]
        found[name] = load(small.write(tmp_path / name, parties=4, changes=changes).path)
    return found


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The backends by whose dry runs a synthesizer runs from now on."""
    made: list[str] = []
    real = vars(predict)["synthesize"]

    def noted(study: Study, *given: Any) -> Any:
        made.append(study.backend)
        return real(study, *given)

    monkeypatch.setattr(predict, "synthesize", noted)
    return made


def test_what_another_backend_costs_is_the_same_with_a_course_that_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, shared = studies(tmp_path), SharedCourse()
    made = counted(monkeypatch)
    forecast(of["replicated"], 600, shared=shared)
    for name in OTHERS:
        alone, played = forecast(of[name], 600), forecast(of[name], 600, shared=shared)
        assert played.rounds == alone.rounds
        assert played.questions == alone.questions
        for one, other in zip(played.parties, alone.parties, strict=True):
            # the rows that are drawn are packed, which depends on chance
            assert abs(one.bytes_sent - other.bytes_sent) <= 0.01 * other.bytes_sent
    assert made == ["replicated", *OTHERS]


def test_a_comparison_runs_the_synthesizer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, made = studies(tmp_path)["replicated"], counted(monkeypatch)
    alternatives = {each.backend: each for each in compare(of, 600).alternatives}
    assert all(alternatives[name].rounds for name in OTHERS)
    assert made == ["replicated"]


def test_an_oracle_that_answers_otherwise_has_a_course_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, shared = studies(tmp_path), SharedCourse()
    made = counted(monkeypatch)
    forecast(of["replicated"], 600, shared=shared)
    real = IdealDryRun.measure

    def other(self: IdealDryRun, *given: Any) -> Any:
        return [cells + 1 for cells in real(self, *given)]

    monkeypatch.setattr(IdealDryRun, "measure", other)
    assert forecast(of["shamir"], 600, shared=shared).rounds > 0
    assert made == ["replicated", "shamir"]


def test_a_course_of_too_many_answers_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_course, "MAX_KEPT_CELLS", 10)
    of, shared = studies(tmp_path), SharedCourse()
    made = counted(monkeypatch)
    for name in ("replicated", "pair"):
        forecast(of[name], 600, shared=shared)
    assert made == ["replicated", "pair"]
