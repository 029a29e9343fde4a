"""`bench utility --florist`: FLORIST's tables 3, 8 and 5 on a public table, beside the paper's figures.

    cosynth bench utility --florist --data DIR                         adult-vfl, income; shares 0.1, 0.5, 0.9; one seed
    cosynth bench utility --florist --data DIR --full --json FILE --html FILE    three seeds, ten draws, as printed

Tables 3 and 8: what an owner lacks of the rows (alpha = beta), and how much the AUC changes against training
on rows that both hold. Table 5: labels by the model's probability, so many draws a visit, at beta = 0.5.
Means with standard errors over seeds. The paper's data are others (Criteo, Avazu): signs and order compare,
sizes do not. Data must be public; PyTorch is needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from collections.abc import Sequence
from typing import IO, Any, Final

from mpc_protocols.errors import StudyInvalid, UsageError
from mpc_protocols.process.installation import pip_install
from runner.bench.output import files
from runner.bench.parameters import number
from runner.bench.research.florist.page import page
from runner.bench.research.florist.printed import CHANGE, DRAWN, DRAWN_SHARE
from runner.bench.research.florist.runs import METHODS, PARTIAL, Split, by_drawn_labels, trained
from runner.bench.utility.options import parser, spread
from runner.bench.utility.tables import chosen

SHARES: Final = "0.1,0.5,0.9"
DRAWS, ALL_DRAWS = (1, 10), tuple(range(1, 11))
SEEDS, FULL_SEEDS = 1, 3
_WIDTH = 26
Line = dict[str, Any]


def measure(arguments: Sequence[str]) -> None:
    """Run and print. Raises `UsageError`; `StudyInvalid` without PyTorch."""
    options = _parser().parse_args(arguments)
    shares = [number(text) for text in options.shares.split(",")]
    if not all(share is not None and 0 < share < 1 for share in shares):
        raise UsageError(f"--shares takes numbers between 0 and 1, got {options.shares}.")
    tables, absent = chosen(options.data, [options.table])
    if absent:
        print(f"not in {options.data}, left out: {', '.join(absent)}")
        return
    if importlib.util.find_spec("torch") is None:
        raise StudyInvalid(f"FLORIST trains with PyTorch, which is not installed; {pip_install(['torch'])}.")
    seeds = range(options.seeds or (FULL_SEEDS if options.full else SEEDS))
    draws = ALL_DRAWS if options.full else DRAWS
    settings = {"epochs": options.epochs, "batch": options.batch}
    with files.opened(options) as file:
        lines = [
            *_changes(tables[0], options.label, [share or 0.0 for share in shares], seeds, settings, file),
            *_table_5(tables[0], options.label, draws, seeds, settings, file),
        ]
    shown = sections(lines)
    for section in shown:
        print(f"\n{section['title']}, {tables[0].name}, {len(seeds)} seeds")
        for row in [section["head"], *section["rows"]]:
            print("".join(f"{cell:>{_WIDTH if place else 10}}" for place, cell in enumerate(row)))
    if options.html:
        options.html.write_text(page(shown, tables[0].name, len(seeds), settings), encoding="utf-8")


def _changes(
    table: Any,
    label: str,
    shares: Sequence[float],
    seeds: Sequence[int],
    settings: dict[str, int],
    file: IO[str],
) -> list[Line]:
    """Tables 3 and 8."""
    found = []
    for seed in seeds:
        whole = trained(Split.of(table, label, 0.0, 0.0, seed), (PARTIAL,), seed, **settings)
        found.append(_noted(file, table.name, 0.0, "full", seed, whole[PARTIAL]))
        for share in shares:
            cells = trained(Split.of(table, label, share, share, seed), METHODS, seed, **settings)
            found += [_noted(file, table.name, share, name, seed, of) for name, of in cells.items()]
    return found


def _table_5(
    table: Any,
    label: str,
    draws: Sequence[int],
    seeds: Sequence[int],
    settings: dict[str, int],
    file: IO[str],
) -> list[Line]:
    """Table 5."""
    found = []
    for seed in seeds:
        split = Split.of(table, label, 0.0, DRAWN_SHARE, seed)
        for count in draws:
            result = by_drawn_labels(split, count, seed, **settings)
            found.append(_noted(file, table.name, DRAWN_SHARE, f"draws={count}", seed, result))
    return found


def _noted(file: IO[str], table: str, share: float, method: str, seed: int, result: Any) -> Line:
    line = {
        "bench": "utility",
        "training": method,
        "table": table,
        "share": share,
        "seed": seed,
        "rows": result.rows,
        "cpu_s": result.cpu_s,
        **result.scores,
    }
    file.write(json.dumps(line) + "\n")
    file.flush()
    return line


def sections(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """What is shown: tables of text with a title, a head and rows. lines: as they are written."""

    def of(method: str, metric: str, share: float | None = None) -> list[float]:
        return [
            line[metric]
            for line in lines
            if line["training"] == method and share in (None, line["share"]) and metric in line
        ]

    shares = sorted({line["share"] for line in lines if line["training"] == PARTIAL})
    quality, change = [], []
    for share in shares:
        cells = [f"{spread(of(name, 'auc', share))} / {_mean(of(name, 'ace', share))}" for name in METHODS]
        quality.append([f"{share:g}", *cells])
        partial = of(PARTIAL, "auc", share)
        rows = [f"{share:g}"]
        for name in METHODS[1:]:
            pairs = zip(of(name, "auc", share), partial, strict=True)
            rows.append(spread([100 * (auc / base - 1) for auc, base in pairs], 2))
        rows += [f"{CHANGE[data].get(share, '-')}" for data in CHANGE]
        change.append(rows)
    full = f"AUC / ACE; all rows: {spread(of('full', 'auc'))} / {_mean(of('full', 'ace'))}"
    by_draws = [
        [
            f"{count}",
            spread(of(f"draws={count}", "auc")),
            spread(of(f"draws={count}", "attack")),
            f"{auc:.4f}",
            f"{attack:.4f}",
        ]
        for count, (auc, attack) in DRAWN.items()
        if of(f"draws={count}", "auc")
    ]
    return [
        {"title": full, "head": ["lacking", *METHODS], "rows": quality},
        {
            "title": "Tables 3 and 8: change of the AUC against partial, %",
            "head": ["lacking", *METHODS[1:], *(f"tr, printed: {data}" for data in CHANGE)],
            "rows": change,
        },
        {
            "title": "Table 5: labels by the model's probability, half of them invented",
            "head": ["draws", "AUC", "attack", "AUC printed: Avazu", "attack printed"],
            "rows": by_draws,
        },
    ]


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f}" if values else "-"


def _parser() -> argparse.ArgumentParser:
    made = parser(__doc__, page="a page of it, self-contained")
    made.add_argument("--florist", action="store_true", required=True, help="FLORIST's own tables")
    made.add_argument(
        "--table",
        metavar="NAME",
        default="adult-vfl",
        help="NAME, or NAME@ROWS for some of its rows (default: %(default)s)",
    )
    made.add_argument(
        "--label", metavar="COLUMN", default="income", help="of two values (default: %(default)s)"
    )
    made.add_argument("--shares", metavar="N,..", default=SHARES, help="alpha = beta (default: %(default)s)")
    made.add_argument(
        "--full",
        action="store_true",
        help=f"{FULL_SEEDS} seeds and 1 to 10 draws, not {SEEDS} and {' and '.join(map(str, DRAWS))}",
    )
    made.add_argument("--seeds", metavar="N", type=int, help="runs of each")
    made.add_argument("--epochs", metavar="N", type=int, default=4, help="default: %(default)s")
    made.add_argument("--batch", metavar="N", type=int, default=512, help="default: %(default)s")
    return made
