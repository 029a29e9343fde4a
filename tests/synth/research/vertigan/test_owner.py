"""An owner's side: what leaves it is noisy by its own hand, and says nothing of which row belongs to whom
elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted
from synth.research.vertigan import net
from synth.research.vertigan.coins import Coins
from synth.research.vertigan.critic import Critic
from synth.research.vertigan.net import Branch
from synth.research.vertigan.owner import MAX_NORM, Owner
from synth.research.vertigan.seats import BLOCKS, LANES, seated
from tests.synth.research.vertigan import worlds

KNOWN = worlds.plan().knowing(worlds.OWNERS)
SEED = b"sixteen bytes ok"


@pytest.fixture(autouse=True)
def with_torch() -> None:
    pytest.importorskip("torch")


def owner(codes: dict[str, Any], coins: Coins | None = None, plan: Any = KNOWN, name: str = "south") -> Owner:
    return Owner(plan, name, codes, len(codes["a"]), coins)


def parameters(plan: Any = KNOWN, name: str = "south") -> Any:
    layers = (*net.TRUNK, *net.branch(plan.cells_of(name)))
    return net.fresh(layers, np.random.default_rng(5))


def messages(of: Owner) -> list[bytes]:
    """All that leaves it in a whole run."""
    found = [of.count().to_bytes(8, "big", signed=True)]
    for number in range(KNOWN.config.rounds):
        given = parameters() * np.float32(1 + number)
        found.append(of.gradient(given, SEED).tobytes())
    return found


def test_a_permutation_of_rows_and_coins_changes_no_byte() -> None:
    """So the law of the run does not depend on which row stands beside which at another owner: nothing across
    is learned."""
    codes = worlds.table(1)
    order = np.random.default_rng(2).permutation(worlds.ROWS)
    as_it_is = messages(owner(codes, worlds.CoinsOfRows(3, np.arange(worlds.ROWS))))
    permuted = {name: column[order] for name, column in codes.items()}
    assert messages(owner(permuted, worlds.CoinsOfRows(3, order))) == as_it_is
    assert messages(owner(permuted, worlds.CoinsOfRows(4, order))) != as_it_is


def test_one_row_less_moves_a_sum_by_the_clip_at_most() -> None:
    plan, codes = worlds.plan(rate=0.5, clip=0.5).knowing(worlds.OWNERS), worlds.table(1, 60)
    people = np.arange(60)
    whole = owner(codes, worlds.CoinsOfRows(3, people, 60), plan).batch_sum(parameters())
    moved = []
    for gone in range(60):
        kept = people[people != gone]
        less = {name: column[kept] for name, column in codes.items()}
        found = owner(less, worlds.CoinsOfRows(3, kept, 60), plan).batch_sum(parameters())
        moved.append(float(np.linalg.norm(whole - found)))
    assert max(moved) <= 0.5
    assert sum(distance > 0.49 for distance in moved) > 15  # those that are in the batch


def test_a_row_less_changes_no_bit_of_what_is_computed_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a library makes of shapes and of places in a matrix: here numbers depend on both, and by far
    more than rounding.

    Without blocks of one shape, or with places that are dealt out in order, most of the other rows' numbers
    would move.
    """
    people, codes = np.arange(200), worlds.table(1, 200)
    plan = worlds.plan(rate=0.9).knowing(worlds.OWNERS)
    of_rows: dict[float, bytes] = {}
    fakes, before = Branch.fakes, Critic._before

    def of_places(rows: Any) -> Any:
        return 1 + 1e-3 * np.arange(rows.shape[-2])[:, None] + 1e-2 * rows.shape[-2]

    monkeypatch.setattr(Branch, "fakes", lambda self, *given: (made := fakes(self, *given)) * of_places(made))
    monkeypatch.setattr(Critic, "_before", lambda self, x: (made := before(self, x)) * of_places(made))
    pieces = Critic._pieces

    def noted(self: Critic, real: Any, fake: Any, mix: Any) -> Any:
        found = pieces(self, real, fake, mix)
        sides, inputs, last = found
        for block, lane in np.argwhere(mix[..., 0]):  # an interpolation belongs to one row, and tells which
            numbers = [each[block, lane].tobytes() for each in (*sides, *inputs, last)]
            of_rows[float(mix[block, lane, 0])] = b"".join([lane.tobytes(), *numbers])
        return found

    monkeypatch.setattr(Critic, "_pieces", noted)

    def computed(kept: Any) -> dict[float, bytes]:
        of_rows.clear()
        less = {name: column[kept] for name, column in codes.items()}
        owner(less, worlds.CoinsOfRows(3, kept, 200), plan).batch_sum(parameters())
        return dict(of_rows)

    whole = computed(people)
    assert len(whole) > 150
    for gone in range(0, 200, 20):
        found = computed(people[people != gone])
        assert found.items() <= whole.items() and len(whole) - len(found) <= 1


def test_blocks_that_are_computed_together_are_computed_one_by_one() -> None:
    """The kernels of this machine: fakes and gradients of a block are the same bits whatever other blocks
    hold, and how many."""
    of, rng = owner(worlds.table(1)), np.random.default_rng(1)
    z = rng.standard_normal((BLOCKS, LANES, net.LATENT), np.float32)
    noise = rng.standard_normal((BLOCKS, LANES, of._branch.cells), np.float32)
    mix = rng.random((BLOCKS, LANES, 1))
    parts = [np.eye(width)[rng.integers(0, width, (BLOCKS, LANES))] for width in of._branch.widths]
    real = np.concatenate(parts, axis=-1)

    def computed(some: slice) -> list[Any]:
        fake = of._branch.fakes(parameters(), z[some], noise[some])
        sides, inputs, last = of._critic._pieces(real[some], fake, mix[some])
        return [*sides, *inputs, last, *of._critic._norms(sides, inputs, last)]

    together = computed(slice(None))
    for some in (slice(3, 4), slice(9, BLOCKS)):
        alone = computed(some)
        assert all(np.array_equal(one[some], other) for one, other in zip(together, alone, strict=True))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_do_not_go_by_where_an_array_lies(kind: Any) -> None:
    """The kernels of this machine, at eight addresses: a last bit would do."""
    rng = np.random.default_rng(1)
    rows, weight = rng.standard_normal((LANES, 98)).astype(kind), rng.standard_normal((49, 98)).astype(kind)
    expected = rows @ weight.T, np.vecdot(rows, rows)
    for shift in range(1, 8):
        moved = np.empty(rows.size + shift, kind)[shift:].reshape(rows.shape)
        moved[:] = rows
        assert np.array_equal(moved @ weight.T, expected[0]) and np.array_equal(
            np.vecdot(moved, moved), expected[1]
        )


def test_fakes_are_the_generators() -> None:
    """NumPy's, in blocks, and PyTorch's, of which gradients are taken."""
    import torch

    of, rng = owner(worlds.table(1))._branch, np.random.default_rng(1)
    z = rng.standard_normal((3, LANES, net.LATENT), np.float32)
    noise = 3 * rng.standard_normal((3, LANES, of.cells), np.float32)
    with torch.no_grad():
        rows = z.reshape(-1, net.LATENT)
        expected = of._soft(torch, torch.from_numpy(parameters()), rows, noise.reshape(-1, of.cells))
    found = of.fakes(parameters(), z, noise)
    assert np.allclose(found.reshape(expected.shape), expected.numpy(), atol=2e-6)
    wide = of.fakes(
        parameters() * np.float32(30), z, noise
    )  # logits beyond what a float32 has exponentials for
    assert np.isfinite(wide).all() and np.allclose(wide.sum(axis=-1), len(of.widths), atol=1e-5)


def test_rows_sit_at_the_places_that_they_drew() -> None:
    lanes = np.random.default_rng(1).integers(0, LANES, 500)
    seats = seated(lanes)
    block, lane = np.nonzero(seats >= 0)
    assert np.array_equal(np.sort(seats[block, lane]), np.arange(500))
    assert np.array_equal(lanes[seats[block, lane]], lane)
    assert len(seats) == np.bincount(lanes).max() and seated(lanes[:0]).shape == (0, LANES)
    less = seated(np.delete(lanes, 7))
    place = {row: (seats == row).nonzero()[1][0] for row in range(500)}
    assert all((less == row - (row > 7)).nonzero()[1][0] == place[row] for row in range(500) if row != 7)


def test_batches_fakes_and_noise_are_its_own_whatever_the_server_says() -> None:
    codes, given = worlds.table(1), parameters()
    first, second = owner(codes), owner(codes)
    assert not np.array_equal(first._batch(), second._batch())
    assert not np.array_equal(first.step(given), second.step(given))
    same = worlds.CoinsOfRows(3, np.arange(worlds.ROWS)), worlds.CoinsOfRows(3, np.arange(worlds.ROWS))
    again = [owner(codes, coins) for coins in same]
    assert again[0].gradient(given, SEED).tobytes() == again[1].gradient(given, SEED).tobytes()
    assert again[0].gradient(given, SEED).tobytes() != again[1].gradient(given, b"another 16 bytes").tobytes()


def test_a_step_adds_the_planned_noise() -> None:
    """Without a row all is noise: the variance of 1,000 integers within 6.5 standard errors (false alarms
    below 1e-10)."""
    empty = {name: column[:0] for name, column in worlds.table(1).items()}
    of = owner(empty)
    drawn = np.concatenate([of.step(parameters()) for _ in range(20)]).astype(np.float64)
    expected = float(KNOWN.integer_noise("south"))
    assert abs(drawn.var() / expected - 1) < 6.5 * np.sqrt(2 / len(drawn))
    assert expected == pytest.approx(float(KNOWN.noise2) * (2**14 + np.sqrt(len(drawn) / 20)) ** 2, rel=1e-6)


def test_gradients_are_bounded_and_finite() -> None:
    of = owner(worlds.table(1))
    with np.errstate(all="ignore"):
        found = of.gradient(np.full(len(parameters()), 1e6, np.float32), SEED)
    assert np.isfinite(found).all() and np.linalg.norm(found) <= MAX_NORM * (1 + 1e-6)


def test_no_more_rounds_than_were_charged() -> None:
    of = owner(worlds.table(1))
    for _ in range(KNOWN.config.rounds):
        of.gradient(parameters(), SEED)
    with pytest.raises(ProtocolAborted, match="more rounds"):
        of.gradient(parameters(), SEED)


def test_a_rows_bucket_is_a_function_of_the_row_alone() -> None:
    plan = worlds.plan(sampling="buckets", epsilon=30.0).knowing(worlds.OWNERS)
    codes, order = worlds.table(1), np.random.default_rng(2).permutation(worlds.ROWS)
    whole = owner(codes, plan=plan)._buckets()
    assert set(whole) <= set(range(plan.buckets)) and len(set(whole)) > 1
    permuted = owner({name: column[order] for name, column in codes.items()}, plan=plan)
    assert np.array_equal(permuted._buckets(), whole[order])
    alone = owner({name: column[7:8] for name, column in codes.items()}, plan=plan)
    assert alone._buckets()[0] == whole[7]
    steps = np.zeros(worlds.ROWS, int)
    of = owner(codes, plan=plan)
    for of._step in range(plan.steps):
        steps[of._batch()] += 1
    assert steps.max() <= plan.events()[-1].detail["exposures"] == -(-plan.steps // plan.buckets)
