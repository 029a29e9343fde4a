"""A critic's clipped sums: equal to per-row gradients by torch.func, and moved by at most the clip when one
row goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.research.vertigan.critic import CANCELLING, MARGIN, PENALTY, SLOPE, Critic, hidden, parameters
from synth.research.vertigan.seats import BLOCKS, LANES

BINARY = (2,) * 15


def critic(seed: int, width: int, scale: float = 1.0) -> Critic:
    made = Critic(width, np.random.default_rng(seed).random((hidden(width), width + 2)))
    made.weight *= scale
    made.output *= scale
    return made


def batch(seed: int, rows: int, widths: tuple[int, ...], soft: bool) -> tuple[Any, Any, Any]:
    """Real rows, fakes (one-hot or soft) and interpolations."""
    rng = np.random.default_rng(seed)

    def drawn() -> Any:
        return np.concatenate([np.eye(width)[rng.integers(0, width, rows)] for width in widths], axis=1)

    fake = (
        np.concatenate([rng.dirichlet(np.ones(width), rows) for width in widths], axis=1) if soft else drawn()
    )
    return drawn(), fake, rng.random((rows, 1))


def by_torch(of: Critic, real: Any, fake: Any, mix: Any) -> Any:
    """The gradient of the loss for each row, (rows, parameters), by automatic differentiation."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)

    def loss(weight: Any, bias: Any, output: Any, x: Any, y: Any, m: Any) -> Any:
        def score(row: Any) -> Any:
            return output @ torch.nn.functional.leaky_relu(weight @ row + bias, SLOPE)

        pull = torch.func.grad(score)(m * x + (1 - m) * y)
        return score(y) - score(x) + PENALTY * ((pull**2).sum().add(1e-12).sqrt() - 1) ** 2

    weights = [torch.tensor(part.copy()) for part in (of.weight[:, :-1], of.weight[:, -1], of.output)]
    rows = [torch.tensor(part) for part in (real, fake, mix)]
    found = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)), in_dims=(None,) * 3 + (0,) * 3)(
        *weights, *rows
    )
    first = torch.cat([found[0], found[1][:, :, None]], dim=2).reshape(len(real), -1)
    return torch.cat([first, found[2]], dim=1).numpy()


def test_clipped_sums_are_those_of_per_row_gradients() -> None:
    """50 random critics: sums to 1e-5 of the clip (they agree to 1e-9), norms to 1e-9 and never below."""
    rng = np.random.default_rng(1)
    for seed in range(50):
        widths = tuple(int(width) for width in rng.integers(2, 7, 4))
        of = critic(seed, sum(widths), scale=float(rng.choice([0.3, 1.0, 5.0])))
        real, fake, mix = batch(seed, 40, widths, soft=True)
        each = by_torch(of, real, fake, mix)
        norms, clip = np.linalg.norm(each, axis=1), float(rng.choice([0.1, 1.0, 30.0]))
        expected = (each * np.minimum(1, clip * MARGIN / norms)[:, None]).sum(axis=0)
        assert np.abs(of.clipped_sum(real, fake, mix, clip) - expected).max() < 1e-5 * clip
        found = of.norms(real, fake, mix)
        assert (found >= norms * (1 - 1e-12)).all() and np.allclose(found, norms, rtol=1e-9)
        assert each.shape[1] == parameters(sum(widths))


def test_no_row_counts_more_than_the_clip() -> None:
    """Also where large pieces nearly cancel: then a row counts less."""
    for seed, scale in enumerate([0.1, 1.0, 10.0, 1e3, 1e6, 1e12]):
        of = critic(seed, 30, scale)
        real, fake, mix = batch(seed, 30, BINARY, soft=True)
        real[0] = fake[0]  # the first two pieces cancel
        for row in range(30):
            only = slice(row, row + 1)
            moved = np.linalg.norm(of.clipped_sum(real[only], fake[only], mix[only], 1.0))
            assert moved <= 1.0
    flat = Critic(4, np.full((2, 6), 0.5))  # all weights are 0
    assert not flat.clipped_sum(*batch(0, 3, (2, 2), soft=True), 1.0).any()


def test_a_row_without_a_finite_gradient_counts_nothing() -> None:
    of = critic(0, 30)
    real, fake, mix = batch(0, 20, BINARY, soft=True)
    kept = of.clipped_sum(real[1:], fake[1:], mix[1:], 1.0)
    for bad in (np.nan, np.inf, 1e300):
        fake[0] = bad
        assert np.allclose(of.clipped_sum(real, fake, mix, 1.0), kept, rtol=0, atol=1e-12)


def test_one_row_moves_the_sum_by_the_clip_if_others_keep_their_fakes_and_by_much_more_if_not() -> None:
    """In an unlucky order, two kinds of rows and of fakes by turns: paired by place, all of them change
    partners."""
    rows = BLOCKS * LANES + 44
    of, (real, _, mix) = critic(0, 30), batch(0, rows, BINARY, soft=False)
    real[::2], real[1::2] = real[0], real[1]
    fake = real.copy()
    whole, own, placed = of.clipped_sum(real, fake, mix, 1.0), [], []
    for gone in range(rows):
        kept = np.arange(rows) != gone
        own.append(np.linalg.norm(whole - of.clipped_sum(real[kept], fake[kept], mix[kept], 1.0)))
        placed.append(np.linalg.norm(whole - of.clipped_sum(real[kept], fake[:-1], mix[:-1], 1.0)))
    assert max(own) <= 1.0
    assert max(placed) > 5.0


def test_the_gradient_in_the_input_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    of, (_, fake, _) = critic(3, 30), batch(3, 10, BINARY, soft=True)
    rows = torch.tensor(fake).requires_grad_()
    hidden_units = rows @ torch.tensor(of.weight[:, :-1]).T + torch.tensor(of.weight[:, -1])
    (torch.nn.functional.leaky_relu(hidden_units, SLOPE) @ torch.tensor(of.output)).sum().backward()
    assert np.allclose(of.input_gradient(fake), rows.grad.numpy(), rtol=1e-12, atol=1e-15)


def test_pieces_of_a_clipped_gradient_are_bounded() -> None:
    """A row whose pieces are 1e6 and cancel to almost nothing is clipped by its pieces, not by what is left."""
    of = critic(5, 30, scale=1e3)
    real, _, mix = batch(5, 1, BINARY, soft=False)
    fake = real + 1e-9
    sides, inputs, last = of._pieces(real, fake, mix)
    norm, pieces = of._norms(sides, inputs, last)
    assert np.linalg.norm(of.clipped_sum(real, fake, mix, 1.0)) <= min(1.0, CANCELLING * norm[0] / pieces[0])
