"""run.json, and what the leader hands out for it: counters of all parties, and when its own events were
(`docs/reference/outputs.md`).

Everything here is a function of the study, the release and the traffic counters, all of them public; what a
peer sends of them is judged before it is used. `describe` gives every party the same content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import ProtocolAborted
from runner.contributors.closing import facts_for_report
from runner.party.alignment import view_of
from runner.party.record.events import PHASES, WITHHELD
from runner.party.record.software import checked
from runner.results.finished_run import columns_of, constraints_of
from runner.results.outdir import RESEARCH_TABLE
from runner.results.release import clients_of
from runner.results.warnings import relations_of, warnings_of
from runner.study import Study, VerticalStudy, digest
from runner.study.claim import claim_of
from runner.study.hashing import agreed_tree
from runner.study.owners import Ownership, method_of
from runner.version import PROTOCOL
from synth.algorithm import ALGORITHMS
from synth.budget.noisy_sizes import view
from synth.budget.small.fallback import sentence
from synth.prior.later_wave import WavePlan
from synth.synthesis import without_levels

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from runner.contributors.closing import Closing
    from runner.results.release import Release
    from runner.study.sections.registered import Registered
    from runner.study.sections.waves import EarlierWave
    from synth.judgement.relations import Relations
    from synth.plan import Plan


MAX_COUNT = 1 << 60
"""Bytes or rounds that a party may say it counted; sums of any number of parties' can be written."""


def describe(
    study: Study,
    plan: Plan,
    release: Release,
    shared: Mapping[str, Any],
    session: bytes,
    study_digest: bytes,
    deployment: str,
    owned: Ownership | None = None,
    closing: Closing | None = None,
    *,
    judged: Callable[[], Relations | None] | None = None,
) -> dict[str, Any]:
    """The content of run.json (`docs/reference/outputs.md`): a function of the study, the release and the
    traffic counters.

    owned: of a vertical study. closing: of one with bundles. judged: gives `relations_of` the release; None: it is
    judged here.
    """
    privacy, charged = study.privacy, release.charged
    try:
        verdict = judged() if judged is not None else relations_of(release, study.domain)
        independent = None
        if release.noise_share is not None:
            tried = any(len(measured.clique) > 1 for measured in release.measurements)
            independent = sentence(release.noisy_total, release.noise_share, tried=tried)
        warned = warnings_of(
            verdict,
            independent,
            float(privacy.epsilon),
            float(privacy.delta),
            max(0, round(release.noisy_total)),
        )
        software = {
            party.name: checked(counters["software"])
            for party, counters in zip(study.parties, shared["parties"], strict=True)
        }
        return {
            "study": study.name,
            "algorithm": study.algorithm,
            **({} if ALGORITHMS[study.algorithm].sound(study.config) else {"table": RESEARCH_TABLE}),
            "backend": study.backend,
            **({"security": study.security} if study.descriptor.malicious else {}),
            **_soundness(study, shared),
            "partition": study.partition,
            "deployment": deployment,
            "rows": int(release.codes.shape[0]),
            "wall_s": float(shared["wall_s"]),
            "privacy": {
                "epsilon": float(privacy.epsilon),
                "delta": float(privacy.delta),
                "rho": float(plan.budget.rho_cap),
                "adjacency": privacy.adjacency,
                "unit": privacy.unit.words,
                "events": _events(release, charged),
                "rho_spent": float(sum(event.rho for event in charged)),
                "beta": float(sum(event.beta for event in charged)),
                **_side_by_side(study, release),
                "max_rows": privacy.max_rows,
                # What rho was solved at: the samplers' statistical distance takes the rest of delta. Where it
                # would take more than half of it, the epsilon counted on is less than the study's
                # (`accounting.calibrate`).
                "calibrated_epsilon": float(plan.budget.calibration.epsilon),
                "delta_for_zcdp": float(plan.budget.calibration.delta),
                "noisy_total": release.noisy_total,
            },
            "selected": [list(clique) for clique in release.selected],
            **(
                {"resolutions": [release.bins(clique) for clique in release.picked]} if release.levels else {}
            ),
            **({} if independent is None else {"fallback": independent}),
            **({} if verdict is None else {"relations": verdict.to_json()}),
            **({"warnings": [asdict(one) for one in warned]} if warned else {}),
            "phases": [
                {
                    "name": _phase(phase["name"]),
                    "wall_s": float(phase["wall_s"]),
                    "rounds": _count(phase["rounds"]),
                    "bytes_sent": _count(phase["bytes_sent"]),
                    **(
                        {"withheld": True}
                        if isinstance(study, VerticalStudy) and phase["name"] in WITHHELD
                        else {}
                    ),
                }
                for phase in shared["phases"]
            ],
            "parties": [
                {
                    "name": party.name,
                    "role": "compute" if party.compute else "contribute",
                    **{key: _count(counters[key]) for key in ("bytes_sent", "bytes_received", "rounds")},
                }
                for party, counters in zip(study.parties, shared["parties"], strict=True)
            ],
            "timeline": timeline_of(shared, study),
            "claim": claim_of(study),
            "version": software[study.leader.name]["cosynth"],
            "protocol": PROTOCOL,
            "software": software,
            "started": str(shared["started"]),
            "digest": study_digest.hex(),
            "ca": _agreed_ca(study, study_digest, shared["ca"]),
            "agreed": agreed_tree(study),
            "session": session.hex(),
            **_prior(study, plan, release),
            "columns": columns_of(study.domain),
            **constraints_of(study.domain),
            **({} if study.linked is None else {"linked": study.linked.to_spec()}),
            "public_study": study.public(),
            **({"inputs": _inputs(study, release)} if study.checks_inputs else {}),
            **(
                {
                    "contributors": {
                        **facts_for_report(closing, study.contributors.expected_rows),
                        **_registered(study.contributors.registered, plan),
                        **_after(study.contributors.after, plan),
                    }
                }
                if closing is not None and study.contributors is not None
                else {}
            ),
            **(
                {"alignment": alignment_facts(study, plan, owned)}
                if owned is not None and isinstance(study, VerticalStudy)
                else {}
            ),
        }
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ProtocolAborted(
            f"Party {study.leader.name} sent counters that do not fit the study; nothing was written."
        ) from None


def _prior(study: Study, plan: Plan, release: Release) -> dict[str, Any]:
    """What the run began from, how that fared, and what one person can have spent in all of it."""
    before, verdict = study.prior, release.prior
    if before is None:
        return {}
    if verdict is None:
        raise ValueError("Nothing is told of the prior.")
    return {
        "prior": {
            **before.public(),
            **({} if before.name is None else {"study": before.name}),
            "rows": round(before.content.rows),
            "tested": verdict.tested,
            "p_value": verdict.p_value,
            "drift": verdict.drift,
            "dropped": verdict.is_dropped,
            "inherited": len(verdict.known),
            "rho_together": before.together(float(sum(event.rho for event in release.charged))),
            "beta_together": before.beta_together(float(sum(event.beta for event in release.charged))),
            **({"runs": list(before.runs)} if before.runs else {}),
        }
    }


def _soundness(study: Study, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run with proofs: how many batches, the most that a party counted, and lg of the chance that a
    deviation passes."""
    proofs = max(_count(party["proofs"]) for party in shared["parties"])
    if not proofs or not study.descriptor.malicious:
        return {}
    return {"soundness": {"proofs": proofs, "lg_chance": round(study.descriptor.lg_chance(proofs), 2)}}


def _inputs(study: Study, release: Release) -> dict[str, list[str]]:
    """Whose counts were checked on shares, and whose were left out."""
    checked = [party.name for party in study.to_check]
    if not set(release.left_out) <= {party.name for party in study.contributing}:
        raise ValueError("A party was left out whose counts are not checked.")
    return {"checked": checked, "left_out": list(release.left_out)}


def _registered(of: Registered | None, plan: Plan) -> dict[str, Any]:
    """The single columns that the table was brought to, and what they cost everybody who is enrolled, besides
    this run."""
    if of is None:
        return {}
    return {"registered": {"rows": of.rows, "rho": float(of.rho(plan.charges)), "digest": of.digest.hex()}}


def _after(waves: Sequence[EarlierWave], plan: Plan) -> dict[str, Any]:
    """The earlier waves whose measurements are added to this run's; noise: of theirs, in units of this run's
    variance."""
    if not isinstance(plan, WavePlan):
        return {}
    clique, sigma2 = next(iter(plan.noises.items()))
    return {
        "after": [
            {
                "study": wave.study,
                "took_part": list(wave.names),
                "rows": round(wave.wave.total),
                "noise": float(wave.wave.known[clique].sigma2 / sigma2),
                "digest": wave.digest.hex(),
            }
            for wave in waves
        ]
    }


def _side_by_side(study: Study, release: Release) -> dict[str, Any]:
    """Of a run whose custodians are charged side by side: who is charged how much, and all events, each with
    whom it charges.

    `events` are then those of the custodian that is charged most: what any record can have been charged.
    """
    by_client = release.by_client
    if by_client is None:
        return {}
    names = [party.name for party in study.numbered]
    return {
        "clients": [
            {
                "name": names[client],
                "rho_spent": float(sum(event.rho for event in events)),
                "beta": float(sum(event.beta for event in events)),
            }
            for client, events in sorted(by_client.items())
        ],
        "all_events": [
            {
                "what": event.what,
                "rho": float(event.rho),
                **event.detail,
                "of": [names[client] for client in clients_of(event)],
            }
            for event in release.events
        ],
    }


def _events(release: Release, charged: Sequence[Event]) -> list[dict[str, Any]]:
    """run.json's `events`; a selection with what it came to, and with its bins where they are coarser than
    the columns."""
    selections, found = iter(release.selections), []
    for event in charged:
        entry = {"what": event.what, "rho": float(event.rho), **event.detail}
        if event.what == "select":
            clique = next(selections)
            entry["clique"] = list(without_levels(clique, release.levels))
            if bins := release.bins(clique):
                entry["bins"] = bins
        found.append(entry)
    return found


def alignment_facts(study: VerticalStudy, plan: Plan, owned: Ownership) -> dict[str, Any]:
    """How the columns were split and what joining them revealed, to whom. Public, and known before the run:
    no size is in it.

    A party's own view of the others' data: the released results, under the study's (epsilon, delta), and what
    the sizes told it.
    """
    ideal = BACKENDS[study.backend].ideal
    views = []
    for party in [] if ideal else study.parties:
        events = view_of(study, owned, party.name)
        epsilon, delta = view(float(study.privacy.epsilon), float(study.privacy.delta), plan.budget, events)
        views.append(
            {
                "name": party.name,
                "epsilon": epsilon,
                "delta": delta,
                "sizes": [
                    {
                        "of": event.detail["of"],
                        "epsilon": event.detail["epsilon"],
                        "delta": float(event.beta),
                        "rho": float(event.rho),
                    }
                    for event in events
                ],
            }
        )
    return {
        "method": study.alignment.method,
        "via": study.backend if ideal else method_of(study).name,
        "id": list(study.alignment.id),
        "population": study.alignment.population,
        "owners": [{"name": name, "columns": list(owned.of(name))} for name in owned.owners],
        "views": views,
    }


def parsed(payload: memoryview, sender: str) -> dict[str, Any]:
    """The object that a party sent as its counters. Raises `ProtocolAborted`."""
    try:
        content = json.loads(bytes(payload))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ProtocolAborted(f"Party {sender} sent counters that cannot be read; nothing was written.")
    return content


def counters_of(content: dict[str, Any], sender: str) -> dict[str, Any]:
    """One party's own counters, with nothing else in them. Raises `ProtocolAborted`."""
    try:
        return {
            "phases": [
                {"name": _phase(phase["name"]), "bytes_sent": _count(phase["bytes_sent"])}
                for phase in content["phases"]
            ],
            **{key: _count(content[key]) for key in ("bytes_sent", "bytes_received", "rounds", "proofs")},
            "software": checked(content["software"]),
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ProtocolAborted(
            f"Party {sender} sent counters that do not fit the study; nothing was written."
        ) from None


def _agreed_ca(study: Study, study_digest: bytes, ca: object) -> str:
    """The fingerprint of the session's CA, with which the study has this digest; "" of a session without one."""
    if not isinstance(ca, str) or digest(study, ca) != study_digest:
        raise ValueError("The digest is that of the study and of the session's CA.")
    return ca


def _phase(name: object) -> str:
    if name not in PHASES:
        raise ValueError(f"A run has no phase called {name!r:.50}.")
    assert isinstance(name, str)
    return name


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < MAX_COUNT:
        raise ValueError(f"A counter is a whole number from 0 to below {MAX_COUNT}.")
    return value


def timeline_of(shared: Mapping[str, Any], study: Study) -> dict[str, list[float]]:
    """When the leader's events were, by phase: what the report draws, so that it is the same at every party.

    A known phase has a list of seconds. Raises `ProtocolAborted`.
    """
    timeline = shared.get("timeline")
    if not isinstance(timeline, dict) or not all(
        phase in PHASES
        and isinstance(times, list)
        and all(isinstance(t, int | float) and not isinstance(t, bool) and 0 <= t < 1e9 for t in times)
        for phase, times in timeline.items()
    ):
        raise ProtocolAborted(
            f"Party {study.leader.name} sent times of events that cannot be read; nothing was written."
        )
    return {phase: [float(t) for t in times] for phase, times in timeline.items()}
