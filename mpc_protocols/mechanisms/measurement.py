"""What a measurement is charged: marginals, distances, sums or the number of rows, plus discrete Gaussian
noise (`docs/design/mechanisms.md` 3.2, 5).

With s rows per privacy unit and noise of parameter sigma^2 on every cell:

    add-remove  L2 sensitivity s        rho = s^2 / (2 sigma^2) per marginal
    replace     L2 sensitivity sqrt(2) s  rho = s^2 / sigma^2     per marginal
    the total   s^2 / (2 sigma^2) under both

Statement (finite tables). The release is rho-zCDP up to the total variation of the AFFECTED cells' noise: s
cells, 2 s under replace, not all of them. Proof: compare with the hybrid in which the cells that differ have
ideal noise and the others keep the table. The others' noise is independent of the data and the same in both
worlds, so the hybrid pair is rho-zCDP by data processing, and each real run is within the affected cells'
total variation of its hybrid.

The release that fixes the row bound is charged all its cells besides, and `bounds.BETA`: the bound is an
event over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mpc_protocols.functionality import Clique, Event, Question, StudyFacts
from mpc_protocols.mechanisms import bounds
from mpc_protocols.mechanisms.gaussian import Sampler, sampler


@dataclass(frozen=True)
class MeasurePlan:
    """Public facts of one release of noisy integers. samplers: the noise of each marginal's cells, or of each
    value. event: what is charged."""

    samplers: tuple[Sampler, ...]
    event: Event

    @property
    def digest(self) -> bytes:
        """Of the tables that the noise is drawn from; a table that serves all of them is named once."""
        digests = [noise.digest for noise in self.samplers]
        return digests[0] if len(set(digests)) == 1 else b"".join(digests)


def _text(x: Fraction) -> str:
    return f"{x.numerator}/{x.denominator}"


def plan_marginals(
    facts: StudyFacts, cliques: Sequence[Clique], variances: Sequence[Fraction], row_bound: int, first: bool
) -> MeasurePlan:
    """One batch of marginals, each with noise of its own parameter on every cell: one event, their costs
    summed.

    row_bound: n' as known before. first: nothing was released before, so that n' is derived from this. Raises
    `StudyInvalid` (variance out of range, ring).
    """
    noises = tuple(map(sampler, variances))
    bounds.check_measurement(row_bound, max(noise.bound for noise in noises))
    moves = 2 if facts.adjacency == "replace" else 1
    cells = [facts.cells(clique) for clique in cliques]
    beta = _beta(noises, [min(n, moves * facts.unit_rows) for n in cells])
    if first:
        beta += _beta(noises, cells) + bounds.BETA
    rho = sum((moves * facts.unit_rows**2 / (2 * sigma2) for sigma2 in variances), Fraction(0))
    texts = [_text(sigma2) for sigma2 in variances]
    detail = {
        "cliques": [list(clique) for clique in cliques],
        "sigma2": texts[0] if len(set(texts)) == 1 else texts,
    }
    return MeasurePlan(noises, Event("measure", rho, beta, detail))


def plan_distances(
    facts: StudyFacts, cliques: Sequence[Clique], answer_sums: Sequence[int], sigma2: Fraction, row_bound: int
) -> MeasurePlan:
    """L1 distances of marginals to public answers, each with noise of parameter sigma2: one event.

    A unit moves every one of the n sums by s (replace: 2 s) at most, so rho = n s^2 / (2 sigma^2) (replace:
    four times that), and each of the n noises is an affected one. answer_sums: at least the sum of each
    rounded answer. Raises `StudyInvalid` (variance out of range; a sum with its noise would not fit 32 bits
    with its sign).
    """
    noise = sampler(sigma2)
    bounds.check_measurement(row_bound + max(answer_sums), noise.bound)
    moves = 2 if facts.adjacency == "replace" else 1
    n = len(cliques)
    event = Event(
        "distances",
        rho=n * (moves * facts.unit_rows) ** 2 / (2 * sigma2),
        beta=n * noise.tv,
        detail={"cliques": [list(clique) for clique in cliques], "sigma2": _text(sigma2)},
    )
    return MeasurePlan((noise,) * n, event)


def plan_sum(question: Question, clients: Sequence[int], sigma2: Fraction) -> MeasurePlan:
    """The sum of clients' integer vectors, with noise of parameter sigma2 in every entry.

    A unit moves the sum by an integer vector of squared norm `sensitivity2` at most, so at most so many
    entries: they are the affected ones. Raises `StudyInvalid` (variance out of range; an entry with its noise
    would not fit 32 bits with its sign).
    """
    noise = sampler(sigma2)
    bounds.check_measurement(question.bound * len(clients), noise.bound)
    event = Event(
        "sum",
        rho=question.sensitivity2 / (2 * sigma2),
        beta=min(question.length, question.sensitivity2) * noise.tv,
        detail={"clients": len(clients), "entries": question.length, "sigma2": _text(sigma2)},
    )
    return MeasurePlan((noise,), event)


def plan_total(facts: StudyFacts, sigma2: Fraction, row_bound: int, first: bool) -> MeasurePlan:
    """The number of rows plus noise of parameter sigma2: one cell. Arguments and errors as `plan_marginals`."""
    noise = sampler(sigma2)
    bounds.check_measurement(row_bound, noise.bound)
    beta = noise.tv + (noise.tv + bounds.BETA if first else 0)
    event = Event("total", facts.unit_rows**2 / (2 * sigma2), beta, {"sigma2": _text(sigma2)})
    return MeasurePlan((noise,), event)


def by_sampler(samplers: Sequence[Sampler], cells: Sequence[int]) -> list[tuple[Sampler, list[int]]]:
    """Consecutive marginals with the same sampler: it, and the cells of each."""
    runs: list[tuple[Sampler, list[int]]] = []
    for noise, n in zip(samplers, cells, strict=True):
        if runs and runs[-1][0].digest == noise.digest:
            runs[-1][1].append(n)
        else:
            runs.append((noise, [n]))
    return runs


def _beta(noises: Sequence[Sampler], cells: Sequence[int]) -> Fraction:
    return sum((n * noise.tv for n, noise in zip(cells, noises, strict=True)), Fraction(0))
