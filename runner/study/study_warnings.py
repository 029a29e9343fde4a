"""What is to be said of a study before anything runs: epsilon and delta that promise little
(`synth.judgement.parameters`), a label that is no class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.study.declared.tables import DEFAULT_MAX_ROWS
from synth.judgement.parameters import unsafe
from synth.judgement.warned import Warned

if TYPE_CHECKING:
    from runner.study.model import Study

MAX_LABEL_VALUES = 16
"""Of a column that is to be predicted."""


def warned_of(study: Study) -> tuple[Warned, ...]:
    """The warnings; of delta only where the study bounds its rows itself."""
    privacy = study.privacy
    rows = None if privacy.max_rows == DEFAULT_MAX_ROWS else privacy.max_rows
    return (*unsafe(float(privacy.epsilon), float(privacy.delta), rows), *_wide_label(study))


def _wide_label(study: Study) -> tuple[Warned, ...]:
    label = study.workload_spec.get("label")
    if label is None or study.domain.sizes[str(label)] <= MAX_LABEL_VALUES:
        return ()
    values = study.domain.sizes[str(label)]
    return (
        Warned(
            "wide-label",
            f"[workload] label names {label}, a column of {values:,} values: every question is asked for each of them, so "
            f"few are clear. Give it fewer bins (2 to {MAX_LABEL_VALUES}), or leave the label out.",
        ),
    )
