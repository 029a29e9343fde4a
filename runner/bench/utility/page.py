"""The page of `bench utility --parts`: one self-contained file in the report's style."""

from __future__ import annotations

from collections.abc import Sequence

from runner.bench.utility.parts import ErrorParts
from runner.report.plain_page import rendered

WORDS = {
    "whole": "error of the table",
    "sampling": "of it, drawing rows from the model",
    "selection": "taken off by picking without noise",
    "noise": "taken off by measuring without noise",
    "structure": "the model's error when nothing has noise",
    "two halves": "half of the rows against the other half",
}


def page(found: Sequence[ErrorParts], delta: float, seeds: int) -> str:
    """The whole HTML text."""
    most = max((max(parts.summary.values()) for parts in found), default=1.0)
    return rendered(
        "utility.html.j2",
        sections=[
            {
                "title": f"{parts.row} on {parts.name}, epsilon {parts.epsilon:g}",
                "parts": [
                    {
                        "name": name,
                        "words": WORDS[name],
                        "value": f"{value:.4f}",
                        "width": round(100 * max(0.0, value) / most, 2),
                    }
                    for name, value in parts.summary.items()
                ],
            }
            for parts in found
        ],
        delta=f"{delta:g}",
        seeds=seeds,
    )
