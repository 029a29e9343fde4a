"""What a run has spent: recomputed event by event, against the cap and the promise, the parties' journals and
their ledgers.

Rho is computed a second time by the audit's accountant (`runner.review.audit.second_accountant`), which
shares nothing with the one that the run was charged by: divergences are summed number by number. What was
promised is what the study that was agreed says; where its algorithm as configured has no claim, an event may
say that none covers it, and there is nothing to recompute.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import BudgetRefused, DataRefused, UsageError
from parties.budget.journal import read
from parties.budget.ledger import Ledger
from runner.check.finding import Finding, fine, note, problem
from runner.results.finished_run import agreed_study
from runner.results.outdir import JOURNALS, RUN
from runner.review.audit import second_accountant
from runner.review.verification.place import Place
from runner.review.verification.planned import owned_of, planned
from runner.study import Study
from runner.study.trained import training_of
from synth.algorithm import ALGORITHMS
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event

ROUNDING = 1e-9


def spending(places: Sequence[Place], ledgers: Sequence[Path], own: Study | None = None) -> Iterator[Finding]:
    """All of it. own: the study that the auditor holds. Raises `UsageError` for what cannot be read."""
    try:
        yield from charged(places[0], own)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise UsageError(
            f"{places[0].directory / RUN} states no events; it is damaged or of another version."
        ) from None
    yield from journals(places)
    for ledger in ledgers:
        yield booked(places[0], ledger)


def charged(place: Place, own: Study | None = None) -> Iterator[Finding]:
    """Each event's rho, their sum, the cap, and what it comes to in the study's epsilon and delta. own: as
    `spending`'s."""
    privacy, file = place.run["privacy"], place.directory / RUN
    study = agreed_study(place.run, file)
    yield from _promised(privacy, study, file)
    open_handed = [event for event in privacy["events"] if event.get("claim") == "none"]
    events = _completed(
        place.run, study, own, [event for event in privacy["events"] if event.get("claim") != "none"]
    )
    if open_handed and ALGORITHMS[study.algorithm].sound(study.config):
        yield problem(
            BudgetRefused(
                f"{file}: {len(open_handed)} releases say that no privacy claim covers them, and {study.algorithm} as agreed "
                "covers all; they are not of such a run."
            )
        )
    elif open_handed:
        yield note(f"{len(open_handed)} releases have no privacy claim: there is nothing to recompute")
    moves, rows = (2 if study.privacy.adjacency == "replace" else 1), study.privacy.unit.rows
    for number, event in enumerate(events, 1):
        if second_accountant.has_no_rho(event):
            continue  # it counts below, in what all come to
        least = second_accountant.rho(event, moves, rows)
        if not event["rho"] >= least * (1 - ROUNDING):
            yield problem(
                BudgetRefused(
                    f"{file}: release {number}, a {event['what']}, is charged rho {event['rho']:.6g} and costs {least:.6g}."
                )
            )
    spent = sum(event["rho"] for event in events)
    if not spent <= privacy["rho"] * (1 + ROUNDING):
        yield problem(
            BudgetRefused(f"{file}: the events come to rho {spent:.6g}, and the cap is {privacy['rho']:.6g}.")
        )
    if not privacy["rho_spent"] >= spent * (1 - ROUNDING):
        yield problem(
            BudgetRefused(
                f"{file} states rho_spent {privacy['rho_spent']:.6g}, and its events come to {spent:.6g}."
            )
        )
    epsilon, delta = float(study.privacy.epsilon), float(study.privacy.delta)
    if not 0 <= privacy["beta"] < math.inf:
        raise ValueError("A statistical distance is finite and not below 0.")
    kept_at = second_accountant.countable(epsilon, delta, privacy["beta"])
    left = delta - (1 + math.exp(min(kept_at, 700.0))) * privacy["beta"]
    found = second_accountant.epsilon(events, left, moves, rows) if left > 0 and events else 0.0
    if left <= 0:
        found = math.inf
    if not found <= kept_at * (1 + ROUNDING):
        finite = f", of which finite precision keeps {kept_at:g}" if kept_at < epsilon else ""
        yield problem(
            BudgetRefused(
                f"{file}: the study promises epsilon {epsilon:g} at delta {delta:g}{finite}, and the events come to {found:.6g}."
            )
        )
    else:
        yield fine(
            f"{len(events)} events, recomputed one by one: rho {spent:.6g} of {privacy['rho']:.6g}, epsilon "
            f"{rounded_up(found):g} of {epsilon:g} at delta {delta:g}"
        )


def _completed(
    run: Mapping[str, Any], study: Study, own: Study | None, events: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Events, each with what the study's plan says of its noise where the event does not."""
    algorithm = ALGORITHMS[study.algorithm]
    if not events or training_of(study) is not None:
        return list(events)
    plan = planned(study, run, own, owned_of(study, run))
    return list(events) if plan is None else [algorithm.completed(plan, event) for event in events]


def _promised(privacy: Mapping[str, Any], study: Study, file: Path) -> Iterator[Finding]:
    """Whether run.json's own account states the promise of the study that was agreed."""
    promise = study.privacy
    agreed = {
        "epsilon": float(promise.epsilon),
        "delta": float(promise.delta),
        "adjacency": promise.adjacency,
        "unit": promise.unit.words,
        "max_rows": promise.max_rows,
    }
    for name, value in agreed.items():
        if privacy[name] != value:
            yield problem(
                BudgetRefused(
                    f"{file} states {name} {privacy[name]}, and the study that was agreed says {value}; the study's counts."
                )
            )


def journals(places: Sequence[Place]) -> Iterator[Finding]:
    """Each computing party's record of what may have been opened, against what run.json says was."""
    run, wrong = places[0].run, False
    computing = [party["name"] for party in run["parties"] if party["role"] == "compute"]
    seen: set[str] = set()
    told = [_key(event["what"], event["rho"]) for event in run["privacy"]["events"]]
    folders = [folder for place in places for folder in (place, *place.parties)]
    for path in [path for place in folders for path in sorted(place.directory.glob(JOURNALS))]:
        try:
            record = read(path)
        except DataRefused as error:
            yield problem(error)
            wrong = True
            continue
        if record.header.session.hex() != run["session"]:
            continue  # an earlier run's
        seen.add(record.header.party)
        known = [_key(release.event.what, float(release.event.rho)) for release in record.releases]
        if known != told:
            wrong = True
            yield problem(
                BudgetRefused(
                    f"{path} has {len(known)} releases on record that are not the {len(told)} of {RUN}."
                )
            )
        elif not math.isclose(
            beta := float(sum(release.event.beta for release in record.releases)), run["privacy"]["beta"]
        ):
            wrong = True
            yield problem(
                BudgetRefused(
                    f"{path}: the releases have statistical distance {beta:.3g}, and {RUN} states {run['privacy']['beta']:.3g}."
                )
            )
        elif record.code != 0:
            yield note(f"{path} does not say that the run ended well")
    if absent := [name for name in computing if name not in seen]:
        yield note(f"no journal of {', '.join(absent)} for this run is here")
    if seen and not wrong:
        yield fine(
            f"{len(seen)} journals hold the same releases"
            if len(seen) > 1
            else f"1 journal holds the releases of {RUN}"
        )


def booked(place: Place, ledger: Path) -> Finding:
    """A custodian's ledger: the run is there, and charged for what was released."""
    if not ledger.is_file():
        raise UsageError(f"{ledger} does not exist; name a ledger that the run was charged to.")
    run = place.run
    told = sorted(_key(event["what"], event["rho"]) for event in run["privacy"]["events"])
    runs = [entry for entry in Ledger(ledger).entries() if entry.reservation.digest == run["digest"]]
    if not runs:
        return problem(BudgetRefused(f"{ledger} has no run of this study on record."))
    for entry in runs:
        if entry.state == "settled" and sorted(_released(begun.event for begun in entry.events)) == told:
            return fine(f"{ledger}: charged to {entry.reservation.dataset}, rho {float(entry.spent.rho):.6g}")
    return problem(
        BudgetRefused(
            f"{ledger} has {len(runs)} runs of this study on record, and none with the releases of this one."
        )
    )


def _released(events: Iterator[Event]) -> list[str]:
    """Without what an alignment has told the owners, which is on top of the study's promise."""
    return [_key(event.what, float(event.rho)) for event in events if not event.what.startswith("alignment")]


def _key(what: str, rho: float) -> str:
    return json.dumps([what, rho])
