"""VertiGAN's server (Jiang et al. 2023, algorithm 1): send every owner the trunk and its branch, take its
gradient, descend.

It sees noisy numbers of rows and gradients from noisy critics; generator, table and model are post-processing
of these.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import numpy as np

from mpc_protocols.functionality import Observe, unobserved
from synth.research.vertigan.coins import gumbel
from synth.research.vertigan.net import LATENT, Generator
from synth.research.vertigan.summary import summary
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.algorithm import OwnersTraining
    from synth.research.vertigan.plan import VertiGanPlan

SEED_BYTES: Final = 16
REPORTS: Final = 10
"""How often a training says how far it is."""
BLOCK: Final = 1 << 14


def run(owners: OwnersTraining, plan: VertiGanPlan, observe: Observe = unobserved) -> Synthesis:
    """Train, and draw the table. Raises what the owners raise: `PeerLost`, `ProtocolAborted`."""
    rng = np.random.default_rng(secrets.randbits(128))
    counts = owners.counts()
    total = float(np.mean(list(counts.values())))
    observe("measure", "total", noisy_total=total, sigma=float(plan.sigma2) ** 0.5)
    generator = Generator(
        {name: [plan.domain.sizes[column] for column in plan.columns_of(name)] for name in plan.owner_names},
        rng,
    )
    rounds = plan.config.rounds
    for number in range(1, rounds + 1):
        seed = secrets.token_bytes(SEED_BYTES)
        generator.descend(owners.gradients(generator.parameters(), seed))
        if number * REPORTS // rounds > (number - 1) * REPORTS // rounds:
            observe("fit", "trained", round=number, rounds=rounds)
    rows = plan.config.synthetic_rows or max(1, round(total))
    table = draw(generator, plan, rows, rng)
    return Synthesis(summary(table, plan, max(1.0, total)), (), (), total, rows, table=table)


def draw(generator: Generator, plan: VertiGanPlan, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of the generator: codes, (rows, columns in domain order)."""
    places = {name: i for i, name in enumerate(plan.domain.names)}
    table = np.zeros((rows, len(places)), np.int64)
    parameters = generator.parameters()
    for at in range(0, rows, BLOCK):
        block = table[at : at + BLOCK]
        z = rng.standard_normal((len(block), LATENT), np.float32)
        for name, branch in generator.branches.items():
            noise = gumbel(rng.random((len(block), branch.cells)).clip(1e-9, 1 - 1e-7))
            block[:, [places[column] for column in plan.columns_of(name)]] = branch.rows(
                parameters[name], z, noise
            )
    return table
