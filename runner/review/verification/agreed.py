"""The study that the parties agreed on: its digest, the auditor's own study, and what run.json says that
follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudiesDiffer, UsageError
from mpc_protocols.process.canonical_json import canonical
from runner.check.finding import Finding, fine, problem
from runner.report.split_training import KEY
from runner.results.finished_run import agreed_study, columns_of, constraints_of
from runner.results.outdir import RESEARCH_TABLE, RUN
from runner.review.verification.place import Place
from runner.study import Study
from runner.study.claim import claim_of
from runner.study.hashing import agreed_tree, digest_of, protocol_of
from runner.study.trained import training_of
from runner.version import PROTOCOL
from synth.algorithm import ALGORITHMS


def agreed(place: Place, own: Study | None = None) -> Iterator[Finding]:
    """All of it. own: the study that the auditor holds. Raises `UsageError` for a run.json that states no
    study."""
    yield study(place)
    yield from follows(place)
    if own is not None:
        yield same_study(place, own)


def study(place: Place) -> Finding:
    """Whether the digest is that of the study that run.json shows."""
    run = place.run
    try:
        pinned = {party["name"]: party.get("fingerprint") for party in run["agreed"]["party"]}
        known = {name: text and text.replace(":", "").lower() for name, text in pinned.items()}
        found = digest_of(run["agreed"], protocol_of(run), known, run["ca"]).hex()
        shown = _public_study(run, place.directory / RUN)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(
            f"{place.directory / RUN} does not state the study; it is damaged or of another version."
        ) from None
    if found != run["digest"]:
        return problem(
            StudiesDiffer(
                f"{place.directory / RUN}: the study in it has digest {found[:16]}.., and it states {run['digest'][:16]}.."
            )
        )
    if shown != canonical(run["public_study"]):
        return problem(
            StudiesDiffer(
                f"{place.directory / RUN} shows another study, as public_study, than the one that was agreed."
            )
        )
    return fine(f"the study is the one with digest {found}")


def same_study(place: Place, own: Study) -> Finding:
    """Whether the study that was agreed is the auditor's own, with the certificates that it pins."""
    agreed, expected = place.run["agreed"], agreed_tree(own)
    differing = sorted(
        name
        for name in agreed.keys() | expected.keys()
        if canonical(agreed.get(name)) != canonical(expected.get(name))
    )
    if differing:
        return problem(
            StudiesDiffer(
                f"{place.directory / RUN}: the study that was agreed has another {' and '.join(differing)} than {own.path}; "
                "ask the parties which study they ran."
            )
        )
    return fine(f"the study that was agreed is that of {own.path}")


def _public_study(run: Mapping[str, Any], file: Path) -> bytes:
    """public_study as it follows from what was agreed; what files beside a study held is taken over."""
    form = agreed_study(run, file).public()
    form |= {name: run["agreed"][name] for name in ("contributors", "prior") if name in run["agreed"]}
    return canonical(form)


def follows(place: Place) -> Iterator[Finding]:
    """Whether run.json repeats what the study that was agreed says: the report shows these, and nobody
    recomputes them there."""
    run = place.run
    study = agreed_study(run, place.directory / RUN)
    sound = ALGORITHMS[study.algorithm].sound(study.config)
    expected = {
        "study": study.name,
        "algorithm": study.algorithm,
        "backend": study.backend,
        "partition": study.partition,
        "security": study.security if study.descriptor.malicious else None,
        "table": None if sound else RESEARCH_TABLE,
        "columns": columns_of(study.domain),
        "constraints": constraints_of(study.domain).get("constraints"),
        "linked": None if study.linked is None else study.linked.to_spec(),
        **({"claim": claim_of(study)} if protocol_of(run) == str(PROTOCOL) else {}),
    }
    stated = {name: run.get(name) for name in expected}
    differing = [name for name, value in expected.items() if canonical(stated[name]) != canonical(value)]
    roles = [(party.name, "compute" if party.compute else "contribute") for party in study.parties]
    if [(party.get("name"), party.get("role")) for party in run["parties"]] != roles:
        differing.append("parties")
    if (KEY in run) != (training_of(study) is not None):
        differing.append(KEY)
    if differing:
        yield problem(
            StudiesDiffer(
                f"{place.directory / RUN} states another {' and '.join(differing)} than follows from the study that was agreed."
            )
        )
