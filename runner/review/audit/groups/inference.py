"""I: attacks on what is released, beside the most that any attack can do at what was charged.

A release of zCDP rho of which all is Gaussian noise is a Gaussian mechanism of mu = sqrt(2 rho) (Dong, Roth,
Su 2022): no attack that tells whether a target was there has an area under its curve above Phi(mu / sqrt 2).
One above that, beyond chance, is a violation. Below, it is only a number: so each attack must break a build
without noise first, or it says nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, MarginalOracle, StudyFacts, unobserved
from runner.party.synthesis import row_limit, sample
from runner.review.audit import statistics
from runner.review.audit.check import Check, Finding, Group, Plot, Profile, Verdict, judged
from runner.review.audit.subjects.in_memory.arena import SESSION, Codes, clear
from runner.review.audit.subjects.questions import NO_NOISE
from runner.review.audit.subjects.subject import Subject
from runner.review.audit.subjects.whole_run import not_run, whole_run

ALPHA = 2e-8
MU = 1.5
TRIALS = {Profile.QUICK: 600, Profile.DEFAULT: 2000, Profile.DEEP: 20_000}
TARGETS = 1000
BROKEN = 0.99
"""The area that an attack must reach where there is no noise."""


def area(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """The area under the curve: how often a member scores above a stranger, ties half."""
    ordered = np.sort(outside)
    below, up_to = np.searchsorted(ordered, inside, "left"), np.searchsorted(ordered, inside, "right")
    return float((below + up_to).mean() / (2 * len(outside)))


def margin(trials: int) -> float:
    """What an area exceeds its mean by with a chance of at most ALPHA (Hoeffding 1963, for so many pairs)."""
    return math.sqrt(math.log(1 / ALPHA) / (2 * trials))


def ceiling(mu: float) -> float:
    """The largest area that a Gaussian mechanism of this mu leaves to anybody."""
    return statistics.normal_tail(-mu / math.sqrt(2))


def _curve(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    cuts = np.quantile(np.r_[inside, outside], np.linspace(1, 0, 41))
    return tuple((float((outside >= cut).mean()), float((inside >= cut).mean())) for cut in cuts)


def most(mu: float) -> tuple[tuple[float, float], ...]:
    """The curve above which no attack can be."""
    return tuple(
        (p, statistics.normal_tail(-statistics.normal_quantile(p) - mu))
        for p in np.linspace(0.001, 0.999, 60)
    )


def _scores(
    subject: Subject, rows: Codes, target: NDArray[np.int64], sigma2: Fraction, trials: int
) -> tuple[NDArray[np.float64], float]:
    """Of so many releases of these rows: how much the noisy counts speak for the target; and the rho of one
    release.

    The attacker knows all other rows and all public numbers: the likelihood ratio of the counts is linear in
    its score.
    """
    sizes = subject.sizes
    names = list(sizes)
    cliques: list[Clique] = [
        (names[0],),
        (names[1],),
        (names[2],),
        (names[0], names[1]),
        (names[1], names[2]),
    ]
    facts = StudyFacts(sizes, "add-remove", 1, 4096, SESSION)
    places = [
        int(
            np.ravel_multi_index(
                [target[names.index(name)] for name in clique], [sizes[name] for name in clique]
            )
        )
        for clique in cliques
    ]

    def ask(oracle: MarginalOracle) -> list[float]:
        handles = oracle.prepare(cliques)
        return [
            sum(
                float(cells[place])
                for cells, place in zip(oracle.measure(handles, sigma2), places, strict=True)
            )
            for _ in range(trials)
        ]

    found, events = clear(subject.clear, facts, [rows], ask)
    return np.array(found), float(events[0].rho)


def likelihood(subject: Subject) -> Finding:
    """Release marginals with and without a target many times; the best score there is; its area against the
    ceiling."""
    (rows,) = subject.tables(1, 200)
    target, others, trials = rows[0], rows[1:], TRIALS[subject.profile]
    sigma2 = Fraction(round(5 * 1000 / MU**2), 1000)
    outside, rho = _scores(subject, others, target, sigma2, trials)
    inside, _ = _scores(subject, rows, target, sigma2, trials)
    bare_outside, _ = _scores(subject, others, target, NO_NOISE, 20)
    bare_inside, _ = _scores(subject, rows, target, NO_NOISE, 20)
    control = area(bare_inside, bare_outside)
    mu = math.sqrt(2 * rho)
    found, limit = area(inside, outside), ceiling(mu)
    figures: dict[str, object] = {
        "area": found,
        "ceiling": limit,
        "margin": margin(trials),
        "control": control,
        "mu": mu,
    }
    if control < BROKEN:
        return Finding(
            Verdict.UNINFORMATIVE, f"The attack finds only {control:.3f} where there is no noise.", figures
        )
    problems = []
    if found > limit + margin(trials):
        problems.append(f"The attack's area is {found:.4f}; what is charged leaves {limit:.4f} to anybody.")
    if found < limit - margin(trials):
        problems.append(
            f"The attack's area is {found:.4f}, below {limit:.4f}: there is more noise than is charged for."
        )
    return judged(
        problems,
        f"{trials} releases a side at mu {mu:.2f}: area {found:.4f}, the most that is possible {limit:.4f}; without noise "
        f"{control:.3f}.",
        figures,
        Plot(
            "A target in noisy marginals",
            "false alarms",
            "hits",
            {"likelihood ratio": _curve(inside, outside), "the most there is": most(mu)},
        ),
    )


def _nearest(targets: Codes, table: Codes) -> NDArray[np.float64]:
    """How near the nearest row of the table is to each target: columns that agree."""
    best = np.zeros(len(targets))
    for start in range(0, len(table), 256):
        part = table[start : start + 256]
        agree = (targets[:, np.newaxis, :] == part[np.newaxis]).sum(axis=2).max(axis=1)
        best = np.maximum(best, agree)
    return best


def distance(subject: Subject) -> Finding:
    """Make a synthetic table of half of the rows, and tell members from others by the nearest synthetic row."""
    study = subject.study
    if (reason := not_run(study)) is not None:
        return Finding(Verdict.UNINFORMATIVE, reason)
    rows = subject.generator("members").permutation(subject.rows)
    members, strangers = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    ran = whole_run(subject, members)
    limited = row_limit(study, len(study.parties))
    table = sample(ran.synthesis, ran.plan, unobserved, limited, ran.events).codes.astype(np.int64)
    count = min(TARGETS, len(members), len(strangers))
    inside, outside = _nearest(members[:count], table[:20_000]), _nearest(strangers[:count], table[:20_000])
    bare = area(_nearest(members[:count], members), _nearest(strangers[:count], members))
    mu = math.sqrt(2 * float(sum(event.rho for event in ran.events)))
    found, limit = area(inside, outside), ceiling(mu)
    if (
        ran.plan.budget.curve is not None
    ):  # epsilon and delta alone bound the area, at one point of the curve of errors
        odds = math.exp(min(float(study.privacy.epsilon), 700.0))
        limit = min(1.0, odds / (1 + odds) + float(study.privacy.delta))
    figures: dict[str, object] = {
        "area": found,
        "ceiling": limit,
        "margin": margin(count),
        "control": bare,
        "targets": count,
    }
    if bare < limit + margin(count):
        return Finding(
            Verdict.UNINFORMATIVE,
            f"With a table of copied rows the attack's area is {bare:.3f}, which the ceiling of {limit:.3f} allows: it cannot "
            "tell.",
            figures,
        )
    problems = []
    if found > limit + margin(count):
        problems.append(
            f"The nearest synthetic row tells members apart with an area of {found:.4f}; at most {limit:.4f} is charged."
        )
    return judged(
        problems,
        f"{count} members and {count} others: area {found:.4f}, the most that is possible {limit:.4f}; with copied rows "
        f"{bare:.3f}.",
        figures,
        Plot(
            "Members by the nearest synthetic row",
            "false alarms",
            "hits",
            {"distance": _curve(inside, outside), "the most there is": most(mu)},
        ),
    )


GROUP = Group(
    "I",
    "Inference",
    "Do attacks on what is released stay below what is charged?",
    (
        Check(
            "likelihood",
            "The best attack on noisy marginals reaches what is charged, and no more.",
            "attack",
            "Noise, or a charge, whose mu of 1.5 is off by 0.6 (default sample; quick by 1.5); both ways.",
            likelihood,
            2 * ALPHA,
        ),
        Check(
            "distance",
            "Synthetic rows are no nearer to members than to others, beyond what is charged.",
            "attack",
            "Rows that are copied into the table.",
            distance,
            ALPHA,
        ),
    ),
)
