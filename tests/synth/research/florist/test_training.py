"""The loop: between two owners as in one process, alike for rows that are invented and rows that are not."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.research.split_learning.schedule import Schedule
from runner.review.audit.research.trainings import SESSION, People, coins_of, rehearse
from synth.research.florist.algorithm import ALGORITHM
from synth.research.florist.calibrate import Correction
from synth.research.florist.config import FloristConfig
from synth.research.florist.fill import Features
from synth.research.florist.labels import Labels

PEOPLE = People.invented(1200, 3)
CONFIG = FloristConfig(label="label", label_rate=0.25, cut=16, batch=200, epochs=4, rate=0.01)


def weights(archive: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(archive), allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name != "head"}


def test_halves_of_two_owners_are_those_of_one_process_bit_for_bit(torch: None) -> None:
    """More than 20 steps, written out here in one loop."""
    from synth.research.florist.net import ActiveHalf, PassiveHalf

    config = replace(CONFIG, labels="majority", features="sampling", calibrate="none")
    found = rehearse(PEOPLE, ALGORITHM, config, "same")
    assert len(found.batches) >= 20
    union, rows = len(PEOPLE.labels), np.flatnonzero(PEOPLE.has_features)
    first, second = coins_of("same 0"), coins_of("same 1")
    first(32), second(32)  # the schedule's
    keys = KeyStream(first(16))
    second(16)
    sizes = list(PEOPLE.domain.sizes.values())[:-1]
    passive = PassiveHalf(sizes, config.cut, config.rate, int.from_bytes(first(8), "little") >> 1)
    active = ActiveHalf(config.cut, config.rate, int.from_bytes(second(8), "little") >> 1)
    features = Features(
        union, rows, PEOPLE.codes[rows], "sampling", lambda row, count: keys.draw(count, np.uint64, row)
    )
    labels = np.where(PEOPLE.has_label, PEOPLE.labels, 0).astype(np.float32)
    for batch in found.batches:
        embedded = passive.embed(features.codes[batch])
        active.predict(embedded)
        passive.learn(active.learn(labels[batch]))
    for half, own, file in (
        (found.halves[0], passive, "florist-passive.npz"),
        (found.halves[1], active, "florist-active.npz"),
    ):
        kept, expected = weights(half.files[file]), own.weights()
        assert kept.keys() == expected.keys()
        assert all(np.array_equal(kept[name], expected[name]) for name in kept)


def test_bytes_are_the_tensors_and_rounds_are_two_a_step(torch: None) -> None:
    found = rehearse(PEOPLE, ALGORITHM, CONFIG, "traffic")
    steps, passes = len(found.batches), sum(map(len, found.batches))
    seeds, tensor = 64, 4 * CONFIG.cut
    assert found.traffic[0].bytes_sent == seeds + tensor * (passes + len(found.held_out))
    assert found.traffic[1].bytes_sent == seeds + tensor * passes
    assert 2 * steps <= found.traffic[1].rounds <= 2 * steps + 4
    cost = ALGORITHM.cost(CONFIG, len(PEOPLE.labels), 8)
    assert abs(cost.rounds - 2 * steps) <= 4 + 2 * CONFIG.epochs
    assert cost.sent[1] == pytest.approx(found.traffic[1].bytes_sent, rel=0.05)


def test_a_request_is_the_same_whoever_is_held(torch: None) -> None:
    """What the other owner is asked for depends on the common table alone."""
    nobody = replace(PEOPLE, has_label=~PEOPLE.has_label, has_features=np.ones_like(PEOPLE.has_features))
    first, second = (rehearse(people, ALGORITHM, CONFIG, "asked") for people in (PEOPLE, nobody))
    assert [len(tensor) for tensor in first.embeddings] == [len(tensor) for tensor in second.embeddings]
    assert all(np.array_equal(a, b) for a, b in zip(first.batches, second.batches, strict=True))


def test_what_is_invented_stays_for_the_run() -> None:
    keys = KeyStream(bytes(16))
    rows = np.arange(0, 100, 2)
    codes = np.arange(50, dtype=np.int64)[:, None]

    def draw(row: int, count: int) -> Any:
        return keys.draw(count, np.uint64, row)

    copied = Features(100, rows, codes, "sampling", draw)
    again = Features(100, rows, codes, "sampling", draw)
    assert np.array_equal(copied.codes, again.codes) and np.array_equal(copied.codes[rows], codes)
    random = Features(100, rows, codes, "gaussian", draw)
    batch = np.arange(100)
    embedded = np.ones((100, 6), np.float32)
    once, twice = random.complete(batch, embedded), random.complete(batch[::-1], embedded)[::-1]
    assert np.array_equal(once, twice) and not np.array_equal(once[1], once[3])
    assert np.array_equal(once[rows], embedded[rows])
    assert not random.learned(batch, embedded)[1::2].any()


@pytest.mark.parametrize("strategy", ["majority", "minority", "random-pos", "neighbors"])
def test_labels_stay_for_the_run(strategy: str) -> None:
    rng = np.random.default_rng(2)
    rows = np.arange(0, 400, 2)
    own = rng.integers(0, 2, 200)
    flips = 0 if strategy == "neighbors" else 1 << 62
    labels = Labels(400, rows, own, strategy, 0.3, flips, coins_of(strategy))
    batch = rng.permutation(400)
    first = labels.visit(batch, rng.random((400, 4), np.float32), np.full(400, 0.5))
    second = labels.visit(batch, rng.random((400, 4), np.float32), np.full(400, 0.5))
    assert np.array_equal(first, second)
    if not flips:
        assert np.array_equal(first[labels.real[batch]], own[batch[labels.real[batch]] // 2])


def test_labels_by_the_models_probability_are_drawn_anew() -> None:
    labels = Labels(4000, np.arange(10), np.ones(10, np.int64), "random-pred", 0.3, 0, coins_of("pred"))
    batch, embeddings = np.arange(4000), np.zeros((4000, 2), np.float32)
    first, second = (labels.visit(batch, embeddings, np.full(4000, 0.8)) for _ in range(2))
    assert not np.array_equal(first, second) and first[:10].all()
    assert abs(first[10:].mean() - 0.8) < 6.2 * 0.4 / 3990**0.5  # a false alarm below 1e-9
    assert labels.visit(batch, embeddings, np.ones(4000)).all()
    several = Labels(4000, np.arange(10), np.ones(10, np.int64), "random-pred", 0.3, 0, coins_of("pred"), 4)
    found = several.visit(batch, embeddings, np.full(4000, 0.8))
    assert set(np.unique(found)) == {0, 0.25, 0.5, 0.75, 1} and found[:10].all()
    assert (
        abs(found[10:].mean() - 0.8) < 6.2 * 0.2 / 3990**0.5
    )  # of four draws the mean has half the deviation


def test_the_schedule_is_everybodys_and_visits_each_row_once() -> None:
    first, second = (Schedule(1003, SESSION, bytes(32), 100, 10) for _ in range(2))
    epochs = [np.concatenate(list(first.epoch(number))) for number in range(2)]
    assert np.array_equal(np.sort(epochs[0]), first.trained) and not np.array_equal(epochs[0], epochs[1])
    assert all(np.array_equal(a, b) for a, b in zip(first.epoch(1), second.epoch(1), strict=True))
    assert np.array_equal(np.sort(np.concatenate((first.trained, first.held_out))), np.arange(1003))
    assert 40 <= len(first.held_out) <= 180  # 100.3 expected, sd 9.5


def test_corrections_in_the_loss_leave_the_network_the_truth(torch: None) -> None:
    """Of constant embeddings and labels that are 1 with probability a D + b, the network's own probability
    becomes D."""
    from synth.research.florist.net import ActiveHalf

    net = ActiveHalf(4, 0.01, 7, Correction(0.5, 0.2))
    embeddings = np.ones((1000, 4), np.float32)
    labels = (np.arange(1000) < 1000 * (0.5 * 0.4 + 0.2)).astype(np.float32)
    for _ in range(300):
        net.predict(embeddings)
        net.learn(labels)
    assert abs(net.probabilities(embeddings)[0] - 0.4) < 0.01
