"""One training on a table of which each owner lacks some rows, in memory, by a deployment's code, and what
its model is worth.

A tenth of the rows is kept apart: people whom both owners hold, on whom the model is judged; the training's
own held-out rows are kept out besides. Of the others, each owner lacks a share, drawn independently; rows
that neither holds are in no union. The label is one owner's, all other columns the other's. Randomness is the
seed's: a simulation on public data.

    partial    rows that both hold, nothing invented: with shares of 0, all rows
    vanilla    majority and sampling, corrected for labels alone, afterwards
    te, tr     majority and sampling, corrected afterwards, or in the loss
    drawn      labels by the model's probability, so many draws a visit; all features real
    strategy   one way of inventing labels, or features; the others real

auc, ace: on the rows kept apart; ACE over ten groups. attack: area of the spectral score for "invented",
folded: of the last epoch's gradients for labels, of its embeddings for features (FLORIST, section 3).
members: share of members among rows of the training.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from runner.bench.utility.tables import Table
from runner.review.audit.groups.inference import area
from runner.review.audit.research import split_attacks
from runner.review.audit.research.trainings import People, Rehearsed, rehearse
from synth.research.florist.algorithm import ALGORITHM
from synth.research.florist.calibrate import BINS, MAJORITY, RANDOM_PRED, SAMPLING, Sizes, correction
from synth.research.florist.config import FloristConfig
from synth.research.florist.evaluate import binned, quality
from synth.research.florist.halves import ActiveModel, PassiveModel

PARTIAL, VANILLA, TE, TR = METHODS = ("partial", "vanilla", "te", "tr")
APART: Final = 10
"""One row in so many is kept apart."""


@dataclass(frozen=True)
class Split:
    """people: everybody there is, in the order of the table, with what each owner holds. apart: (codes,
    labels)."""

    people: People
    apart: tuple[NDArray[np.int64], NDArray[np.int64]]

    @classmethod
    def of(cls, table: Table, label: str, alpha: float, beta: float, seed: int) -> Split:
        """alpha, beta: shares of rows without features, without label. Raises `UsageError` for a label that
        is none."""
        if label not in table.domain or table.domain.sizes[label] != 2:
            raise UsageError(f"The table {table.name} has no column {label} of two values to predict.")
        place = table.domain.names.index(label)
        rng = np.random.default_rng([seed, 30])
        order = rng.permutation(len(table.codes))
        codes, labels = np.delete(table.codes, place, axis=1)[order], table.codes[order, place]
        apart = len(codes) // APART
        features, has = (rng.random(len(codes) - apart) >= share for share in (alpha, beta))
        people = People(table.domain, codes[apart:], labels[apart:], features, has, label)
        return cls(people, (codes[:apart], labels[:apart]))

    def held(self, by: NDArray[np.bool_]) -> People:
        """Those for whom `by` holds."""
        of = self.people
        return replace(
            of,
            codes=of.codes[by],
            labels=of.labels[by],
            has_features=of.has_features[by],
            has_label=of.has_label[by],
        )


@dataclass(frozen=True)
class Result:
    """Figures of one model. rows: of the training and what it held out."""

    scores: Mapping[str, float]
    rows: int
    cpu_s: float


def trained(split: Split, methods: tuple[str, ...], seed: int, **settings: Any) -> dict[str, Result]:
    """The figures of some of `METHODS`; vanilla and te are two readings of one training."""
    whole = split.people
    union, both = whole.has_features | whole.has_label, whole.has_features & whole.has_label
    found: dict[str, Result] = {}
    if PARTIAL in methods:
        found[PARTIAL] = _judged(split, split.held(both), seed, {"calibrate": "none"}, settings)
    invented = split.held(union)
    usual = {"labels": MAJORITY, "features": SAMPLING}
    if TE in methods or VANILLA in methods:
        test = {**usual, "calibrate": "test"}
        lines = {TE: None, VANILLA: _labels_alone(invented)}
        several = _of_lines(split, invented, seed, test, settings, lines)
        found |= {name: several[name] for name in methods if name in several}
    if TR in methods:
        found[TR] = _judged(split, invented, seed, {**usual, "calibrate": "train"}, settings)
    return found


def by_drawn_labels(split: Split, draws: int, seed: int, **settings: Any) -> Result:
    """Labels by the model's probability, `draws` a visit."""
    people = split.held(split.people.has_features | split.people.has_label)
    keys = {"labels": RANDOM_PRED, "draws": draws, "calibrate": "none"}
    return _judged(split, people, seed, keys, settings)


def strategy(split: Split, seed: int, keys: Mapping[str, Any], **settings: Any) -> Result:
    """What one side lacks is invented in one way. keys: of the configuration, `{"labels": "minority"}`."""
    people = split.held(split.people.has_features | split.people.has_label)
    return _judged(split, people, seed, {"calibrate": "none", **keys}, settings)


def _labels_alone(people: People) -> Any:
    """The paper's correction for labels alone: p(label is real) times the truth."""
    sizes = Sizes(int(people.has_label.sum()), len(people.labels), len(people.labels))
    return correction(MAJORITY, SAMPLING, 0.0, sizes)


def _judged(
    split: Split, people: People, seed: int, keys: Mapping[str, Any], settings: Mapping[str, Any]
) -> Result:
    return _of_lines(split, people, seed, keys, settings, {"": None})[""]


def _of_lines(
    split: Split,
    people: People,
    seed: int,
    keys: Mapping[str, Any],
    settings: Mapping[str, Any],
    lines: Mapping[str, Any],
) -> dict[str, Result]:
    """One training, judged with several corrections; None: the training's own."""
    rate = float(people.labels[people.has_label].mean())
    config = FloristConfig(label=people.label, label_rate=rate, **{**settings, **keys})
    began = time.process_time()
    run = rehearse(people, ALGORITHM, config, f"florist {seed}")
    cpu_s = time.process_time() - began
    left = PassiveModel.read(run.halves[0].files.__getitem__)
    right = ActiveModel.read(run.halves[1].files.__getitem__)
    embedded, labels = left.embed(split.apart[0]), split.apart[1]
    shown = _attacked(people, run, config.epochs)
    found = {}
    for name, line in lines.items():
        model = right if line is None else replace(right, after=line)
        probabilities = model.probabilities(embedded)
        ace = quality(np.bincount(labels * BINS + binned(probabilities), minlength=2 * BINS)).ace
        exact = area(probabilities[labels == 1], probabilities[labels == 0])
        found[name] = Result({"auc": exact, "ace": ace, **shown}, len(people.labels), cpu_s)
    return found


def _attacked(people: People, run: Rehearsed, epochs: int) -> dict[str, float]:
    """Of the owner who looks for what the other one invented, labels before features; nothing where none is."""
    if people.has_label.all() and people.has_features.all():
        return {}
    has, tensors = (
        (people.has_features, run.embeddings) if people.has_label.all() else (people.has_label, run.gradients)
    )
    part = run.last_epoch(epochs)
    scores = np.concatenate([split_attacks.spectral(tensor) for tensor in tensors[part]])
    real = has[np.concatenate(run.batches[part])]
    reached = area(scores[~real], scores[real])
    return {"attack": max(reached, 1 - reached), "members": float(real.mean())}
