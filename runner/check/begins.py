"""What `check` says of an earlier release, or of public rows, that a run begins from
(`docs/howto/next-release.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from runner.check.finding import Finding, fine, note
from runner.study.sections.prior import DISJOINT
from synth.budget.accounting import epsilon_beside
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from parties.budget.spending import Entry
    from runner.study import Study
    from runner.study.sections.prior import StudyPrior
    from synth.plan import Plan


def begins(study: Study, before: StudyPrior, plan: Plan) -> Iterator[Finding]:
    """What the run begins from, and what that means for who is in both."""
    of = "public rows" if before.name is None else f"the release of {before.name}, session {before.run}"
    yield fine(
        f"it begins from {of}, of about {round(before.content.rows):,} rows; SHA-256 {before.digest[:16]}.., the same at all"
    )
    if before.run is None:
        return
    if not all(party.fingerprint for party in study.parties):
        yield note(
            "this study does not pin the certificates of all parties: nobody has attested where that release is from, nor what "
            "its people have spent; have it from who made it, or pin all of them, who must then have signed it"
        )
    delta = float(study.privacy.delta)
    rho, beta = before.together(float(plan.budget.rho_cap)), before.beta_together(float(plan.budget.beta_cap))
    epsilon = f"{rounded_up(epsilon_beside(Fraction(rho), delta, Fraction(beta))):g}"
    if before.people == DISJOINT:
        counted = "ledgers count so" if before.apart else "ledgers add both up, for nobody has attested it"
        yield note(
            f"the study states that nobody in this run was in that release: then a person has spent epsilon {epsilon} at "
            f"delta {delta:g} at most, and {counted}; do not take part if you know of somebody who was"
        )
    else:
        yield fine(f"who is in both has spent epsilon {epsilon} at delta {delta:g} together")


def on_record(party: str, before: StudyPrior, entries: Sequence[Entry], dataset: str) -> Iterator[Finding]:
    """Whether the release stands in the party's ledger under the data set's name of now: only what does is
    added up.

    entries: of all data sets.
    """
    if before.run is None:
        return
    names = {entry.reservation.dataset for entry in entries if entry.reservation.run == before.run}
    if not names:
        yield note(
            f"{party}: the release that this run begins from is not in your ledger; what your people have spent there, if they "
            "were in it, is not counted"
        )
    elif dataset not in names:
        yield note(
            f"{party}: your ledger has the release that this run begins from under the data set {min(names)}, and this run under "
            f"{dataset}: they are not added up; name one data set in your private file if the people are the same"
        )
