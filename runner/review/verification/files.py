"""Files of one run at several parties: equal, of the study that was agreed, signed by all, and the report
made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from mpc_protocols.errors import CosynthError, StudiesDiffer, UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.process.installation import program
from runner.check.finding import Finding, fine, note, problem
from runner.report.files import load, measurements_of
from runner.report.page import page
from runner.results.finished_run import MODEL, agreed_study, domain_of
from runner.results.outdir import RUN, table_of
from runner.results.release import check_measured
from runner.review.verification.agreed import agreed
from runner.review.verification.collected import collected
from runner.review.verification.place import REPORT, Place
from runner.review.verification.signers import Authority, signed
from runner.starting.demo import COMPARISON, comparison_of
from runner.study import Study
from runner.study.sections.waves import MEASUREMENTS
from runner.study.trained import training_of


def files(
    places: Sequence[Place], own: Study | None = None, ca: Authority | None = None
) -> Iterator[Finding]:
    """All that this file is about, of directories with the same run. own: the study that the auditor holds;
    ca: the CA that the auditor names.

    Raises `UsageError` for what cannot be read.
    """
    yield from equal(places)
    first = places[0]
    yield from agreed(first, own)
    yield from whole(first)
    yield from signed(first, own, ca)
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


def whole(place: Place) -> Iterator[Finding]:
    """Whether all is there that a run leaves, and of measurements what its events say. A report can be made
    anew."""
    if training_of(agreed_study(place.run, place.directory / RUN)) is not None:
        return
    expected = (MEASUREMENTS, MODEL, table_of(place.run))
    if missing := [name for name in expected if name not in place.hashes]:
        yield problem(
            UsageError(
                f"{place.directory} holds no {' and no '.join(missing)}; ask each party for its own directory."
            )
        )
        return
    measurements = measurements_of(place.directory, domain_of(place.run))
    privacy = place.run["privacy"]
    try:
        told = [
            Event(str(form["what"]), Fraction(0), Fraction(0), form)
            for form in privacy.get("all_events", privacy["events"])
        ]
        check_measured(told, measurements)
    except (KeyError, TypeError, ValueError, AttributeError):
        yield problem(
            StudiesDiffer(
                f"{place.directory / MEASUREMENTS} holds other marginals or other noise than the events of {RUN} beside it."
            )
        )


def report(place: Place) -> Finding:
    """Whether the page is what these files make."""
    path = place.directory / REPORT
    if training_of(agreed_study(place.run, place.directory / RUN)) is not None:
        return note(f"{path} is not made anew: a page about a trained model")
    if not path.is_file():
        return note(f"no {REPORT}: `{program()} report {place.directory}` makes it anew")
    try:
        comparison = comparison_of(place.directory)
        made = page(load(place.directory), comparison)
    except CosynthError as error:
        return problem(error)
    if path.read_bytes() != made.encode("utf-8", "replace"):
        return problem(
            StudiesDiffer(
                f"{path} is not the page that the files beside it make; `{program()} report` makes it anew."
            )
        )
    signed_not = (
        ""
        if comparison is None
        else f", of which nobody has signed {COMPARISON}: the section that only a demo has"
    )
    return fine(f"the report is what its files make{signed_not}")
