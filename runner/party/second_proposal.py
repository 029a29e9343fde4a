"""What a custodian should know before it answers a study: the same peers have asked something slightly
different before.

A refusal, and a consent, tell the proposer whether the table fits the study: uncharged, and exactly. One
study tells little; a series of studies in which the domain, max_rows or the unit changes step by step can
find a value, a count of rows or a person (`docs/design/accounts.md`). The ledger has every proposal; this
says so to its owner, who decides. Nothing is sent or charged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError
from parties.budget.ledger import Ledger
from runner.party.custodian import Custodian
from runner.party.session import study_digest
from runner.study import Study, private_file

if TYPE_CHECKING:
    from parties.budget.spending import Proposal
    from runner.study.private_file import CertificateFiles, Private


def warnings(study: Study, party: str, own: Private, certs: CertificateFiles | None) -> tuple[str, ...]:
    """Sentences about earlier proposals that this one differs from; at most one for each kind of difference,
    the latest.

    Empty if the data, the ledger or the certificates cannot be looked at: whoever needs them says so.
    """
    try:
        data = private_file.location(study, party, own)
        if data is None:
            return ()
        asked = Custodian(study, party, own, data).proposal(study_digest(study, certs))
        earlier = list(_earlier(asked, own))
    except CosynthError:
        return ()
    told: dict[tuple[str, ...], str] = {}
    for proposal, when, code in sorted(earlier, key=lambda each: -each[1]):
        if differing := asked.differs(proposal):
            told.setdefault(differing, _sentence(asked, proposal, differing, when, code))
    return tuple(told.values())


def _earlier(asked: Proposal, own: Private) -> Iterator[tuple[Proposal, float, int]]:
    """(proposal, time, exit code of its refusal or 0) of all that is on record about this dataset."""
    ledger = Ledger(own.ledger.file)
    for entry in ledger.entries(asked.dataset):
        yield entry.reservation.proposal, entry.time, 0
    for refusal in ledger.refusals(asked.dataset):
        yield refusal.proposal, refusal.time, refusal.code


def _sentence(asked: Proposal, earlier: Proposal, differing: tuple[str, ...], when: float, code: int) -> str:
    names = [name for name in asked.counterparties if name in earlier.counterparties]
    peers = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    what = differing[0] if len(differing) == 1 else f"{', '.join(differing[:-1])} and {differing[-1]}"
    answer = f"refused with {code}" if code else "accepted"
    if "max_rows" in differing:
        what += f" ({earlier.max_rows} then, {asked.max_rows} now)"
    return (
        f"A study with {peers} on {time.strftime('%Y-%m-%d', time.localtime(when))} (digest {earlier.digest[:12]}), which was "
        f"{answer}, asked the same data and differed in {what}: whether a table fits is an answer that no epsilon covers, so "
        "ask why it changed."
    )
