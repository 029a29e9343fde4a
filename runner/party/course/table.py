"""The end of a run that makes a table: it is handed out, counters are exchanged, every party writes its own
files and signs them.

Who learns what: everybody the release. It comes from the leader, and each party has judged its own copy
(`runner.results.release`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mpc_protocols.errors import ProtocolAborted, UsageError
from mpc_protocols.process.threads import Aside
from runner.contributors.result import exchange, result_of
from runner.party.course.course import Run
from runner.party.custodian import PRIVATE
from runner.party.record.run_json import describe
from runner.results import signatures
from runner.results.outdir import RESULT
from runner.results.outputs import write_outputs
from runner.results.release import parse
from runner.results.shared_report import Reports
from runner.results.signatures import SIGNED, hashes
from runner.results.warnings import relations_of

if TYPE_CHECKING:
    from pathlib import Path

    from runner.results.release import Release
    from runner.study.owners import Ownership


def finish(run: Run, release: Release, joined: Ownership | None) -> None:
    """Hand out the release (leader), exchange counters, settle the ledger, write the files.

    What waits for nobody runs beside what does: the verdict on the release while counters travel, the ledger's
    commits while the files are made, which are signed and put in their place after that.

    joined: the owners whose records were. Raises `ProtocolAborted`, `PeerLost`.
    """
    study, attempt, closing = run.study, run.attempt, run.closing
    if run.collective.leads:
        payload = attempt.kept_release or release.to_bytes(study.domain)
        release = parse(
            memoryview(payload), study.domain, len(release.codes), run.name
        )  # as the others see it
        run.collective.hand_out(payload)
    result = None
    if closing is not None:
        told = result_of(closing, run.id, release, study)
        agreed = exchange(run.wire.fork("result"), closing, told, run.options.out / RESULT)
        result = told.to_bytes(agreed)
    judging = None if attempt.serves else Aside(lambda: relations_of(release, study.domain))
    run.meter.mark("sample")
    shared = run.counters()

    def sign(folder: Path) -> bytes | None:
        certs = run.options.certs
        if certs is None:
            return None
        files = hashes(folder, SIGNED)
        return signatures.sign(study, run.name, certs, run.digest, run.id, files, run.collective.gather)

    if judging is None:
        sign(run.options.out)
        return
    digest = attempt.digest(shared, run.digest)
    with Aside(run.custodian.settle) as settling:

        def sign_settled(folder: Path) -> bytes | None:
            settling.join()  # before any file is in its place
            return sign(folder)

        facts = describe(
            *(study, run.plan, release, shared, run.id, digest, run.mode, joined, closing),
            judged=judging.join,
        )
        try:
            reports = Reports(run.options.shared, run.collective.leads)
            write_outputs(run.options.out, release, study.domain, facts, result, sign_settled, reports)
        except (
            UsageError
        ):  # the report reads the files strictly: whoever made their content is to blame, not the user
            raise ProtocolAborted(
                f"Party {study.leader.name} sent results of which no report can be made; nothing was written."
            ) from None
    attempt.finish(run.id)
    if closing is not None and (left := closing.inbox.finish()):
        logging.getLogger(PRIVATE).warning("could not be deleted: %s", ", ".join(map(str, left)))
        run.observe("report", "not_deleted", files=[path.name for path in left])
    run.meter.mark("report")
    run.events("report", "written", rows=int(release.codes.shape[0]))
