"""How wide the intervals of a study's registered questions will be, before anybody runs it.

What is measured whatever happens, the columns and the marginals that the questions need, has a noise that the
study fixes: it alone gives about the widest that an interval will be. What a run selects besides with the rest
of the budget sharpens it, the more the fewer the rows are; so the study's algorithm is also tried a few times
in the clear, and what to expect is the median. How people differ nobody knows beforehand: it is taken from
invented rows, or from rows that the caller has. Nothing here is private unless the rows are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.api.conditions import allowed
from runner.forecast.presumed.invented_table import invented_rows
from runner.forecast.trial import can_try, rehearsed
from synth.inference import Answer, infer
from synth.judgement.metrics import marginal
from synth.mrf import Measurement, Model, fit
from synth.synthesis import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique
    from runner.study import Study
    from synth.plan import Plan

LEVEL = 0.95
MAX_DRAWN = 200_000
"""Invented rows at most; of more, as many counts are scaled up."""
TRIES, MAX_SECONDS = 5, 6.0
"""How often a study is tried, at least once and while so many CPU seconds last."""
NARROWER = 0.9
"""How much narrower than by the registered marginals alone an interval is said to be."""
SHOWN = 12


@dataclass(frozen=True)
class Foretold:
    """A number that a registered question asks for. half: of its interval, as most tries have it; None, then
    reason says why there will be none. widest: by what is measured whatever is selected alone; None where that gives none.
    noise_share: of the variance, the part of the noise."""

    question: str
    name: str
    half: float | None
    widest: float | None
    noise_share: float | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def foretold(
    study: Study, plan: Plan, rows: int, codes: NDArray[np.int64] | None = None
) -> tuple[Foretold, ...]:
    """The widths for so many rows; nothing of a study without registered questions.

    codes: int64 (any number, columns), rows like those of the run; default: invented ones.
    """
    if study.inference is None:
        return ()
    if codes is None:
        codes = invented_rows(study.domain, min(rows, MAX_DRAWN), 0, plan.workload.label, related=True)
    alone = _alone(study, plan, rows, codes)
    tries = _tries(study, plan, rows, codes) or [alone]
    named: dict[tuple[str, str], None] = {}
    for question in dict.fromkeys(study.inference.queries):
        # one that is refused as a whole has a single answer, without the names of its numbers
        told = [[one for one in answers if one.question == question] for answers in (alone, *tries)]
        named |= dict.fromkeys((question, one.name) for one in max(told, key=len))
    return tuple(_of_one(name, _named(name, alone), [_named(name, one) for one in tries]) for name in named)


def _named(name: tuple[str, str], answers: Sequence[Answer]) -> Answer:
    """Of a question and a number of it; of a question that is refused as a whole, the refusal."""
    of = [one for one in answers if one.question == name[0]]
    return next((one for one in of if one.name == name[1]), of[0])


def _of_one(name: tuple[str, str], widest: Answer, tries: Sequence[Answer]) -> Foretold:
    """tries: the same number, as they have it."""
    with_one = sorted(
        ((half, one) for one in tries if (half := _half(one)) is not None), key=lambda of: of[0]
    )
    if 2 * len(with_one) <= len(tries):
        without = next(one for one in tries if _half(one) is None)
        return Foretold(*name, None, _half(widest), None, without.reason)
    half, usual = with_one[len(with_one) // 2]
    return Foretold(*name, half, _half(widest), usual.noise_share, "")


def _half(answer: Answer) -> float | None:
    if answer.low is None or answer.high is None or not math.isfinite(answer.high - answer.low):
        return None
    return (answer.high - answer.low) / 2


def _alone(study: Study, plan: Plan, rows: int, codes: NDArray[np.int64]) -> list[Answer]:
    """By the columns and the registered marginals, each as it is but for its noise."""
    domain, reserved, scale = study.domain, plan.reserved, rows / max(1, len(codes))
    noise = {clique: plan.sigma2 for clique in plan.one_way}
    if reserved.cliques:
        noise |= dict.fromkeys(reserved.cliques, reserved.sigma2(plan.charges, plan.budget.rho_cap))
    counts = {clique: scale * marginal(codes, domain, clique).astype(np.float64) for clique in noise}
    model = fit(
        domain.sizes,
        [Measurement(clique, values, float(noise[clique])) for clique, values in counts.items()],
        total=float(rows),
    )
    released = [
        Measured(clique, noise[clique], 0, np.rint(values).astype(np.int64))
        for clique, values in counts.items()
    ]
    return _asked(study, model, released)


def _tries(study: Study, plan: Plan, rows: int, codes: NDArray[np.int64]) -> list[list[Answer]]:
    """By what the study's algorithm releases of so many of the rows; of more rows than there are, of scaled counts."""
    study = replace(study, prior=None)  # nobody has the table that it names
    if not can_try(study) or not plan.candidates:
        return []
    began, found = time.process_time(), list[list[Answer]]()
    while len(found) < TRIES and (not found or time.process_time() - began < MAX_SECONDS):
        drawn = np.random.default_rng([len(found), rows]).permutation(len(codes))[:rows]
        some, scale = codes[drawn], rows / max(1, len(drawn))

        def counts(clique: Clique, some: NDArray[np.int64] = some, scale: float = scale) -> NDArray[np.int64]:
            scaled: NDArray[np.int64] = np.rint(scale * marginal(some, study.domain, clique)).astype(np.int64)
            return scaled

        made = rehearsed(study, counts, rows, len(found))
        found.append(_asked(study, made.model, made.measurements))
    return found


def _asked(study: Study, model: Model, released: Sequence[Measured]) -> list[Answer]:
    queries = () if study.inference is None else study.inference.queries
    return infer(
        queries,
        study.domain,
        model,
        released,
        {"privacy": {"events": []}},
        lambda name, value: allowed(study.domain, {name: value})[name],
        level=LEVEL,
    )


def lines(study: Study, plan: Plan, found: Sequence[Foretold]) -> list[str]:
    """For a terminal."""
    if study.inference is None:
        return []
    share = float(plan.reserved.share)
    said = [
        "",
        f"questions   {share:.0%} of the budget is theirs; 95 % intervals as they usually are on invented rows"
        if share
        else "questions   single columns answer them; 95 % intervals as they usually are on invented rows",
    ]
    for one in found[:SHOWN]:
        if one.half is None:
            said.append(f"  {one.name}: none to be expected ({one.reason.rstrip('.')})")
        else:
            sharpened = one.widest is None or one.half < NARROWER * one.widest
            alone = "none" if one.widest is None else f"+- {one.widest:.3g}"
            said.append(
                f"  {one.name}: +- {one.half:.3g}, of whose variance {one.noise_share or 0:.0%} is noise"
                + (f" ({alone} without what is selected besides)" if sharpened else "")
            )
    if len(found) > SHOWN:
        said.append(f"  and {len(found) - SHOWN} more (--json lists all)")
    return said
