"""VertiMRF's encoders on real tables: how good their tables are, and what can be read off the messages. Not a
test: figures.

    python -m tests.acceptance.encoders nltcs fm --runs 3          8 & 8 columns, epsilon 0.8, delta 1e-5, replace
    python -m tests.acceptance.encoders adult-vfl fo               8 & 7 columns
    python -m tests.acceptance.encoders nltcs mpc                  marginals on shares, by the same three parties: the attack only

Tables are NAME.csv with NAME-domain.json in the folder `DATA`, not shipped: without them this says so and
ends with 0. Three parties exchange real messages in memory, recorded; the leader owns nothing. The attack is
the audit's (`runner.review.audit.research.read_off`): it reads the messages of each owner and claims rows,
which are then looked up in the table. The error is the mean total variation distance of all three-way
marginals between the synthetic table and the real one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.functionality import StudyFacts, unobserved
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.research.reports.exchange import ReportExchange
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from mpc_protocols.wire import Wire
from runner.review.audit.research.read_off import read_off, sketches_in
from synth.algorithms.vertimrf.algorithm import ALGORITHM
from synth.algorithms.vertimrf.config import VertiMrfConfig
from synth.domain import Domain
from synth.judgement.metrics import workload_error
from synth.research.vertimrf.bins import encoded_sizes, levels_of
from synth.synthesis import Synthesis
from synth.workload import Workload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
OWNERS, LEADER = (0, 2), 1


def main() -> None:
    """Print one line a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table")
    parser.add_argument("encoder", choices=("fo", "fm", "mpc"))
    parser.add_argument("--epsilon", type=float, default=0.8)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    if not (DATA / f"{options.table}.csv").is_file():
        print(f"{DATA} does not hold {options.table}.csv: nothing to do")
        return
    sizes = json.loads((DATA / f"{options.table}-domain.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(DATA / f"{options.table}.csv")[list(sizes)].to_numpy(np.int64)
    domain = Domain.from_spec({"file": sizes})
    for _ in range(options.runs):
        began = time.process_time()
        synthesis, frames = carried_out(domain, rows, options.encoder, options.epsilon)
        cpu_s = time.process_time() - began
        claimed, exact, unique = attack(domain, rows, frames)
        drawn = synthesis.model.sample(
            synthesis.rows, np.random.default_rng(), targets=workload(domain).cliques
        )
        sets = list(itertools.combinations(domain.names, 3))
        error = workload_error(rows, drawn, domain, sets) / 2
        sent = Counter[int]()
        for frame in frames:
            sent[frame.sender] += len(frame.payload)
        print(
            f"{options.table} {options.encoder} epsilon {options.epsilon:g}: 3-way TVD {error:.4f}; claimed {claimed}, exact "
            f"{exact}, unlike any other {unique}; {cpu_s:.1f} CPU s, bytes sent {dict(sorted(sent.items()))}",
            flush=True,
        )


def workload(domain: Domain) -> Workload:
    """64 random triples, to which the rows of a table are balanced."""
    return Workload.from_spec({"degree": 3, "count": 64, "seed": 123}, domain)


def carried_out(
    domain: Domain, rows: np.ndarray, encoder: str, epsilon: float
) -> tuple[Synthesis, list[Frame]]:
    """One run by three parties; the first half of the columns is the first party's, the others the last
    one's."""
    half = (len(domain) + 1) // 2
    columns = {name: OWNERS[place >= half] for place, name in enumerate(domain.names)}
    split = Partition(OWNERS, columns, "intersection", {}, len(rows))
    config = VertiMrfConfig(encoder=encoder)
    plan = ALGORITHM.plan(
        domain, workload(domain), config, epsilon=epsilon, delta=1e-5, adjacency="replace"
    ).knowing({name: str(owner) for name, owner in columns.items()})
    facts = StudyFacts(domain.sizes, "replace", 1, 1 << 20, bytes(32))
    reporting = ALGORITHM.reporting(config)
    exchange = None if reporting is None else ReportExchange(reporting.reporter(plan))
    backend = BACKENDS["replicated"]
    assert isinstance(backend, DistributedBackend)
    frames, lock = list[Frame](), threading.Lock()

    def tap(frame: Frame) -> None:
        with lock:
            frames.append(frame)

    def party(wire: Wire) -> Synthesis | None:
        own = None
        if wire.me in OWNERS:
            kind = {name: rows[:, domain.names.index(name)].astype(np.uint32) for name in split.of(wire.me)}
            own = OwnRows(np.arange(len(rows), dtype=np.int64), kind)
        data, guard = VerticalData(split, own), AllowAll()
        if wire.me == LEADER and reporting is not None and exchange is not None:
            with exchange.lead(wire, facts, data, guard) as reports:
                return reporting.conclude(reports, plan, unobserved)
        if wire.me == LEADER:
            with backend.lead(wire, facts, data, guard, unobserved) as oracle:
                return ALGORITHM.run(oracle, plan, unobserved)
        if exchange is not None:
            exchange.follow(wire, facts, data, guard)
        else:
            backend.follow(wire, facts, data, guard, unobserved)
        return None

    network = MemoryNetwork(3, 3, tap=tap, patience_s=3600)
    synthesis = network.run([party] * 3)[LEADER]
    assert synthesis is not None
    return synthesis, frames


def attack(domain: Domain, rows: np.ndarray, frames: list[Frame]) -> tuple[int, int, int]:
    """(rows claimed, those that are in the table, those of them that are unlike any other there)."""
    half, sizes = (len(domain) + 1) // 2, domain.sizes
    parts = zip(OWNERS, (domain.names[:half], domain.names[half:]), strict=True)
    first, second = (
        [s for frame in frames if frame.sender == owner for s in sketches_in(frame.payload, part, sizes)]
        for owner, part in parts
    )
    levels, told = levels_of(sizes), list(encoded_sizes(sizes).values())
    coded = np.stack(
        [
            np.array(levels[name].bins)[rows[:, place]] if name in levels else rows[:, place]
            for place, name in enumerate(domain.names)
            if sizes[name] > 1
        ],
        axis=1,
    )
    real = Counter(map(tuple, coded.tolist()))
    claimed = [row for a in first for b in second for row in read_off(np.hstack([a, b]), told)]
    exact = [row for row in claimed if row in real]
    return len(claimed), len(exact), sum(real[row] == 1 for row in exact)


if __name__ == "__main__":
    main()
