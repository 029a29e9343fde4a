"""M: the noise is what is charged for - its tables exactly, its draws in the protocols by tests at loud
settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import ClearBackend, DistributedBackend
from mpc_protocols.functionality import Event, MarginalOracle, StudyFacts
from mpc_protocols.mechanisms.measurement import plan_total
from runner.review.audit import statistics
from runner.review.audit.check import Check, Finding, Group, Plot, Profile, Verdict, by_name, judged
from runner.review.audit.subjects.in_memory.arena import SESSION, Arena, Codes, clear
from runner.review.audit.subjects.many_runs import Pair, score
from runner.review.audit.subjects.questions import NO_NOISE
from runner.review.audit.subjects.subject import Subject
from runner.review.audit.subjects.whole_run import not_run
from runner.study.trained import trained

VARIANCES = (Fraction(1, 3), Fraction(4), Fraction(2500, 9), Fraction(10**4))
"""Of the tables that are recomputed: one table each; wider noise is a sum of two draws."""
WIDE = 2048
"""Cells of the marginal whose noise is looked at."""
LOUD = Fraction(4)
DRAWS = {Profile.QUICK: 16_384, Profile.DEFAULT: 65_536, Profile.DEEP: 1_048_576}
PICKED = {Profile.QUICK: 400, Profile.DEFAULT: 1000, Profile.DEEP: 3000}
PICKED_BY_PARTIES = {Profile.QUICK: 120, Profile.DEFAULT: 240, Profile.DEEP: 1000}
SIDES = {Profile.QUICK: 20_480, Profile.DEFAULT: 102_400, Profile.DEEP: 1_024_000}
RUNS = {Profile.QUICK: 300, Profile.DEFAULT: 300, Profile.DEEP: 1000}
"""Whole runs a side."""
RUNS_FOR_HALF = 1000
"""With so many a side half of the noise of measurements shows, a quarter of it with 300; selections keep
theirs."""
LOUD_MU = 1.0
"""Of all that such a run spends."""
FIT_ALPHA = FRESH_ALPHA = LAW_ALPHA = PARTIES_LAW_ALPHA = EPSILON_ALPHA = RUNS_ALPHA = 2e-8
SPREAD = (0.0, 1.0, 2.5)
"""Expected differences of the candidates' scores, in nats."""


def tables(subject: Subject) -> Finding:
    """Recompute the law that a noise table draws from, with 60 decimal digits, and its distance from what is
    charged for."""
    problems, worst = [], 0.0
    facts = StudyFacts(_SIZES, "add-remove", 1, 100, SESSION)
    for sigma2 in VARIANCES:
        noise = plan_total(facts, sigma2, 100, first=False).samplers[0]
        with localcontext(prec=60):
            wide = int(14 * math.sqrt(sigma2)) + 10
            scale = -2 * Decimal(sigma2.numerator) / Decimal(sigma2.denominator)
            weights = [(Decimal(j * j) / scale).exp() for j in range(wide)]
            whole = weights[0] + 2 * sum(weights[1:])
            ((_, table),) = noise.parts
            steps = [0, *table.thresholds, 1 << 64]
            drawn = [Decimal(high - low) / (1 << 64) for low, high in pairwise(steps)]
            drawn += [Decimal(0)] * (wide - len(drawn))
            ideal = [weight * (1 if j == 0 else 2) / whole for j, weight in enumerate(weights)]
            distance = sum((abs(x - y) for x, y in zip(drawn, ideal, strict=True)), Decimal(0)) / 2
        charged = float(noise.tv)
        worst = max(worst, float(distance))
        if float(distance) > charged * (1 + 1e-9) + 1e-30:
            problems.append(
                f"The table for variance {sigma2} is {float(distance):.3g} from the discrete Gaussian in total variation, and "
                f"{charged:.3g} is charged."
            )
    return judged(
        problems,
        f"{len(VARIANCES)} tables: {worst:.2g} from the discrete Gaussian at most, which is charged.",
        {"tables": len(VARIANCES), "distance": worst},
    )


def _law(sigma2: Fraction, reach: int) -> NDArray[np.float64]:
    """Probabilities of -reach .. reach, by themselves."""
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(x**2) / (2 * float(sigma2)))
    law: NDArray[np.float64] = weights / weights.sum()
    return law


_COLUMNS = tuple(f"column {number}" for number in range(8))


def _arena(backend: DistributedBackend) -> tuple[Arena, list[Codes]]:
    """Parties that have no rows: what is opened is the noise."""
    arena = Arena.of(backend, {name: WIDE for name in _COLUMNS}, row_cap=1024)
    return arena, [np.zeros((0, len(_COLUMNS)), np.int64)] * arena.parties


def _noise(
    subject: Subject, backend: DistributedBackend, batches: int, label: str
) -> list[NDArray[np.int64]]:
    """Measurements of an empty table, WIDE cells each, eight to a release."""
    arena, nothing = _arena(backend)

    def ask(oracle: MarginalOracle) -> list[NDArray[np.int64]]:
        handles = oracle.prepare([(name,) for name in _COLUMNS])
        found: list[NDArray[np.int64]] = []
        while len(found) < batches:
            found += oracle.measure(handles[: batches - len(found)], LOUD)
        return found

    found: list[NDArray[np.int64]] = arena.run(ask, nothing, subject.coins(f"noise {label}")).answer
    return found


def fit(subject: Subject) -> Finding:
    """Draw noise in each backend's protocol; compare values with the law, and their mean square with its own."""
    problems, figures, curves = [], {}, {}
    per_backend = DRAWS[subject.profile]
    reach = 12
    law = _law(LOUD, reach)
    alpha = FIT_ALPHA / (2 * max(len(subject.distributed), 1))
    squares = np.arange(-reach, reach + 1, dtype=np.float64) ** 2
    mean = float((law * squares).sum())
    spread = math.sqrt(float((law * squares**2).sum()) - mean**2)
    for backend in subject.distributed:
        drawn = np.concatenate(_noise(subject, backend, per_backend // WIDE, "fit"))
        inside = np.clip(drawn, -reach, reach)
        observed = np.bincount(inside + reach, minlength=2 * reach + 1)
        statistic, freedom, p = statistics.goodness_of_fit(observed.tolist(), (law * len(drawn)).tolist())
        z = (float((inside.astype(np.float64) ** 2).mean()) - mean) / (spread / math.sqrt(len(drawn)))
        two_sided = 2 * statistics.normal_tail(abs(z))
        figures[backend.name] = {
            "n": len(drawn),
            "chi_square": statistic,
            "freedom": freedom,
            "p": p,
            "z_of_variance": z,
        }
        curves[backend.name] = tuple(
            (float(x), float(n) / len(drawn)) for x, n in zip(range(-reach, reach + 1), observed, strict=True)
        )
        if p < alpha or two_sided < alpha:
            problems.append(
                f'backend "{backend.name}": {len(drawn)} draws do not fit the discrete Gaussian (chi-square {statistic:.1f} '
                f"with {freedom} "
                f"degrees, p {p:.2g}; mean square {z:+.1f} standard errors off)."
            )
    curves["as charged"] = tuple(zip(map(float, range(-reach, reach + 1)), map(float, law), strict=True))
    smallest = (statistics.normal_quantile(1 - alpha) + 1.28) * spread / math.sqrt(per_backend) / mean / 2
    return judged(
        problems,
        f"{per_backend} draws each at sigma {math.sqrt(LOUD):g}: "
        + by_name(figures, "{name} p {each[p]:.2g}", joint="; ")
        + f". A sigma wrong by {100 * smallest:.1f} % would have been seen with a chance of 90 %.",
        {**figures, "alpha": alpha, "detectable_sigma": smallest},
        Plot("Noise drawn in the protocols, and its law", "noise", "probability", curves),
    )


def fresh(subject: Subject) -> Finding:
    """Compare the noise of different releases, and of runs with different keys, cell by cell."""
    problems, figures = [], {}
    law = _law(LOUD, 40)
    meet = float((law**2).sum())
    for backend in subject.distributed:
        first = _noise(subject, backend, 10, "fresh")
        again = _noise(subject, backend, 10, "fresh, other keys")
        pairs = {
            "two marginals of a release": (first[0], first[1]),
            "two releases": (first[0], first[9]),
            "two runs": (first[0], again[0]),
        }
        for words, (x, y) in pairs.items():
            equal = int((x == y).sum())
            opposite = int((x == -y).sum())
            figures[f"{backend.name}, {words}"] = equal / WIDE
            alpha = FRESH_ALPHA / (6 * len(subject.distributed))
            if statistics.binomial_tail(max(equal, opposite), WIDE, meet) < alpha:
                problems.append(
                    f'backend "{backend.name}": the noise of {words} is equal or opposite in '
                    f"{max(equal, opposite)} of {WIDE} cells; {meet * WIDE:.0f} are expected."
                )
    return judged(
        problems,
        f"Cells with equal noise: {min(figures.values()):.3f} to {max(figures.values()):.3f}, {meet:.3f} expected.",
        {**figures, "expected": meet},
    )


Numbers = Sequence[float] | NDArray[np.int64]
ROWS_PER_NAT = 8
"""At epsilon 1/8: a row off the answer adds 2 to the L1 distance, and weights are exp(epsilon / 2 times the
distance)."""
_SIZES = {"x": 2, "y": 2, "z": 2}


def _picked_by(oracle: MarginalOracle, times: int) -> list[int]:
    """Choices among three single columns whose exact scores are known."""
    handles = oracle.prepare([(name,) for name in _SIZES])
    oracle.total(NO_NOISE)
    answers = [np.array([100.0, 0.0])] * 3
    weights, penalties = [Fraction(1)] * 3, [Fraction(0)] * 3
    return [
        oracle.select(handles, answers, weights, penalties, Fraction(1, ROWS_PER_NAT))[0]
        for _ in range(times)
    ]


def _rows_with_scores() -> Codes:
    """100 rows, of whose columns so many are off the answers that the scores lie SPREAD apart."""
    columns = []
    for nats in SPREAD:
        off = round(nats * ROWS_PER_NAT)
        columns.append(np.r_[np.ones(off, np.int64), np.zeros(100 - off, np.int64)])
    return np.stack(columns, axis=1)


def _judge_law(picked: list[int], charged: float) -> tuple[float, list[float]]:
    """p-value of the choices against the exponential mechanism at the epsilon that was charged, and its
    probabilities."""
    weights = [math.exp(charged * round(nats * ROWS_PER_NAT)) for nats in SPREAD]
    law = [weight / sum(weights) for weight in weights]
    observed = [picked.count(position) for position in range(3)]
    return statistics.exact_multinomial(observed, law), law


def _selection(
    subject: Subject, name: str, ran: tuple[list[int], float], alpha: float
) -> tuple[str | None, dict[str, object]]:
    picked, charged = ran
    p, law = _judge_law(picked, charged)
    shares = [picked.count(position) / len(picked) for position in range(3)]
    problem = None
    if p < alpha:
        problem = (
            f'backend "{name}": {len(picked)} choices fall {", ".join(f"{share:.3f}" for share in shares)}; the '
            f"exponential mechanism at the epsilon charged gives {', '.join(f'{each:.3f}' for each in law)} (p {p:.2g})."
        )
    return problem, {"n": len(picked), "p": p, "shares": shares, "law": law}


def _clear_choices(backend: ClearBackend, times: int) -> tuple[list[int], float]:
    facts = StudyFacts(_SIZES, "add-remove", 1, 100, SESSION)
    picked, events = clear(backend, facts, [_rows_with_scores()], lambda oracle: _picked_by(oracle, times))
    return picked, _charged(events)


def _charged(events: Sequence[Event]) -> float:
    """The epsilon of the first selection on record."""
    return next(float(str(event.detail["epsilon"])) for event in events if event.what == "select")


def choices(subject: Subject) -> Finding:
    """Choose often among candidates of known scores, in the clear: the law itself."""
    problem, figures = _selection(
        subject, subject.clear.name, _clear_choices(subject.clear, PICKED[subject.profile]), LAW_ALPHA
    )
    return judged(
        [problem] if problem else [],
        f"{figures['n']} choices among scores {SPREAD} nats apart: p {figures['p']:.2g}. A temperature wrong by a factor "
        f"{1.5 if subject.at_least(Profile.DEFAULT) else 2} would have been seen.",
        figures,
    )


def choices_of_parties(subject: Subject) -> Finding:
    """The same in each backend's protocol, fewer times: the wiring."""
    problems, figures = [], {}
    for backend in subject.distributed:
        arena = Arena.of(backend, _SIZES, row_cap=100)
        tables = [_rows_with_scores(), *[np.zeros((0, 3), np.int64)] * (arena.parties - 1)]
        ran = arena.run(
            lambda oracle: _picked_by(oracle, PICKED_BY_PARTIES[subject.profile]),
            tables,
            subject.coins("choices"),
        )
        problem, figures[backend.name] = _selection(
            subject,
            backend.name,
            (ran.answer, _charged(ran.events[0])),
            PARTIES_LAW_ALPHA / len(subject.distributed),
        )
        problems += [problem] if problem else []
    return judged(
        problems,
        f"{PICKED_BY_PARTIES[subject.profile]} choices each: "
        + by_name(figures, "{name} p {each[p]:.2g}", joint="; ")
        + (
            ". Scores that count twice would have been seen."
            if subject.at_least(Profile.DEFAULT)
            else ". Noise left out would have been seen."
        ),
        figures,
    )


def epsilon(subject: Subject) -> Finding:
    """Guess from a noisy count whether a row was there: a lower bound of mu by exact binomial bounds, against
    what is charged."""
    problems, figures, curves = [], {}, {}
    for backend in subject.distributed[:1] or []:
        drawn = np.concatenate(_noise(subject, backend, SIDES[subject.profile] // WIDE, "epsilon"))
        without, beside = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :] + 1
        charged = 1 / math.sqrt(LOUD)
        best, low = demonstrated_mu(without, beside)
        figures[backend.name] = {
            "n": len(drawn),
            "mu_lower_bound": low,
            "mu_charged": charged,
            "threshold": best,
        }
        curves[backend.name] = tuple(
            (float((without > t).mean()), float((beside > t).mean())) for t in range(12, -12, -1)
        )
        curves["the most there is"] = tuple(
            (p, statistics.normal_tail(-statistics.normal_quantile(p) - charged))
            for p in np.linspace(0.001, 0.999, 60)
        )
        if low > charged:
            problems.append(
                f'backend "{backend.name}": guesses of a row from its noisy count show mu {low:.4f} at least; '
                f"{charged:.4f} is charged."
            )
    if not figures:
        return Finding(Verdict.UNINFORMATIVE, "No backend of parties that compute together is audited.")
    (name, each), *_ = figures.items()
    return judged(
        problems,
        f"{name}: {each['n']} draws: mu {each['mu_lower_bound']:.3f} at least, {each['mu_charged']:.3f} charged.",
        figures,
        Plot("Guessing a row from its noisy count", "false alarms", "hits", curves),
    )


def demonstrated_mu(without: Numbers, beside: Numbers) -> tuple[int, float]:
    """A threshold chosen on a quarter of the draws, and the mu that guesses by it show on the rest.

    Chosen by the bound that judges: by a bolder one it would be in the tails, where a few draws decide.
    """
    quarter = len(without) // 4
    best = max(range(-4, 6), key=lambda t: _bound(without[:quarter], beside[:quarter], t, EPSILON_ALPHA))
    return best, _bound(without[quarter:], beside[quarter:], best, EPSILON_ALPHA)


def _bound(without: Numbers, beside: Numbers, threshold: float, alpha: float) -> float:
    """A mu that the true one falls below with a chance of at most alpha, from guesses "there" above the
    threshold."""
    return statistics.gaussian_at_least(*_errors(without, beside, threshold, alpha))


def _errors(without: Numbers, beside: Numbers, threshold: float, alpha: float) -> tuple[float, float]:
    """The most false alarms and the fewest hits that guesses "there" above the threshold have, but for a
    chance of alpha."""
    false, hits = (int((np.asarray(each) > threshold).sum()) for each in (without, beside))
    return statistics.at_most(false, len(without), alpha / 2), statistics.at_least(
        hits, len(beside), alpha / 2
    )


def runs(subject: Subject) -> Finding:
    """Whole runs of the study's algorithm at a loud budget, with and without a row: what its releases show of
    the row."""
    study = subject.study
    reason = not_run(study)
    if trained(study) is not None:
        reason = f"The algorithm {study.algorithm} asks no oracle: nothing to run."
    if reason is not None:
        return Finding(Verdict.UNINFORMATIVE, reason)
    pair, count = Pair.of(subject, LOUD_MU), RUNS[subject.profile]
    scores: list[list[float]] = [[], []]
    charged = 0.0
    for number in range(2 * count):
        ratio, rho = score(subject, pair, bool(number % 2))
        scores[number % 2].append(ratio)
        charged = max(charged, rho)
        subject.tell("M.runs", number + 1, 2 * count, "")
    # a likelihood ratio is its own threshold: none has to be found with some of the runs
    errors = _errors(scores[0], scores[1], 0.0, RUNS_ALPHA)
    rho, mu = statistics.zcdp_at_least(*errors), statistics.gaussian_at_least(*errors)
    seen = "Half" if count >= RUNS_FOR_HALF else "A quarter"
    ends = [(min(each), max(each)) for each in scores]
    cuts = np.linspace(max(high for _, high in ends), min(low for low, _ in ends), 60)
    curve = tuple(
        (float((np.array(scores[0]) >= cut).mean()), float((np.array(scores[1]) >= cut).mean()))
        for cut in cuts
    )
    return judged(
        [f"{count} runs a side show rho {rho:.4f} at least; {charged:.4f} is charged."]
        if rho > charged
        else [],
        f"{count} runs of {subject.study.algorithm} a side, {len(subject.rows)} rows, all that is charged rho {charged:.4f} (mu "
        f"{math.sqrt(2 * charged):.3f}): what they release shows mu {mu:.3f} at least, as of a Gaussian mechanism, and rho "
        f"{rho:.4f} at least, as of any. {seen} of the noise of measurements would have been seen.",
        {
            "runs": 2 * count,
            "mu_lower_bound": mu,
            "rho_lower_bound": rho,
            "rho_charged": charged,
            "most_false_alarms": errors[0],
            "least_hits": errors[1],
            "mean_scores": [float(np.mean(each)) for each in scores],
        },
        Plot("A row in whole runs", "false alarms", "hits", {"likelihood ratio": curve}),
    )


GROUP = Group(
    "M",
    "Mechanisms",
    "Is the noise what is charged for?",
    (
        Check(
            "tables",
            "Noise tables are as close to the discrete Gaussian as is charged.",
            "exact",
            "Another variance, a rounded continuous Gaussian, a tail cut off, an odd or even bias: anything above 2^-60.",
            tables,
        ),
        Check(
            "fit",
            "Noise drawn in the protocols has the law that is charged for.",
            "statistical",
            "A sigma wrong by a few per cent (the finding says how few), a sign or a threshold that is lost.",
            fit,
            FIT_ALPHA,
        ),
        Check(
            "fresh",
            "Noise is drawn anew for every marginal, release and run.",
            "statistical",
            "A tenth of the cells with the noise of another release.",
            fresh,
            FRESH_ALPHA,
        ),
        Check(
            "choices",
            "Selections follow the exponential mechanism at the epsilon charged.",
            "statistical",
            "A temperature wrong by a factor 1.5 (default sample; quick 2).",
            choices,
            LAW_ALPHA,
        ),
        Check(
            "parties",
            "So do selections in the protocols.",
            "statistical",
            "Scores that count twice as much as is charged (default sample); noise left out.",
            choices_of_parties,
            PARTIES_LAW_ALPHA,
            Profile.DEFAULT,
        ),
        Check(
            "epsilon",
            "A noisy count tells no more of a row than is charged.",
            "statistical",
            "A mu a fifth above the one charged (default sample; deep a tenth).",
            epsilon,
            EPSILON_ALPHA,
        ),
        Check(
            "runs",
            "What a whole run releases tells no more of a row than is charged.",
            "statistical",
            "A fault anywhere between the rows and the release by which a run spends several times what is charged.",
            runs,
            RUNS_ALPHA,
            Profile.DEEP,
        ),
    ),
)
