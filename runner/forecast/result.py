"""What `plan` tells of a run, whoever has predicted it. Times assume three networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runner.study.claim import claim_of

if TYPE_CHECKING:
    from runner.study import Study
    from synth.plan import Plan

LOOPBACK, WAN = "this machine", "WAN"
NETWORKS = {LOOPBACK: (0.0004, 4e8), "LAN": (0.001, 1e8), WAN: (0.04, 1.2e7)}
"""Seconds of one round, bytes per second."""
START_S = 2.0
FIT_MODELS = 60
"""Of a model's size, what fitting it takes, with the steps that it remembers (measured)."""
PROCESS_MB, ROW_BYTES, IDENTIFIER_BYTES = 190, 40, 250
COUNTERS_BYTES, COUNTERS_ROUNDS = 1200, 5
"""At the start all parties assemble; at the end the leader hands out the release and everybody's counters."""


@dataclass(frozen=True)
class PartyForecast:
    """Traffic of one party."""

    name: str
    role: str
    bytes_sent: int


@dataclass(frozen=True)
class Forecast:
    """What `plan` tells. bytes_sent: payload of all parties together. range: fewest and most, where the data
    decides.

    cpu_s: of a computing party for the secure part, by the backend's cost model. inputs: whose counts are
    checked on shares, what becomes of a bad one, rounds and bytes of it; None if there is nobody else than
    computing parties, else why nothing is. soundness: of a run with proofs, their number (proofs) and lg of
    the chance that a deviation passes them (lg_chance).

    questions: rounds (fewest, most), candidates of the plan, of how many of them a round chooses one
    (offered: fewest, most, for these rows; None where the algorithm has no rounds), whether for these rows
    single columns would get the whole budget (`synth.budget.small.fallback`; then with a few more rows there is more
    to send), shared cells, the standard deviation of the noise.
    """

    study: str
    algorithm: str
    backend: str
    rows: int
    rows_from: str
    privacy: dict[str, Any]
    questions: dict[str, Any]
    rounds: int
    bytes_sent: int
    range: dict[str, list[int]]
    parties: tuple[PartyForecast, ...]
    memory_mb: int
    time_s: dict[str, float]
    oversized: tuple[tuple[str, ...], ...]
    joining: dict[str, Any] | None = None
    bundle: dict[str, Any] | None = None
    claim: str = ""
    cpu_s: float = 0.0
    inputs: dict[str, Any] | None = None
    soundness: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def forecast_of(
    study: Study,
    plan: Plan,
    presumed: tuple[int, str],
    networks: Mapping[str, tuple[float, float]],
    *,
    rounds: int,
    sent: Sequence[int],
    work_s: float,
    cpu_s: float,
    memory_mb: float,
    questions: Mapping[str, Any],
    bounds: dict[str, list[int]] | None = None,
    **others: Any,
) -> Forecast:
    """A forecast of these figures. presumed: rows, and where that number is from. sent: bytes, by wire
    number. work_s: of the whole run without its network. questions: beside what every run is told about.
    bounds: None if the data decides nothing. others: fields of `Forecast` that not every run has."""
    total, ideal = sum(sent), study.descriptor.ideal
    return Forecast(
        study.name,
        study.algorithm,
        study.backend,
        *presumed,
        privacy={
            "epsilon": float(study.privacy.epsilon),
            "delta": float(study.privacy.delta),
            "rho": float(plan.budget.rho_cap),
            "adjacency": study.privacy.adjacency,
            "unit": study.privacy.unit.words,
        },
        questions={
            "rounds": list(plan.rounds),
            "candidates": 0,
            "offered": None,
            "asked": None,
            "expected": None,
            "label": plan.workload.label,
            "falls_back": False,
            "shared_cells": 0,
            "noise_sd": float(plan.sigma2) ** 0.5,
            **questions,
        },
        rounds=rounds,
        bytes_sent=total,
        range={} if ideal else bounds or {"rounds": [rounds, rounds], "bytes_sent": [total, total]},
        parties=tuple(
            PartyForecast(party.name, "compute" if party.compute else "contribute", sent[number])
            for number, party in enumerate(study.numbered)
        ),
        memory_mb=round(memory_mb),
        time_s={
            name: round(START_S + work_s + rounds * latency + total / bandwidth, 1)
            for name, (latency, bandwidth) in networks.items()
            if not ideal or name == LOOPBACK
        },
        claim=claim_of(study),
        cpu_s=round(cpu_s, 6),
        **{"oversized": (), **others},
    )


def network(delay_ms: float, rate_mbit: float | None) -> dict[str, tuple[float, float]]:
    """This machine, and one network of a one-way delay and a rate (None: this machine's), as `NETWORKS`."""
    here, fast = NETWORKS[LOOPBACK]
    name = f"{delay_ms:g} ms" + ("" if rate_mbit is None else f", {rate_mbit:g} Mbit/s")
    return {
        LOOPBACK: (here, fast),
        name: (here + delay_ms / 1e3, fast if rate_mbit is None else min(fast, rate_mbit * 1e6 / 8)),
    }
