"""Oracles, guards and tables for the tests of synthesizers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import (
    Adjacency,
    Clique,
    Event,
    Guard,
    Handle,
    Level,
    LocalCounts,
    MarginalOracle,
    StudyFacts,
)
from synth.budget.charges import Charges, cell_distance
from synth.domain import Codes, Domain
from synth.judgement.metrics import marginal


def codes_domain(**sizes: int) -> Domain:
    return Domain(tuple(sizes), tuple(Codes(size) for size in sizes.values()))


def counts_of(codes: NDArray[np.int64], domain: Domain) -> LocalCounts:
    return lambda cliques: [marginal(codes, domain, clique) for clique in cliques]


def ideal(
    codes: NDArray[np.int64],
    domain: Domain,
    guard: Guard,
    adjacency: Adjacency = "add-remove",
    unit_rows: int = 1,
) -> IdealOracle:
    facts = StudyFacts(domain.sizes, adjacency, unit_rows, 1 << 20, secrets.token_bytes(32))
    return IdealOracle(facts, counts_of(codes, domain), guard)


def chain(rows: int, rng: np.random.Generator) -> tuple[Domain, NDArray[np.int64]]:
    """Four columns a - b - c - d: each is the one before it, redrawn in a tenth of the rows; and e, which is
    independent."""
    domain = codes_domain(a=4, b=4, c=4, d=4, e=3)
    columns = [rng.integers(0, 4, rows)]
    for _ in range(3):
        columns.append(np.where(rng.random(rows) < 0.1, rng.integers(0, 4, rows), columns[-1]))
    columns.append(rng.integers(0, 3, rows))
    return domain, np.stack(columns, axis=1).astype(np.int64)


class ScriptedOracle(MarginalOracle):
    """Answers as a script says, charges exactly what is planned, and keeps what it was asked.

    Without noise it selects the largest score and measures the truth; with `rng` it selects anything and
    measures nonsense, whose size varies wildly: the adversary of a test that a budget holds whatever the
    answers are.
    """

    def __init__(
        self,
        codes: NDArray[np.int64],
        domain: Domain,
        guard: Guard,
        charges: Charges,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.facts = StudyFacts(domain.sizes, charges.adjacency, charges.unit_rows, 1 << 20, bytes(32))
        self.guard, self.charges, self.rng = guard, charges, rng
        self.counts = counts_of(codes, domain)
        self.handles: list[Clique] = []
        self.selections: list[tuple[list[Clique], list[Fraction], list[Fraction], Fraction]] = []
        self.total_seen: float | None = None

    @property
    def row_bound(self) -> int:
        return 1 << 20

    @property
    def noisy_total(self) -> float | None:
        return self.total_seen

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        assert not levels, "no script asks for levels"
        self.handles += cliques
        return list(range(len(self.handles) - len(cliques), len(self.handles)))

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        assert picks <= len(handles) and not conflicts, "no script asks for conflicts"
        for _ in range(picks):
            self.guard.authorise(
                Event("select", self.charges.selecting(epsilon), len(handles) * Fraction(1, 2**70)), b""
            )
        cliques = [self.handles[handle] for handle in handles]
        self.selections.append((cliques, list(weights), list(penalties), epsilon))
        if self.rng is not None:
            return [int(place) for place in self.rng.permutation(len(handles))[:picks]]
        scores = [
            float(w) * (np.abs(truth - answer).sum() - float(penalty))
            for w, truth, answer, penalty in zip(
                weights, self.counts(cliques), answers, penalties, strict=True
            )
        ]
        return [int(place) for place in np.argsort(-np.array(scores), kind="stable")[:picks]]

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        assert isinstance(sigma2, Fraction), "no script asks for several variances"
        beta = len(handles) * self.charges.distance(sigma2)
        self.guard.authorise(Event("measure", len(handles) * self.charges.measuring(sigma2), beta), b"")
        return self.released(self.counts([self.handles[handle] for handle in handles]))

    def released(self, values: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The truth, or nonsense where there is noise; the first batch tells the total."""
        if self.rng is not None:
            scale = 10 ** self.rng.uniform(-1, 5)
            values = [(v + self.rng.normal(0, scale, v.shape)).astype(np.int64) for v in values]
        if self.total_seen is None:
            self.total_seen = float(values[0].sum())
        return values

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        rho = self.charges.measuring_distances(sigma2, len(handles))
        self.guard.authorise(Event("distances", rho, len(handles) * cell_distance(sigma2)), b"")
        if self.rng is not None:
            return self.rng.normal(0, 10 ** self.rng.uniform(0, 5), len(handles)).astype(np.int64)
        truth = self.counts([self.handles[handle] for handle in handles])
        return np.array([np.abs(t - a).sum() for t, a in zip(truth, answers, strict=True)]).astype(np.int64)

    def total(self, sigma2: Fraction) -> int:
        assert self.total_seen is None, "marginals give the total: nobody needs to ask for it"
        beta = 2 * cell_distance(sigma2) + Fraction(1, 2**57)
        self.guard.authorise(Event("total", self.charges.counting(sigma2), beta), b"")
        rows = int(self.counts([tuple(self.facts.sizes)[:1]])[0].sum())
        if self.rng is not None:
            rows += int(self.rng.normal(0, 10 ** self.rng.uniform(-1, 5)))
        self.total_seen = float(rows)
        return rows


class RefuseThird(Guard):
    """A guard that refuses the third release. asked: what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def authorise(self, event: Event, inputs: bytes) -> None:
        self.asked.append(event.what)
        if len(self.asked) == 3:
            raise BudgetRefused("The custodian's cap is reached.")
