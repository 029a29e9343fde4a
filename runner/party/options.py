"""What one process of a run is told: arguments of `process.run_party` and `ideal.run_ideal`. Standard library
only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mpc_protocols.process.later import Later
from runner.study.private_file import CertificateFiles

if TYPE_CHECKING:
    from parties.session.transport.way_in import WayIn
    from runner.study import private_file
    from runner.study.private_file import LedgerSettings, Private
else:
    private_file = Later("runner.study.private_file")

Progress = Literal["human", "json", "verbose", "quiet"]
"""human: a line a phase and batch, bars on a terminal. verbose: a line a step. json: every event. quiet:
nothing."""


@dataclass(frozen=True)
class PartyOptions:
    """One process of a run.

    party: its name (`--party`); None for the ideal backend, where one process holds everything. out: an
    existing directory of this program's own (`runner.results.outdir.claim`). certs: None only with `tls =
    "insecure-loopback"` or the ideal backend. one_machine: the launcher started it, so `run.json` says
    `deployment = "one-machine"`. private: the private file of each party that has one. data: files that
    replace the study's `data` of the parties named (the Python API writes them). ledger: what replaces
    [ledger] of their private files. allow_retry: align although alignments with the same owner were aborted
    too often. resume: go on with an interrupted run in `out`. progress: how events appear on stdout, by
    `runner.party.record.progress.printer(progress)`. way_in: of the session (`SessionConfig`), for programs
    that embed a party. shared: a folder of all parties of this machine's, for what is alike at all of them
    (`runner.results.shared_report`); the launcher's, so only with `one_machine`.
    """

    study: Path
    party: str | None
    out: Path
    private: Mapping[str, Path] = field(default_factory=dict)
    certs: CertificateFiles | None = None
    one_machine: bool = False
    data: Mapping[str, Path] = field(default_factory=dict)
    ledger: Mapping[str, LedgerSettings] = field(default_factory=dict)
    allow_retry: bool = False
    resume: bool = False
    progress: Progress = "human"
    way_in: WayIn | None = None
    shared: Path | None = None

    def settings(self, party: str) -> Private:
        """A party's private settings. Raises `StudyInvalid` with the first problem of its file."""
        own = private_file.load(self.private.get(party))
        if self.one_machine:  # the study's addresses are met, all of them here
            own = replace(own, listen=None)
        return replace(own, ledger=self.ledger[party]) if party in self.ledger else own
