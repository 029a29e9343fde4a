"""An evaluation in words: the verdict, lines for a terminal, JSON. All begin with what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.review.evaluation.figure import Figure
    from runner.review.evaluation.judge import Evaluation
    from runner.review.evaluation.prediction import Prediction
    from synth.judgement.against_rows import PairBeside

NOT_PRIVATE = "Not private: these figures are functions of real rows. They are for whoever holds these; do not publish them."
WAYS = {1: "single columns", 2: "pairs of columns", 3: "sets of three columns"}


USELESS = 0.3
"""Of what real rows tell of a label beyond chance: a table that tells less is not told from chance on a few
hundred rows."""
FAR = "A distance of 0.10 says that one row in ten would have to move to another cell."


def rows_of(found: Evaluation) -> list[tuple[str, Figure, str]]:
    """The figures: what, the figure, which are better."""
    rows = [(f"distance of {WAYS[degree]}", figure, "lower") for degree, figure in found.distances.items()]
    if found.prediction is not None:
        rows.append((f"prediction of {found.label} (area under the curve)", found.prediction, "higher"))
    rows.append(("rows that equal a real one", found.copies, "up to real rows"))
    return rows


def verdict(found: Evaluation) -> list[str]:
    """What the figures come to, in sentences."""
    related = [pair for pair in found.relations if pair.carried is not None]
    kept = [pair for pair in related if pair.kept]
    said = []
    if not found.relations:
        said.append("One column has no relations to judge.")
    elif not related:
        said.append(
            f"The real rows show no relation between columns ({len(found.relations)} pairs looked at): there is none to keep."
        )
    elif not kept:
        said.append(
            f"Relations are lost: of {len(related)} pairs of columns that are related in the real rows, the table keeps none. "
            "It is good for single columns only."
        )
    else:
        lost = sorted((pair for pair in related if not pair.kept), key=lambda pair: -pair.real)
        named = f"; lost: {', '.join(' x '.join(pair.columns) for pair in lost[:3])}" + ", .." * (
            len(lost) > 3
        )
        carried = sum(min(1.0, max(0.0, pair.carried or 0.0)) for pair in related) / len(related)
        said.append(
            f"Relations kept: {len(kept)} of {len(related)} pairs of columns that are related in the real rows, "
            f"{carried:.0%} of them on average{named if lost else ''}."
        )
    if found.prediction is not None:
        ours, chance, real = found.prediction.value, found.prediction.apart or 0.5, found.prediction.real
        if real - chance < 0.05:
            worth = ". Real rows themselves hardly tell it"
        elif ours - chance < USELESS * (real - chance) or (related and not kept):
            worth = ". That is useless: a table without relations does as well"
        else:
            worth = (
                f": {min(1.0, (ours - chance) / (real - chance)):.0%} of what real rows give beyond chance"
            )
        said.append(
            f"A model of {found.label} trained on the table reaches {ours:.2f} on real rows, "
            f"one trained on real rows {real:.2f}{worth}."
        )
    single = found.distances[1]
    if single.value > 2 * single.real + 0.02:
        said.append("Single columns are farther from the real ones than drawing rows explains.")
    return said


def lines(found: Evaluation) -> list[str]:
    """For a terminal."""
    related = [pair for pair in strongest(found) if pair.carried is not None][:5]
    strengths = "; ".join(
        f"{' x '.join(pair.columns)} {pair.real:.2f} / {pair.table:.2f}" for pair in related
    )
    worst = ", ".join(
        f"{' x '.join(pair)} {figure.value:.3f} ({figure.real:.3f})" for pair, figure in found.worst[:5]
    )
    return [
        NOT_PRIVATE,
        f"{found.rows[0]:,} synthetic rows against {found.rows[1]:,} real ones.",
        "",
        *verdict(found),
        "",
        *table(rows_of(found)),
        "",
        *(
            [f"Strongest relations, Cramer's V of the real rows / of the table: {strengths}."]
            if related
            else []
        ),
        *([f"Farthest pairs (in brackets: real rows): {worst}."] if worst else []),
        *([] if found.prediction is None else asked(str(found.label), found.prediction)),
        yardsticks(found),
        FAR,
    ]


def asked(label: str, prediction: Prediction) -> list[str]:
    """What a model of a label of many values was asked; nothing if it was each value."""
    listed = "; ".join(prediction.asked)
    return [f"A model says whether {label} is: {listed}. The area is the mean of these."] if listed else []


def table(rows: Sequence[tuple[str, Figure, str]]) -> list[str]:
    """Figures as lines of a table."""
    width = max(len(what) for what, _, _ in rows)
    said = [f"{'':{width}}  {'synthetic':>9}  {'columns apart':>13}  {'real rows':>9}  better"]
    for what, one, good in rows:
        apart = "" if one.apart is None else f"{one.apart:.4f}"
        said.append(f"{what:{width}}  {one.value:9.4f}  {apart:>13}  {one.real:9.4f}  {good}")
    return said


def yardsticks(found: Evaluation) -> str:
    """What the figures stand beside."""
    ours, theirs = found.compared
    return (
        "Columns apart: the same columns without any relation. Real rows: as good as a table gets. Distances: "
        f"{ours:,} rows of each against the same {theirs:,} real ones that were kept apart."
    )


def strongest(found: Evaluation) -> list[PairBeside]:
    """Pairs, the one of the strongest relation in the real rows first."""
    return sorted(found.relations, key=lambda pair: (pair.carried is None, -pair.real, pair.columns))


def figure(of: Figure) -> dict[str, Any]:
    """As JSON has it."""
    return {"synthetic": of.value, "columns_apart": of.apart, "real_rows": of.real}


def prediction_facts(label: str | None, of: Prediction) -> dict[str, Any]:
    """The same of a prediction."""
    return {"label": label, **figure(of), **({"asked": list(of.asked)} if of.asked else {})}


def to_json(found: Evaluation) -> str:
    """One object."""
    return json.dumps({"note": NOT_PRIVATE, **facts(found)}, indent=1)


def facts(found: Evaluation) -> dict[str, Any]:
    """What `to_json` writes."""
    return {
        "synthetic_rows": found.rows[0],
        "real_rows": found.rows[1],
        "distances": {str(degree): figure(of) for degree, of in found.distances.items()},
        "verdict": verdict(found),
        "worst_pairs": [
            {"columns": list(pair), "distance": of.value, **figure(of)} for pair, of in found.worst
        ],
        "relations": [
            {
                "columns": list(pair.columns),
                "real_rows": pair.real,
                "synthetic": pair.table,
                "carried": pair.carried,
                "kept": pair.kept,
            }
            for pair in strongest(found)
        ],
        **(
            {}
            if found.prediction is None
            else {"prediction": prediction_facts(found.label, found.prediction)}
        ),
        "copies": figure(found.copies),
    }
