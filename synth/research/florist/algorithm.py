"""FLORIST's descriptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.functionality import Event
from mpc_protocols.process.later import Later
from synth.algorithm import Algorithm, Promise
from synth.research.florist.calibrate import (
    HELD_OUT,
    MAJORITY,
    MINORITY,
)
from synth.research.florist.config import FloristConfig
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
_STEP_S, _ROW_S = 0.004, 2.2e-5
"""CPU seconds of the passive half: a step, a row (measured with 14 columns)."""


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


ALGORITHM = Florist()
