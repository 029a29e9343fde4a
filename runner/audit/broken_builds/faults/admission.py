"""Faults of processes (`broken_program`): who is let in, and what is said of a table that does not fit."""

from __future__ import annotations

import ssl
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from parties import certificates, core_dumps
from parties.data.coding import Coder
from parties.session.admission.connect import Connector
from parties.session.admission.identity import Identity
from runner.audit.broken_builds.faults.mutation import Mutation, Patch
from runner.audit.subjects.processes import deployment


def system_authorities() -> Patch:
    """A certificate of any CA that the system trusts will do."""
    plain = Identity._new_context

    def context(self: Any, peer: Any, shown: bytes, server: bool) -> ssl.SSLContext:
        found = plain(self, peer, shown, server)
        found.load_default_certs(ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH)
        return found

    return mock.patch.object(Identity, "_new_context", context)


def quoted_values() -> Patch:
    """A value that does not fit is quoted."""
    plain = Coder.code

    def code(self: Any, values: Any) -> Any:
        codes, misfits = plain(self, values)
        return codes, [replace(misfit, reason=f"{misfit.reason}: {values[misfit.row]}") for misfit in misfits]

    return mock.patch.object(Coder, "code", code)


def believed_strangers() -> Patch:
    """What anybody says at a party's port ends its start."""

    def doubt(self: Any, error: Any, number: int | None, host: str) -> None:
        self._refuse(error, self._config.number if number is None else number)

    return mock.patch.object(Connector, "_doubt", doubt)


def readable_keys() -> Patch:
    """A key will do that everybody on the machine can read."""
    return mock.patch.object(certificates, "check_private", lambda key: None)


def core_files() -> Patch:
    """A party that crashes leaves an image of its memory."""
    return mock.patch.object(core_dumps, "forbid_core_dumps", lambda: None)


def _in_processes(name: str) -> Patch:
    return mock.patch.object(deployment, "PROGRAM", ("-m", "runner.audit.broken_builds.broken_program", name))


MUTATIONS = (
    Mutation(
        "M28", "the system's certificate authorities trusted", ("W.identity",), partial(_in_processes, "M28")
    ),
    Mutation("P6", "a value that does not fit in a sentence", ("W.refused",), partial(_in_processes, "P6")),
    Mutation("P7", "a greeting of a stranger ends the start", ("W.identity",), partial(_in_processes, "P7")),
    Mutation("P8", "a private key that others can read", ("W.keys",), partial(_in_processes, "P8")),
    Mutation("P9", "a core file of a party that crashes", ("W.traces",), partial(_in_processes, "P9")),
)
