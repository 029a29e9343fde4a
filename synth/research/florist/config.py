"""The `[florist]` table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from mpc_protocols.options import option
from synth.config import AlgorithmConfig
from synth.research.florist.calibrate import (
    CALIBRATIONS,
    FEATURES,
    LABELS,
    MAJORITY,
    MINORITY,
    MODEL,
    NEIGHBORS,
    RANDOM_POS,
    RANDOM_PRED,
    TRAIN,
)

ORACLE, OWN = EVALUATIONS = ("oracle", "own")


@dataclass(frozen=True)
class FloristConfig(AlgorithmConfig):
    """The `[florist]` table of a study."""

    label: str | None = option(
        None,
        "text",
        "needed: the column of two values that the model predicts",
        example="income",
        fallback="required",
        meaning="the column that is predicted: of two values, code 1 the positive one",
    )
    labels: str = option(
        RANDOM_POS, "word", "how labels are invented for records that the label's owner lacks", words=LABELS
    )
    draws: int = option(
        1,
        "whole",
        'labels drawn at each visit with labels = "random-pred", averaged',
        low=1,
        high=64,
        meaning="with `random-pred`: labels drawn at each visit; the mean of their gradients is used. More of them "
        "make invented rows easier to tell",
    )
    features: str = option(
        MODEL, "word", "how features are invented for records that the other owner lacks", words=FEATURES
    )
    features_epsilon: float = option(
        1.0, "number", "of the other owner's model for features, charged to its data"
    )
    calibrate: str = option(
        TRAIN,
        "word",
        "where the effect of what is invented is taken out",
        words=CALIBRATIONS,
        meaning='take out the effect of what is invented in the loss, in the probabilities (`"test"`), or not '
        '(`"none"`)',
    )
    label_epsilon: float | None = option(
        None,
        "number",
        "default: labels are open to the other owner; else each is a response",
        fallback="labels are open",
        meaning="each label is a randomised response of this epsilon; without it labels are open. Not with "
        "`neighbors` or `random-pred` (10)",
        example=2.0,
        below=32,
    )
    label_rate: float | None = option(
        None,
        "number",
        "rate of label 1 if it is public; default: a noisy count, charged",
        fallback="a noisy count",
        meaning="the rate of label 1, if it is public",
        example=0.25,
        below=1,
    )
    cut: int = option(128, "whole", "numbers in an embedding", low=1, high=4096)
    batch: int = option(512, "whole", "rows of a step", low=1, high=1 << 16)
    epochs: int = option(4, "whole", "times that each row is visited", low=1, high=1000)
    rate: float = option(0.001, "number", "of learning", below=1)
    evaluation: str = option(
        ORACLE,
        "word",
        "people of both owners, counted with noise; own: the label's owner alone",
        meaning='people that both owners hold, counted with noise; `"own"`: exact figures that stay with the owner '
        "of the label",
        words=EVALUATIONS,
    )

    def misfits(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """A label of two values; responses only where each answer depends on one person's label."""
        if self.label is None:
            yield "label", "must name the column that the model predicts"
        elif self.label not in sizes:
            yield "label", f'names the column "{self.label}", which the domain does not have'
        elif sizes[self.label] != 2:
            yield (
                "label",
                f'names the column "{self.label}" of {sizes[self.label]} values; a label has two, and none for missing ones',
            )
        elif len(sizes) < 2:
            yield "label", "is the only column of the domain; the model needs others to predict it from"
        if self.draws > 1 and self.labels != RANDOM_PRED:
            yield "draws", f'has a meaning with labels = "{RANDOM_PRED}" only'
        if self.label_epsilon is not None and self.labels in (NEIGHBORS, RANDOM_PRED):
            yield (
                "label_epsilon",
                f'cannot be kept with labels = "{self.labels}", where one person\'s label stands behind many answers; use labels '
                f'= "{RANDOM_POS}", "{MAJORITY}" or "{MINORITY}"',
            )


def exact(number: float) -> Fraction:
    """The decimal number that the file holds."""
    return Fraction(str(number))
