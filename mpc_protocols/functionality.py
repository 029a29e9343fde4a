"""What the parties compute together, seen from outside: the marginal oracle.

A select-measure-generate synthesizer touches private data through four questions only, whoever answers them: a trusted
curator in the clear (`ideal`), or parties that hold secret shares. This file is the ideal functionality's interface: the
law of each answer, what is public, and the event that must be on record before an answer is opened.

    prepare   makes marginals available; releases nothing
    select    index of the candidate with the largest noisy score  w'_q * L1(M_q - c_q) - bias_q   (exponential mechanism)
    measure   marginals plus discrete Gaussian noise of the given variance
    total     number of rows plus discrete Gaussian noise

Public in every backend: the study, the handles and their cliques, answers, weights, penalties, epsilon and sigma2 of every
step, the index selected, the noisy counts. Secret: the marginals, the noise, the keys of a selection and their order.
See `mechanisms/` for the laws and their proofs (`mechanisms.md` 1-5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clique = tuple[str, ...]
Handle = int
LocalCounts = Callable[[Sequence[Clique]], "list[NDArray[np.int64]]"]
"""One custodian's own marginals, cells in row-major order of each clique's columns; never leaves its process unmasked."""
Adjacency = Literal["add-remove", "replace"]
MAX_CELLS: Final = 1 << 24
"""Cells of one marginal; more are too large to share (exit code 10)."""


@dataclass(frozen=True)
class Event:
    """One release, as the accountant, the journal, the ledger and the report know it.

    `rho` is its zCDP cost, rounded up; `beta` bounds the statistical distance of its samplers from the ideal law
    (`mechanisms.md` 1.1 L3); `detail` holds public, JSON-able facts.
    """

    what: str
    rho: Fraction
    beta: Fraction
    detail: Mapping[str, object] = field(default_factory=dict)


class Guard(Protocol):
    """Stands before every opening: the party's accountant and journal."""

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Check the event against the budget and put it on disk; `inputs` is the hash of all the step's public inputs.

        Raises `BudgetRefused`; then nothing of the step may be opened.
        """


@dataclass(frozen=True)
class Setting:
    """Public facts of a study that the mechanisms need.

    sizes: number of values of each column. unit_rows: the most rows of one privacy unit over all custodians
    (max_rows x max_custodians of the unit; 1 when the unit is a row). row_cap: custodians x max_rows, which bounds the
    total before a noisy one is known. session: public id of the run; public seeds are derived from it.
    """

    sizes: Mapping[str, int]
    adjacency: Adjacency
    unit_rows: int
    row_cap: int
    session: bytes

    def cells(self, clique: Clique) -> int:
        """Number of cells of the clique's marginal."""
        cells = 1
        for column in clique:
            cells *= self.sizes[column]
        return cells


class MarginalOracle(ABC):
    """Answers a synthesizer's questions about data nobody else sees. Blocking; one step at a time.

    Cells of a marginal are in row-major (C) order of the clique's columns, as the clique lists them.
    """

    setting: Setting

    @property
    @abstractmethod
    def row_bound(self) -> int:
        """Public n': at least the number of rows, except with the probability in the events' beta (`mechanisms.md` 5)."""

    @property
    @abstractmethod
    def noisy_total(self) -> float | None:
        """The inverse-variance mean of all noisy totals known so far (sums of the first measured batch, or `total`)."""

    @abstractmethod
    def prepare(self, cliques: Sequence[Clique]) -> list[Handle]:
        """Make these marginals available; a clique contained in another is derived, not shared again. Releases nothing."""

    @abstractmethod
    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
    ) -> int:
        """Position in `handles` of the selected candidate (`mechanisms.md` 1-2).

        answers: the model's counts, one float64 array of n_q cells per handle. weights: positive. penalties: per handle, in
        counts (AIM: sqrt(2/pi) sigma n_q). Raises `BudgetRefused`, `StudyInvalid` (the ring would overflow).
        """

    @abstractmethod
    def measure(self, handles: Sequence[Handle], sigma2: Fraction) -> list[NDArray[np.int64]]:
        """Each marginal plus independent discrete Gaussian noise of parameter sigma2; int64, may be negative."""

    @abstractmethod
    def total(self, sigma2: Fraction) -> int:
        """The number of rows plus discrete Gaussian noise."""
