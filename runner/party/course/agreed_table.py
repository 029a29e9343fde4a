"""The table of a run in which a computing party may deviate: every computing party draws it, and none chooses
the random numbers.

    leader -> others that compute    the release without rows, and how many rows it is to have: fixed from here on
    all that compute                 a coin (`DistributedBackend.coin`), bound to the hash of that
    each                             samples the model with the coin's seed; the leader's rows must be its own
    others -> contributors           the hash of what the leader handed out to everybody, once it is found to be that

The seed must not be known before the model is fixed, or the leader would choose the one for the other; it
depends on no record. That the model is the one which the algorithm fits is the leader's word: it costs
usefulness if it lies, no privacy. A contributor settles its account by what two of the three say alike.

Raises `ProtocolAborted` naming the leader. Machines whose floating-point functions differ in the last digit
may draw different rows from the same numbers; then the run ends although nobody deviated. Source:
`docs/design/malicious.md` 6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from runner.results.release import Release, parse, size_limit
from synth.mrf import Model

if TYPE_CHECKING:
    from runner.party.course.course import Run
    from runner.study import Study

_ROWS_BYTES: Final = 8
_DIGEST_BYTES: Final = 32

ROUNDS: Final = 3
"""Of a draft and a coin; what contributors are told travels with the table."""
_COIN_BYTES: Final = 4 * _DIGEST_BYTES


def sent(draft_bytes: int, study: Study) -> list[int]:
    """What each party sends for it, by number. draft_bytes: of the release without rows."""
    computing, contributors = len(study.computing), len(study.contributing)
    found = [_COIN_BYTES + _DIGEST_BYTES * contributors] * computing + [0] * contributors
    found[study.leader_number] = _COIN_BYTES + (computing - 1) * (_ROWS_BYTES + draft_bytes)
    return found


def agree(run: Run, draft: Release | None, rows: int, check: Callable[[Release], None]) -> Release:
    """At a computing party: the release that all that compute agree on. draft, rows: at the leader, else None
    and 0. check: what a party makes sure of before it takes part in the coin."""
    stream, limit, leader = run.wire.fork("draft"), size_limit(run.study.domain, run.limit), run.study.leader
    if draft is not None:
        payload = rows.to_bytes(_ROWS_BYTES, "big") + draft.to_bytes(run.study.domain)
        for party in range(run.wire.computing):
            if party != run.wire.me:
                stream.send(party, payload)
    else:
        payload = bytes(stream.receive_up_to(run.study.leader_number, _ROWS_BYTES + limit))
    rows = int.from_bytes(payload[:_ROWS_BYTES], "big")
    fixed = parse(memoryview(payload)[_ROWS_BYTES:], run.study.domain, 0, leader.name)
    if rows > run.limit:
        raise ProtocolAborted(
            f"Party {leader.name} wants a table of {rows} rows, and the study allows {run.limit}; do not use its result."
        )
    check(fixed)
    coin = run.backend.coin(run.wire.fork("coin"), hashlib.sha256(payload).digest())
    release = draw_table(fixed, rows, coin, run)
    run.observe("sample", "sampled", rows=rows)
    return release


def draw_table(fixed: Release, rows: int, coin: bytes, run: Run) -> Release:
    """The release with so many rows of its model, as the coin has it."""
    seeds = [
        int.from_bytes(hashlib.sha256(purpose + coin).digest()[:size], "big")
        for purpose, size in ((b"rows", 16), (b"decoding", 8))
    ]
    model = Model.from_bytes(fixed.model)
    codes = model.sample(
        rows, np.random.default_rng(seeds[0]), targets=run.plan.workload.cliques, pair_by_pair=True
    )
    return replace(fixed, codes=codes, decode_seed=seeds[1])


def compare(run: Run, agreed: Release, payload: memoryview) -> Release:
    """At a follower: what the leader handed out, which must be what was agreed on; contributors are told so."""
    leader = run.study.leader.name
    release = parse(payload, run.study.domain, run.limit, leader)
    without = [replace(of, codes=of.codes[:0]).to_bytes(run.study.domain) for of in (release, agreed)]
    if without[0] != without[1]:
        raise ProtocolAborted(
            f"Party {leader} handed out another result than the computing parties had agreed on; do not use it."
        )
    if not np.array_equal(release.codes, agreed.codes):
        raise ProtocolAborted(
            f"Party {leader} handed out another table than party {run.name} draws from the same model and random numbers: it did "
            "not follow the protocol, or the two machines compute differently; do not use the table."
        )
    stream = run.wire.fork("handed out")
    for contributor in run.wire.contributors:
        stream.send(contributor, hashlib.sha256(payload).digest())
    return release


def confirmed(run: Run, payload: memoryview) -> None:
    """At a contributor: make sure that all computing parties know of the same release. Raises
    `ProtocolAborted`."""
    stream, expected = run.wire.fork("handed out"), hashlib.sha256(payload).digest()
    for party in range(run.wire.computing):
        if party != run.study.leader_number and bytes(stream.receive(party, _DIGEST_BYTES)) != expected:
            raise ProtocolAborted(
                f"Party {run.study.leader.name} handed out different results to this party and to party "
                f"{run.study.numbered[party].name}, or one of the two says so; do not use them."
            )
