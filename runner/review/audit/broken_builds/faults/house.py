"""Faults of what a party keeps by itself."""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from typing import Any
from unittest import mock

from parties.inbox import drop_box
from runner.report.watch import server
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, opened_to_all, replaced


def _no_cap() -> Patch:
    """The cap is not looked at; alignments are."""
    return replaced("parties.budget.account.cap_problem", lambda plain: lambda *given: None)


def _no_quota() -> Patch:
    return replaced("parties.budget.account.aligned", lambda plain: lambda *given: 0)


def _no_max_rows() -> Patch:
    return replaced(
        "parties.data.counting.local_marginals.count",
        lambda plain: lambda *given, max_rows, **named: plain(*given, max_rows=1 << 30, **named),
    )


def _no_min_size() -> Patch:
    return replaced("runner.party.alignment.check_size", lambda plain: lambda study, owner, records: None)


def _dead_runs() -> Patch:
    """Nobody looks whether a run's process holds its file."""
    return replaced("parties.budget.open_run.abandoned", lambda plain: lambda path: path.exists())


def _copied_runs() -> Patch:
    """A copy of a run's file passes for the one that its process holds."""
    return replaced("parties.budget.open_run._inode", lambda plain: lambda descriptor: None)


def _any_signature() -> Patch:
    return replaced("runner.results.signatures._verifies", lambda plain: lambda *given: True)


def _any_host() -> Patch:
    """Whatever host is named, it passes for the page's own."""

    def answers(self: Any) -> None:
        name = f"{server.HOST}:{self.watch.port}"
        del self.headers["Host"]
        self.headers["Host"] = name
        plain(self)

    plain = server._Handler.do_GET
    return mock.patch.object(server._Handler, "do_GET", answers)


def _boundless_page() -> Patch:
    return mock.patch.object(server._Server, "process_request", ThreadingHTTPServer.process_request)


def _unsigned_uploads() -> Patch:
    return mock.patch.object(drop_box, "verifies", lambda *given: True)


def _open_state() -> Patch:
    """The state of a run is written for everybody to read."""
    return opened_to_all("state-")


MUTATIONS = (
    Mutation("H1", "a cap that is not looked at", ("H.cap",), _no_cap),
    Mutation("H2", "max_alignments not looked at", ("H.alignments",), _no_quota),
    Mutation("H3", "max_rows not looked at", ("H.bounds",), _no_max_rows),
    Mutation("H4", "min_size not looked at", ("H.bounds",), _no_min_size),
    Mutation("H5", "any signature passes", ("H.signatures",), _any_signature),
    Mutation("P10", "verify takes any signature", ("W.forged",), _any_signature),
    Mutation("H6", "a page that answers in the name of any host", ("H.page",), _any_host),
    Mutation("H7", "a drop box that takes unsigned uploads", ("H.box",), _unsigned_uploads),
    Mutation("H8", "a state file that others can read", ("H.files",), _open_state),
    Mutation("H9", "a run that lives taken for dead", ("H.copies",), _dead_runs),
    Mutation("H10", "a copied run's file that passes for its own", ("H.copies",), _copied_runs),
    Mutation("H11", "a page that holds any number of connections", ("H.crowd",), _boundless_page),
)
