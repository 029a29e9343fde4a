"""How wide the intervals of a study's registered questions will be, before anybody runs it.

What is measured whatever happens, the columns and the marginals that the questions need, has a noise that the
study fixes. So an interval's width follows from it and from how people differ, which nobody knows beforehand:
it is taken from invented rows, or from rows that the caller has. What else the run measures can only make it
narrower. Nothing here is private unless the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.api.conditions import allowed
from runner.forecast.presumed.invented_table import invented_rows
from synth.inference import infer
from synth.judgement.metrics import marginal
from synth.mrf import Measurement, fit
from synth.synthesis import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from runner.study import Study
    from synth.plan import Plan

LEVEL = 0.95
MAX_DRAWN = 200_000
"""Invented rows at most; of more, as many counts are scaled up."""
SHOWN = 12


@dataclass(frozen=True)
class Foretold:
    """A number that a registered question asks for. half: of its interval; None, then reason says why there
    will be none. noise_share: of the variance, the part of the noise."""

    question: str
    name: str
    half: float | None
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
    domain, reserved = study.domain, plan.reserved
    if codes is None:
        codes = invented_rows(domain, min(rows, MAX_DRAWN), 0, plan.workload.label, related=True)
    scale = rows / max(1, len(codes))
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
    answers = infer(
        study.inference.queries,
        domain,
        model,
        released,
        {"privacy": {"events": []}},
        lambda name, value: allowed(domain, {name: value})[name],
        level=LEVEL,
    )
    return tuple(
        Foretold(
            answer.question,
            answer.name,
            None
            if answer.low is None or answer.high is None or not math.isfinite(answer.high - answer.low)
            else (answer.high - answer.low) / 2,
            answer.noise_share,
            answer.reason,
        )
        for answer in answers
    )


def lines(study: Study, plan: Plan, found: Sequence[Foretold]) -> list[str]:
    """For a terminal."""
    if study.inference is None:
        return []
    share = float(plan.reserved.share)
    said = [
        "",
        f"questions   {share:.0%} of the budget is theirs; 95 % intervals as they are on invented rows, at the widest"
        if share
        else "questions   single columns answer them; 95 % intervals as they are on invented rows, at the widest",
    ]
    for one in found[:SHOWN]:
        if one.half is None:
            said.append(f"  {one.name}: none to be expected ({one.reason.rstrip('.')})")
        else:
            said.append(
                f"  {one.name}: +- {one.half:.3g}, of whose variance {one.noise_share or 0:.0%} is noise"
            )
    if len(found) > SHOWN:
        said.append(f"  and {len(found) - SHOWN} more (--json lists all)")
    return said
