"""A: what is charged, against a second accountant that shares no code with the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from mpc_protocols.functionality import Event
from runner.review.audit import second_accountant
from runner.review.audit.check import Check, Finding, Group, Plot, Verdict, judged
from runner.review.audit.subjects.questions import Asked, every_kind
from runner.review.audit.subjects.subject import Subject
from runner.review.audit.subjects.whole_run import not_run, whole_run
from synth.budget import accounting

SIGMA2 = Fraction(25, 4)
ROUNDING = 1e-7
"""What the second accountant's floating point may be off by."""
SLACK = 1.02
"""A rho may exceed the numerical one by the grid's part of a selection's range, and no more."""


def moves(subject: Subject) -> int:
    """Cells of a marginal that one changed row moves."""
    return 2 if subject.study.privacy.adjacency == "replace" else 1


def _mismatch(asked: Sequence[Asked], events: Sequence[Event]) -> str | None:
    """How the events on record differ from what was opened, in words."""
    if len(events) != len(asked):
        return f"{len(asked)} releases were opened and {len(events)} are on record"
    for number, (release, event) in enumerate(zip(asked, events, strict=True)):
        if event.what != release.what:
            return f"release {number} was a {release.what} and is on record as {event.what}"
        if release.what == "select":
            if float(str(event.detail["epsilon"])) > float(release.epsilon):
                return f"pick {number} costs more than was asked for"
            continue
        texts = event.detail["sigma2"]
        found = [texts] * len(release.sigma2) if isinstance(texts, str) else list(texts)  # type: ignore[call-overload]
        if [Fraction(text) for text in found] != list(release.sigma2):
            return f"release {number} is on record with noise other than was asked for"
        if tuple(map(tuple, event.detail.get("cliques", ()))) != release.cliques:  # type: ignore[call-overload]
            return f"release {number} is on record with marginals other than were opened"
    return None


def every_release_is_charged(subject: Subject) -> Finding:
    """Ask all kinds of questions; compare each party's record with what was opened, and each charge with the
    divergence."""
    problems, charged, unit = [], [], subject.study.privacy.unit.rows
    for name, arena in subject.arenas.items():
        tables = subject.tables(arena.parties)
        asked: list[Asked] = []
        ran = arena.run(
            lambda oracle, asked=asked: asked.extend(every_kind(oracle, list(subject.sizes), SIGMA2, 100)[0]),  # type: ignore[misc]
            tables,
            subject.coins("accounting"),
        )
        for party, events in enumerate(ran.events):
            if (difference := _mismatch(asked, events)) is not None:
                problems.append(f"{name}, party {party}: {difference}.")
        for event in ran.events[0]:
            least = second_accountant.rho(second_accountant.as_json(event), moves(subject), unit)
            charged.append(float(event.rho) / least)
            if float(event.rho) < least * (1 - ROUNDING):
                problems.append(
                    f"{name}: a {event.what} is charged rho {float(event.rho):.6g}, and its divergence is "
                    f"{least:.6g}."
                )
            elif float(event.rho) > least * SLACK + 1e-9 and event.what != "select":
                problems.append(
                    f"{name}: a {event.what} is charged {float(event.rho) / least:.3f} times its divergence."
                )
    return judged(
        problems,
        f"{len(charged)} releases: each is on record at every computing party with its marginals and noise, and is charged "
        f"{min(charged, default=1):.4f} to {max(charged, default=1):.4f} times the divergence that the second accountant finds.",
        {
            "releases": len(charged),
            "least_ratio": min(charged, default=None),
            "most_ratio": max(charged, default=None),
        },
    )


def a_run_keeps_its_promise(subject: Subject) -> Finding:
    """Run the study's algorithm in the clear on the subject's rows, and convert what it was charged a second
    time."""
    study = subject.study
    if (reason := not_run(study)) is not None:
        return Finding(Verdict.UNINFORMATIVE, reason)
    ran = whole_run(subject, subject.rows)
    plan, events, privacy = ran.plan, ran.events, study.privacy
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    beta = float(sum(event.beta for event in events))
    kept_at = second_accountant.countable(epsilon, delta, beta)
    left = delta - (1 + math.exp(min(kept_at, 700.0))) * beta
    spent = float(sum(event.rho for event in events))
    problems = []
    if spent > float(plan.budget.rho_cap) * (1 + ROUNDING):
        problems.append(f"The run spends rho {spent:.6g}, its cap is {float(plan.budget.rho_cap):.6g}.")
    if left <= 0:
        problems.append(f"The samplers take {delta - left:.3g} of delta, which is {delta:.3g}.")
        return judged(problems, "")
    listed = [second_accountant.as_json(event) for event in events]
    found = second_accountant.epsilon(listed, left, moves(subject), privacy.unit.rows)
    if found > kept_at * (1 + ROUNDING):
        problems.append(
            f"The run promises epsilon {epsilon:g}, of which finite precision keeps {kept_at:g}, and has {found:.6g} at delta "
            f"{delta:g}."
        )
    return judged(
        problems,
        f"{len(events)} events of a run of {study.algorithm}: epsilon {found:.4f} by Rényi orders at delta {left:.3g} "
        f"(samplers take the rest of {delta:g}), promised {epsilon:g}.",
        {
            "events": len(events),
            "rho": spent,
            "epsilon_found": found,
            "epsilon_promised": epsilon,
            "beta": beta,
        },
    )


def conversion(subject: Subject) -> Finding:
    """Convert rho to epsilon on a grid of both, by both accountants, and back."""
    problems, ratios = [], []
    curve: list[tuple[float, float]] = []
    for delta in (1e-5, 1e-9, 1e-12):
        for rho in (1e-5, 1e-3, 0.02, 0.1, 0.5, 2.0, 8.0):
            ours, second = accounting.epsilon_of(rho, delta), second_accountant.epsilon_of_rho(rho, delta)
            ratios.append(ours / second)
            if delta == 1e-9:
                curve.append((math.log10(rho), math.log10(ours)))
            if ours < second * (1 - 1e-5) or second_accountant.gaussian_delta(rho, ours) > delta:
                problems.append(
                    f"rho {rho:g} at delta {delta:g} is said to be epsilon {ours:.6g}; it is {second:.6g}."
                )
            if ours > second * 1.001:
                problems.append(
                    f"rho {rho:g} at delta {delta:g} is said to be epsilon {ours:.6g}, more than {second:.6g}."
                )
            back = float(accounting.rho_of(second, delta))
            if back > rho * (1 + 1e-4):
                problems.append(
                    f"Epsilon {second:.6g} at delta {delta:g} is said to allow rho {back:.6g}, more than {rho:g}."
                )
    return judged(
        problems,
        f"{len(ratios)} pairs of rho and delta: epsilon is off the second accountant's by "
        f"{max(abs(ratio - 1) for ratio in ratios):.1e} at most, and back; the exact delta of a Gaussian mechanism of that "
        "rho is never above.",
        {"pairs": len(ratios), "least_ratio": min(ratios), "most_ratio": max(ratios)},
        Plot("Epsilon of rho at delta 1e-9", "lg rho", "lg epsilon", {"as charged": tuple(curve)}),
    )


GROUP = Group(
    "A",
    "Accounting",
    "Does what is charged cover what is opened?",
    (
        Check(
            "events",
            "Every release has one event at every computing party, and is charged at least its Rényi divergence.",
            "exact",
            "A release without an event, an event with other noise or marginals, a charge below the divergence of worst "
            "neighbours.",
            every_release_is_charged,
        ),
        Check(
            "promise",
            "The events of a whole run stay within the study's epsilon and delta.",
            "exact",
            "A run that spends more than it promises, by an accountant that shares no code with the first.",
            a_run_keeps_its_promise,
        ),
        Check(
            "conversion",
            "Rho converts to (epsilon, delta) on the safe side, and tightly.",
            "exact",
            "An epsilon that is too small by 0.001 % or too large by 0.1 %, at 21 pairs of rho and delta.",
            conversion,
        ),
    ),
)
