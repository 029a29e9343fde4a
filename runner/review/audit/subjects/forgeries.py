"""What somebody who holds the files of a finished run of parties with certificates may make of them, and what
`verify` then says.

Each forgery is of a table that was released, or of what was paid or promised for it. The forger has all
directories and can compute whatever is computed from files, digests and the report included; it can make
keys, and has none of the parties'.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parties import certificates
from runner.report import render
from runner.results import signatures
from runner.results.finished_run import agreed_study
from runner.results.outdir import JOURNALS, RUN, SIGNATURES, TABLE
from runner.study.hashing import digest_of, protocol_of

REPORT, MEASUREMENTS = "report.html", "measurements.json"


@dataclass(frozen=True)
class Forger:
    """Who holds the directories of all parties."""

    folders: Sequence[Path]

    @cached_property
    def authority(self) -> certificates.Credential:
        """A CA of the forger's own."""
        return certificates.make_ca("forged")

    @cached_property
    def run(self) -> dict[str, Any]:
        """run.json, to be altered; `write` puts it in place."""
        found: dict[str, Any] = json.loads((self.folders[0] / RUN).read_text(encoding="utf-8"))
        return found

    def write(self) -> None:
        """Put the altered run.json in place, with a report of it where there was one: the same page in all."""
        page: bytes | None = None
        for folder in self.folders:
            (folder / RUN).write_text(json.dumps(self.run, indent=1) + "\n", encoding="utf-8")
            if (folder / REPORT).exists():
                if page is None:
                    page = render(folder).read_bytes()
                (folder / REPORT).write_bytes(page)

    def remove(self, pattern: str) -> None:
        """From every directory."""
        for folder in self.folders:
            for path in folder.glob(pattern):
                path.unlink()

    def digest(self) -> None:
        """Make run.json's digest, and the study that it shows, those of what it now says was agreed."""
        self.run["public_study"] = agreed_study(self.run, self.folders[0] / RUN).public()
        pinned = {party["name"]: party.get("fingerprint") for party in self.run["agreed"]["party"]}
        self.run["digest"] = digest_of(
            self.run["agreed"], protocol_of(self.run), pinned, self.run["ca"]
        ).hex()

    def table(self) -> None:
        """Another table of as many rows: the first stands three times, in place of two others."""
        for folder in self.folders:
            head, first, _, _, *others = (folder / TABLE).read_text(encoding="utf-8").splitlines(True)
            (folder / TABLE).write_text("".join([head, first, first, first, *others]), encoding="utf-8")

    def shorten(self) -> None:
        """A table without its last row."""
        for folder in self.folders:
            lines = (folder / TABLE).read_text(encoding="utf-8").splitlines(True)
            (folder / TABLE).write_text("".join(lines[:-1]), encoding="utf-8")

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """A file of JSON, in every directory."""
        for folder in self.folders:
            form = json.loads((folder / name).read_text(encoding="utf-8"))
            change(form)
            (folder / name).write_text(json.dumps(form), encoding="utf-8")

    def names(self) -> list[str]:
        """Of all parties."""
        return [party["name"] for party in self.run["agreed"]["party"]]

    @cached_property
    def issued(self) -> Mapping[str, certificates.Credential]:
        """Certificates in all parties' names."""
        return {name: certificates.issue(self.authority, name) for name in self.names()}

    def sign(self, own: bool = True) -> None:
        """Sign what is there with keys of the forger's, under its own CA, or (own False) as if under the
        parties'."""
        issued, folder = self.issued, self.folders[0]
        texts = {name: one.certificate.decode() for name, one in issued.items()}
        ca = self.authority.certificate.decode() if own else signatures.read(folder / SIGNATURES).ca
        files = signatures.hashes(folder, signatures.SIGNED)
        content = signatures.Signed(self.run["digest"], self.run["session"], files, texts, ca, {})
        with TemporaryDirectory() as made:
            given = {}
            for name, one in issued.items():
                key = Path(made) / "key"
                key.write_bytes(one.key)
                given[name] = signatures.signature_of(key, content.message)
        for each in self.folders:
            (each / SIGNATURES).write_bytes(replace(content, signatures=given).to_bytes())

    def wholly(self) -> None:
        """A new CA throughout: run.json names it, its digest follows, everybody has signed under it."""
        self.run["ca"] = signatures.fingerprint_of(self.authority.certificate.decode())
        self.digest()
        self.write()
        self.sign()


@dataclass(frozen=True)
class Forgery:
    """what: in words. code: with which `verify` ends where the auditor names the parties' CA. alone: where
    nobody is named; 0 where the files agree with one another throughout, and it can only say whose word they
    are."""

    what: str
    forge: Callable[[Forger], object]
    code: int
    alone: int


def _stated(what: str, change: Callable[[dict[str, Any]], object], alone: int) -> Forgery:
    """Of run.json, signed anew under a CA of the forger's own throughout; signatures are looked at before the
    account."""

    def forge(forger: Forger) -> None:
        change(forger.run)
        forger.wholly()

    return Forgery(what, forge, 21 if alone == 50 else alone, alone)


def _unsigned_table(forger: Forger) -> None:
    forger.table()
    forger.remove(SIGNATURES)
    forger.write()


def _old_signatures(forger: Forger) -> None:
    """The hashes that were signed are those of what is there; the signatures stay as they are."""
    forger.table()
    forger.write()
    folder = forger.folders[0]
    files = signatures.hashes(folder, signatures.SIGNED)
    content = replace(signatures.read(folder / SIGNATURES), files=files)
    for each in forger.folders:
        (each / SIGNATURES).write_bytes(content.to_bytes())


def _no_ca(forger: Forger) -> None:
    forger.run["ca"] = ""
    forger.digest()
    _unsigned_table(forger)


def _no_tls(forger: Forger) -> None:
    forger.run["agreed"].setdefault("session", {})["tls"] = "insecure-loopback"
    _no_ca(forger)


def _row_less(forger: Forger) -> None:
    forger.shorten()
    forger.wholly()


def _rows_less(forger: Forger) -> None:
    forger.shorten()
    forger.run["rows"] -= 1
    forger.wholly()


def _foreign_ca(forger: Forger) -> None:
    forger.table()
    forger.write()
    forger.sign()


def _fresh_ca(forger: Forger) -> None:
    forger.table()
    forger.wholly()


def _their_ca(forger: Forger) -> None:
    forger.table()
    forger.write()
    forger.sign(own=False)


def _pins(forger: Forger) -> None:
    forger.table()
    made = {name: signatures.fingerprint_of(one.certificate.decode()) for name, one in forger.issued.items()}
    for party in forger.run["agreed"]["party"]:
        party["fingerprint"] = made[party["name"]]
    forger.digest()
    forger.write()
    forger.sign()


def _signature_lost(forger: Forger) -> None:
    for folder in forger.folders:
        found = signatures.read(folder / SIGNATURES)
        left = dict(list(found.signatures.items())[1:])
        (folder / SIGNATURES).write_bytes(replace(found, signatures=left).to_bytes())


def _certificate_lost(forger: Forger) -> None:
    for folder in forger.folders:
        found = signatures.read(folder / SIGNATURES)
        left = dict(list(found.certificates.items())[1:])
        (folder / SIGNATURES).write_bytes(replace(found, certificates=left).to_bytes())


def _file_lost(forger: Forger) -> None:
    forger.remove(MEASUREMENTS)
    forger.remove(REPORT)
    forger.wholly()


def _trained(forger: Forger) -> None:
    forger.run["model"] = {}
    forger.remove(REPORT)
    _unsigned_table(forger)


def _no_events(forger: Forger) -> None:
    forger.run["privacy"].update(events=[], rho_spent=0.0, beta=0.0)
    forger.remove(JOURNALS)
    forger.wholly()


def _one_directory(forger: Forger) -> None:
    folder = forger.folders[-1]
    Forger([folder]).table()
    render(folder)


def _other_noise(forger: Forger) -> None:
    forger.edit(MEASUREMENTS, lambda form: form["measurements"][0].update(sigma2="1/100"))
    forger.wholly()


def _restated(what: str, change: Callable[[dict[str, Any]], object], alone: int) -> Forgery:
    """Of what run.json says of its release, signed anew throughout; journals, which would tell, are not
    handed on."""

    def forge(forger: Forger) -> None:
        change(forger.run)
        forger.remove(JOURNALS)
        forger.wholly()

    return Forgery(what, forge, 21, alone)


def _events_cut_short(run: dict[str, Any]) -> None:
    """Of two accounts the one that is added up is the shorter one."""
    privacy = run["privacy"]
    privacy["all_events"] = list(privacy["events"])
    del privacy["events"][-1]
    privacy["rho_spent"] = sum(event["rho"] for event in privacy["events"])


def _verdict(run: dict[str, Any]) -> None:
    run["relations"].update(kept=10, visible=10, sentence="Relations kept: 10 of 10 pairs of columns.")


def _coarse(run: dict[str, Any]) -> None:
    run["resolutions"] = [{clique[0]: 1} for clique in run["selected"]]


def _selection(run: dict[str, Any]) -> None:
    """In another order, each with its own bins: a page can still be made of it."""
    for key in ("selected", "resolutions"):
        if key in run:
            run[key] = run[key][::-1]


def _given_up(run: dict[str, Any]) -> None:
    """As of a table that was too small for its budget, with the warnings of one."""
    said = "With about 300 rows the noise of a typical joint marginal would be more than all of them."
    run.update(fallback=said, warnings=[{"code": "few-rows", "text": said}])


FORGERIES: tuple[Forgery, ...] = (
    Forgery("another table, its hash in the parties' own signatures", _old_signatures, 21, 21),
    Forgery("another table, signatures removed", _unsigned_table, 21, 21),
    Forgery("another table, signatures and the name of the CA removed", _no_ca, 21, 21),
    Forgery("another table, of a study without encryption, so that nobody signs", _no_tls, 21, 0),
    Forgery("another table, signed under a CA of the forger's", _foreign_ca, 21, 21),
    Forgery("another table, signed under a CA of the forger's that run.json names", _fresh_ca, 21, 0),
    Forgery("another table, signed with keys that the parties' CA has not certified", _their_ca, 21, 21),
    Forgery("another table, signed with certificates that run.json pins", _pins, 21, 0),
    Forgery("another table as a trained model's run, which nobody signs", _trained, 22, 22),
    Forgery("a row less", _row_less, 21, 22),
    Forgery("a row less, and said to be", _rows_less, 21, 22),
    Forgery("another table at one party", _one_directory, 22, 22),
    Forgery("a signature removed", _signature_lost, 21, 21),
    Forgery("a certificate removed", _certificate_lost, 21, 21),
    Forgery("measurements removed and the rest signed anew", _file_lost, 2, 2),
    Forgery("no events and no journals", _no_events, 22, 22),
    Forgery("other noise in the measurements", _other_noise, 22, 22),
    _stated("another claim", lambda run: run.update(claim="Nobody can learn anything."), 22),
    _stated("another algorithm", lambda run: run.update(algorithm="mst"), 22),
    _stated("another backend", lambda run: run.update(backend="shamir"), 22),
    _stated("another name", lambda run: run.update(study="census"), 22),
    _stated("other columns", lambda run: run["columns"][0].update(high=90), 22),
    _stated("one party less", lambda run: run["parties"].pop(), 22),
    _stated("another promise", lambda run: run["privacy"].update(epsilon=0.1), 50),
    _stated("less spent than its events", lambda run: run["privacy"].update(rho_spent=1e-6), 50),
    _stated("less distance than its events", lambda run: run["privacy"].update(beta=0.0), 50),
    _stated("a release less", lambda run: run["privacy"]["events"].pop(), 22),
    _restated("more rows than the table has", lambda run: run.update(rows=run["rows"] + 100), 22),
    _restated("another verdict on relations", _verdict, 22),
    _restated("a verdict removed", lambda run: run.pop("relations"), 22),
    _restated("a warning that nothing follows from", _given_up, 22),
    _restated(
        "another warning", lambda run: run.update(warnings=[{"code": "no-relations", "text": "None."}]), 22
    ),
    _restated(
        "proofs that nobody has made",
        lambda run: run.update(soundness={"proofs": 1, "lg_chance": -56.42}),
        22,
    ),
    _restated("another selection", _selection, 22),
    _restated("a share of the columns over bins", _coarse, 22),
    _restated("another release of the leader's", lambda run: run.update(version="9.9.9"), 22),
    _restated("events cut short beside a longer account", _events_cut_short, 50),
    _restated("no distance of the samplers", lambda run: run["privacy"].update(beta=0.0), 50),
    _restated("a higher cap", lambda run: run["privacy"].update(rho=2 * run["privacy"]["rho"]), 50),
    _restated("another noisy number of rows", lambda run: run["privacy"].update(noisy_total=1e4), 50),
    _restated("more spent than its events", lambda run: run["privacy"].update(rho_spent=0.3), 50),
    _restated("a dearer release", lambda run: run["privacy"]["events"][-1].update(rho=0.2), 50),
)


def copies(folders: Sequence[Path], into: Path) -> Forger:
    """A forger who has got copies of these directories."""
    return Forger([Path(shutil.copytree(folder, into / str(n))) for n, folder in enumerate(folders)])
