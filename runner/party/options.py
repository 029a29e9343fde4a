"""What one process of a run is told: arguments of `process.run_party` and `ideal.run_ideal`. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from parties.session.transport.way_in import WayIn

Progress = Literal["human", "json"]


@dataclass(frozen=True)
class CertificateFiles:
    """Paths of the session CA's certificate, this party's certificate and this party's key, all PEM.

    ca: None if the study pins every party's certificate.
    """

    ca: Path | None
    cert: Path
    key: Path


@dataclass(frozen=True)
class PartyOptions:
    """One process of a run.

    party: its name (`--party`); None for the ideal backend, where one process holds everything. out: an existing directory of
    this program's own (`runner.results.outdir.claim`). certs: None only with `tls = "insecure-loopback"` or the ideal backend.
    one_machine: the launcher started it, so `run.json` says `deployment = "one-machine"`. data: files that replace the study's
    `data` of the parties named (the Python API writes them). progress: how events appear on stdout, by
    `runner.party.progress.printer(progress)`. way_in: of the session (`SessionConfig`), for programs that embed a party.
    """

    study: Path
    party: str | None
    out: Path
    private: Path | None = None
    certs: CertificateFiles | None = None
    one_machine: bool = False
    data: Mapping[str, Path] = field(default_factory=dict)
    progress: Progress = "human"
    way_in: WayIn | None = None
