"""Noise made ahead: many short protocols become one (`docs/design/mechanisms.md` 1.5, 4).

Noise does not depend on data, and drawing it for one release costs as many rounds as for twenty. So a run
that keeps asking for noise of one kind (the Gumbel noise of a selection on one grid, the Gaussian noise of
one sampler) gets it from a pool: what a release finds there costs it nothing, and when the pool runs out, the
release that finds it empty makes more, GROWTH times as much as the run has used of that kind, up to `most`
rows. The first release of a kind makes what it needs and no more. Where it is known what comes next, a
release before it fills the pool with what that can take at most (`fill`); rows that were drawn ahead for a kind that
was not known yet become a pool of it (`start`). Where parties are far apart a
making's rounds cost more than its bytes: then FAR_GROWTH times as much is made, by the first release already
(`NoisePool.at`).

What the noise of a release is bound to. The rows of one making are streams bound to the release that makes
them: session id, step number, mechanism, hash of all public inputs so far, id of the input sharing. Every row
goes into ONE release, and which one is a function of public sizes, hence of the transcript whose hash stands
in the record of that release; rows that are left when a release makes its own, or when the kind changes, are
dropped. Two releases of a session therefore never meet the same noise, nor do two attempts at a run: each has
a session id, keys and empty pools of its own (`docs/design/resume.md`).

Threat model: the backend's; the rows are shares nobody knows. Everything here but their content is a function
of public sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Self

from mpc_protocols.engine.interface import N
from mpc_protocols.engine.latency import FAR

GROWTH, FAR_GROWTH = 4, 16
ROUNDS = 12
"""That a making takes, about."""
GUMBEL_ROWS = 1 << 14
"""Most rows of Gumbel noise made ahead: about 50 ms of computing."""
GAUSSIAN_ROWS = 4096
MAX_POOL_ROWS = 1 << 16


@dataclass
class PoolModel:
    """How many rows there are, of which kind, and how many are generated when they run out.

    most: 0 means never ahead. growth: as GROWTH. at_first: whether the first release of a kind makes so much
    already.
    """

    most: int
    growth: int = GROWTH
    at_first: bool = False
    kind: Hashable = None
    rows_left: int = 0
    rows_used: int = 0

    def shortfall(self, kind: Hashable, count: int) -> int:
        """Rows to generate before `count` can be taken: 0 if they are there. Changes nothing."""
        if kind == self.kind and self.rows_left >= count:
            return 0
        used = self.rows_used if kind == self.kind else 0
        return max(count, min(self.most, self.growth * (used or count * self.at_first)))

    def take(self, kind: Hashable, count: int) -> int:
        """Take `count` rows. Returns the number of rows generated for it; leftovers are discarded then."""
        fresh = self.shortfall(kind, count)
        if fresh:
            self.rows_used, self.rows_left = self.rows_used if kind == self.kind else 0, fresh
            self.kind = kind
        self.rows_left -= count
        self.rows_used += count
        return fresh

    def lacking(self, kind: Hashable, count: int) -> int:
        """Rows to add so that `count` can be taken: 0 if they are there, else GROWTH times as many as are
        expected (`growth` where the kind is known), up to `most`; 0 if more than that are expected, for which
        they would have to be made anew. Changes nothing."""
        left, growth = (self.rows_left, self.growth) if kind == self.kind else (0, GROWTH)
        return 0 if left >= count or count > self.most else min(growth * count, self.most) - left

    def start(self, kind: Hashable, rows: int) -> None:
        """Begin a kind with so many rows; those there are are discarded."""
        self.kind, self.rows_left, self.rows_used = kind, rows, 0

    def fill(self, kind: Hashable, count: int) -> int:
        """Add what is lacking. Returns the number of rows generated for it; those of another kind are
        discarded then."""
        fresh = self.lacking(kind, count)
        if fresh:
            self.add(kind, fresh)
        return fresh

    def left(self, kind: Hashable) -> int:
        """Rows of a kind that are there."""
        return self.rows_left if kind == self.kind else 0

    def add(self, kind: Hashable, rows: int) -> None:
        """Add so many rows; those of another kind are discarded."""
        if kind != self.kind:
            self.start(kind, 0)
        self.rows_left += rows


class NoisePool(Generic[N]):
    """Rows of shared noise, each of which is given away once."""

    def __init__(self, most: int, growth: int = GROWTH, at_first: bool = False) -> None:
        self._model = PoolModel(most, growth, at_first)
        self._rows: N | None = None

    @classmethod
    def at(cls, latency_bytes: int, rows: int, row_bytes: int) -> Self:
        """The pool of a run in which a round is worth so much. rows: the most of one making where parties are
        near; row_bytes: of a row of it. Where they are far apart a making may cost half as much as its
        rounds."""
        if latency_bytes < FAR:
            return cls(rows)
        return cls(min(max(rows, ROUNDS * latency_bytes // (2 * row_bytes)), MAX_POOL_ROWS), FAR_GROWTH, True)

    def lacking(self, kind: Hashable, count: int) -> int:
        """See `PoolModel`: how many fresh rows `fill` must be given."""
        return self._model.lacking(kind, count)

    def fill(self, kind: Hashable, count: int, fresh: N, concatenate: Callable[[Sequence[N]], N]) -> None:
        """Add rows of a kind to those there are, so that `count` can be taken. fresh: what is lacking."""
        if self.lacking(kind, count) != len(fresh):
            raise ValueError(f"{len(fresh)} rows of noise are not what is lacking.")
        self.add(kind, fresh, concatenate)

    def left(self, kind: Hashable) -> int:
        """Rows of a kind that are there."""
        return self._model.left(kind)

    def add(self, kind: Hashable, fresh: N, concatenate: Callable[[Sequence[N]], N]) -> None:
        """Add these rows of a kind to those there are; those of another kind are discarded."""
        left = self.left(kind)
        self._model.add(kind, len(fresh))
        self._rows = fresh if not left or self._rows is None else concatenate([self._rows[:left], fresh])

    @property
    def most(self) -> int:
        """As in `PoolModel`."""
        return self._model.most

    def start(self, kind: Hashable, rows: N) -> None:
        """Begin a kind with these rows; those there are are discarded."""
        self._model.start(kind, len(rows))
        self._rows = rows

    def shortfall(self, kind: Hashable, count: int) -> int:
        """See `PoolModel`: how many fresh rows `take` must be given."""
        return self._model.shortfall(kind, count)

    def take(self, kind: Hashable, count: int, fresh: N | None) -> N:
        """The next `count` rows of a kind. fresh: the shortfall, generated for this release; None if there is
        none."""
        shortfall = self._model.take(kind, count)
        if shortfall != (0 if fresh is None else len(fresh)):
            raise ValueError(f"{shortfall} fresh rows of noise are needed, not {fresh and len(fresh)}.")
        rows = self._rows if fresh is None else fresh
        assert rows is not None
        self._rows = rows[count:]
        return rows[:count]
