"""DP-CTGAN as a baseline: a generator of one-hot rows against a discriminator that is trained by DP-SGD,
central or federated.

After CTGAN (Xu et al. 2019) with DP-SGD (Abadi et al. 2016); without conditions, packing or batch norm, on
the study's integer codes: nothing is fitted to the data but the networks (`docs/design/flaim.md` 5).
Per-record gradients are clipped by ghost norms (of a linear layer: |input| times |output's gradient|) and
never stored. Only the real half of the loss reads records; the generator's half is post-processing.

    central    Poisson batches of everybody who came, hidden; RDP accounting of dp-accounting, add-remove; the rate is by
    the public
               number of rows of the table
    federated  one clipped sum of each client, in the first round it is there; a step a round; 1 / (2 sigma^2) each, no
    amplification, for
               the cohort is visible; rounding p parameters to 2^-12 moves a sum by sqrt(p) 2^-12 more

A BASELINE ON PUBLIC DATA: floating-point noise from a seeded generator protects nobody. Needs PyTorch and
dp-accounting.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import pip_install
from runner.bench.research.federated.world import Outcome, World
from synth.budget.accounting import rho_of

STEPS, BATCH, CLIP = 400, 512, 1.0
NOISE_WIDTH, HIDDEN, RATE, SOFTNESS, SLOPE = 64, 128, 1e-3, 0.3, 0.2
FEDERATED_STEPS: Final = 20
"""Of the generator, for one of the discriminator, which sees records in few rounds."""
GRAIN: Final = 2.0**-12
ORDERS: Final = (*range(2, 65), 128, 256)
"""Of divergences: whole ones, for which the accountant is fast; any set of orders gives a bound."""


def run(world: World, federated: bool = False, steps: int = STEPS) -> Outcome:
    """Train and draw a table. Raises `UsageError` without PyTorch."""
    if not all(map(importlib.util.find_spec, ("torch", "dp_accounting"))):
        raise UsageError(
            f"DP-CTGAN needs PyTorch and dp-accounting: run `{pip_install(['torch'])} dp-accounting`, "
            "or leave it out."
        )
    pair = _Pair(world)
    per_client = len(world.table.codes) / world.clients  # public, as is who came
    rows = max(1, round(per_client * len(world.arrived)))
    if federated:
        rho = float(rho_of(world.epsilon, world.delta))
        sensitivity = 1 + math.sqrt(pair.parameters) * GRAIN / CLIP
        sigma = sensitivity / math.sqrt(2 * rho)
        for there in world.newcomers:
            if there:
                pair.step(world.union(there), sigma, round(per_client * len(there)), FEDERATED_STEPS)
    else:
        union, rate = world.union(world.arrived), min(1.0, BATCH / len(world.table.codes))
        sigma = noise_multiplier(world.epsilon, world.delta, rate, steps)
        for _ in range(steps):
            chosen = union[world.rng.random(len(union)) < rate]
            pair.step(chosen, sigma, max(1, round(rate * rows)), 1)
    return Outcome(None, rows, Fraction(1), pair.draw(rows))


def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least noise, in clips, of so many steps on Poisson batches: by bisection to a thousandth, on the
    safe side."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    def spent(sigma: float) -> float:
        accountant = RdpAccountant(ORDERS)
        accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps))
        return float(accountant.get_epsilon(delta))

    low, high = 0.2, 1.0
    while spent(high) > epsilon:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > epsilon else (low, middle)
    return high


class _Pair:
    """A generator and a discriminator with two hidden layers each, and a step of both."""

    def __init__(self, world: World) -> None:
        import torch

        torch.set_num_threads(1)
        self._torch: Any = torch
        self._sizes = list(world.table.domain.sizes.values())
        self._seed = torch.Generator().manual_seed(world.seed)
        width = sum(self._sizes)
        self._generator = self._layers(NOISE_WIDTH, HIDDEN, HIDDEN, width)
        self._critic = self._layers(width, HIDDEN, HIDDEN, 1)
        self._moves: list[Any] = [
            torch.optim.Adam(layers, RATE, betas=(0.5, 0.9)) for layers in (self._generator, self._critic)
        ]

    @property
    def parameters(self) -> int:
        """Of the discriminator."""
        return sum(part.numel() for part in self._critic)

    def step(self, records: NDArray[np.int64], sigma: float, expected: int, generator_steps: int) -> None:
        """One step of the discriminator on these records, with noise of sigma clips on their clipped sum,
        then of the generator.

        expected: what the sum is divided by.
        """
        torch = self._torch
        fake = self._fake(BATCH).detach()
        loss = torch.nn.functional.softplus(self._judge(fake)[0]).mean()
        gradients = list(torch.autograd.grad(loss, self._critic))
        clipped = self.clipped_sum(records)
        for part, (gradient, real) in enumerate(zip(gradients, clipped, strict=True)):
            noise = torch.randn(real.shape, generator=self._seed) * (sigma * CLIP)
            self._critic[part].grad = gradient + (real + noise) / expected
        self._moves[1].step()
        for _ in range(generator_steps):
            loss = torch.nn.functional.softplus(-self._judge(self._fake(BATCH))[0]).mean()
            for part, gradient in zip(
                self._generator, torch.autograd.grad(loss, self._generator), strict=True
            ):
                part.grad = gradient
            self._moves[0].step()

    def clipped_sum(self, records: NDArray[np.int64]) -> list[Any]:
        """The sum over records of the gradient of softplus(-D), each of norm CLIP at most."""
        torch = self._torch
        judged, inputs, outputs = self._judge(self._one_hot(records))
        losses = torch.nn.functional.softplus(-judged).sum()
        with_respect = torch.autograd.grad(losses, outputs)
        squared = sum(
            (
                of.square().sum(1) * (given.square().sum(1) + 1)
                for of, given in zip(with_respect, inputs, strict=True)
            ),
            torch.zeros(len(records)),
        )
        share = torch.clamp(CLIP / squared.sqrt().clamp_min(1e-12), max=1.0)[:, None]
        found = []
        for of, given in zip(with_respect, inputs, strict=True):
            found += [((of * share).T @ given).detach(), (of * share).sum(0).detach()]
        return found

    def draw(self, rows: int) -> NDArray[np.int64]:
        """Codes of a table."""
        parts = []
        with self._torch.no_grad():
            for start in range(0, rows, 4096):
                made = self._fake(min(4096, rows - start))
                parts.append(
                    np.stack([block.argmax(1).numpy() for block in made.split(self._sizes, 1)], axis=1)
                )
        return np.concatenate(parts).astype(np.int64)

    def _layers(self, *widths: int) -> list[Any]:
        return list(self._initial_weights(widths))

    def _initial_weights(self, widths: tuple[int, ...]) -> Iterator[Any]:
        for given, of in pairwise(widths):
            for shape in ((of, given), (of,)):
                part = (self._torch.rand(shape, generator=self._seed) * 2 - 1) / math.sqrt(given)
                yield part.requires_grad_()

    def _judge(self, rows: Any) -> tuple[Any, list[Any], list[Any]]:
        """(a logit for each row, the inputs of each layer, its outputs)."""
        functional, inputs, outputs = self._torch.nn.functional, [], []
        for weights, bias in zip(self._critic[::2], self._critic[1::2], strict=True):
            inputs.append(rows)
            outputs.append(functional.linear(rows, weights, bias))
            rows = functional.leaky_relu(outputs[-1], SLOPE)
        return outputs[-1][:, 0], inputs, outputs

    def _fake(self, rows: int) -> Any:
        """One-hot rows, soft: Gumbel softmax of each column."""
        torch = self._torch
        made = torch.randn((rows, NOISE_WIDTH), generator=self._seed)
        for number, (weights, bias) in enumerate(
            zip(self._generator[::2], self._generator[1::2], strict=True)
        ):
            made = torch.nn.functional.linear(torch.relu(made) if number else made, weights, bias)
        gumbel = -torch.log(-torch.log(torch.rand(made.shape, generator=self._seed).clamp(1e-9, 1 - 1e-7)))
        return torch.cat([torch.softmax(of / SOFTNESS, 1) for of in (made + gumbel).split(self._sizes, 1)], 1)

    def _one_hot(self, records: NDArray[np.int64]) -> Any:
        codes = self._torch.from_numpy(records)
        one_hot = self._torch.nn.functional.one_hot
        return self._torch.cat([one_hot(codes[:, j], size).float() for j, size in enumerate(self._sizes)], 1)
