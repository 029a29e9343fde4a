"""The study's digest: what the parties compare before anything private moves (`docs/design/session.md` 4;
exit 22 if it differs).

It covers every public byte that changes the meaning of a run: the parsed study without `data` (comments and
spacing do not count), the domain in its column order with the content of its file, the protocol version, name
and version of the plug-ins that the study names, and whom each party will accept: its pinned certificate,
else the session's CA.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.process.canonical_json import canonical
from mpc_protocols.psu.method import METHODS
from runner.study.model import Study, VerticalStudy
from runner.study.owners import method_of
from runner.version import PROTOCOL
from synth.algorithm import ALGORITHMS

FORMAT = "cosynth-study-1"


def agreed_tree(study: Study) -> dict[str, Any]:
    """What the digest says of the study itself: JSON-able, without `data`."""
    tree: dict[str, Any] = dict(study.tree)
    tree["party"] = [
        {key: value for key, value in entry.items() if key != "data"} for entry in study.tree["party"]
    ]
    # the order of columns decides which marginals a seed chooses, and JSON objects have none: the domain goes
    # as a list
    own = study.domain if study.linked is None else study.linked.people
    tree["domain"] = {"file": study.tree["domain"].get("file"), **own.to_spec()}
    if study.linked is not None:
        tree["table"] = study.linked.to_spec()
    if study.contributors is not None:  # with the content of the files that it names
        tree["contributors"] = study.contributors.public()
    if study.prior is not None:  # with the digest of what it names, wherever each party has it
        tree["prior"] = study.prior.public()
    if installed := plug_ins_of(study):
        tree["plug_ins"] = installed
    return tree


def plug_ins_of(study: Study) -> dict[str, str]:
    """What other distributions bring to the study, with name and version of each: parties with other versions
    do not meet."""
    origins = {
        "algorithm": ALGORITHMS.origin(study.algorithm),
        "backend": BACKENDS.origin(study.backend),
        "alignment": METHODS.origin(method_of(study).name) if isinstance(study, VerticalStudy) else None,
    }
    return {kind: origin for kind, origin in origins.items() if origin is not None}


def digest(study: Study, ca_fingerprint: str) -> bytes:
    """32 bytes. `ca_fingerprint`: SHA-256 of the session CA's certificate in hex, "" with `tls =
    "insecure-loopback"`."""
    return digest_of(
        agreed_tree(study),
        str(PROTOCOL),
        {party.name: party.fingerprint for party in study.parties},
        ca_fingerprint.replace(":", "").lower(),
    )


def digest_of(
    tree: Mapping[str, Any], protocol: str, pinned: Mapping[str, str | None], ca_fingerprint: str
) -> bytes:
    """The same from its parts. tree: `agreed_tree`. protocol: as `protocol_of` says. pinned: by party."""
    certificates = {name: fingerprint or f"ca:{ca_fingerprint}" for name, fingerprint in pinned.items()}
    form = {"format": FORMAT, "version": protocol, "study": tree, "certificates": certificates}
    return hashlib.sha256(canonical(form)).digest()


def protocol_of(run: Mapping[str, Any]) -> str:
    """What the digest of a run has as its protocol version, by its run.json: before 0.2.0 that was the
    software's version.

    Raises `KeyError` for a run.json with neither.
    """
    return str(run["protocol"]) if "protocol" in run else str(run["version"])
