"""Noise made ahead: many short protocols become one (`docs/design/mechanisms.md` 1.5, 4).

Noise does not depend on data, and drawing it for one release costs as many rounds as for twenty. So a run that keeps asking for
noise of one kind (the Gumbel noise of a selection on one grid, the Gaussian noise of one sampler) gets it from a pool: what a
release finds there costs it nothing, and when the pool runs out, the release that finds it empty makes more, GROWTH times as
much as the run has used of that kind, up to `most` rows. The first release of a kind makes what it needs and no more.

What the noise of a release is bound to. The rows of one making are streams bound to the release that makes them: session id,
step number, mechanism, hash of all public inputs so far, id of the input sharing. Every row goes into ONE release, and which one
is a function of public sizes, hence of the transcript whose hash stands in the record of that release; rows that are left when
the pool is filled again, or when the kind changes, are dropped. Two releases of a session therefore never meet the same noise,
nor do two attempts at a run: each has a session id, keys and empty pools of its own (`docs/design/resume.md`).

Threat model: the backend's; the rows are shares nobody knows. Everything here but their content is a function of public sizes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic

from mpc_protocols.engine.interface import N

GROWTH = 4
GUMBEL_ROWS = 1024
"""Most rows of Gumbel noise made ahead: about 4 ms of computing."""
GAUSSIAN_ROWS = 4096


@dataclass
class PoolModel:
    """How many rows there are, of which kind, and how many are generated when they run out. most: 0 means never ahead."""

    most: int
    kind: Hashable = None
    rows_left: int = 0
    rows_used: int = 0

    def shortfall(self, kind: Hashable, count: int) -> int:
        """Rows to generate before `count` can be taken: 0 if they are there. Changes nothing."""
        if kind == self.kind and self.rows_left >= count:
            return 0
        return max(count, min(self.most, GROWTH * self.rows_used if kind == self.kind else 0))

    def take(self, kind: Hashable, count: int) -> int:
        """Take `count` rows. Returns the number of rows generated for it; leftovers are discarded then."""
        fresh = self.shortfall(kind, count)
        if fresh:
            self.rows_used, self.rows_left = self.rows_used if kind == self.kind else 0, fresh
            self.kind = kind
        self.rows_left -= count
        self.rows_used += count
        return fresh


class NoisePool(Generic[N]):
    """Rows of shared noise, each of which is given away once."""

    def __init__(self, most: int) -> None:
        self._model = PoolModel(most)
        self._rows: N | None = None

    def shortfall(self, kind: Hashable, count: int) -> int:
        """See `PoolModel`: how many fresh rows `take` must be given."""
        return self._model.shortfall(kind, count)

    def take(self, kind: Hashable, count: int, fresh: N | None) -> N:
        """The next `count` rows of a kind. fresh: the shortfall, generated for this release; None if there is none."""
        shortfall = self._model.take(kind, count)
        if shortfall != (0 if fresh is None else len(fresh)):
            raise ValueError(f"{shortfall} fresh rows of noise are needed, not {fresh and len(fresh)}.")
        rows = self._rows if fresh is None else fresh
        assert rows is not None
        self._rows = rows[count:]
        return rows[:count]
