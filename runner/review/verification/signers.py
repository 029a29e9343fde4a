"""Whether the parties have signed a run's files, and whose word that rests on.

Absence is no evidence: a run that names certificates has signatures, so files without them are not as its
parties left them. A signature proves whose a file is as far as somebody whom the auditor believes says whose
the key is: a CA that the auditor names, or the pins of the auditor's own study. What the files themselves
name proves that they belong together, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpc_protocols.errors import CosynthError, PeerIdentity
from runner.check.finding import Finding, fine, note, problem
from runner.results import signatures
from runner.results.finished_run import agreed_study
from runner.results.outdir import ONE_MACHINE, RUN, SIGNATURES
from runner.review.verification.place import Place
from runner.study import Study
from runner.study.trained import training_of

GIVER = "whoever gave you these files"


@dataclass(frozen=True)
class Authority:
    """The CA that the auditor names: its fingerprint, and its certificate (PEM) where that was given."""

    fingerprint: str
    pem: str | None = None

    @classmethod
    def of(cls, text: str) -> Authority:
        """text: a certificate's file, or its SHA-256 fingerprint. Raises `PeerIdentity`."""
        digits = text.replace(":", "").lower()
        if re.fullmatch("[0-9a-f]{64}", digits):
            return cls(digits)
        try:
            pem = Path(text).read_text(encoding="utf-8", errors="replace")
        except OSError:
            raise PeerIdentity(
                f"--ca {text} is neither a file that can be read nor a fingerprint of 64 hexadecimal digits."
            ) from None
        return cls(signatures.fingerprint_of(pem), pem)


def signed(place: Place, own: Study | None = None, ca: Authority | None = None) -> Iterator[Finding]:
    """Whether each party has signed these files, and what its signature rests on. own: pins what it pins. ca:
    the only one that is believed of parties whom own does not pin.

    Raises `UsageError` for a file of signatures that cannot be read.
    """
    path = place.directory / SIGNATURES
    if not path.is_file():
        yield _unsigned(place, own, ca)
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
    shown = "" if found.ca is None else signatures.fingerprint_of(found.ca)
    known = {} if own is None else {party.name: party.fingerprint for party in own.parties}
    # a pin is run.json's own word: beside a CA that the auditor names it counts for nothing
    told = {party["name"]: None if ca else party.get("fingerprint") for party in run["agreed"]["party"]}
    pins = told | known
    by_ca = [name for name, pin in pins.items() if not pin]
    if ca is not None and by_ca and ca.pem is None and shown != ca.fingerprint:
        yield problem(
            PeerIdentity(
                f"{path} is signed under {f'CA {shown}' if shown else 'no CA'}, and --ca names {ca.fingerprint}; ask the parties "
                "which certificates they had."
            )
        )
        return
    if shown != run["ca"] and by_ca and ca is None:
        resumed = (
            f"signed under CA {shown[:16]}.., and the study was agreed under {run['ca'][:16]}..: the run was"
        )
        if run["deployment"] != ONE_MACHINE:  # where every start makes new keys
            yield problem(
                PeerIdentity(
                    f"{path} is {resumed} resumed with other certificates, or signed by others; ask the parties for their "
                    "CA, and name it with --ca."
                )
            )
            return
        yield note(f"{resumed} resumed")
    elif found.run != run["session"]:
        yield note("signed in another session than the one that run.json states: the run was resumed")
    anchors: dict[str, list[str]] = {}
    believed, bad = True, False
    for name, text in pins.items():
        pin = text and text.replace(":", "").lower()
        try:
            found.check(name, pin, None if ca is None else ca.pem)
        except CosynthError as error:
            bad = True
            yield problem(error)
        else:
            anchor = f"certificate {pin}, pinned" if pin else f"CA {shown if ca is None else ca.fingerprint}"
            anchors.setdefault(anchor, []).append(name)
            believed &= ca is not None or bool(known.get(name))
    if bad:
        return
    told_of = "; ".join(f"{', '.join(names)} ({anchor})" for anchor, names in anchors.items())
    yield fine(f"signed by {told_of}")
    if believed:
        yield fine("whose keys these are: what you named says so")
    else:
        yield note(
            f"whose keys these are: the files themselves say so, and they are the word of {GIVER}; compare the fingerprints "
            "with what the parties tell you, and name them: --ca, or a --study with pins"
        )


def _unsigned(place: Place, own: Study | None, ca: Authority | None) -> Finding:
    study = agreed_study(place.run, place.directory / RUN)
    if training_of(study) is not None:
        return note(f"nobody signs a trained model's run: all of it is the word of {GIVER}")
    if why := _certificates(place, study, own, ca):
        return problem(
            PeerIdentity(
                f"{place.directory} has no {SIGNATURES}, and {why}, so its parties had certificates and have signed; ask each "
                "party for its own directory."
            )
        )
    return note(f"no {SIGNATURES}: this run had no certificates, and all of it is the word of {GIVER}")


def _certificates(place: Place, study: Study, own: Study | None, ca: Authority | None) -> str:
    """What says that the parties had certificates; "" if nothing does."""
    reasons = {
        f"{RUN} names the CA of its session": place.run["ca"],
        "the study that was agreed pins certificates": any(party.fingerprint for party in study.parties),
        "your study pins certificates": own is not None and any(party.fingerprint for party in own.parties),
        "--ca names the CA of its session": ca is not None,
        "connections of the study that was agreed are encrypted": not study.descriptor.ideal
        and study.session.tls == "mutual",
    }
    return next((why for why, holds in reasons.items() if holds), "")
