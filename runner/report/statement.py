"""The privacy statement in plain words: what a run promises, to whom, under which assumptions, and who learned what.

Every sentence here must be true of the run at hand (DESIGN 5): it is chosen by the run's adjacency, unit, backend and
deployment. Where the report does not know a backend it says less, never more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.report.words import listed, percent, plain, spelled, whole


@dataclass(frozen=True)
class Statement:
    """Sentences for the template; `warnings` come before everything else in the report."""

    warnings: tuple[str, ...]
    promise: str
    guess: str
    adjacency: str
    unit: str
    threat: tuple[str, ...]
    learned: tuple[tuple[str, str, str], ...]


def statement(facts: Mapping[str, Any]) -> Statement:
    """What run.json allows to be said."""
    privacy, backend = facts["privacy"], facts["backend"]
    return Statement(
        warnings=_warnings(facts),
        promise=_promise(privacy),
        guess=_guess(privacy),
        adjacency=_adjacency(privacy["adjacency"]),
        unit=_unit(facts),
        threat=_THREATS.get(backend, _OTHER),
        learned=_IDEAL_LEARNED if backend == "ideal" else _LEARNED,
    )


def _warnings(facts: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    if facts["deployment"] == "one-machine":
        found.append("This run took place on one machine, and a run on one machine protects nobody from that machine: whoever controls "
                     "it could read every party’s records. It shows the computation and its result; it is not a deployment.")
    if facts["backend"] == "ideal":
        found.append("This run protected nothing. Its backend was “ideal”: one process gathered every party’s data in the clear and "
                     "answered as a trusted curator would. That is meant for tests, simulation and baselines. Only the noise in what "
                     "was released is that of a protected run.")
    return tuple(found)


def _thing(privacy: Mapping[str, Any]) -> str:
    return "row" if privacy["unit"] == "row" else "unit"


def _promise(privacy: Mapping[str, Any]) -> str:
    thing, bound = _thing(privacy), plain(math.exp(min(privacy["epsilon"], 700.0)))
    other = f"if any one {thing} had been left out or added" if privacy["adjacency"] == "add-remove" else \
        f"if any one {thing} had held other values"
    return (f"Whatever was released, it could have come about almost as well {other}: no outcome becomes more than {bound} times as "
            f"likely (e to the power of epsilon), apart from a slack of at most delta = {plain(privacy['delta'])}.")


def _guess(privacy: Mapping[str, Any]) -> str:
    """Success of guessing between two neighbours with equal odds: at most (e^eps + delta)/(1 + e^eps) (`notes.md` 10.5)."""
    thing, odds = _thing(privacy), math.exp(-privacy["epsilon"])
    best = min(1.0, (1 + privacy["delta"] * odds) / (1 + odds))
    question = f"whether a certain {thing} was in the data" if privacy["adjacency"] == "add-remove" else \
        f"which of two values a certain {thing} held"
    return (f"Suppose someone knows all the other data, and a fair coin decided {question}. Having read the table, the model and "
            f"this report, that person still guesses right at most {percent(best)} of the time; guessing blindly is right half of the time.")


def _adjacency(kind: str) -> str:
    if kind == "add-remove":
        return ("Add or remove: two collections of data are neighbours when one is the other with the rows of one unit taken away. "
                "How many rows each party holds is protected too.")
    if kind == "replace":
        return ("Replace: two collections of data are neighbours when they differ in the values of one unit’s rows. How many rows there are "
                "counts as public and is not protected.")
    return kind


def _unit(facts: Mapping[str, Any]) -> str:
    form = facts["privacy"]["unit"]
    declared = (facts.get("public_study") or {}).get("privacy", {}).get("unit")
    if isinstance(declared, Mapping) and "id" in declared:
        rows, custodians = declared.get("max_rows", 1), declared.get("max_custodians", 1)
        return (f"One unit is everybody’s rows with the same “{declared['id']}”: at most {spelled(rows)} row{'s' * (rows != 1)} at one custodian, "
                f"at {'one custodian only' if custodians == 1 else f'most {spelled(custodians)} custodians'}. A custodian with more rows of one unit refuses to take part; "
                "that no unit is spread over more custodians is an assumption nobody checks.")
    if form == "row":
        return ("One row. If somebody has several rows, at one party or at several, the promise holds for each of these rows, and more weakly "
                "for all of them together.")
    return str(form)


_DISHONEST = ("Not covered: a computing party that departs from the protocol, a custodian that lies about its own data (it can spoil the "
              "table, not read others’ data), and what a party’s own computer gives away.")

_THREATS: Mapping[str, tuple[str, ...]] = {
    "replicated": (
        "Semi-honest parties: everybody follows the protocol, and may study at leisure whatever it receives.",
        "At most one of the three computing parties is corrupted, together with any number of recipients and contributors. "
        "Two computing parties that pool what they hold can reconstruct everybody’s counts.",
        "The noise is drawn inside the protocol: no party knows any part of it, so nobody can subtract it.",
        _DISHONEST),
    "ideal": (
        "None: the one process that ran everything saw all the data and all the noise. The statement on this page is about those who see "
        "the released results only.",),
}
_OTHER = ("Semi-honest parties: everybody follows the protocol, and may study at leisure whatever it receives. How many of them may pool what "
          "they hold before the data is exposed depends on the backend; its documentation says it.", _DISHONEST)

_RELEASED = "the synthetic table, the model, the noisy measurements, which columns were measured and in what order, and this report"
_LEARNED = (
    ("Each computing party", f"{_RELEASED[0].upper()}{_RELEASED[1:]}; besides these, random-looking shares and the sizes and times of messages.",
     "Any other party’s rows, counts or number of rows; any part of the noise; the scores of the candidates and the order of those that were not selected."),
    ("Each contributor", "The released results, like every recipient. It sends its counts masked and receives nothing that depends on the others’ data otherwise.",
     "The same, and the shares as well."),
    ("Recipients of the results", f"{_RELEASED[0].upper()}{_RELEASED[1:]}.", "Everything else."),
    ("Somebody watching the network", "Who talked to whom, how much and when. Sizes follow from the study and the released results, not from records.",
     "Any content: connections are encrypted and both ends prove who they are."),
)
_IDEAL_LEARNED = (
    ("The process that ran everything", "Everything: each party’s counts, the noise, every score.", "Nothing was hidden from it."),
    ("Recipients of the results", f"{_RELEASED[0].upper()}{_RELEASED[1:]}.", "Everything else."),
)


def headline(facts: Mapping[str, Any]) -> str:
    """Who made this together; `ideal` is named for what it is."""
    names = listed([party["name"] for party in facts["parties"]])
    rows, columns = whole(facts["rows"]), len(facts["columns"])
    made = f"{rows} synthetic rows of {spelled(columns)} columns"
    return f"{made}, computed in the clear on behalf of {names}" if facts["backend"] == "ideal" else f"{made}, computed together by {names}"
