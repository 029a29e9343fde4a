"""The privacy statement in plain words: what a run promises, to whom, under which assumptions, and who
learned what.

Every sentence here must be true of the run at hand (`docs/design/privacy.md` 1): it is chosen by the run's
adjacency, unit, backend, deployment and encryption. Where the report does not know a backend it says less,
never more.
"""
# ruff: noqa: RUF001 - typographic apostrophes and quotes are meant

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mpc_protocols.backend import (
    BACKENDS,
    DISHONEST_CUSTODIAN,
    DISHONEST_OWNER,
    SEMI_HONEST,
    Backend,
    DistributedBackend,
)
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.psu.method import METHODS, PSU, AlignmentMethod
from runner.report.number_format import bound, listed, percent, plain, spelled, typeset, whole
from runner.report.words.training_text import training
from runner.results.outdir import ONE_MACHINE, linked_tables_of
from runner.results.warnings import texts_of
from synth.algorithm import ALGORITHMS, Algorithm
from synth.config import AlgorithmConfig
from synth.judgement.parameters import best_guess, unsafe

REPORTED = "Each owner made one report of its own columns, with noise of its own, and a model was fitted to all reports."
REPORT_NOISE = (
    "Nothing is hidden by secret sharing: what protects an owner's data is the noise that its report holds when it leaves the "
    "owner."
)
FAINT = 5.0
"""A noisy total of fewer standard deviations of a count's noise is said to be hardly anything."""


@dataclass(frozen=True)
class Statement:
    """Sentences for the template. `warnings` come before everything else in the report; `thing` is the
    protected unit's noun; `sound`: whether there is a privacy claim; `noise`: what it does, in half a
    sentence; `learned` holds (role, what it learned, what it did not), `roles` (role, names of the parties).
    """

    headline: str
    warnings: tuple[str, ...]
    sound: bool
    noise: str
    thing: str
    promise: str
    guess: str
    adjacency: str
    unit: str
    fits: str
    threat: tuple[str, ...]
    learned: tuple[tuple[str, str, str], ...]
    roles: tuple[tuple[str, tuple[str, ...]], ...]


def statement(facts: Mapping[str, Any]) -> Statement:
    """What run.json allows to be said."""
    privacy = facts["privacy"]
    declared = (facts.get("public_study") or {}).get("privacy", {}).get("unit", privacy["unit"])
    thing = "row" if declared == "row" else "record" if "identifier" in declared else "unit"
    configured = _algorithm(facts)
    sound = configured is None or configured[0].sound(configured[1])
    return Statement(
        headline=_headline(facts),
        warnings=_warnings(facts),
        sound=sound,
        noise="the noise is too small to hide anybody"
        if sound and _is_unsafe(privacy)
        else f"the noise is calibrated so that no single {thing} shows"
        if sound
        else f"nothing is claimed about how much of a single {thing} shows",
        thing=thing,
        promise=(_LITTLE if _is_unsafe(privacy) else _promise(privacy, thing)) if sound else _NO_PROMISE,
        guess=_guess(privacy, thing) if sound and not _is_unsafe(privacy) else "",
        adjacency=_adjacency(privacy["adjacency"], "alignment" in facts, _alignment_method(facts)),
        unit=_unit(declared),
        fits=_fits(privacy, declared) if sound else "There is no promise that would hold between them.",
        threat=_threat(facts),
        learned=_learned(facts),
        roles=_roles(facts),
    )


def _headline(facts: Mapping[str, Any]) -> str:
    """What there is and who made it together; a backend in the clear is named for what it is."""
    names = listed([party["name"] for party in facts["parties"]])
    made = f"{whole(facts['rows'])} synthetic rows of {spelled(len(facts['columns']))} columns"
    how = "computed in the clear on behalf of" if in_the_clear(facts) else "computed together by"
    tables = ""
    if files := linked_tables_of(facts):
        tables = f" (a row a person; folded to the linked tables {listed(list(files))})"
    return f"{made}{tables}, {how} {names}"


_NO_PROMISE = (
    "Nothing is promised to anybody whose data is in this run. Epsilon and delta are what the study asked for, and what its "
    "noise was sized by; they bound nothing here."
)


_LITTLE = (
    "Hardly anything is promised. At this epsilon the bound of differential privacy lets whoever reads the results be all but "
    "certain what a single row held: treat the table as you would treat the records themselves."
)


def _is_unsafe(privacy: Mapping[str, Any]) -> bool:
    """Whether epsilon bounds next to nothing (`synth.judgement.parameters`)."""
    return any(one.code == "unsafe-epsilon" for one in unsafe(privacy["epsilon"], privacy["delta"], None))


def _warnings(facts: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    configured = _algorithm(facts)
    if configured is not None and not configured[0].sound(configured[1]):
        found.append(typeset(str(facts.get("claim", ""))))
    if in_the_clear(facts):
        found.append(
            f"This run protected nothing. Its backend was “{facts['backend']}”: one process gathered every party’s data in the "
            "clear, as a trusted curator would. That is for tests, simulation and baselines."
        )
    elif facts["deployment"] == ONE_MACHINE:
        found.append(
            "This run took place on one machine, and a run on one machine protects nobody from that machine: "
            "whoever controls it could read every party’s records."
        )
    if ((facts.get("public_study") or {}).get("study") or {}).get("research"):
        found.append(
            "This run is research: its study allows a system without a sound claim or utility. What is claimed stands "
            "below, and nothing more."
        )
    if trained := training(facts):
        found.append(trained.limits)
    if _unencrypted(facts):
        found.append(
            'The parties’ connections were not encrypted: the study says tls = "insecure-loopback". Whoever could '
            "read this machine’s network traffic could put the shares together."
        )
    told = texts_of(facts)
    found[:0] = [typeset(text) for text in told]
    if (fallback := facts.get("fallback")) and not told:
        found.append(typeset(str(fallback)))
    if (little := faint(facts)) and (not facts.get("fallback") or "alignment" in facts):
        found.append(
            little
        )  # that a table is too small is said once, except where identifiers may be the reason
    return tuple(found)


def _algorithm(facts: Mapping[str, Any]) -> tuple[Algorithm[Any, Any], AlgorithmConfig] | None:
    """The run's algorithm and its table; None if this version knows no such thing."""
    algorithm = ALGORITHMS.get(facts["algorithm"])
    if algorithm is None:
        return None
    try:
        return algorithm, algorithm.config(**(facts.get("public_study") or {}).get(algorithm.name, {}))
    except (TypeError, StudyInvalid):
        return None


def _reports(facts: Mapping[str, Any]) -> bool:
    """Whether owners reported once, instead of answering questions on shares."""
    configured = _algorithm(facts)
    return configured is not None and configured[0].reporting(configured[1]) is not None


def _backend(facts: Mapping[str, Any]) -> Backend | None:
    """The run's backend as its study configured it; None if this version knows no such thing."""
    backend = BACKENDS.get(facts["backend"])
    if backend is None:
        return None
    try:
        options = backend.options(**(facts.get("public_study") or {}).get(backend.name, {}))
        of_study = backend.configured(options, str(facts.get("partition", "horizontal")))
        return of_study.secured(str(facts.get("security", "semi-honest")))
    except (TypeError, StudyInvalid):
        return None


def in_the_clear(facts: Mapping[str, Any]) -> bool:
    """Whether the run's backend is one process that sees everything."""
    backend = _backend(facts)
    return backend is not None and backend.ideal


def how_computed(facts: Mapping[str, Any]) -> str:
    """How the statistics came about; "" if the backend is unknown or protects nothing."""
    backend = _backend(facts)
    if not isinstance(backend, DistributedBackend):
        return ""
    if (trained := training(facts)) is not None:
        return typeset(trained.how)
    return typeset(REPORTED if _reports(facts) else backend.how)


def variances(detail: Mapping[str, Any]) -> list[Fraction]:
    """Variances of the noise of an event's counts, from its public facts: one for all, or one a marginal;
    maybe none."""
    found = detail.get("sigma2", [])
    return [Fraction(of) for of in ([found] if isinstance(found, str) else found)]


def faint(facts: Mapping[str, Any]) -> str:
    """Warning about a run whose noisy total hardly differs from nothing, given the noise; "" for any other
    run.

    A run about nobody ends like any other, for an error would tell how many there are (`party.alignment`).
    The total and the noise are released, so this costs no privacy.
    """
    noise = [found for event in facts["privacy"]["events"] if (found := variances(event))]
    total = float(
        facts["privacy"].get("noisy_total", math.inf)
    )  # a run that does not state it has nothing said of it
    if not noise or total >= FAINT * (sigma := math.sqrt(min(noise[0]))):
        return ""
    count = max(0, round(total))
    records = f"{whole(count) if count else 'no'} record{'s' * (count != 1)}"
    sentence = (
        f"This table shows hardly anything but noise: it stands for {records}, counted with noise, and every measured "
        f"count carries noise with a standard deviation of {plain(sigma)}. "
    )
    alignment = facts.get("alignment")
    if alignment is not None and alignment["method"] == PSU and alignment["population"] == "intersection":
        return sentence + (
            "Either the owners have hardly a record in common, or they write its identifier in ways that "
            "“normalise” in [alignment] does not make equal (another country’s phone numbers, leading zeros, "
            "123.0 for 123)."
        )
    return sentence + "There is too little data for this epsilon."


def _unencrypted(facts: Mapping[str, Any]) -> bool:
    session = (facts.get("public_study") or {}).get("session") or {}
    return bool(not in_the_clear(facts) and session.get("tls", "mutual") != "mutual")


def _promise(privacy: Mapping[str, Any], thing: str) -> str:
    factor = bound(math.exp(min(privacy["epsilon"], 700.0)))
    added = privacy["adjacency"] == "add-remove"
    other = (
        f"if any one {thing} had been left out or added"
        if added
        else f"if any one {thing} had held other values"
    )
    return (
        f"Whatever was released, it could have come about almost as well {other}: no outcome becomes more than {factor} "
        f"times as likely (e to the power of epsilon), apart from a slack of at most delta\u00a0=\u00a0{bound(privacy['delta'])}."
    )


def _guess(privacy: Mapping[str, Any], thing: str) -> str:
    """Success of guessing between two neighbours with equal odds: at most (e^eps + delta)/(1 + e^eps)
    (`docs/design/privacy.md` 7)."""
    best = best_guess(privacy["epsilon"], privacy["delta"])
    added = privacy["adjacency"] == "add-remove"
    question = (
        f"whether a certain {thing} was in the data"
        if added
        else f"which of two values a certain {thing} held"
    )
    return (
        f"Suppose someone knows all the other data, and a fair coin decided {question}. Having read the table, the model "
        f"and this report, that person still guesses right at most {percent(math.ceil(best * 1000 - 1e-9) / 1000)} of the "
        "time; guessing blindly is right half of the time."
    )


def _alignment_method(facts: Mapping[str, Any]) -> AlignmentMethod | None:
    """How records were joined; None if they were not, in the clear, or by a method that this version does not
    know."""
    alignment = facts.get("alignment")
    return METHODS.get(alignment.get("via", "")) if alignment else None


def _adjacency(kind: str, vertical: bool, method: AlignmentMethod | None) -> str:
    reveals = f" Joining revealed more: {typeset(method.reveals)}." if method and method.reveals else ""
    if vertical and kind == "add-remove":
        return (
            "Add or remove: two collections of data are neighbours when one is the other without one record, at all the "
            "owners that hold it. How many records an owner holds, and how many are in common, is protected too."
            + reveals
        )
    if vertical and kind == "replace":
        return (
            "Replace: two collections of data are neighbours when they differ in the values of one record. Which records an "
            "owner holds is the same in both, so the promise does not protect it"
            + ("; nobody is told all the same." if method and method.hides_members else ".")
            + reveals
        )
    if kind == "add-remove":
        return (
            "Add or remove: two collections of data are neighbours when one is the other with the rows of one unit taken "
            "away. How many rows each party holds is protected too."
        )
    if kind == "replace":
        return (
            "Replace: two collections of data are neighbours when they differ in the values of one unit’s rows. How many "
            "rows there are counts as public and is not protected."
        )
    return kind


def _unit(declared: Any) -> str:
    if declared == "row":
        return (
            "One row. If somebody has several rows, at one party or at several, the promise holds for each of these rows, "
            "and more weakly for all of them together."
        )
    if isinstance(declared, Mapping) and "identifier" in declared:
        names = listed([f"“{name}”" for name in declared["identifier"]])
        return (
            f"One record: everything that the owners hold under one identifier ({names}). Somebody who appears under several "
            "identifiers has several records, and the promise holds for each of them."
        )
    if not isinstance(declared, Mapping) or "id" not in declared:
        return str(declared)
    rows, custodians = declared.get("max_rows", 1), declared.get("max_custodians", 1)
    where = "one custodian only" if custodians == 1 else f"most {spelled(custodians)} custodians"
    return (
        f"One unit is all the rows with the same “{declared['id']}”: at most {spelled(rows)} row{'s' * (rows != 1)} at a "
        f"custodian, at {where}. A custodian that holds more rows of a unit refuses to take part; that no unit is spread "
        "over more custodians is an assumption which nobody checks."
    )


def _fits(privacy: Mapping[str, Any], declared: Any) -> str:
    """Between which tables the promise holds, and what a refusal tells (`docs/design/accounts.md`)."""
    rows = f", at most {whole(privacy['max_rows'])} rows at each custodian" if "max_rows" in privacy else ""
    units = (
        ", no more rows of a unit than it allows"
        if isinstance(declared, Mapping) and "id" in declared
        else ""
    )
    return (
        f"The promise holds between collections of data that fit the study: values inside the declared columns{rows}{units}. A "
        "custodian whose table does not fit, or whose own limit on what its data may spend is reached, refuses before anything "
        "is sent. The others learn that it refused and not why; that much no epsilon covers, so a custodian that is asked "
        "again and again with small changes should ask why."
    )


_OTHER = (
    SEMI_HONEST,
    "How many of the computing parties may pool what they hold before the data is exposed depends on the backend; its "
    "documentation says it.",
    DISHONEST_CUSTODIAN,
)


def _inputs(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """What was found out about contributors' counts (`docs/design/inputs.md`)."""
    told = facts.get("inputs")
    if told is None:
        return ()
    checked, left_out = told["checked"], told["left_out"]
    found = (
        f"The counts that {listed(checked)} sent were checked while they were secret: each is a number between 0 and "
        f"{whole(facts['privacy']['max_rows'])}, and all marginals of each of them agree with each other. A lie beyond that "
        "would have been noticed, but for a chance of 2^-62; that the rows are true nobody can check."
    )
    if not left_out:
        return (found,)
    return (
        found,
        f"Counts of {listed(left_out)} were not like that and are left out: nothing that was released afterwards follows them.",
    )


def _threat(facts: Mapping[str, Any]) -> tuple[str, ...]:
    backend, trained = _backend(facts), training(facts)
    if trained is not None and not in_the_clear(facts):
        return trained.threat
    if _reports(facts) and not in_the_clear(facts):
        return tuple(map(typeset, (SEMI_HONEST, REPORT_NOISE, DISHONEST_OWNER)))
    if backend is None:
        return tuple(map(typeset, _OTHER))
    return tuple(map(typeset, (*backend.threat("alignment" in facts), *_soundness(facts), *_inputs(facts))))


def _soundness(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a run with proofs."""
    found = facts.get("soundness")
    if found is None:
        return ()
    return (
        f"This run had at most {whole(found['proofs'])} batches of proofs: a deviation would have passed them all with a chance "
        f"below 2^{found['lg_chance']:g}.",
    )


_RELEASED = (
    "The synthetic table, the model, the noisy measurements, which columns were measured and in what order, and "
    "this report"
)


def _roles(facts: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The parties by what they did."""
    by_role: dict[str, list[str]] = {}
    for party in facts["parties"]:
        by_role.setdefault(str(party["role"]), []).append(str(party["name"]))
    words = {"compute": "Computing part", "contribute": "Contributing part"}
    return tuple(
        (f"{words[role]}{'y' if len(names) == 1 else 'ies'}" if role in words else role, tuple(names))
        for role, names in by_role.items()
    )


def _learned(facts: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    recipients = ("Recipients of the results", f"{_RELEASED}.", "Everything else.")
    backend = _backend(facts)
    if in_the_clear(facts):
        return (
            (
                "The process that ran everything",
                "Everything: each party’s counts, the noise, every score.",
                "Nothing was hidden from it.",
            ),
            recipients,
        )
    if configured := _algorithm(facts):
        views = configured[0].views(configured[1])
        if views:
            return (
                *((who, typeset(learns), typeset(hidden)) for who, learns, hidden in views),
                _watching(facts),
            )
    if trained := training(facts):
        return trained.learned
    shows = backend.shows if isinstance(backend, DistributedBackend) else "messages of the protocol"
    vertical = "alignment" in facts
    besides = "what the next section says, " if vertical else ""
    hidden = "Any other party’s rows, counts or number of rows"
    if vertical:
        method = _alignment_method(facts)
        hidden = f"Another owner’s {typeset(method.hidden)}; counts" if method else "Any other party’s counts"
    computing = (
        "Each computing party",
        f"{_RELEASED}; besides these, {besides}{shows}, and the sizes and times of messages.",
        f"{hidden}; any part of the noise; the candidates’ scores and the order of those that were not selected.",
    )
    back = (
        "It sends its columns masked; but for what the next section says, nothing that depends on the others’ data comes "
        "back to it."
        if vertical
        else "It sends its counts masked; nothing else that depends on the others’ data comes back to it."
    )
    contributing = (
        "Each contributor",
        f"The released results, like every recipient. {back}",
        "The same, and the shares as well.",
    )
    leaving = (
        "Each contributor",
        "The released results, like every recipient, and which contributors took part.",
        "The same, and the shares as well; another contributor’s file is sealed to the computing parties.",
    )
    told = [contributing] if any(party["role"] == "contribute" for party in facts["parties"]) else []
    told += [leaving] if "contributors" in facts else []
    return (computing, *told, recipients, _watching(facts))


def _watching(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    """What the network shows."""
    if _unencrypted(facts):
        return (
            "Somebody watching the network",
            "All messages; they travelled unencrypted, and the shares of two links "
            "together reveal the counts.",
            "Nothing was hidden from it.",
        )
    sizes = (
        "Sizes follow from the study, the released results, and the lengths of the owners’ lists and of their union, as "
        "exact or noisy as the parties know them."
        if "alignment" in facts
        else "Sizes follow from the study and the released results, not from records."
    )
    return (
        "Somebody watching the network",
        f"Who talked to whom, how much and when. {sizes}",
        "Any content: connections are encrypted and both ends prove who they are.",
    )
