"""The attacks on trainings pass on this build, and find one whose labels are not responses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from runner.review.audit import driver
from runner.review.audit.check import Finding, Profile, Verdict, load
from runner.review.audit.research import split_attacks
from runner.review.audit.subjects.subject import Subject, subject
from synth.research.florist import labels

GROUPS = load()


@pytest.fixture(scope="module")
def audited() -> Iterator[Subject]:
    pytest.importorskip("torch")
    with subject(None, ["replicated"], Profile.QUICK, "learning") as found:
        yield found


def found(audited: Subject, name: str) -> Finding:
    [result] = driver.carry_out(audited, driver.chosen(GROUPS, (), [name], Profile.QUICK))
    return result.finding


@pytest.mark.parametrize("name", ["L.responses", "L.warned"])
def test_this_build_passes(audited: Subject, name: str) -> None:
    """A false alarm: 4e-8 (`runner.review.audit.research.groups.learning`)."""
    finding = found(audited, name)
    assert finding.verdict is Verdict.PASS, finding.evidence


def test_labels_that_are_no_responses_are_found(audited: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "respond", lambda values, flips, source: values)
    finding = found(audited, "L.responses")
    assert finding.verdict is Verdict.FAIL and "are read right" in finding.evidence


def test_a_warning_that_is_not_true_is_found(audited: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_attacks, "nearest", lambda batches: np.zeros(sum(map(len, batches))))
    finding = found(audited, "L.warned")
    assert (
        finding.verdict is Verdict.FAIL and "Copies are found with an area of 0.500 only." in finding.evidence
    )
