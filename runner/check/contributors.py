"""Findings about a study's collection of bundles: what it will hold, a party's inbox, a contributor's own
key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, PeerIdentity, UsageError
from mpc_protocols.process.later import Later
from parties.budget.ledger import Ledger
from parties.budget.waves import check_waves
from runner.check.finding import Finding, fine, note, problem
from runner.contributors.closing import Closing, check_custodians
from runner.contributors.collection import bundle_digest, collection_of, contributors_of, waves_of
from runner.contributors.courier.study_files import StudyFiles
from runner.forecast.plan_text import in_bytes
from runner.study import Study
from runner.study.private_file import Private
from synth.budget.accounting import epsilon_of
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from mpc_protocols.backends.bundles import bundle
    from runner.contributors import contributing
    from synth.plan import Plan
else:
    bundle = Later("mpc_protocols.backends.bundles.bundle")
    contributing = Later("runner.contributors.contributing")


def collection(study: Study, plan: Plan) -> Iterator[Finding]:
    """What contributors leave, and when it ends. Raises `StudyInvalid` (more cells than can be shared)."""
    public = collection_of(study, plan)
    size = in_bytes(sum(bundle.part_bytes(public.layout.cells).values()))
    yield fine(
        f"{len(public.contributors) - len(public.earlier):,} contributors may each leave a bundle of {size}: "
        f"{public.layout.cells:,} cells of {len(public.layout.cliques)} marginals"
    )
    with contextlib.suppress(UsageError):  # it cannot be sent as it is, and need not be
        yield fine(
            f"a courier brings contributors this study with the fingerprint {StudyFiles.of(study).fingerprint}"
        )
    registered = contributors_of(study).registered
    if registered is not None:
        delta, rho = float(study.privacy.delta), registered.rho(plan.charges)
        together = rounded_up(epsilon_of(rho + plan.budget.rho_cap, delta))
        yield fine(
            f"single columns of about {registered.rows:,} enrolled rows are known already; who is in both runs has spent epsilon "
            f"{together:g} at delta {delta:g} together, and more if a unit of the earlier run held more rows or had a stricter "
            "adjacency: its file does not tell them"
        )
    for wave in contributors_of(study).after:
        yield fine(
            f"an earlier wave of {len(wave.names):,} contributors with about {round(wave.wave.total):,} rows is added; nobody of "
            "it can be in this one"
        )
        signers = "; ".join(f"{name} {key.fingerprint}" for name, key in wave.receivers.items())
        yield fine(
            f"its study has the digest {wave.study}, and the parties that have signed have keys with the fingerprints "
            f"{signers}: compare"
        )
    if public.rounds > 1:
        yield note(
            f"a later round takes in nobody, or {public.minimum} newcomers at least: fewer wait for the next round, or after "
            "the last one are left out"
        )
        if public.close_at is None:
            yield note(
                "the last close of [contributors] has no date: if too few contributors come, the run waits without end; give it "
                "one"
            )
    if public.close_at is not None and public.close_at <= datetime.now(UTC):
        yield note(
            f"the collection has closed at {public.close_at:%Y-%m-%d %H:%M:%S} UTC: no inbox takes bundles any more"
        )


def inbox(study: Study, party: str, own: Private, plan: Plan) -> Iterator[Finding]:
    """What a computing party's inbox holds. Public but for its place."""
    try:
        closing = Closing.of(study, party, own, plan)
        if closing.record.void:
            yield note(f"{party}: the study is void, and no run of it is possible")
            return
        held, fixed = closing.held(), closing.record.fixed
        if fixed is not None:
            yield note(f"{party}: {_fixed(closing, fixed)}")
            return
        closing.inbox.secret()
    except CosynthError as error:
        yield problem(error)
        return
    yield fine(f"{party}: {closing.inbox.folder} has the key that the study lists")
    count, least = len(held), closing.collection.minimum
    if sentence := closing.close.still_open(count, datetime.now(UTC)):
        yield note(f"{party} holds {count} bundles: {sentence[0].lower()}{sentence[1:].rstrip('.')}")
    elif count < least:
        yield note(f"{party} holds {count} bundles, and a run needs {least} that all three hold")
    else:
        yield fine(f"{party} holds {count} bundles; what all three hold will be run")


def _fixed(closing: Closing, fixed: bytes) -> str:
    """Which lists are fixed at a party. fixed: hash of the first round's. Raises `DataRefused`."""
    bundles, rounds = len(closing.list_of(fixed).entries), closing.collection.rounds
    while closing.round < rounds and (later := (following := closing.next_round()).fixed) is not None:
        closing, bundles = following, len(following.list_of(later).entries)
    if closing.round == rounds:
        return f"the list of {bundles} bundles is fixed for this study; only a run on it is possible"
    return (
        f"the lists of {closing.round} of {rounds} rounds are fixed, the last one with {bundles} bundles; only their run is "
        "possible, which goes on with those who arrive"
    )


def account(study: Study, name: str, own: Private) -> Iterator[Finding]:
    """What a contributor's ledger knows of this study; nothing if it has left no bundle."""
    if name in contributors_of(study).earlier:
        yield problem(contributing.in_earlier_wave(study, name))
        return
    run, ledger = contributing.ledger_run(bundle_digest(study), name).hex(), Ledger(own.ledger.file)
    for entry in ledger.entries():
        if entry.reservation.run == run:
            told = "charged its whole budget until --settle" if entry.state == "open" else "settled"
            yield note(f"{ledger.path}: {name} has made a bundle for this study, which is {told}")


def waves(study: Study, name: str, dataset: str, ledger: Ledger) -> Iterator[Finding]:
    """Whether the rows of a table are in a wave already, or may be: by the party that has it, and by its
    ledger. Nothing for a study over no bundles."""
    if study.contributors is None:
        return
    try:
        check_custodians(study, [party.name for party in study.parties if party.name == name])
        check_waves(ledger.path, dataset, "", waves_of(study), ledger.entries())
    except CosynthError as error:
        yield problem(error)


def key(study: Study, name: str, own: Private) -> Iterator[Finding]:
    """Whether a contributor has the key that the study lists."""
    try:
        public, _ = contributing.own_key(own.key, name)
    except CosynthError as error:
        yield problem(error)
        return
    for receiver, of in contributors_of(study).receivers.items():
        yield fine(
            f"the bundle will be sealed to the key of {receiver} with the fingerprint {of.fingerprint}: compare it"
        )
    if public == contributors_of(study).keys[name]:
        yield fine(f"{own.key} is the key that the study lists for {name}")
    else:
        yield problem(
            PeerIdentity(
                f"The key {own.key} is not the one that the study lists for contributor {name}; use that one."
            )
        )
