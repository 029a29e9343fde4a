"""One owner of a training: its critic, its batches, its noise. What leaves is the number of rows, noisily,
and gradients of the generator that the noisy critic gives: post-processing of noisy sums
(`docs/design/vertigan.md`).

Random choices are `Coins` of its own, told to nobody. The server's seed makes the generator's batch only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from synth.research.vertigan.coins import Coins, gumbel
from synth.research.vertigan.config import BUCKETS
from synth.research.vertigan.critic import Critic, hidden
from synth.research.vertigan.net import LATENT, Branch
from synth.research.vertigan.plan import SCALE_BITS
from synth.research.vertigan.seats import groups, placed, seated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.research.vertigan.plan import VertiGanPlan

MAX_NORM: Final = 10.0
"""Of a gradient that an owner sends."""
MAX_FAKES: Final = 4096
"""Rows of the generator's batch."""


class Owner:
    """An owner's private side of a run of the plan, which knows the owners."""

    def __init__(
        self,
        plan: VertiGanPlan,
        name: str,
        codes: Mapping[str, NDArray[Any]],
        rows: int,
        coins: Coins | None = None,
    ) -> None:
        """codes: (rows,) of each of its columns. coins: None takes the operating system's; others are for
        tests."""
        self._plan, self._name, self._coins = plan, name, coins or Coins()
        columns = plan.columns_of(name)
        widths = [plan.domain.sizes[column] for column in columns]
        self._branch = Branch(widths)
        offsets = np.cumsum([0, *widths[:-1]])
        self._cells = np.stack([codes[column].astype(np.int64) for column in columns], axis=1) + offsets
        self._rows, self._left, self._step = rows, plan.config.rounds, 0
        self._critic = Critic(
            self._branch.cells, self._coins.uniform((hidden(self._branch.cells), self._branch.cells + 2))
        )
        self._noisy_rows = 0
        self._bucket = self._buckets() if plan.config.sampling == BUCKETS else None

    def count(self) -> int:
        """See `synth.algorithm.OwnTraining`."""
        self._noisy_rows = self._rows + int(self._coins.noise(self._plan.sigma2, 1)[0])
        return self._noisy_rows

    def gradient(self, parameters: NDArray[np.float32], seed: bytes) -> NDArray[np.float32]:
        """See `synth.algorithm.OwnTraining`: the critic's steps, then its gradient of a fresh batch."""
        if self._left == 0:
            raise ProtocolAborted(
                "The server asked for more rounds than the study has; nothing more is computed."
            )
        self._left -= 1
        for _ in range(self._plan.config.critic_steps):
            self.step(parameters)
        z, noise = public_batch(seed, self._name, self._fakes, self._branch.cells)
        found = self._branch.gradient(
            parameters, z, noise, lambda rows: -self._critic.input_gradient(rows) / len(rows)
        )
        norm = float(np.linalg.norm(found.astype(np.float64)))
        if not np.isfinite(norm):
            return np.zeros_like(found)
        return np.asarray(found * min(1.0, MAX_NORM / max(norm, 1e-30)), np.float32)

    def step(self, parameters: NDArray[np.float32]) -> NDArray[np.int64]:
        """One noisy step of the critic; the noisy integers by which it went, all that is ever known of the
        batch."""
        clip = self._plan.config.clip
        summed = self.batch_sum(parameters) * (2**SCALE_BITS / clip)
        released = np.rint(summed).astype(np.int64)
        released += self._coins.noise(self._plan.integer_noise(self._name), len(released))
        self._step += 1
        self._critic.descend(released.astype(np.float64) * (clip / 2**SCALE_BITS / self._expected))
        return released

    def batch_sum(self, parameters: NDArray[np.float32]) -> NDArray[np.float64]:
        """The sum of clipped gradients over this step's batch, without noise: private."""
        batch, cells = self._batch(), self._branch.cells
        z, noise, mix = self._coins.fakes(batch, LATENT, cells)
        summed = self._critic.empty_sum()
        for seats in groups(seated(self._coins.lanes(batch))):
            taken = seats >= 0
            fake = self._branch.fakes(parameters, placed(z, seats), placed(noise, seats))
            real = np.zeros((*seats.shape, cells))
            real.reshape(-1, cells)[np.flatnonzero(taken)[:, None], self._cells[batch[seats[taken]]]] = 1.0
            mixed = placed(mix, seats).astype(np.float64)
            summed.add(self._critic.group_sum(real, fake, mixed, taken, self._plan.config.clip))
        return summed.value

    def _batch(self) -> NDArray[np.int64]:
        if self._bucket is None:
            return self._coins.included(self._rows, self._plan.rate)
        return np.flatnonzero(self._bucket == self._step % self._plan.buckets)

    @property
    def _expected(self) -> float:
        """Rows of a batch as they are publicly known: at least one."""
        rate = self._plan.rate if self._bucket is None else Fraction(1, self._plan.buckets)
        return max(1.0, float(rate) * self._noisy_rows)

    @property
    def _fakes(self) -> int:
        return min(MAX_FAKES, max(16, round(self._expected)))

    def _buckets(self) -> NDArray[np.int64]:
        """Of each row, by a public hash of what is in it and of nothing else."""
        kinds, which = np.unique(self._cells, axis=0, return_inverse=True)
        hashed = [
            int.from_bytes(
                hashlib.blake2b(kind.astype("<i8").tobytes(), digest_size=8, person=b"vertigan").digest()
            )
            for kind in kinds
        ]
        found = np.array([value % self._plan.buckets for value in hashed], np.int64)
        return found[which.reshape(-1)] if len(found) else np.zeros(0, np.int64)


def public_batch(
    seed: bytes, owner: str, rows: int, cells: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The generator's input, the same at all owners, and its Gumbel noise for one of them: from the server's
    seed, no secrets."""
    z = np.random.default_rng(int.from_bytes(seed)).standard_normal((rows, LATENT), np.float32)
    own = hashlib.sha256(seed + owner.encode()).digest()
    uniform = np.random.default_rng(int.from_bytes(own)).random((rows, cells)).clip(1e-9, 1 - 1e-7)
    return z, gumbel(uniform)
