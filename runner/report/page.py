"""Puts the report together: figures (`agreement.py`), drawings (`columns`, `graph`), words
(`statement`), template.

The page is one file that loads nothing and runs nothing; a content security policy inside it says so to the
browser too. Autoescaping is on for every value, whatever its source: names of columns, values, parties and
studies are text, never markup.
"""
# ruff: noqa: RUF001 - Greek letters and the multiplication sign are meant

from __future__ import annotations

import math
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mpc_protocols.errors import UsageError
from runner.api.inference import answers, registered
from runner.failures import reason
from runner.report import number_format, split_training
from runner.report.agreement import OneWay, agreements, associations, one_way, strengths
from runner.report.compiled import template
from runner.report.drawings import charts, graph, resolutions
from runner.report.drawings.columns import measured, with_real
from runner.report.drawings.pair_chart import pair_chart
from runner.report.files import Clique, Release, Run, facts_of, load
from runner.report.plain_page import source_text
from runner.report.words.alignment_text import joined
from runner.report.words.collected_text import collected
from runner.report.words.prior_text import prior_text
from runner.report.words.statement import how_computed, in_the_clear, statement, variances
from runner.report.words.training_text import training
from runner.report.words.unrelated_columns import unrelated
from runner.results.finished_run import FinishedRun
from synth.algorithm import ALGORITHMS, OWN_MODEL
from synth.inference import Answer, UnfitRun
from synth.inference.groups import Shares

MAX_ASSOCIATED, MAX_PAIRS, MAX_SHOWN = 40, 4, 6
"""Columns of the table of all pairs; pictures of pairs; pictures of columns that are not folded away."""

_PHASES = {
    "connect": "parties meet, prove who they are",
    "agree": "how long does a message take?",
    "input": "counts become shares",
    "align": "records are matched without naming them",
    "select": "which marginal is worst?",
    "measure": "noisy counts are opened",
    "fit": "the model follows the measurements",
    "sample": "rows are drawn from the model",
    "report": "files are written",
}
_EVENTS = {
    "select": "Selected",
    "measure": "Measured",
    "total": "Counted rows",
    "train": "Trained",
    "sizes": "Counted a cohort",
    "choices": "Clients chose",
    "sum": "Added up",
}
_KINDS = {"sizes": "total", "choices": "select", "sum": "measure"}
"""What events of clients are drawn as."""


def write(directory: Path, comparison: Mapping[str, Any] | None) -> Path:
    """Render and put report.html in place in one step. Raises `UsageError` (`files.load`)."""
    facts = facts_of(directory)
    text = (
        split_training.page(facts, source_text("report.css"), template("training.html.j2"))
        if split_training.KEY in facts
        else page(load(directory), comparison)
    )
    target = directory / "report.html"
    try:
        handle, name = tempfile.mkstemp(prefix=".report-", suffix=".html", dir=directory)
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({reason(error)}); copy the directory to a place of yours."
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def prepare() -> None:
    """Compile what `page` fills."""
    template()


def page(run: Run, comparison: Mapping[str, Any] | None = None) -> str:
    """The whole HTML text."""
    facts = run.facts
    columns = one_way(run)
    return template().render(
        style=Markup(source_text("report.css")),
        facts=facts,
        privacy=facts["privacy"],
        statement=statement(facts),
        verdict=facts.get("relations"),
        unrelated=unrelated(run),
        algorithm=_algorithm(facts),
        clear=in_the_clear(facts),
        how=how_computed(facts),
        reported=any(event.what == OWN_MODEL for event in run.events),
        ledger=spending(run),
        clients=facts["privacy"].get("clients"),
        chose=_chose(run),
        calibration=_calibration(facts["privacy"]),
        map=measured_graph(run),
        resolutions=_resolutions(run),
        label=((facts.get("public_study") or {}).get("workload") or {}).get("label"),
        marginals=_marginals(run),
        columns=[measured(run, one) for one in columns],
        shown=MAX_SHOWN,
        pairs=strongest_pairs(run),
        answers=_answers(run),
        sent=sum(phase.get("bytes_sent", 0) for phase in facts["phases"]),
        noisy_total=run.noisy_total,
        sigmas=_sigmas(run),
        heat=_heat(run),
        phases=_phases(run),
        timeline=_timeline(run),
        demo=_demo(run, columns, comparison),
        joined=joined(facts),
        collected=collected(facts),
        prior=prior_text(facts),
        training=training(facts),
        example=" ".join(shlex.quote(name) for name in run.domain.names[:2]),
    )


def _algorithm(facts: Mapping[str, Any]) -> str:
    algorithm = ALGORITHMS.get(facts["algorithm"])
    name = facts["algorithm"] if algorithm is None else algorithm.title
    table = (facts.get("public_study") or {}).get(facts["algorithm"], {})
    if "variant" in table:  # of several that go by one name; its cohorts follow from who takes part
        return f"{name}, {table['variant']}"
    rounds = table.get("rounds")
    if isinstance(rounds, int):
        return f"{name}, {number_format.spelled(rounds)} rounds"
    return f"{name}, adaptive" if rounds == "adaptive" else name


def spending(run: Run) -> dict[str, Any]:
    """The events with their running sum, and the same as slices of one bar."""
    cap, spent, rows, slices = float(run.facts["privacy"]["rho"]), 0.0, [], []
    winners = iter(
        run.selected if len(run.selected) == sum(event.what == "select" for event in run.events) else ()
    )
    for i, event in enumerate(run.events, 1):
        spent += event.rho
        what, clique, note = _event_words(run, event, next(winners, None) if event.what == "select" else None)
        rows.append(
            {
                "number": i,
                "what": what,
                "clique": clique,
                "note": note,
                "rho": event.rho,
                "spent": spent,
                "share": event.rho / cap,
            }
        )
        kind = _KINDS.get(event.what, event.what if event.what in _EVENTS else "other")
        slices.append((kind, f"{i}. {what} {clique}: rho {number_format.plain(event.rho)}", event.rho))
    kinds = dict.fromkeys(kind for kind, _, _ in slices)
    shares = [(kind, sum(rho for one, _, rho in slices if one == kind) / cap) for kind in kinds]
    return {
        "rows": rows,
        "bar": charts.budget(slices, cap),
        "kinds": shares,
        "left": max(0.0, 1 - spent / cap),
        "spent": spent,
    }


def _chose(run: Run) -> str:
    """Who said which groups of columns are measured: "clients" by themselves, the "algorithm" with noise, or
    the "study"."""
    if run.facts["privacy"].get("clients") and run.selected:
        return "clients"
    return "algorithm" if run.selected or any(event.what == "select" for event in run.events) else "study"


def _calibration(privacy: Mapping[str, Any]) -> dict[str, Any]:
    """What the samplers' statistical distances may take off delta, and the rest; a run that does not state
    the rest: None.

    epsilon: what the cap was solved at; less than the promised one where finite precision bounds it
    (`accounting.calibrate`).
    """
    rest = privacy.get("delta_for_zcdp")
    epsilon = privacy.get("calibrated_epsilon", privacy["epsilon"])
    return {
        "epsilon": epsilon,
        "lower": epsilon < privacy["epsilon"] * (1 - 1e-9),
        "paid": (1 + math.exp(min(epsilon, 700.0))) * privacy["beta"],
        "rest": rest,
        "reserved": None if rest is None else privacy["delta"] - rest,
    }


def _event_words(run: Run, event: Release, winner: Clique | None) -> tuple[str, str, str]:
    """An event as (verb, cliques, figures); a selection's own record leaves out who won. Unknown events keep
    their name."""
    detail = event.detail
    of = {level.name: level for m in run.measurements for level in m.levels}
    cliques = detail.get("cliques") or (
        [detail["clique"]] if detail.get("clique") else [winner] if winner else []
    )
    names = (
        " · ".join(
            _joined(
                [of[n].column if n in of else n for n in clique],
                {of[n].column: of[n].size for n in clique if n in of} | detail.get("bins", {}),
            )
            if not isinstance(clique, str)
            else clique
            for clique in cliques
        )
        if len(cliques) <= 3
        else f"{number_format.spelled(len(cliques))} marginals"
    )
    notes = []
    if detail.get("picks", 1) > 1:
        notes.append(f"{detail['pick']} of {detail['picks']} on the same scores")
        if detail.get("clique") == []:
            notes.append("no candidate was left")
    if "candidates" in detail:
        candidates = detail["candidates"]
        count = candidates if isinstance(candidates, int) else len(candidates)
        notes.append(f"among {number_format.whole(count)} candidate{'s' * (count != 1)}")
    if isinstance(columns := detail.get("columns"), list):
        notes.append(f"of {', '.join(map(str, columns))}")
    if detail.get("claim") == "none":
        notes.append("no privacy claim")
    if each := variances(detail):
        ends = dict.fromkeys(number_format.plain(math.sqrt(of)) for of in (min(each), max(each)))
        notes.append(f"noise σ\u00a0=\u00a0{' to '.join(ends)} rows")
    if "epsilon" in detail:
        notes.append(f"step ε\u00a0=\u00a0{number_format.plain(float(Fraction(detail['epsilon'])))}")
    return _EVENTS.get(event.what, event.what), names, ", ".join(notes)


def _joined(clique: Sequence[str], bins: Mapping[str, int] | None = None) -> str:
    """Names of columns; with how many bins they were asked for, where those are coarser than the column."""
    sizes = bins or {}
    return " × ".join(f"{name} ({sizes[name]} bins)" if name in sizes else name for name in clique)


def strongest_pairs(run: Run) -> list[dict[str, Any]]:
    """The strongest relations kept, drawn from the model."""
    strongest = (run.facts.get("relations") or {}).get("strongest", ())
    judged = {tuple(pair["columns"]): float(pair["strength"]) for pair in strongest[:MAX_PAIRS]}
    known = [pair for pair in judged if len(pair) == 2 and all(name in run.domain for name in pair)]
    sure = shares_of(run)
    asked = (run.facts.get("public_study") or {}).get("workload") or {}
    return [
        {
            "chart": pair_chart(run.domain, pair, [("synthetic rows", counts)], asked.get("label"), sure),
            "strength": judged[pair],  # at the bins that were measured, by which the relations are ranked
        }
        for pair, counts in zip(known, run.model.marginals(known), strict=True)
    ]


def shares_of(run: Run) -> Shares | None:
    """Intervals for shares of the run's rows; None of a run whose measurements give none."""
    try:
        return Shares(run.domain, run.model, run.measurements, run.facts)
    except UnfitRun:
        return None


def _answers(run: Run) -> list[Answer]:
    """The registered questions, answered."""
    facts, questions = run.facts, registered(run.facts)
    return (
        answers(FinishedRun(facts, run.domain, run.model), run.measurements, questions) if questions else []
    )


def measured_graph(run: Run) -> dict[str, Any]:
    """The picture of measured cliques, in two shapes, and the same as a list."""
    together = list(dict.fromkeys(m.columns for m in run.measurements if len(m.clique) > 1))
    lines = strengths(run, together)
    names, rounds = run.domain.names, {m.round for m in run.measurements if m.round}
    tall = max(460.0, 34.0 * len(names))
    return {
        "wide": graph.picture(
            names, together, lines, width=760, height=max(440.0, 18.0 * len(names)), class_="graph wide"
        ),
        "narrow": graph.picture(names, together, lines, width=370, height=tall, class_="graph narrow"),
        "selected": [
            (_joined(clique, bins), not rounds or number in rounds)
            for number, (clique, bins) in enumerate(zip(run.selected, run.resolutions, strict=True), 1)
        ],
        "batch": max(
            (event.detail.get("picks", 1) for event in run.events if event.what == "select"), default=1
        ),
        "several": len(together),
        "apart": len(names) > len({name for clique in together for name in clique}),
        "single": len({m.columns for m in run.measurements if len(m.clique) == 1}),
    }


def _resolutions(run: Run) -> dict[str, Any] | None:
    """The pictures of columns asked for over bins, those of most values first if there are many; None if
    there are none."""
    found = resolutions.resolutions(run)
    kept = sorted(found, key=lambda name: -run.domain.sizes[name])[:MAX_ASSOCIATED]
    drawn = [
        {"name": name, "values": run.domain.sizes[name], "chart": resolutions.strips(run, name, asked)}
        for name, asked in found.items()
        if name in kept
    ]
    return {"columns": drawn, "left_out": len(found) - len(drawn)} if drawn else None


def _marginals(run: Run) -> list[dict[str, Any]]:
    found = agreements(run)
    ratios = [a.distance / a.noise for a in found]
    most = max([2.0, *ratios])
    return [
        {
            "clique": _joined(a.clique, a.bins),
            "cells": a.cells,
            "sigma": a.sigma,
            "distance": a.distance,
            "noise": a.noise,
            "ratio": ratio,
            "meter": charts.meter(ratio, most, 1.0, "synthetic"),
        }
        for a, ratio in zip(found, ratios, strict=True)
    ]


def _sigmas(run: Run) -> list[str]:
    """The least and the largest noise of a count, as written; one if they are written alike; none without
    measurements."""
    found = [math.sqrt(m.sigma2) for m in run.measurements]
    return (
        list(dict.fromkeys(number_format.plain(sigma) for sigma in (min(found), max(found)))) if found else []
    )


def _heat(run: Run) -> dict[str, Any] | None:
    """At most MAX_ASSOCIATED columns: those measured most often with others, in domain order."""
    together = {
        name: sum(len(m.clique) > 1 and name in m.columns for m in run.measurements)
        for name in run.domain.names
    }
    kept = set(sorted(run.domain.names, key=lambda name: -together[name])[:MAX_ASSOCIATED])
    names = [name for name in run.domain.names if name in kept]
    if len(names) < 2:
        return None
    found = associations(run, names)
    return {
        "maps": [charts.heat_map(names, found, narrow=narrow) for narrow in (False, True)],
        "left_out": len(run.domain) - len(names),
    }


def _phases(run: Run) -> list[dict[str, Any]]:
    phases = run.facts["phases"]
    most = max((phase["wall_s"] for phase in phases), default=0.0)
    return [
        {
            **phase,
            "says": _PHASES.get(phase["name"], ""),
            "meter": charts.meter(phase["wall_s"], most, None, "stretch"),
        }
        for phase in phases
    ]


def _timeline(run: Run) -> list[Markup]:
    """In two shapes, like the map; nothing if there are no events to draw."""
    phases = [phase["name"] for phase in run.facts["phases"]]
    shapes = ((720.0, "wide"), (370.0, "narrow")) if len(run.moments) > 1 else ()
    return [charts.timeline(run.moments, phases, width=width, class_=class_) for width, class_ in shapes]


def _demo(run: Run, columns: Sequence[OneWay], comparison: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What only somebody with the real rows can compute; None unless the caller is such."""
    if comparison is None:
        return None
    try:
        metrics = [
            {
                "name": str(name),
                "value": float(value),
                "baseline": None if baseline is None else float(baseline),
                "explanation": str(explanation),
            }
            for name, (value, baseline, explanation) in (comparison.get("metrics") or {}).items()
        ]
        return {"metrics": metrics, "columns": with_real(run, columns, comparison.get("counts") or {})}
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError):
        raise UsageError(
            "The comparison with real rows in data/comparison.json is not one that `demo` writes; remove that file."
        ) from None
