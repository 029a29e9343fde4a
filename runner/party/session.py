"""From a study and a party's own settings to its part in a session (`docs/design/session.md`): the same for a
run and for `check --connect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mpc_protocols.errors import PeerIdentity
from mpc_protocols.process.later import Later
from runner.study import Study, digest
from runner.study.private_file import CertificateFiles
from runner.version import PROTOCOL

if TYPE_CHECKING:
    from parties import certificates, session
    from parties.session import SessionConfig
    from parties.session.transport.way_in import WayIn
    from runner.forecast import predict, result
else:  # `check` of a study without --party needs no TLS
    certificates = Later("parties.certificates")
    predict = Later("runner.forecast.predict")
    result = Later("runner.forecast.result")
    session = Later("parties.session")


MAX_DEADLINE_S = 1e6


def study_digest(study: Study, certs: CertificateFiles | None) -> bytes:
    """What all parties compare: the study's, with the session's CA if there is one
    (`docs/reference/study-file.md`)."""
    return digest(study, ca_fingerprint(certs))


def ca_fingerprint(certs: CertificateFiles | None) -> str:
    """Of the session's CA, in hex; "" if there is none."""
    if certs is None or certs.ca is None:
        return ""
    try:
        return certificates.fingerprint(certs.ca)
    except PeerIdentity:  # who cannot read its CA meets nobody, and the session says why
        return ""


def session_config(
    study: Study,
    party: str,
    certs: CertificateFiles | None,
    agreed: bytes,
    listen: tuple[str, int] | None,
    facts: Mapping[str, object],
    way_in: WayIn | None = None,
    deadline_s: Callable[[], float] | None = None,
) -> SessionConfig:
    """agreed: the `study_digest`. facts: what the party announces to all. deadline_s: `run_deadline`. Raises
    `StudyInvalid`."""
    return session.SessionConfig(
        me=party,
        parties=tuple(
            session.Peer(
                each.name, each.host, each.port, "compute" if each.compute else "contribute", each.fingerprint
            )
            for each in study.parties
        ),
        study_digest=agreed,
        protocol=PROTOCOL,
        listen=listen,
        cert=certs.cert if certs else None,
        key=certs.key if certs else None,
        ca=certs.ca if certs else None,
        insecure_key=certs.insecure_key if certs else False,
        insecure_loopback=study.session.tls == "insecure-loopback",
        facts=facts,
        connect_s=study.session.connect_s,
        silence_s=study.session.silence_s,
        answer_s=study.session.answer_s
        if study.descriptor.malicious and study.party(party).compute
        else None,
        deadline_s=deadline_s,
        way_in=way_in,
    )


def is_bounded(study: Study, party: str) -> bool:
    """Whether a run has a deadline at this party."""
    return study.descriptor.malicious and not study.descriptor.ideal and study.party(party).compute


def run_deadline(study: Study, party: str) -> float | None:
    """Seconds that a run may take at a computing party where another one may deviate; None elsewhere.

    A party that answers each message just in time could otherwise hold the others for days. It follows from
    public facts: not from the tables that happen to lie on this machine. A dry run of the study, which takes
    its CPU seconds.
    """
    if not is_bounded(study, party):
        return None
    public = replace(study, parties=tuple(replace(each, data=None) for each in study.parties))
    foretold = predict.forecast(public).time_s[result.WAN]
    return min(MAX_DEADLINE_S, max(study.session.deadline_floor_s, study.session.deadline_factor * foretold))
