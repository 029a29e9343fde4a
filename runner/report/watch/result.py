"""What run.json says of a run that has ended, for the page: at every party the same, whatever its own events
told.

A file that is missing, or no such file, says nothing, and the page goes on with what the events told.
Standard library, but for the budget in terms of epsilon.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.report.watch.story import MAX_SELECTED
from runner.results.outdir import RUN

MAX_BYTES = 64 << 20


def result(directory: Path) -> dict[str, Any]:
    """Entries that take the place of the story's (`Story.to_json`), with the verdict and the warnings; {} if
    there are none."""
    try:
        with (directory / RUN).open("rb") as file:
            return _result_facts(json.loads(file.read(MAX_BYTES)))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}


def _spent(rho: float, cap: float, delta: float) -> dict[str, Any]:
    from synth.budget.accounting import epsilon_about

    return {"rho": rho, "rho_cap": cap, "epsilon": float(epsilon_about(rho, delta))}


def _result_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    columns = {str(column["name"]) for column in facts["columns"]}
    selected = [[str(name) for name in clique] for clique in facts["selected"]]
    measured = [
        # a column that was counted over bins is named with their number
        {str(name) if name in columns else str(name).rpartition("/")[0] for name in clique}
        for event in facts["privacy"]["events"]
        if event["what"] == "measure"
        for clique in event.get("cliques") or [event.get("clique") or []]
        if not isinstance(clique, str)
    ]
    edges: dict[tuple[str, str], int] = {}
    for clique in measured:
        for one, other in itertools.combinations(sorted(clique & columns), 2):
            edges[one, other] = edges.get((one, other), 0) + 1
    spent, cap = facts["privacy"].get("rho_spent"), facts["privacy"]["rho"]
    return {
        "round": len(selected),
        "selected": [{"round": i, "columns": of} for i, of in enumerate(selected[:MAX_SELECTED], 1)],
        "edges": [[one, other, count] for (one, other), count in edges.items()],
        "tells_rounds": True,
        "rows": facts["rows"],
        **({} if spent is None else _spent(float(spent), float(cap), float(facts["privacy"]["delta"]))),
        "parties": [
            {
                "name": str(party["name"]),
                "computes": party["role"] == "compute",
                "sent": party.get("bytes_sent"),
                "phase": "report",
                "waits_for": [],
                "done": True,
                "told": True,
            }
            for party in facts["parties"]
        ],
        "verdict": (facts.get("relations") or {}).get("sentence"),
        "warnings": [str(warning["text"]) for warning in facts.get("warnings", ())],
    }
