"""Files of one run at several parties: equal, of the study that was agreed, signed by all, and the report made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mpc_protocols.errors import CosynthError, PeerIdentity, StudiesDiffer, UsageError
from runner.check.finding import Finding, fine, note, problem
from runner.demo import COMPARISON, comparison_of
from runner.results import signatures
from runner.results.finished_run import agreed_study
from runner.results.outdir import PARTY_FOLDERS, RESULT, RUN, SIGNATURES, finished
from runner.study import Study
from runner.study.hashing import agreed_tree, canonical, digest_of
from runner.verification.collected import collected

REPORT = "report.html"
COMPARED = (*signatures.SIGNED, REPORT, RESULT, SIGNATURES)
"""What is the same at every party."""


@dataclass(frozen=True)
class Place:
    """One directory with a finished run: its run.json, and what is in it."""

    directory: Path
    run: Mapping[str, Any]

    @classmethod
    def at(cls, directory: Path) -> Place:
        """Raises `UsageError` if no run has finished there."""
        return cls(directory, finished(directory))

    @property
    def parties(self) -> tuple[Place, ...]:
        """Of a run on one machine, the parties' own directories."""
        return tuple(
            Place.at(folder)
            for folder in sorted(self.directory.glob(f"{PARTY_FOLDERS}/*"))
            if (folder / RUN).is_file()
        )

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Of the files that are the same at every party."""
        return signatures.hashes(self.directory, COMPARED)

    @cached_property
    def handed_out(self) -> dict[str, str]:
        """The same, of what the parties of a run on one machine hold: their report has no comparison with a demo's real rows.

        Raises `UsageError` for files that make no report.
        """
        if REPORT not in self.hashes or comparison_of(self.directory) is None:
            return self.hashes
        from runner.report.files import load
        from runner.report.page import page

        made = page(load(self.directory)).encode("utf-8", "replace")
        return {**self.hashes, REPORT: hashlib.sha256(made).hexdigest()}


def files(places: Sequence[Place], own: Study | None = None) -> Iterator[Finding]:
    """All that this file is about, of directories with the same run. own: the study that the auditor holds.

    Raises `UsageError` for what cannot be read.
    """
    yield from equal(places)
    first = places[0]
    yield study(first)
    if own is not None:
        yield same_study(first, own)
    yield from signed(first, own)
    yield from collected(first, own)
    yield report(first)


def equal(places: Sequence[Place]) -> Iterator[Finding]:
    """Whether all hold the same; of a run on one machine, whether its parties hold what the launcher does."""
    first, *others = places
    pairs = [(other, first, first.hashes) for other in others]
    pairs += [(own, place, place.handed_out) for place in places for own in place.parties]
    same = True
    for other, than, expected in pairs:
        names = sorted(expected.keys() | other.hashes.keys())
        differing = [name for name in names if expected.get(name) != other.hashes.get(name)]
        if differing:
            same = False
            yield problem(
                StudiesDiffer(
                    f"{other.directory} has another {' and '.join(differing)} than {than.directory}; see where each "
                    "comes from."
                )
            )
    if not pairs:
        yield note("one directory: nothing to compare it with")
    elif same:
        but = "" if first.handed_out == first.hashes else ", but for what only a demo's report adds"
        yield fine(f"{len(pairs) + 1} directories hold the same {', '.join(sorted(first.hashes))}{but}")


def study(place: Place) -> Finding:
    """Whether the digest is that of the study that run.json shows."""
    run = place.run
    try:
        pinned = {party["name"]: party.get("fingerprint") for party in run["agreed"]["party"]}
        known = {name: text and text.replace(":", "").lower() for name, text in pinned.items()}
        found = digest_of(run["agreed"], run["version"], known, run["ca"]).hex()
        shown = _shown(run, place.directory / RUN)
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


def _shown(run: Mapping[str, Any], file: Path) -> bytes:
    """public_study as it follows from what was agreed; what files beside a study held is taken over."""
    form = agreed_study(run, file).public()
    if "contributors" in run["agreed"]:
        form["contributors"] = run["agreed"]["contributors"]
    return canonical(form)


def signed(place: Place, own: Study | None = None) -> Iterator[Finding]:
    """Whether each party has signed these files, and what its signature rests on. own: pins what it pins."""
    path = place.directory / SIGNATURES
    if not path.is_file():
        yield note(
            f"no {SIGNATURES}: this run was not signed (parties without certificates, or a model without a table)"
        )
        return
    found, run = signatures.read(path), place.run
    present = {name: place.hashes[name] for name in signatures.SIGNED if name in place.hashes}
    wrong = [name for name, value in found.files.items() if present.get(name) != value]
    unsigned = [name for name in present if name not in found.files]
    if wrong:
        yield problem(
            PeerIdentity(f"{path} is of other files: {', '.join(wrong)} was changed since it was signed.")
        )
    if unsigned:
        yield problem(
            PeerIdentity(
                f"{path} is of other files: {', '.join(unsigned)} beside it was not signed; remove what is not the run's."
            )
        )
    if wrong or unsigned:
        return
    ca = "" if found.ca is None else signatures.fingerprint_of(found.ca)
    pins = {party["name"]: party.get("fingerprint") for party in run["agreed"]["party"]}
    if own is not None:
        pins |= {party.name: party.fingerprint for party in own.parties}
    if ca != run["ca"] and not all(pins.values()):
        yield note(
            f"signed under CA {ca[:16]}.., and the study was agreed under {run['ca'][:16]}..: the run was resumed"
        )
    elif found.run != run["session"]:
        yield note("signed in another session than the one that run.json states: the run was resumed")
    anchors: dict[str, list[str]] = {}
    bad = False
    for name, text in pins.items():
        pin = text and text.replace(":", "").lower()
        try:
            found.check(name, pin)
        except CosynthError as error:
            bad = True
            yield problem(error)
        else:
            anchors.setdefault(f"certificate {pin}, pinned" if pin else f"CA {ca}", []).append(name)
    if not bad:
        told = "; ".join(f"{', '.join(names)} ({anchor})" for anchor, names in anchors.items())
        yield fine(f"signed by {told}: compare with what the parties tell you")


def report(place: Place) -> Finding:
    """Whether the page is what these files make."""
    from runner.report.files import load
    from runner.report.page import page

    path = place.directory / REPORT
    if "model" in place.run:
        return note(f"{path} is not made anew: a page about a trained model")
    if not path.is_file():
        return note(f"no {REPORT}: `python -m runner report {place.directory}` makes it anew")
    try:
        comparison = comparison_of(place.directory)
        made = page(load(place.directory), comparison)
    except CosynthError as error:
        return problem(error)
    if path.read_bytes() != made.encode("utf-8", "replace"):
        return problem(
            StudiesDiffer(
                f"{path} is not the page that the files beside it make; `python -m runner report` makes it anew."
            )
        )
    signed_not = (
        ""
        if comparison is None
        else f", of which nobody has signed {COMPARISON}: the section that only a demo has"
    )
    return fine(f"the report is what its files make{signed_not}")
