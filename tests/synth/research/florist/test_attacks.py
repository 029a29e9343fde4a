"""What each side reads off the tensors: everything it is said to, and no more than the responses where there
are responses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runner.review.audit.groups.inference import area
from runner.review.audit.research import split_attacks
from runner.review.audit.research.trainings import People, Rehearsed, rehearse
from synth.research.florist.algorithm import ALGORITHM
from synth.research.florist.config import FloristConfig

PEOPLE = People.invented(3000, 5)
EPOCHS = 4
MISSED = 6.2
"""Standard deviations: a false alarm below 1e-9, two-sided."""


def trained(**keys: object) -> Rehearsed:
    usual = {"label": "label", "label_rate": 0.25, "cut": 32, "batch": 150, "epochs": EPOCHS, "rate": 0.003}
    config = FloristConfig(**{**usual, **keys})  # type: ignore[arg-type]
    return rehearse(PEOPLE, ALGORITHM, config, "attack")


def read(found: Rehearsed) -> tuple[np.ndarray, np.ndarray]:
    """(rows, the labels that the last epoch's gradients show)."""
    part = found.last_epoch(EPOCHS)
    shown = split_attacks.labels_read(found.gradients[part])
    return np.concatenate(found.batches[part]), np.concatenate(shown)


def test_gradients_show_every_label_and_with_majority_who_is_a_member(torch: None) -> None:
    rows, shown = read(trained(labels="majority"))
    positive = (PEOPLE.labels[rows] == 1) & PEOPLE.has_label[rows]
    assert shown[positive].mean() >= 0.99
    assert PEOPLE.has_label[rows][shown == 1].mean() == 1.0  # nobody whose label is invented is called 1


def test_a_small_batch_is_read_by_the_sides_that_the_epoch_has() -> None:
    """A gradient is (p - label) times the last layer: where a few rows are known well by chance, the rarer label's
    gradients are the smaller ones."""
    layer = np.array([3.0, -4.0, 0.0, 1.0])
    labels = np.tile([1, 0, 0, 0], 40)
    usual = np.outer(0.3 - labels, layer)
    known = np.outer(np.array([0.9, 0.6, 0.6, 0.6]) - labels[:4], layer)
    for rarer, batches in ((1, [usual, known, usual]), (0, [usual, known])):
        shown = np.concatenate(split_attacks.labels_read(batches, rarer))
        expected = np.concatenate([labels[: len(batch)] for batch in batches])
        assert np.array_equal(shown, expected if rarer else 1 - expected)


def test_of_responses_gradients_show_the_responses(torch: None) -> None:
    rows, shown = read(trained(labels="random-pos", label_epsilon=2.0))
    keep = math.exp(2) / (1 + math.exp(2))
    real = PEOPLE.has_label[rows]
    for label in (0, 1):
        mine = shown[real & (PEOPLE.labels[rows] == label)]
        right = (mine == label).mean()
        assert abs(right - keep) <= MISSED * math.sqrt(keep * (1 - keep) / len(mine))


def test_a_negative_embedding_is_invented(torch: None) -> None:
    for strategy in ("gaussian", "random"):
        found = trained(features=strategy)
        part = found.last_epoch(EPOCHS)
        rows, sent = (
            np.concatenate(found.batches[part]),
            np.concatenate(found.embeddings[: len(found.batches)][part]),
        )
        real = PEOPLE.has_features[rows]
        scores = split_attacks.negative(sent)
        assert scores[real].max() == 0.0 and area(scores[~real], scores[real]) >= 0.99


@pytest.mark.parametrize(("strategy", "low", "high"), [("sampling", 0.6, 1.0), ("model", 0.0, 0.6)])
def test_copies_collide(torch: None, strategy: str, low: float, high: float) -> None:
    found = trained(features=strategy, cut=128, batch=512, rate=0.001)
    part = found.last_epoch(EPOCHS)
    scores = split_attacks.nearest(found.embeddings[: len(found.batches)][part])
    real = PEOPLE.has_features[np.concatenate(found.batches[part])]
    assert low <= area(scores[~real], scores[real]) <= high


def test_the_spectral_attack_finds_what_is_far_from_the_rest() -> None:
    rng = np.random.default_rng(1)
    batch = rng.normal(size=(100, 8))
    batch[:10, 0] += 50
    scores = split_attacks.spectral(batch)
    assert area(scores[:10], scores[10:]) == 1.0
