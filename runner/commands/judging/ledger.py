"""`ledger show`: what this custodian's data has spent."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpc_protocols.errors import BudgetRefused, DataRefused, UsageError
from mpc_protocols.process.foreign_text import printable
from mpc_protocols.process.installation import program
from parties.budget.aborted import ABORTED
from parties.budget.account import Account, Cap
from parties.budget.ledger import Ledger
from parties.budget.ledger_file import NoLedger
from parties.budget.spending import STARTED
from runner.results.table.csv_fields import row_writer
from runner.results.table.formulas import harmless
from runner.study import private_file
from runner.study.declared.table import nearest
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from parties.budget.spending import Entry, Refusal

NO_FILE = "no cap is known here: name the private file that sets one with --private"
UNCAPPED = (
    "no cap is set: this ledger only counts ([ledger] cap_epsilon and cap_delta in the private file set one)"
)


def run_check(arguments: argparse.Namespace) -> None:
    """Run `ledger check`. Raises `DataRefused` for a file that is not whole, `BudgetRefused` for a cap that
    is passed."""
    settings = private_file.load(arguments.private).ledger
    ledger = Ledger(arguments.ledger or settings.file)
    with _files_to_judge():
        if not ledger.exists():
            raise UsageError(
                f"{ledger.path} does not exist; a ledger is written by the first run with its data."
            )
        if not ledger.is_whole():
            raise DataRefused(
                f"{ledger.path} is not a whole ledger; restore it from a backup before the next run."
            )
        datasets = _datasets(ledger, settings, None, None)
    print(f"ok       {ledger.path}: whole, {len(datasets)} data sets")
    for dataset in datasets:
        name, left = (
            printable(dataset["dataset"], line=True),
            sum(one["state"] != "settled" for one in dataset["runs"]),
        )
        if left:
            print(f"note     {name}: {left} runs are open; all that was reserved for them counts")
        if dataset["cap_epsilon"] is None:
            continue
        used = dataset["cap_used"]
        if used is None or used > dataset["cap_epsilon"] * (1 + 1e-9):
            raise BudgetRefused(
                f"{name}: epsilon {_text(used)} is taken of a cap of {dataset['cap_epsilon']:g}; no further run is admitted."
            )
        print(f"ok       {name}: epsilon {rounded_up(used):g} of {dataset['cap_epsilon']:g} is taken")


@contextmanager
def _files_to_judge() -> Iterator[None]:
    """An empty or cut file is what the command was asked about, as a table would be: `DataRefused`."""
    try:
        yield
    except NoLedger as error:
        raise DataRefused(error.sentence) from None


def run(arguments: argparse.Namespace) -> None:
    """Run `ledger show`."""
    settings = private_file.load(arguments.private).ledger
    if arguments.delta is not None and not 0 < arguments.delta < 1:
        raise UsageError(f"--delta must lie between 0 and 1, got {arguments.delta:g}.")
    ledger = Ledger(arguments.ledger or settings.file)
    dataset = arguments.dataset or settings.dataset
    with _files_to_judge():
        datasets = _datasets(ledger, settings, dataset, arguments.delta) if ledger.exists() else None
    if datasets is None:
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
    if arguments.dataset is not None and not datasets:
        names = {one["dataset"] for one in _datasets(ledger, settings, None, None)}
        raise UsageError(
            f"{ledger.path} has no data set {printable(arguments.dataset, line=True)!r}{nearest(arguments.dataset, names)}; "
            f"`{program()} ledger show` lists those that it has."
        )
    if arguments.json:
        print(json.dumps({"ledger": str(ledger.path), "datasets": datasets}))
    elif arguments.csv:
        _print_csv(datasets)
    elif len(datasets) > 1 and not arguments.all:
        _print_lines(ledger.path, datasets)
    else:
        _print(ledger.path, datasets, NO_FILE if arguments.private is None else UNCAPPED)


def _datasets(
    ledger: Ledger, settings: private_file.LedgerSettings, dataset: str | None, delta: float | None
) -> list[dict[str, Any]]:
    """All that is on record, by data set: the private file's first, then those that were used last."""
    entries, refusals = ledger.entries(dataset), ledger.refusals(dataset)
    names = dict.fromkeys(
        [entry.reservation.dataset for entry in entries] + [refusal.proposal.dataset for refusal in refusals]
    )
    made = [
        _dataset(
            name,
            [entry for entry in entries if entry.reservation.dataset == name],
            [refusal for refusal in refusals if refusal.proposal.dataset == name],
            settings,
            delta,
        )
        for name in names
    ]
    return sorted(made, key=lambda one: (one["dataset"] != settings.dataset, -_last(one)))


def _last(dataset: Mapping[str, Any]) -> float:
    return max((float(one["time"]) for one in (*dataset["runs"], *dataset["refusals"])), default=0.0)


def _print_lines(path: Path, datasets: Sequence[dict[str, Any]]) -> None:
    """A line for each data set."""
    print(f"ledger: {path}")
    rows = [
        (
            one["dataset"],
            str(len(one["runs"])),
            str(len(one["refusals"])),
            "no sum" if one["uncounted"] else "0" if one["notion"] is None else _text(one["epsilon"]),
            "-" if one["delta"] is None else f"{one['delta']:.4g}",
            "-" if one["cap_epsilon"] is None else f"{_text(one['cap_used'])} of {one['cap_epsilon']:g}",
            time.strftime("%Y-%m-%d %H:%M", time.localtime(_last(one))),
        )
        for one in datasets
    ]
    _table(("data set", "runs", "refused", "epsilon", "at delta", "of the cap", "last"), rows)
    print("each run of one: --dataset NAME; of all: --all")


CSV = (
    *("dataset", "time", "study", "run", "with", "unit", "adjacency", "claim", "epsilon", "delta"),
    *("epsilon_spent", "delta_spent", "rho", "releases", "state"),
)
"""Names of the CSV's fields; those of a run of `--json`, and the data set's."""


def _print_csv(datasets: Sequence[dict[str, Any]]) -> None:
    """A line for each run, for who keeps records of processing."""
    writer = row_writer(sys.stdout)
    writer.writerow(CSV)
    for dataset in datasets:
        for facts in dataset["runs"]:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(facts["time"]))
            told = {**facts, "dataset": dataset["dataset"], "time": when, "with": " ".join(facts["with"])}
            cells = [told[key] for key in CSV]
            writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])


def _dataset(
    name: str,
    entries: Sequence[Entry],
    refusals: Sequence[Refusal],
    settings: private_file.LedgerSettings,
    asked_delta: float | None,
) -> dict[str, Any]:
    """All that is on record about one data set."""
    own = name == (settings.dataset or name)  # the private file's cap is meant for this one
    cap = settings.cap if own else Cap()
    account = Account.of_entries(entries, cap)
    spent = account.spent
    least = min((Fraction(entry.reservation.delta) for entry in entries), default=None)
    delta = asked_delta or cap.delta or (None if least is None else float(least + spent.size_delta))
    return {
        "dataset": name,
        "notion": None
        if account.notion is None
        else {"unit": account.notion.unit.words, "adjacency": account.notion.adjacency},
        "epsilon": None if delta is None else _finite(account.epsilon(delta)),
        "delta": delta,
        "rho": None if account.uncounted else float(spent.rho),
        "beta": None if account.uncounted else float(spent.beta),
        "size_rho": float(spent.size_rho),
        "size_delta": float(spent.size_delta),
        "uncounted": len(account.uncounted),
        "cap_epsilon": cap.epsilon,
        "cap_delta": cap.delta,
        "cap_used": _finite(account.epsilon_by_rho(cap.delta)) if cap.delta else None,
        "runs": [_facts(entry, account) for entry in entries],
        "refusals": [_refusal(refusal) for refusal in refusals],
    }


def _facts(entry: Entry, account: Account) -> dict[str, Any]:
    asked, spent = entry.reservation, entry.spent
    unclaimed = [
        str(begun.event.detail["of"])
        for begun in entry.events
        if begun.event.detail.get("claim") == "none" and "of" in begun.event.detail
    ]
    delta, steps = Fraction(asked.delta) + spent.size_delta, account.steps(asked.notion)
    return {
        "time": entry.time,
        "study": asked.study,
        "run": asked.run,
        "with": list(asked.counterparties),
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "adjacency": asked.notion.adjacency,
        "unit": asked.notion.unit.words,
        "unit_short": asked.notion.unit.short,
        "counts": None if steps is None else float(entry.times(steps)),
        "state": entry.state,
        "claim": "none" if entry.claimless else "(epsilon, delta)",
        "rho_reserved": float(asked.rho),
        "rho": float(spent.rho),
        "releases": sum(begun.event.what not in (STARTED, ABORTED) for begun in entry.events),
        "epsilon_spent": _finite(Account.of([entry], Cap()).epsilon(delta)),
        "delta_spent": float(delta),
        "unclaimed": unclaimed,
        "aligns": asked.aligns,
        "size_rho": float(spent.size_rho),
        "size_delta": float(spent.size_delta),
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    asked = refusal.proposal
    return {
        "time": refusal.time,
        "study": asked.study,
        "digest": asked.digest,
        "with": list(asked.counterparties),
        "code": refusal.code,
        "adjacency": asked.notion.adjacency,
        "unit": asked.notion.unit.words,
        "unit_short": asked.notion.unit.short,
        "max_rows": asked.max_rows,
    }


def _print(path: Path, datasets: Sequence[dict[str, Any]], uncapped: str) -> None:
    print(f"ledger: {path}")
    if not datasets:
        print("no run yet, nothing spent")
    for dataset in datasets:
        print(f"\ndata set: {printable(dataset['dataset'], line=True)}")
        if dataset["runs"]:
            print(_sum(dataset, uncapped))
            if open_handed := sum(facts["claim"] == "none" for facts in dataset["runs"]):
                print(
                    f"no claim: {open_handed} of these released what no epsilon bounds (research): no sum holds"
                )
            header = (
                "when",
                "study",
                "with",
                "unit",
                "adjacency",
                "claim",
                "spent",
                "rho",
                "counts",
                "releases",
                "state",
            )
            _table(header, [_row(facts) for facts in dataset["runs"]])
            for facts in dataset["runs"]:
                if facts["unclaimed"]:
                    open_to_other = " and ".join(facts["unclaimed"])
                    study = printable(facts["study"], line=True)
                    print(
                        f"no privacy claim: in the run of {study} with {', '.join(facts['with'])} the {open_to_other} "
                        "were open to the other owner; no epsilon of this account covers that"
                    )
        if dataset["refusals"]:
            count = len(dataset["refusals"])
            print(f"refused before anything was sent: {count} stud{'ies' if count != 1 else 'y'}")
            columns = ("when", "study", "with", "unit", "adjacency", "max_rows", "code", "digest")
            _table(columns, [_refused(facts) for facts in dataset["refusals"]])


def _sum(dataset: Mapping[str, Any], uncapped: str) -> str:
    """What all runs come to, for which notion, and what the cap says to it."""
    cap = uncapped
    if dataset["cap_epsilon"] is not None:
        cap = (
            f"cap: epsilon {dataset['cap_epsilon']:g} at delta {dataset['cap_delta']:g}, of which "
            f"{_text(dataset['cap_used'])} is taken (counted by rho)"
        )
    runs = f"{len(dataset['runs'])} run{'s' if len(dataset['runs']) != 1 else ''}"
    if dataset["notion"] is None:
        return f"spent: nothing in {runs}; {cap}"
    notion = f"for {dataset['notion']['unit']} ({dataset['notion']['adjacency']})"
    if dataset["uncounted"]:
        return (
            f"spent: no sum holds {notion}: {dataset['uncounted']} of {runs} cannot be counted for it (name a unit and an "
            f"adjacency that cover all with [ledger] cap_unit and cap_adjacency); {cap}"
        )
    sizes = (
        f", sizes of alignments included: rho {dataset['size_rho']:.4g}, delta {dataset['size_delta']:.4g}"
        if dataset["size_delta"]
        else ""
    )
    return (
        f"spent: epsilon {_text(dataset['epsilon'])} at delta {dataset['delta']:.4g} (rho {dataset['rho']:.4g}{sizes}) in "
        f"{runs}, {notion}; {cap}"
    )


def _finite(epsilon: float) -> float | None:
    """For JSON, which has no infinity."""
    return epsilon if math.isfinite(epsilon) else None


def _text(epsilon: float | None) -> str:
    return "above any number" if epsilon is None else f"{rounded_up(epsilon):g}"


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    return (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["time"])),
        facts["study"],
        ", ".join(facts["with"]),
        facts["unit_short"],
        facts["adjacency"],
        "none" if facts["claim"] == "none" else f"({facts['epsilon']:g}, {facts['delta']:g})",
        f"({_text(facts['epsilon_spent'])}, {facts['delta_spent']:.4g})",
        f"{facts['rho']:.4g}",
        "no" if facts["counts"] is None else f"x {facts['counts']:.4g}",
        str(facts["releases"]),
        "closed" if facts["state"] == "settled" else "open: the whole reservation counts",
    )


def _refused(facts: dict[str, Any]) -> tuple[str, ...]:
    return (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["time"])),
        facts["study"],
        ", ".join(facts["with"]),
        facts["unit_short"],
        facts["adjacency"],
        f"{facts['max_rows']:,}",
        str(facts["code"]),
        facts["digest"][:12],
    )


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """With rules on a terminal, plain columns in a pipe."""
    rows = [tuple(printable(text, line=True) for text in row) for row in rows]
    if sys.stdout.isatty():
        table = Table(*header)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
