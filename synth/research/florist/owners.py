"""Each owner's part from its own table to its half of the model (`docs/design/florist.md` 2).

    passive   features of all rows, real or invented -> its half, `florist-passive.npz`
    active    labels of all rows, real, invented or responses -> its half, `florist-active.npz`, what corrects its probabilities,
              `calibration.json`, and with evaluation = "own" exact figures, `evaluation.json`, which are for nobody else

A half is an archive of NumPy arrays that loads without pickles; `head` holds a JSON text as bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.mechanisms.gaussian import reference, sampler
from synth.research.florist.calibrate import (
    BINS,
    TEST,
    TRAIN,
    Correction,
    Sizes,
    corrected,
    correction,
    flip_numerator,
)
from synth.research.florist.config import ORACLE, exact
from synth.research.florist.evaluate import binned, quality
from synth.research.florist.fill import Features
from synth.research.florist.halves import ACTIVE, CALIBRATION, PASSIVE, archive
from synth.research.florist.labels import Labels
from synth.research.florist.loop import train_active, train_passive
from synth.research.florist.net import ActiveHalf, PassiveHalf
from synth.training import Half

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from synth.domain import Domain
    from synth.research.florist.config import FloristConfig
    from synth.research.florist.plan import FloristPlan
    from synth.training import Lists, Outside, OwnTable

EVALUATION = "evaluation.json"


def passive(
    config: FloristConfig, domain: Domain, table: OwnTable, invented: NDArray[Any] | None, outside: Outside
) -> Half:
    """Train the half without labels."""
    sizes = [domain.sizes[name] for name in domain.names]
    net = PassiveHalf(sizes, config.cut, config.rate, _seed(outside.coins))
    features = Features(table.union, table.rows, table.codes, config.features, outside.draw, invented)
    train_passive(outside.link, outside.batches, config.epochs, net, features, outside.observe)
    columns = list(zip(domain.names, sizes, strict=True))
    head = {"half": "passive", "run": outside.run, "columns": columns, "cut": config.cut}
    return Half({PASSIVE: archive(head, net.weights())})


def active(plan: FloristPlan, table: OwnTable, lists: Lists, outside: Outside) -> Half:
    """Train the half with labels."""
    config, own = plan.config, table.codes[:, 0].astype(np.uint8)
    rate = config.label_rate
    if rate is None:
        assert plan.rate_sigma2 is not None
        rate = noisy_rate(int(own.sum()), lists.own, plan.rate_sigma2, outside.coins)
    x = config.label_epsilon
    flips = 0 if x is None else flip_numerator(exact(x))
    labels = Labels(table.union, table.rows, own, config.labels, rate, flips, outside.coins, config.draws)
    sizes = Sizes(lists.own, lists.other, table.union)
    line = correction(config.labels, config.features, rate, sizes, flips / 2.0**64)
    in_loss = line if config.calibrate == TRAIN else None
    net = ActiveHalf(config.cut, config.rate, _seed(outside.coins), in_loss)
    raw = train_active(outside.link, outside.batches, config.epochs, net, labels, outside.observe)
    after = line if config.calibrate == TEST else Correction()
    probabilities = corrected(raw, after)
    head = {"half": "active", "run": outside.run, "label": config.label, "cut": config.cut}
    files = {
        ACTIVE: archive(head, net.weights()),
        CALIBRATION: _json(
            {
                "label": config.label,
                "rate": rate,
                "calibrate": config.calibrate,
                "line": {"slope": line.slope, "offset": line.offset},
                "probability": {"slope": after.slope, "offset": after.offset},
                "flip": flips / 2.0**64,
            }
        ),
    }
    place = np.full(table.union, -1, np.int64)
    place[table.rows] = np.arange(len(table.rows))
    held_out = outside.batches.held_out
    mine = place[held_out] >= 0
    rows, truth, bins = held_out[mine], own[place[held_out[mine]]], binned(probabilities[mine])
    if config.evaluation != ORACLE:
        people = np.bincount(truth.astype(np.int64) * BINS + bins, minlength=2 * BINS)
        found = quality(people)
        told = {
            "auc": found.auc,
            "ace": found.ace,
            "people": "this owner's held-out records",
            "private": True,
        }
        files[EVALUATION] = _json(told)
    return Half(files, (rows, truth, bins))


def noisy_rate(positives: int, listed: int, sigma2: Fraction, coins: Callable[[int], bytes]) -> float:
    """pi: labels 1 with discrete Gaussian noise, by the length of the list as the other owner has seen it;
    inside (0, 1)."""
    noise = sampler(sigma2)
    uniforms = [int.from_bytes(coins(8), "little") for _ in noise.parts]
    signs = [coins(1)[0] & 1 for _ in noise.parts]
    least = 1 / (listed + 2)
    return min(1 - least, max(least, (positives + reference(noise, uniforms, signs)) / max(1, listed)))


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(content), indent=1) + "\n").encode()


def _seed(coins: Callable[[int], bytes]) -> int:
    """Of the first weights."""
    return int.from_bytes(coins(8), "little") >> 1
