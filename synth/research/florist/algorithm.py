"""FLORIST's descriptor and its `[florist]` table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.functionality import Event
from mpc_protocols.options import option
from mpc_protocols.process.later import Later
from synth.algorithm import Algorithm, Promise
from synth.config import AlgorithmConfig
from synth.research.florist.calibrate import (
    CALIBRATIONS,
    FEATURES,
    HELD_OUT,
    LABELS,
    MAJORITY,
    MINORITY,
    MODEL,
    NEIGHBORS,
    RANDOM_POS,
    RANDOM_PRED,
    TRAIN,
)
from synth.training import Cost, Evaluation, Half, Lists, OwnTable, Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synth.domain import Domain
    from synth.plan import Plan
    from synth.research.florist import evaluate, halves, owners, plan
    from synth.research.florist.plan import FloristPlan
    from synth.training import Outside
    from synth.workload import Workload
else:
    evaluate = Later("synth.research.florist.evaluate")
    halves = Later("synth.research.florist.halves")
    owners = Later("synth.research.florist.owners")
    plan = Later("synth.research.florist.plan")

FLOAT_BYTES = 4
ORACLE, OWN = EVALUATIONS = ("oracle", "own")
_STEP_S, _ROW_S = 0.004, 2.2e-5
"""CPU seconds of the passive half: a step, a row (measured with 14 columns)."""


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


class Florist(Training["FloristConfig", "FloristPlan"]):
    """FLORIST: vertical training on the union that the private set union gives."""

    name = "florist"
    protocol = "split learning"
    title = "FLORIST"
    rank = 90
    summary = "FLORIST trains a classifier of two owners on the union of their records and writes no table (research)"
    config = FloristConfig
    extra = "torch"
    requires = ("torch",)

    def claim(self, config: FloristConfig) -> str:
        if config.label_epsilon is None:
            return (
                "no privacy claim for what the owners learn of each other: the one without the label reads every label, and the "
                "one with it can infer features; what is written of the model for everybody is (epsilon, delta)-differentially "
                "private for the people who are held out, given the model, and has no claim for those it was trained on"
            )
        return (
            f"towards the owner without the label, the label of each of its records is {config.label_epsilon:g}-differentially "
            "private, beside what was released and what alignment shows; what is written of the model for everybody is (epsilon, "
            "delta)-differentially private for the people who are held out, given the model; for those it was trained on "
            "there is no claim but the labels', neither for features nor for the owners' halves of the model"
        )

    def alternative(self, config: FloristConfig) -> str | None:
        return 'algorithm = "vertimrf" or "aim", and train any model on the table'

    def predicted(self, config: FloristConfig) -> str:
        assert config.label is not None
        return config.label

    def exposes(self, config: FloristConfig) -> Sequence[tuple[str, str]]:
        x = config.label_epsilon
        other = (
            "every label that is trained on, real or invented, from the direction of its gradients"
            if x is None
            else f"every response, which is the record's label with a probability of e^{x:g} / (1 + e^{x:g}) or less"
        )
        members = {
            MAJORITY: "; every record of label 1 is then certainly held by the other owner",
            MINORITY: "; every record of label 0 is then certainly held by the other owner",
        }
        if x is None:
            other += members.get(config.labels, "")
        mark = {
            "gaussian": "an embedding with a negative number is invented, so every record's membership",
            "random": "an embedding with a negative number is invented, so every record's membership",
            "sampling": "equal embeddings are copies, so one of them is invented",
            "model": "equal embeddings are equal columns",
        }[config.features]
        return (
            ("the owner without the label", f"reads {other}"),
            (
                "the owner of the label",
                f"receives an embedding of every record, from which features can be inferred; {mark}",
            ),
            ("a third computing party", "learns nothing of the training"),
            ("recipients", "receive no model: each owner keeps its half, for which nothing is claimed"),
        )

    def plan(
        self, domain: Domain, workload: Workload, config: FloristConfig, **promise: Unpack[Promise]
    ) -> FloristPlan:
        return plan.plan(domain, workload, config, **promise)

    def asks(self, plan: FloristPlan) -> str:
        asked = [] if plan.rate_sigma2 is None else ["how many records have label 1"]
        if self.evaluation(plan) is not None:
            asked.append("how label and score of both owners' records go together")
        return " and ".join(asked) + ", with noise" if asked else "nothing: the training asks no oracle"

    def cost(self, config: FloristConfig, rows: int, columns: int) -> Cost:
        held_out = rows // HELD_OUT
        trained = rows - held_out
        steps, blocks = -(-trained // config.batch), -(-held_out // config.batch)
        passes = config.epochs * trained
        tensor = FLOAT_BYTES * config.cut
        return Cost(
            (72 + tensor * (passes + held_out), 72 + tensor * passes),
            3 + 2 * config.epochs * steps + (1 if blocks else 0),
            config.epochs * steps * _STEP_S + (passes + held_out) * _ROW_S * (0.3 + columns / 20),
        )

    def rate_event(self, plan: FloristPlan) -> Event | None:
        return plan.rate_event

    def own_events(self, plan: FloristPlan, active: bool) -> Sequence[Event]:
        return plan.own_events(active)

    def own_model(self, plan: FloristPlan, domain: Domain) -> tuple[Algorithm[Any, Any], Plan] | None:
        return plan.own_model(domain)

    def passive(
        self,
        plan: FloristPlan,
        domain: Domain,
        table: OwnTable,
        invented: NDArray[Any] | None,
        outside: Outside,
    ) -> Half:
        return owners.passive(plan.config, domain, table, invented, outside)

    def active(self, plan: FloristPlan, table: OwnTable, lists: Lists, outside: Outside) -> Half:
        return owners.active(plan, table, lists, outside)

    def passive_model(self, read: Callable[[str], bytes]) -> halves.PassiveModel:
        return halves.PassiveModel.read(read)

    def active_model(self, read: Callable[[str], bytes]) -> halves.ActiveModel:
        return halves.ActiveModel.read(read)

    def evaluation(self, plan: FloristPlan) -> Evaluation | None:
        return plan.evaluation

    def assessed(self, plan: FloristPlan, counts: NDArray[np.int64]) -> Mapping[str, float]:
        found = evaluate.quality(counts)
        return {"auc": round(found.auc, 6), "ace": round(found.ace, 6)}

    def described(self, config: FloristConfig, domain: Domain, passive: Sequence[str]) -> Mapping[str, Any]:
        return {
            "label": config.label,
            "features": list(passive),
            "labels": config.labels,
            "invented_features": config.features,
            "calibrate": config.calibrate,
            "label_epsilon": config.label_epsilon,
            "cut": config.cut,
            "epochs": config.epochs,
            "batch": config.batch,
            "held_out": HELD_OUT,
        }


def exact(number: float) -> Fraction:
    """The decimal number that the file holds."""
    return Fraction(str(number))


ALGORITHM = Florist()
