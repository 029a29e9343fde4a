"""The events of a training with a server, which are fixed before it begins: held against those of the study's
plan.

Nobody opens anything beside them that would show that one is missing. run.json names the owners in the event
of the training; their columns decide the noise in its last digits, and are not told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from runner.party.synthesis import plan_of
from runner.study import Study
from runner.study.trained import trained

NEAR = 0.01
"""By how much numbers may differ that owners' columns decide."""
NUMBERS = ("rho", "sigma2", "noise2")


def are_whole(study: Study, events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these are all events of such a training, and nothing else. Raises `KeyError`, `TypeError` or
    `ValueError` for what are none."""
    algorithm = trained(study)
    assert algorithm is not None
    owners = next((event["owners"] for event in events if "owners" in event), None)
    if owners is None or not set(owners) <= {party.name for party in study.parties}:
        return False
    expected = [
        {"what": event.what, "rho": event.rho, **event.detail}
        for event in algorithm.presumed(plan_of(study), owners).events()
    ]
    return len(events) == len(expected) and all(map(_alike, events, expected))


def _alike(stated: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return stated.keys() == expected.keys() and all(
        math.isclose(Fraction(stated[key]), Fraction(value), rel_tol=NEAR)
        if key in NUMBERS
        else stated[key] == value
        for key, value in expected.items()
    )
