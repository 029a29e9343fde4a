"""Faults of processes (`broken_program`): who is let in, what is on record, and what is told."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest import mock

from mpc_protocols.functionality import Event
from parties import certificates, core_dumps
from parties.budget.journal import Journal
from parties.data.counting.coding import Coder
from parties.session import SessionWire, session
from parties.session.admission.config import SessionConfig
from parties.session.admission.connect import Connector
from parties.session.admission.identity import Identity
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, opened_to_all, replaced
from runner.review.audit.subjects.processes import deployment


def _system_authorities() -> Patch:
    """A certificate of any CA that the system trusts will do."""
    plain = Identity._new_context

    def context(self: Any, peer: Any, shown: bytes, server: bool) -> ssl.SSLContext:
        found = plain(self, peer, shown, server)
        found.load_default_certs(ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH)
        return found

    return mock.patch.object(Identity, "_new_context", context)


def _quoted_values() -> Patch:
    """A value that does not fit is quoted."""
    plain = Coder.code

    def code(self: Any, values: Any) -> Any:
        codes, misfits = plain(self, values)
        return codes, [replace(misfit, reason=f"{misfit.reason}: {values[misfit.row]}") for misfit in misfits]

    return mock.patch.object(Coder, "code", code)


def _any_certificate() -> Patch:
    """A certificate of the parties' CA will do, whosever it is."""
    return mock.patch.object(Identity, "verify", lambda self, peer, shown, tls: None)


def _unwritten_journal() -> Patch:
    def events(self: Any, releases: Sequence[tuple[Event, bytes]]) -> None:
        self._releases += len(releases)

    return mock.patch.object(Journal, "events", events)


def _logged_key() -> Patch:
    def logging_key(own_identity: Callable[[SessionConfig], Identity]) -> Callable[[SessionConfig], Identity]:
        def wrapped(config: SessionConfig) -> Identity:
            assert config.key is not None
            logging.getLogger("cosynth").info("identity %s", config.key.read_text())
            return own_identity(config)

        return wrapped

    return replaced("parties.session.admission.identity.own_identity", logging_key)


def _believed_strangers() -> Patch:
    """What anybody says at a party's port ends its start."""

    def doubt(self: Any, error: Any, number: int | None, host: str) -> None:
        self._refuse(error, self._config.number if number is None else number)

    return mock.patch.object(Connector, "_doubt", doubt)


def _readable_keys() -> Patch:
    """A key will do that everybody on the machine can read."""
    return mock.patch.object(certificates, "check_private", lambda key: None)


def _core_files() -> Patch:
    """A party that crashes leaves an image of its memory."""
    return mock.patch.object(core_dumps, "forbid_core_dumps", lambda: None)


def _open_journal() -> Patch:
    """A run's journal is written for everybody to read."""
    return opened_to_all("journal-")


def _unseen_expiry() -> Patch:
    """What has been valid once is valid."""
    return mock.patch.object(Identity, "expired", lambda self: None)


@contextmanager
def _late_look() -> Iterator[None]:
    """Whether a certificate has expired is looked at by and by, and not before a release."""
    with (
        mock.patch.object(SessionWire, "check_valid", lambda self: None),
        mock.patch.object(session, "HEARTBEAT_S", 3.0),
    ):
        yield


IN_PROCESSES: Final[Mapping[str, Callable[[], Patch]]] = {
    "M27": _any_certificate,
    "M28": _system_authorities,
    "P1": _unwritten_journal,
    "P2": _logged_key,
    "P6": _quoted_values,
    "P7": _believed_strangers,
    "P8": _readable_keys,
    "P9": _core_files,
    "P11": _open_journal,
    "P12": _unseen_expiry,
    "P13": _late_look,
}
"""What a party's process does differently, by mutation (`broken_program`)."""


def _in_processes(name: str) -> Patch:
    return mock.patch.object(
        deployment, "PROGRAM", ("-m", "runner.review.audit.broken_builds.broken_program", name)
    )


MUTATIONS = (
    Mutation(
        "M27",
        "a party not tied to its certificate",
        ("W.identity", "W.dialled"),
        partial(_in_processes, "M27"),
    ),
    Mutation(
        "M28", "the system's certificate authorities trusted", ("W.identity",), partial(_in_processes, "M28")
    ),
    Mutation("P1", "a journal that is not written", ("W.killed", "C.faults"), partial(_in_processes, "P1")),
    Mutation("P2", "a private key in a log", ("W.traces",), partial(_in_processes, "P2")),
    Mutation("P6", "a value that does not fit in a sentence", ("W.refused",), partial(_in_processes, "P6")),
    Mutation("P7", "a greeting of a stranger ends the start", ("W.identity",), partial(_in_processes, "P7")),
    Mutation("P8", "a private key that others can read", ("W.keys",), partial(_in_processes, "P8")),
    Mutation("P9", "a core file of a party that crashes", ("W.traces",), partial(_in_processes, "P9")),
    Mutation(
        "P12",
        "a certificate that expires in mid-run and is not seen",
        ("W.lapsed",),
        partial(_in_processes, "P12"),
    ),
    Mutation(
        "P13",
        "an expired certificate that is not looked at before a release",
        ("W.lapsed",),
        partial(_in_processes, "P13"),
    ),
    Mutation("P11", "a journal that others can read", ("W.modes",), partial(_in_processes, "P11")),
)
