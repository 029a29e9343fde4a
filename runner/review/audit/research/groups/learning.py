"""L: what two owners who train a model read off each other's tensors, on invented people.

A claim holds for labels that are responses; everything else is warned of. Both are tried with a deployment's
code, in memory.
"""

from __future__ import annotations

import importlib.util
import math

import numpy as np
from numpy.typing import NDArray

from runner.review.audit import statistics
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict, judged
from runner.review.audit.groups.inference import area
from runner.review.audit.research import split_attacks
from runner.review.audit.research.trainings import LABEL, People, Rehearsed, rehearse
from runner.review.audit.subjects.subject import Subject
from synth.research.florist.algorithm import ALGORITHM
from synth.research.florist.config import FloristConfig

ALPHA = 2e-8
EPSILON = 2.0
EPOCHS = 4
PEOPLE = {Profile.QUICK: 2000, Profile.DEFAULT: 3000, Profile.DEEP: 20_000}
ALMOST_ALL = 0.99
COLLISION = 0.6
MISSING = Finding(Verdict.UNINFORMATIVE, "PyTorch is not installed, so that nothing can be trained here.")


def responses(subject: Subject) -> Finding:
    """The labels that gradients show are the responses."""
    if importlib.util.find_spec("torch") is None:
        return MISSING
    people = _people(subject)
    rows, shown = _read(_trained(subject, people, labels="majority"))
    real, truth = people.has_label[rows], people.labels[rows]
    open_right = float((shown == truth)[real].mean())
    if open_right < ALMOST_ALL:
        return Finding(
            Verdict.UNINFORMATIVE, f"Without responses the attack reads {open_right:.3f} of the labels only."
        )
    rows, shown = _read(_trained(subject, people, labels="random-pos", label_epsilon=EPSILON))
    real, truth = people.has_label[rows], people.labels[rows]
    keep, problems, figures = math.exp(EPSILON) / (1 + math.exp(EPSILON)), [], {"open": open_right}
    quantile = -statistics.normal_quantile(ALPHA / 2)
    for label in (0, 1):
        mine = shown[real & (truth == label)]
        right = float((mine == label).mean())
        figures[f"right {label}"] = right
        if right > keep + quantile * math.sqrt(keep * (1 - keep) / len(mine)):
            problems.append(
                f"Of labels {label}, {right:.4f} are read right, and responses of epsilon {EPSILON:g} allow {keep:.4f}."
            )
    evidence = (
        f"Gradients show {open_right:.3f} of open labels; of responses of epsilon {EPSILON:g}, {figures['right 0']:.3f} and "
        f"{figures['right 1']:.3f} of labels 0 and 1, where {keep:.3f} are kept."
    )
    return judged(problems, evidence, figures)


def warned(subject: Subject) -> Finding:
    """What `plan` warns of can be done: whoever reads that a strategy shows something must not find it
    exaggerated."""
    if importlib.util.find_spec("torch") is None:
        return MISSING
    people, problems = _people(subject), []
    rows, shown = _read(_trained(subject, people, labels="majority"))
    members = float(people.has_label[rows][shown == 1].mean())
    if members < 1:
        problems.append(
            f"With majority, {members:.4f} of the rows that are called 1 are members, not all of them."
        )
    found = _trained(subject, people, features="gaussian")
    rows, sent = _sent(found)
    real = people.has_features[rows]
    signs = area(split_attacks.negative(sent)[~real], split_attacks.negative(sent)[real])
    if signs < ALMOST_ALL:
        problems.append(f"Signs tell invented embeddings with an area of {signs:.3f} only.")
    found = _trained(subject, people, features="sampling", cut=128, batch=512, rate=0.001)
    rows, _ = _sent(found)
    near = split_attacks.nearest(found.embeddings[: len(found.batches)][found.last_epoch(EPOCHS)])
    real = people.has_features[rows]
    copies = area(near[~real], near[real])
    if copies < COLLISION:
        problems.append(f"Copies are found with an area of {copies:.3f} only.")
    return judged(
        problems,
        "All rows that gradients call 1 under majority are members; areas: invented embeddings by their signs "
        f"{signs:.3f}, copies by their distance {copies:.3f}.",
        {"members": members, "signs": signs, "copies": copies},
    )


def _people(subject: Subject) -> People:
    return People.invented(PEOPLE[subject.profile], int(subject.generator("people").integers(1 << 32)))


def _trained(subject: Subject, people: People, **keys: object) -> Rehearsed:
    usual = {"label": LABEL, "label_rate": 0.25, "cut": 32, "batch": 150, "epochs": EPOCHS, "rate": 0.003}
    config = FloristConfig(**{**usual, **keys})  # type: ignore[arg-type]
    return rehearse(people, ALGORITHM, config, f"{subject.seed} training")


def _read(found: Rehearsed) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(rows, labels that the last epoch's gradients show)."""
    part = found.last_epoch(EPOCHS)
    shown = split_attacks.labels_read(found.gradients[part])
    return np.concatenate(found.batches[part]), np.concatenate(shown)


def _sent(found: Rehearsed) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(rows, their embeddings in the last epoch)."""
    part = found.last_epoch(EPOCHS)
    return np.concatenate(found.batches[part]), np.concatenate(found.embeddings[: len(found.batches)][part])


GROUP = Group(
    "L",
    "Learning together",
    "What do owners who train a model read off each other?",
    (
        Check(
            "responses",
            "With label_epsilon the gradients of a training show the responses, and no more of a label.",
            "attack",
            "Labels that are used beside their responses, or flipped less often than the claim needs.",
            responses,
            alarm=2 * ALPHA,
            profile=Profile.DEFAULT,
        ),
        Check(
            "warned",
            "What plan says that each side of a training reads off can be read off.",
            "exact",
            "A warning that is not true of the build.",
            warned,
            profile=Profile.DEFAULT,
        ),
    ),
)
