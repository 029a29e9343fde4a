"""What a run began from, held against the earlier release's folder or the public rows (`verify --prior`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from mpc_protocols.errors import StudiesDiffer, UsageError
from runner.check.finding import Finding, fine, note, problem
from runner.results.finished_run import agreed_study
from runner.results.outdir import RUN
from runner.review.verification.place import Place
from runner.study.sections.prior import ROUNDING, prior_at


def begun_from(place: Place, path: Path | None) -> Iterator[Finding]:
    """Nothing of a run that began from nothing. path: where it lies as the auditor has it. Raises
    `UsageError`."""
    agreed, file = place.run["agreed"].get("prior"), place.directory / RUN
    if agreed is None:
        if path is not None:
            raise UsageError(f"--prior {path}: {file} says that this run began from nothing; leave it out.")
        return
    is_release = "release" in agreed
    if path is None:
        spent = ", and what its people had spent before" if is_release else ""
        yield note(
            f"what this run began from{spent}: its files are not here; name {'its folder' if is_release else 'it'} by --prior"
        )
        return
    study = agreed_study(place.run, file)
    try:
        before = prior_at(
            path, "release" if is_release else "table", agreed["people"], study.domain, study.parties
        )
    except UsageError as error:
        yield problem(StudiesDiffer(f"--prior names {error.sentence}"))
        return
    told = place.run["prior"]
    differing = [name for name, value in before.public().items() if agreed.get(name) != value]
    if is_release:
        own, rho = place.run["privacy"]["beta"], place.run["privacy"]["rho_spent"]
        differing += ["name"] * (told.get("study") != before.name)
        if not differing and not math.isclose(told["rho_together"], before.together(rho), rel_tol=ROUNDING):
            differing.append("rho_together")
        differing += ["runs"] * (tuple(told.get("runs", ())) != before.runs)
        differing += ["beta_together"] * (told.get("beta_together", own) != before.beta_together(own))
    if round(before.content.rows) != told["rows"]:
        differing.append("rows")
    if differing:
        yield problem(
            StudiesDiffer(
                f"{file} says that the run began from another {', '.join(differing)} than {path} has."
            )
        )
        return
    if not is_release:
        yield fine(f"what this run began from is {path}: its digest is as agreed")
        return
    pinned = [party.name for party in study.parties if party.fingerprint]
    signed = (
        "all parties, pinned, have signed it"
        if before.runs
        else f"of the parties, {', '.join(pinned)} are pinned and have signed it"
        if pinned
        else "the study does not pin who must have signed it"
    )
    yield fine(
        f"what this run began from is {path}: its digest, its session and what its people had spent are as agreed; {signed}"
    )
