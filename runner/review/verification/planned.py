"""The plan of the study that was agreed, as far as run.json decides it: noise, costs and the cap are
recomputed by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runner.party.synthesis import plan_of
from runner.study import Study, VerticalStudy
from runner.study.owners import Ownership, ownership
from runner.study.trained import trained

if TYPE_CHECKING:
    from synth.plan import Plan


def owned_of(study: Study, run: Mapping[str, Any]) -> Ownership | None:
    """Who owns which columns, as run.json has it, of a study that joins records. Raises `StudyInvalid` for
    misfits."""
    if not isinstance(study, VerticalStudy) or trained(study) is not None:
        return None
    return ownership(study, {owner["name"]: owner["columns"] for owner in run["alignment"]["owners"]})


def planned(study: Study, run: Mapping[str, Any], own: Study | None, owned: Ownership | None) -> Plan | None:
    """The plan; None where rounds of arrivals or earlier waves decide it and no study that reads them is
    named (`own`), or where owners' columns do, which run.json does not tell.

    Raises `KeyError`, `TypeError` or a `CosynthError` for a run.json that makes no sense.
    """
    if trained(study) is not None:
        return None
    told = run["agreed"].get("contributors", {})
    if told.get("after") or told.get("schedule") == "arriving":
        return None if own is None else plan_of(own)
    plan = plan_of(study)
    if told:
        likely = set(plan.likely(told["expected_rows"]))
        plan = replace(plan, candidates={q: cells for q, cells in plan.candidates.items() if q in likely})
    return plan if owned is None else plan.knowing(owned.columns)
