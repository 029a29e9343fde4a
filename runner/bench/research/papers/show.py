"""Print a paper's items: ours beside the printed figures, whether they agree, and why not or why nothing was
run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Final

from mpc_protocols.errors import StudyInvalid
from runner.bench.research.papers.paper import Figure, Item, Paper, Settings

NOT_AT_HAND: Final = "not run: the folder holds none of its tables"


def show(paper: Paper, settings: Settings, lines: IO[str]) -> None:
    """Rerun and print all items, each as soon as it is there. lines: a JSON line for each figure."""
    print(f"{paper.name}: {paper.source}")
    runs = "one run each, small grids" if settings.quick else f"{settings.seeds} runs each"
    print(f"{runs}; in brackets the spread of one run")
    for item in paper.items:
        print(f"\n{item.label}: {item.what}")
        figures = []
        for figure in _figures(item, settings):
            figures.append(figure)
            print(line_of(figure), flush=True)
            told = {"paper": paper.name, "item": item.label, **asdict(figure), "verdict": figure.verdict}
            lines.write(json.dumps(told) + "\n")
            lines.flush()
        for claim in item.claims if figures else ():
            verdict = claim.verdict(figures)
            print(f'  in words: "{claim.text}": {verdict}', flush=True)
            told = {"paper": paper.name, "item": item.label, "claim": claim.text, "verdict": verdict}
            lines.write(json.dumps(told) + "\n")
        print(f"  {state_of(item, figures, settings)}")
        print(f"  {item.remark}")


def _figures(item: Item, settings: Settings) -> Iterator[Figure]:
    if item.figures is None or (item.slow and settings.quick):
        return
    try:
        yield from item.figures(settings)
    except StudyInvalid as refused:  # an optional part of the installation that is not there
        print(f"  not run: {refused.sentence}")


def line_of(figure: Figure) -> str:
    """One line: where, ours, printed, verdict."""
    ours = f"{figure.mean:.4g}" + (f" ({figure.spread:.2g})" if len(figure.ours) > 1 else "")
    if figure.printed is None:
        told = "-"
    else:
        low, high = figure.printed
        told = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    return f"  {figure.where:58} {ours:>18} {told:>18}  {figure.verdict}"


def state_of(item: Item, figures: list[Figure], settings: Settings) -> str:
    """What became of an item, in words."""
    if item.figures is None:
        return "not rerun"
    if item.slow and settings.quick:
        return "not run: left out by --quick"
    if not figures:
        return NOT_AT_HAND
    counted = Counter(figure.verdict for figure in figures)
    return f"run: {', '.join(f'{count} {verdict}' for verdict, count in counted.items())}"
