"""Files of one run at several parties: equal, of the study that was agreed, signed by all, and the report made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mpc_protocols.errors import CosynthError, PeerIdentity, StudiesDiffer, UsageError
from runner.check.finding import Finding, fine, note, problem
from runner.demo import comparison_of
from runner.results import signatures
from runner.results.finished_run import agreed_study
from runner.results.outdir import PARTY_FOLDERS, RESULT, RUN, SIGNATURES, finished
from runner.study.hashing import canonical, digest_of

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


def files(places: Sequence[Place]) -> Iterator[Finding]:
    """All that this file is about, of directories with the same run. Raises `UsageError` for what cannot be read."""
    yield from equal(places)
    first = places[0]
    yield study(first)
    yield from signed(first)
    yield report(first)


def equal(places: Sequence[Place]) -> Iterator[Finding]:
    """Whether all hold the same."""
    every = [own for place in places for own in (place, *place.parties)]
    first, *others = every
    for other in others:
        names = sorted(first.hashes.keys() | other.hashes.keys())
        differing = [name for name in names if first.hashes.get(name) != other.hashes.get(name)]
        if differing:
            yield problem(
                StudiesDiffer(
                    f"{other.directory} has another {' and '.join(differing)} than {first.directory}; see where each "
                    "comes from."
                )
            )
    if not others:
        yield note("one directory: nothing to compare it with")
    elif len({canonical(place.hashes) for place in every}) == 1:
        yield fine(f"{len(every)} directories hold the same {', '.join(sorted(first.hashes))}")


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


def _shown(run: Mapping[str, Any], file: Path) -> bytes:
    """public_study as it follows from what was agreed; what files beside a study held is taken over."""
    form = agreed_study(run, file).public()
    if "contributors" in run["agreed"]:
        form["contributors"] = run["agreed"]["contributors"]
    return canonical(form)


def signed(place: Place) -> Iterator[Finding]:
    """Whether each party has signed these files."""
    path = place.directory / SIGNATURES
    if not path.is_file():
        yield note(
            f"no {SIGNATURES}: this run was not signed (parties without certificates, or a model without a table)"
        )
        return
    found, run = signatures.read(path), place.run
    agreed = run["agreed"]["party"]
    wrong = [name for name, value in found.files.items() if place.hashes.get(name) != value]
    if wrong or RUN not in found.files:
        yield problem(
            PeerIdentity(
                f"{path} is of other files: {', '.join(wrong) or RUN} was changed since it was signed."
            )
        )
        return
    ca = "" if found.ca is None else signatures.fingerprint_of(found.ca)
    if (found.run, ca) != (run["session"], run["ca"]):
        yield note(
            f"signed under CA {ca[:16]}.., and the study was agreed under {run['ca'][:16]}..: the run was resumed"
        )
    bad = 0
    for party in agreed:
        pinned = party.get("fingerprint")
        try:
            found.check(party["name"], pinned and pinned.replace(":", "").lower())
        except CosynthError as error:
            bad += 1
            yield problem(error)
    if not bad:
        names = ", ".join(party["name"] for party in agreed)
        anchor = "by pinned certificates" if found.ca is None else f"CA {ca}"
        yield fine(f"signed by {names} ({anchor}: compare it with the one you know)")


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
        made = page(load(place.directory), comparison_of(place.directory))
    except CosynthError as error:
        return problem(error)
    if path.read_bytes() != made.encode("utf-8", "replace"):
        return problem(
            StudiesDiffer(
                f"{path} is not the page that the files beside it make; `python -m runner report` makes it anew."
            )
        )
    return fine("the report is what its files make")
