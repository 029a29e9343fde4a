"""What a run over bundles has told its contributors: result.json, signed by the parties whose keys the study
lists."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.backends.bundles.sealing import ReceiverKey
from mpc_protocols.errors import CosynthError, PeerIdentity, StudiesDiffer, UsageError
from runner.check.finding import Finding, fine, note, problem
from runner.contributors import signed_result, statement
from runner.results.finished_run import MODEL
from runner.results.outdir import RESULT, RUN
from runner.study.hashing import digest_of, protocol_of
from runner.study.sections.waves import MEASUREMENTS

if TYPE_CHECKING:
    from runner.review.verification.place import Place
    from runner.study import Study


def collected(place: Place, own: Study | None = None) -> Iterator[Finding]:
    """Whether contributors were told of this run, by all three parties. own: the auditor's study; to read it
    is to verify its earlier waves.

    Raises `UsageError` for a run.json that does not state the receivers.
    """
    if "contributors" not in place.run["agreed"]:
        return
    path = place.directory / RESULT
    if path.is_file():
        yield _result_finding(place)
    else:
        yield problem(
            PeerIdentity(
                f"{place.directory} has no {RESULT}, and its parties sign one for the contributors; ask each party for its own "
                "directory."
            )
        )
    waves = place.run["agreed"]["contributors"].get("after", [])
    if waves and own is None:
        yield note(
            f"earlier waves ({len(waves)}): what they have measured is taken as the parties agreed on it; --study STUDY reads "
            "their results and verifies the signatures"
        )


def _result_finding(place: Place) -> Finding:
    run, path = place.run, place.directory / RESULT
    try:
        listed = run["agreed"]["contributors"]["receivers"]
        keys = {
            name: ReceiverKey(bytes.fromhex(of["seal"]), bytes.fromhex(of["sign"]))
            for name, of in listed.items()
        }
        pinned = {party["name"]: party.get("fingerprint") for party in run["agreed"]["party"]}
        known = {name: text and text.replace(":", "").lower() for name, text in pinned.items()}
        study = digest_of(run["agreed"], protocol_of(run), known, "").hex()
        took_part, custodians = run["contributors"]["took_part"], sorted(run["contributors"]["custodians"])
        privacy = run["privacy"]
        events = [(form["what"], form["rho"]) for form in privacy.get("all_events", privacy["events"])]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(
            f"{place.directory / RUN} does not state the contributors; it is damaged or of another version."
        ) from None
    try:
        _, content, signatures = statement.read([path], {signed_result.KIND: signed_result.FORMAT})
        statement.verify(f"{path}", signed_result.signed(content), signatures, bytes.fromhex(study), keys)
        told = signed_result.parse(path, content)
    except CosynthError as error:
        return problem(error)
    compared = {
        "study": (told.study, study),
        "contributors": (list(told.contributors), took_part),
        "computing parties with tables": (list(told.custodians), custodians),
        MEASUREMENTS: (told.measurements, _hash(place, MEASUREMENTS)),
        MODEL: (told.model, _hash(place, MODEL)),
        "account of events": ([(each.what, float(each.rho)) for each in told.events], events),
    }
    if differing := [what for what, (said, found) in compared.items() if said != found]:
        return problem(
            StudiesDiffer(f"{path} tells of another {' and '.join(differing)} than the files beside it.")
        )
    signers = "; ".join(f"{name} ({key.fingerprint})" for name, key in keys.items())
    return fine(
        f"contributors are told of this run, signed by {signers}: compare with what the parties tell you"
    )


def _hash(place: Place, name: str) -> str | None:
    file = place.directory / name
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
