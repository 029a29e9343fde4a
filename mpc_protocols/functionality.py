"""What the parties compute together, seen from outside: two ideal functionalities, the marginal oracle and
aggregation.

A select-measure-generate synthesizer touches private data through five questions only, whoever answers them:
a trusted curator in the clear (`ideal`), or parties that hold secret shares. `MarginalOracle` is the ideal
functionality's interface: the distribution of each answer, what is public, and the event that must be on
record before an answer is opened.

    prepare    makes marginals available, at any resolution; releases nothing
    select     the candidates with the largest noisy scores  w'_q * L1(M_q - c_q) - bias_q   (exponential mechanism, k times)
    measure    marginals plus discrete Gaussian noise, each of its own variance
    distances  L1(M_q - c_q) of several marginals plus discrete Gaussian noise
    total      number of rows plus discrete Gaussian noise

`Cohorts` serves clients that keep their rows: the sum of their integer vectors plus noise that nobody knows.

Public in every backend: the study, the handles and their cliques, levels, answers, weights, penalties,
epsilon and sigma2 of every step, the positions selected, the noisy counts. Secret: the marginals, the noise,
the keys of a selection and their order. See `mechanisms/` for the distributions and their proofs
(`docs/design/mechanisms.md` 1-5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clique = tuple[str, ...]
Handle = int
Indices = Sequence[int]
"""Of clients, or of positions in a vector."""
LocalCounts = Callable[[Sequence[Clique]], "list[NDArray[np.int64]]"]
"""One custodian's own marginals, cells in row-major order of each clique's columns; never leaves its process
unmasked."""
LocalVector = Callable[["Question"], "NDArray[np.int64]"]
"""One client's own answer to a question; never leaves its process unmasked."""
Observe = Callable[..., None]
"""observe(phase, event, **public_json_fields)"""
Adjacency = Literal["add-remove", "replace"]
MAX_CELLS: Final = 1 << 24
"""Cells of one marginal; more are too large to share (exit code 10)."""
MAX_MARGINALS: Final = 1 << 16
"""Of a run."""
USUAL_LEADER: Final = 1


def unobserved(phase: str, event: str, **fields: object) -> None:
    """For callers that do not want to know."""


@dataclass(frozen=True)
class Event:
    """One release, as the accountant, the journal, the ledger and the report know it.

    `rho` is its zCDP cost, rounded up; `beta` bounds the statistical distance of its samplers from the ideal
    distribution (`docs/design/mechanisms.md` 1.1 L3); `detail` holds public, JSON-able facts.
    """

    what: str
    rho: Fraction
    beta: Fraction
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Level:
    """A coarser version of a column, itself a column that cliques may name: a public function of the column's
    value alone.

    name: unlike any column of the study and any other level. column: of the study. bins: the level's value
    for each value of the column; every number from 0 to the largest occurs. Two levels of a column are nested
    if the finer one determines the coarser. Raises `ValueError`.
    """

    name: str
    column: str
    bins: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.name or self.name == self.column:
            raise ValueError(f"A level of the column {self.column!r} needs a name of its own.")
        if not self.bins or min(self.bins) != 0 or max(self.bins) != len(set(self.bins)) - 1:
            raise ValueError(f"The bins of the level {self.name!r} must be all integers from 0 up.")

    @property
    def size(self) -> int:
        """Number of values."""
        return max(self.bins) + 1


class Guard(Protocol):
    """Stands before every opening: the party's accountant and journal."""

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Check the event against the budget and put it on disk; `inputs` is the hash of all the step's
        public inputs.

        Raises `BudgetRefused`; then nothing of the step may be opened.
        """

    def authorise_all(self, releases: Sequence[tuple[Event, bytes]]) -> None:
        """The same of all releases of one step, in their order: who writes to a disk waits for it once."""
        for event, inputs in releases:
            self.authorise(event, inputs)


@dataclass(frozen=True)
class InputRule:
    """What is asked of the counts of contributors, which are checked in secret (`docs/design/inputs.md`).

    max_rows: the most rows of each. exclude: a contributor whose counts are inconsistent is left out; else
    the run ends.
    """

    max_rows: int
    exclude: bool = False


@dataclass(frozen=True)
class StudyFacts:
    """Public facts of a study that the mechanisms need.

    sizes: number of values of each column. unit_rows: the most rows of one privacy unit over all custodians
    (max_rows x max_custodians of the unit; 1 when the unit is a row). row_cap: custodians x max_rows, which
    bounds the total before a noisy one is known. session: public id of the run; public seeds are derived from
    it. leader: number of the computing party that runs the synthesizer. inputs: None where contributors'
    counts are not checked. counted: the sets of columns whose marginals custodians count, so that no other
    one may be asked for; None where any may.
    """

    sizes: Mapping[str, int]
    adjacency: Adjacency
    unit_rows: int
    row_cap: int
    session: bytes
    leader: int = USUAL_LEADER
    inputs: InputRule | None = None
    counted: frozenset[frozenset[str]] | None = None

    def cells(self, clique: Clique) -> int:
        """Number of cells of the clique's marginal."""
        cells = 1
        for column in clique:
            cells *= self.sizes[column]
        return cells

    def with_levels(self, levels: Sequence[Level]) -> StudyFacts:
        """These facts with the sizes of levels besides those of columns."""
        if not levels:
            return self
        return replace(self, sizes={**self.sizes, **{level.name: level.size for level in levels}})


class MarginalOracle(ABC):
    """Answers a synthesizer's questions about data nobody else sees. Blocking; one step at a time.

    Cells of a marginal are in row-major (C) order of the clique's columns, as the clique lists them.
    """

    facts: StudyFacts
    presumed: bool = False
    """Whether the answers are of an invented table, as in a dry run: then a rough model will do."""

    @property
    @abstractmethod
    def row_bound(self) -> int:
        """Public n': at least the number of rows, except with the probability in the events' beta
        (`docs/design/mechanisms.md` 5)."""

    @property
    @abstractmethod
    def noisy_total(self) -> float | None:
        """The inverse-variance mean of all noisy totals known so far (sums of the first measured batch, or
        `total`)."""

    @abstractmethod
    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        """Make these marginals available; releases nothing.

        levels: coarser versions of columns that the cliques of this and every later step may name like
        columns. One that is known already may be given again, unchanged. A clique names a column at one
        resolution only. A marginal whose cells are sums of cells of another one, over columns that it lacks
        or over the bins of nested levels, is derived from it and not shared again. So the finest marginal of
        each set of columns is shared, once. Bins must be functions of the study and of what has been
        released: then a coarse marginal has the sensitivity of a fine one, since a row lies in exactly one of
        its cells. Raises `StudyInvalid`: unknown or repeated column, too many cells, a level that is not one
        of its column.
        """

    def expect(self, sigma2: Fraction, promised: bool = False) -> None:  # noqa: B027 - a default that does nothing
        """Say before a selection that what it picks will be measured with noise of parameter sigma2, where
        that is known.

        Public, like every argument. The noise may be made while the selection is under way; no answer has
        another distribution. promised: the next question measures exactly what is picked, in that order, with
        that noise, so that it need not be sent; another question then raises `ProtocolAborted`. Else what is
        asked next may be something else. A selection raises `StudyInvalid` if no measurement may have such a
        variance. An oracle that makes no use of it does nothing.
        """

    def expect_counts(self, sigma2: Fraction, number: int) -> None:  # noqa: B027 - a default that does nothing
        """Say before a measurement that what the next selection picks will be measured with noise of parameter sigma2, and
        that these are about so many counts at most. Said several times: it will be one of these, the likeliest first.

        Public, like every argument. The noise may be made while this measurement and that selection are under way; no
        answer has another distribution. Fewer or more may be drawn, or none, and what is asked next may be something else.
        The measurement raises `StudyInvalid` if none may have such a variance. An oracle that makes no use of it does nothing.
        """

    def expect_keys(self, number: int) -> None:  # noqa: B027 - a default that does nothing
        """Say before a measurement, or the number of rows, that selections follow which draw noise for about so many
        candidates, those of several selections together.

        Public, like every argument. The noise may be made while the measurement is under way; no answer has another
        distribution. Fewer or more may be drawn, or none. An oracle that makes no use of it does nothing.
        """

    @abstractmethod
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
        """Positions in `handles` of the selected candidates, in the order of their selection
        (`docs/design/mechanisms.md` 1-2).

        answers: the model's counts, one float64 array of n_q cells per handle. weights: positive. penalties:
        per handle, in counts (AIM: sqrt(2/pi) sigma n_q). picks: how many selections are made on the same
        scores, each an exponential mechanism with fresh noise among the candidates that the earlier ones
        leave. What is picked leaves, and so does whatever is in conflict with it. conflicts: pairs (p, q) of
        positions, p < q, of which at most one is picked; functions of the study and of what has been
        released, like everything else here. Fewer than `picks` positions come back only if no candidate is
        left. `picks` events of epsilon^2 / 8 at most are authorised before the first pick is opened; they
        stay charged if the candidates run out. So each list is recomputed from the transcript alone, and
        every pick is paid. Raises `BudgetRefused`, `StudyInvalid` (the ring would overflow).
        """

    @abstractmethod
    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        """Each marginal plus independent discrete Gaussian noise of parameter sigma2; int64, may be negative.

        sigma2: one for all, or one per handle. One event, the sum of the marginals' costs.
        """

    @abstractmethod
    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        """L1(M_q - c_q) + X_q of each handle, int64 of shape (handles,); X_q independent discrete Gaussians
        of parameter sigma2.

        c_q: the answers, float64 of n_q cells, by the public systematic rounding that `select` uses. A unit
        moves every value by s = unit_rows at most (replace: 2 s), so the event costs rho = n s^2 / (2 sigma2)
        (replace: 2 n s^2 / sigma2), and beta counts the sampler once per value. Only after a noisy total is
        known. Raises `BudgetRefused`, `StudyInvalid` (no total yet; the sums would not fit 32 bits with their
        sign).
        """

    @abstractmethod
    def total(self, sigma2: Fraction) -> int:
        """The number of rows plus discrete Gaussian noise."""


@dataclass(frozen=True)
class Question:
    """A request to clients for one integer vector each.

    content: canonical public bytes that say what is asked, the same for all clients. length: entries of a
    vector. bound: the largest magnitude of an entry. sensitivity2: squared L2 norm by which one privacy unit
    can move the sum of all vectors, at most; an integer. Raises `ValueError`.
    """

    content: bytes
    length: int
    bound: int
    sensitivity2: int

    def __post_init__(self) -> None:
        if self.length < 1 or self.bound < 1 or self.sensitivity2 < 1:
            raise ValueError("The length, bound and sensitivity of a question must be positive.")


Answered = tuple[Question, "NDArray[np.int64] | tuple[int, ...]"]
"""A question to clients, and what was opened of it: numbers, or positions."""


class Cohorts(ABC):
    """Adds up what clients answer, with noise that nobody knows; clients choose by themselves what they answer
    (`docs/design/flaim.md` 3). Blocking; one question at a time.

    Who takes part in a sum is public. A client learns the question; recipients learn the noisy sum; nobody
    learns a client's vector, the sum without noise, or the noise. Of a cohort, computing parties and recipients
    learn what `sum`, `popular` and `reveal` return, never which client chose what. Every event names the
    clients whose records it charges (`detail["charged"]`): disjoint clients are charged side by side.
    """

    @property
    @abstractmethod
    def clients(self) -> Sequence[int]:
        """Numbers of the clients that can be asked."""

    @abstractmethod
    def sum(
        self, question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique] = ()
    ) -> NDArray[np.int64]:
        """The sum of these clients' vectors plus an independent discrete Gaussian of parameter sigma2 in
        every entry; all of the clients are charged.

        int64 of shape (question.length,). cliques: the marginals that the vectors hold, which the event names;
        public. The event, rho = sensitivity2 / (2 sigma2), is authorised before anything is opened; its beta
        counts the entries that a unit can move, sensitivity2 at most, since each moves by an integer. Raises
        `BudgetRefused`, `DataRefused` (a vector of another length or beyond the bound), `StudyInvalid` (an
        unknown or repeated client, a sum that would not fit 32 bits with its sign).
        """

    @abstractmethod
    def popular(
        self, question: Question, clients: Indices, least: int, event: Event, among: Indices | None = None
    ) -> tuple[int, ...]:
        """Positions, ascending, at which the sum of these clients' vectors of zeros and ones is at least
        `least`.

        One bit for each position is opened, nothing else. A client is asked once: the same question again,
        for some of the clients that have answered it, compares the answers that were kept until another
        question is asked, and charges nothing. among: the positions to compare; None for all. event: of each
        client's own choice, authorised before anything is opened. Raises as `sum`, and `StudyInvalid` for
        clients that were not asked.
        """

    @abstractmethod
    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> NDArray[np.int64]:
        """The exact sum of vectors that clients have made private by themselves; int64 of shape
        (question.length,).

        event: of what they did, authorised before anything is opened. Raises as `sum`.
        """


SUM, POPULAR, REVEAL = "sum", "popular", "reveal"
"""Kinds of questions to a cohort."""


@dataclass(frozen=True)
class Asking:
    """How a question to a cohort is asked. asked: whether clients answer it now, or their kept answers are
    compared again."""

    kind: str
    question: Question = field(default_factory=lambda: Question(b"", 1, 1, 1))
    clients: tuple[int, ...] = ()
    asked: bool = True
    sigma2: Fraction = Fraction(0)
    cliques: tuple[Clique, ...] = ()
    least: int = 0
    among: tuple[int, ...] | None = None
    event: Event = field(default_factory=lambda: Event("", Fraction(0), Fraction(0)))


class CohortsDryRun(Cohorts):
    """Cohorts of presumed tables that count what a run would cost. No private data; nothing released, nothing
    charged."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Messages on the longest chain so far."""

    @property
    @abstractmethod
    def sent(self) -> Sequence[int]:
        """Bytes of each party so far, by wire number."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """CPU seconds of a computing party so far, beyond what asks and answers."""

    @abstractmethod
    def close(self) -> None:
        """The end of the run, which costs messages too."""


@dataclass(frozen=True)
class Reports:
    """What the owners of columns have sent, one report each. rows: of the common table, public. columns: of
    each owner."""

    rows: int
    columns: tuple[tuple[str, ...], ...]
    payloads: tuple[bytes, ...] = field(repr=False)


class Reporter(ABC):
    """What owners of columns do in place of answering an oracle's questions: each sends the leader one
    report, made of its own rows with noise of its own (`mpc_protocols.vertical.owners`). The rows are
    aligned, and their number is public.

    Who learns what: the leader every report; the others nothing. What a report reveals is for whoever defines
    it to say.
    """

    keyed: bool = False
    """Whether the owners draw a common key before, which no party learns that is no owner."""

    @property
    @abstractmethod
    def events(self) -> Sequence[Event]:
        """What all reports together are charged; known before the run, and on record at every party before
        one leaves."""

    @abstractmethod
    def limit(self, columns: Sequence[str], rows: int) -> int:
        """The most bytes of the report of an owner of these columns."""

    @abstractmethod
    def length(self, columns: Sequence[str], rows: int) -> int:
        """About how many there will be, for `plan`."""

    @abstractmethod
    def report(
        self,
        codes: Mapping[str, NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]],
        own_oracle: Callable[[Guard], MarginalOracle],
        key: bytes,
    ) -> bytes:
        """The report of an owner: its codes (n,) per column, in the order of the common rows. key: the
        owners', or empty.

        own_oracle: about the owner's own table, of which it is the trusted curator, with a guard that holds
        it to a budget.
        """
