"""`ledger show`: what this custodian's data has spent."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.study import private_file

if TYPE_CHECKING:
    from parties.budget.spending import Entry
    from runner.commands import Commands

DESCRIPTION = """\
Show the runs that this custodian's data has taken part in and what they spent, together and one by
one. rho adds up over runs; epsilon is what the sum means at one delta: --delta, the cap's, or the
smallest that a run's study claims plus the deltas of announced sizes (which count by rho or by their
own epsilons, whichever is less; in a cap by rho). A run's claim is what its study
promises to recipients; what it spent is at the study's delta plus the run's own sizes, which only the
other owners of an alignment saw. A run that was stopped keeps what it had begun to release.

The ledger is the private file's, else $COSYNTH_LEDGER, else cosynth/ledger.db under the user's data
directory.
"""
NO_FILE = "no cap is known here: name the private file that sets one with --private"
UNCAPPED = (
    "no cap is set: this ledger only counts ([ledger] cap_epsilon and cap_delta in the private file set one)"
)


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "ledger",
        help="what this custodian's data has spent",
        allow_abbrev=False,
        description="The custodian's privacy ledger.",
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    show = command(
        inner,
        "show",
        run,
        help="runs and what they spent",
        description=DESCRIPTION,
        examples="  python -m runner ledger show\n  python -m runner ledger show --private north.toml\n",
    )
    show.add_argument(
        "--private", metavar="FILE", type=Path, help="a private file, whose ledger and cap are meant"
    )
    show.add_argument("--ledger", metavar="FILE", type=Path, help="a ledger file")
    show.add_argument("--dataset", metavar="NAME", help="this population only")
    show.add_argument(
        "--delta",
        metavar="D",
        type=float,
        help="the delta of the epsilon shown (default: the cap's, else the studies')",
    )
    show.add_argument("--json", action="store_true", help="a JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Run `ledger show`."""
    settings = private_file.load(arguments.private).ledger
    if arguments.delta is not None and not 0 < arguments.delta < 1:
        raise UsageError(f"--delta must lie between 0 and 1, got {arguments.delta:g}.")
    from parties.budget.ledger import Ledger
    from parties.budget.spending import epsilon_by_rho, spent_epsilon

    ledger = Ledger(arguments.ledger or settings.file)
    dataset = arguments.dataset or settings.dataset
    if not ledger.path.exists():
        if (arguments.ledger or settings.file) is not None:
            raise UsageError(
                f"{ledger.path} does not exist; a ledger is written by the first run with its data."
            )
        print(
            json.dumps({"ledger": str(ledger.path), "datasets": []})
            if arguments.json
            else f"{ledger.path}: no run yet, nothing spent."
        )
        return
    entries = ledger.entries(dataset)
    names = list(dict.fromkeys(entry.reservation.dataset for entry in entries))
    datasets = []
    for name in names:
        own = [entry for entry in entries if entry.reservation.dataset == name]
        capped = settings.cap_epsilon is not None and name == (settings.dataset or name)
        sizes = sum((entry.spent_size_delta for entry in own), Fraction(0))
        delta = (
            arguments.delta
            or (settings.cap_delta if capped else None)
            or float(min(Fraction(entry.reservation.delta) for entry in own) + sizes)
        )
        epsilon = spent_epsilon(own, delta)
        datasets.append(
            {
                "dataset": name,
                "epsilon": _finite(epsilon),
                "delta": delta,
                "rho": float(sum((entry.spent_rho for entry in own), Fraction(0))),
                "size_rho": float(sum((entry.spent_size_rho for entry in own), Fraction(0))),
                "size_delta": float(sizes),
                "cap_epsilon": settings.cap_epsilon if capped else None,
                "cap_delta": settings.cap_delta if capped else None,
                "cap_used": _finite(epsilon_by_rho(own, settings.cap_delta))
                if capped and settings.cap_delta
                else None,
                "runs": [_facts(entry) for entry in own],
            }
        )
    if arguments.json:
        print(json.dumps({"ledger": str(ledger.path), "datasets": datasets}))
    else:
        _print(ledger.path, datasets, NO_FILE if arguments.private is None else UNCAPPED)


def _facts(entry: Entry) -> dict[str, Any]:
    from parties.budget.spending import spent_epsilon
    from runner.party.alignment import ABORTED, STARTED

    asked, delta = entry.reservation, Fraction(entry.reservation.delta) + entry.spent_size_delta
    return {
        "time": entry.time,
        "study": asked.study,
        "run": asked.run,
        "with": list(asked.counterparties),
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "adjacency": asked.adjacency,
        "unit": asked.unit,
        "state": entry.state,
        "rho_reserved": float(asked.rho),
        "rho": float(entry.spent_rho),
        "releases": sum(begun.event.what not in (STARTED, ABORTED) for begun in entry.events),
        "epsilon_spent": spent_epsilon([entry], delta),
        "delta_spent": float(delta),
        "aligns": asked.aligns,
        "size_rho": float(entry.spent_size_rho),
        "size_delta": float(entry.spent_size_delta),
    }


def _print(path: Path, datasets: Sequence[dict[str, Any]], uncapped: str) -> None:
    print(f"ledger: {path}")
    if not datasets:
        print("no run yet, nothing spent")
    for dataset in datasets:
        print(f"\ndata set: {dataset['dataset']}")
        cap = uncapped
        if dataset["cap_epsilon"] is not None:
            cap = (
                f"cap: epsilon {dataset['cap_epsilon']:g} at delta {dataset['cap_delta']:g}, of which "
                f"{_said(dataset['cap_used'])} is taken (counted by rho)"
            )
        sizes = (
            f", sizes of alignments included: rho {dataset['size_rho']:.4g}, delta {dataset['size_delta']:.4g}"
            if dataset["size_delta"]
            else ""
        )
        print(
            f"spent: epsilon {_said(dataset['epsilon'])} at delta {dataset['delta']:.4g} (rho {dataset['rho']:.4g}{sizes}) in "
            f"{len(dataset['runs'])} run{'s' if len(dataset['runs']) != 1 else ''}; {cap}"
        )
        header = ("when", "study", "with", "claim", "spent", "rho", "releases", "state")
        _table(header, [_row(facts) for facts in dataset["runs"]])


def _finite(epsilon: float) -> float | None:
    """For JSON, which has no infinity."""
    return epsilon if math.isfinite(epsilon) else None


def _said(epsilon: float | None) -> str:
    return "above any number" if epsilon is None else f"{epsilon:.4g}"


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    return (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["time"])),
        facts["study"],
        ", ".join(facts["with"]),
        f"({facts['epsilon']:g}, {facts['delta']:g})",
        f"({facts['epsilon_spent']:.4g}, {facts['delta_spent']:.4g})",
        f"{facts['rho']:.4g}",
        str(facts["releases"]),
        "closed" if facts["state"] == "settled" else "open: the whole reservation counts",
    )


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """With rules on a terminal, plain columns in a pipe."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*header)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
