"""VertiGAN on a real table, in the clear: does it learn what lies across owners, and what does an owner's
part cost. Figures.

    python -m tests.acceptance.vertigan coupling --seeds 20       NLTCS, 8 & 8 columns, aligned against one owner's rows permuted
    python -m tests.acceptance.vertigan cost                      Adult, 8 & 7 columns, 600 rounds of 5 steps, epsilon 8
    python -m tests.acceptance.vertigan members                   NLTCS, half of its rows: is a row told from those left out

`coupling` trains without noise, which a study cannot, so that whatever there is to be learned shows: the mean
total variation distance of two-way marginals with one column of each owner, of 20 runs on rows as they belong
together and of 20 where one owner's are permuted. `docs/design/vertigan.md` 1 proves that both have one law;
a rank test (Mann, Whitney 1947) must not tell them apart: p above 1e-3. The same distances within owners say
that something was learned at all. `cost` tells CPU seconds of each owner and of the server, which run one
after the other in this process.

`members` trains on half of the rows, with noise and without, and attacks the table: of 1,000 rows of each
half, those with more of the table's rows near them are taken for members. Told is the area under the curve,
0.5 for chance.

Tables are NAME.csv with NAME-domain.json in the folder `DATA`, not shipped: without them this says so and
ends with 0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from mpc_protocols.functionality import unobserved
from runner.party.course.server_training import InTheClear
from runner.review.audit.groups.inference import area
from synth.domain import Domain
from synth.judgement.metrics import total_variation
from synth.research.vertigan.algorithm import ALGORITHM
from synth.research.vertigan.coins import Coins
from synth.research.vertigan.config import VertiGanConfig
from synth.research.vertigan.owner import Owner
from synth.research.vertigan.plan import VertiGanPlan
from synth.workload import Workload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
OWNERS = ("first", "second")
SEPARATED = 1e-3
TARGETS = 1000


class Quiet(Coins):
    """Coins without noise: of no private run."""

    def noise(self, sigma2: Fraction, count: int) -> NDArray[np.int64]:
        """See `Coins`."""
        return np.zeros(count, np.int64)


class Timed(InTheClear):
    """Counts the CPU seconds of each owner."""

    def __init__(self, owners: Mapping[str, Owner]) -> None:
        super().__init__(owners)
        self._all, self.seconds = dict(owners), dict.fromkeys(owners, 0.0)

    def gradients(
        self, parameters: Mapping[str, NDArray[np.float32]], seed: bytes
    ) -> dict[str, NDArray[np.float32]]:
        """See `OwnersTraining`."""
        found = {}
        for name, owner in self._all.items():
            began = time.process_time()
            found[name] = owner.gradient(parameters[name], seed)
            self.seconds[name] += time.process_time() - began
        return found


def table(name: str) -> tuple[Domain, NDArray[np.int64]] | None:
    """A table of the folder."""
    if not (DATA / f"{name}.csv").is_file():
        print(f"{DATA} does not hold {name}.csv: nothing to do")
        return None
    sizes = json.loads((DATA / f"{name}-domain.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(DATA / f"{name}.csv")[list(sizes)].to_numpy(np.int64)
    return Domain.from_spec({"columns": sizes}), rows


def planned(domain: Domain, **config: Any) -> VertiGanPlan:
    """Two owners with half of the columns each, epsilon 8 at delta 1e-6."""
    names = domain.names
    halves = {name: OWNERS[place >= -(-len(names) // 2)] for place, name in enumerate(names)}
    made = ALGORITHM.plan(
        domain,
        Workload.from_spec({"degree": 2}, domain),
        VertiGanConfig(**config),
        epsilon=8.0,
        delta=1e-6,
        adjacency="add-remove",
    )
    return made.knowing(halves)


def owners(plan: VertiGanPlan, rows: NDArray[np.int64], quiet: bool) -> dict[str, Owner]:
    """Both, each with all rows of its columns."""
    codes = {name: rows[:, place] for place, name in enumerate(plan.domain.names)}
    return {
        name: Owner(
            plan,
            name,
            {column: codes[column] for column in plan.columns_of(name)},
            len(rows),
            Quiet() if quiet else None,
        )
        for name in OWNERS
    }


def coupling(options: argparse.Namespace) -> None:
    """Aligned against permuted rows."""
    found = table("nltcs")
    if found is None:
        return
    domain, rows = found
    plan = planned(domain, rounds=options.rounds, critic_steps=5, rate=options.rate)
    first, second = (plan.columns_of(name) for name in OWNERS)
    across = list(itertools.product(first, second))
    within = [*itertools.combinations(first, 2), *itertools.combinations(second, 2)]
    told: dict[str, list[float]] = {"aligned": [], "permuted": []}
    for number, kind in itertools.product(range(options.seeds), told):
        used = rows.copy()
        if kind == "permuted":
            order = np.random.default_rng(number).permutation(len(rows))
            used[:, len(first) :] = used[order, len(first) :]
        made = ALGORITHM.train(InTheClear(owners(plan, used, quiet=True)), plan, unobserved).table
        assert made is not None
        told[kind].append(total_variation(rows, made, domain, across))
        inside = total_variation(rows, made, domain, within)
        print(f"{number + 1} {kind}: across {told[kind][-1]:.4f}, within {inside:.4f}", flush=True)
    shuffled = rows.copy()
    shuffled[:, len(first) :] = shuffled[np.random.default_rng(0).permutation(len(rows)), len(first) :]
    apart = total_variation(rows, shuffled, domain, across)
    means = {kind: statistics.mean(values) for kind, values in told.items()}
    p = float(mannwhitneyu(told["aligned"], told["permuted"]).pvalue)
    print(
        f"across owners, {options.seeds} runs each: aligned {means['aligned']:.4f}, permuted {means['permuted']:.4f}, "
        f"exact owners side by side without dependence {apart:.4f}; p = {p:.3g}: "
        f"{'NOT TOLD APART' if p > SEPARATED else 'SEPARATED'}"
    )


def cost(options: argparse.Namespace) -> None:
    """CPU seconds by owner."""
    found = table("adult-vfl")
    if found is None:
        return
    plan = planned(found[0], rounds=options.rounds, critic_steps=5, rate=options.rate)
    both = Timed(owners(plan, found[1], quiet=False))
    with process_seconds() as whole:
        ALGORITHM.train(both, plan, unobserved)
    each = ", ".join(f"{name} {seconds:.1f}" for name, seconds in both.seconds.items())
    server = whole[0] - sum(both.seconds.values())
    print(f"{options.rounds} rounds of 5 steps: CPU seconds {each}, server with its table {server:.1f}")


def members(options: argparse.Namespace) -> None:
    """How well a row's membership is told by the table."""
    found = table("nltcs")
    if found is None:
        return
    domain, rows = found
    plan = planned(domain, rounds=options.rounds, critic_steps=5, rate=options.rate)
    for quiet, number in itertools.product((True, False), range(options.seeds)):
        mixed = rows[np.random.default_rng(number).permutation(len(rows))]
        inside, outside = mixed[: len(rows) // 2], mixed[len(rows) // 2 :]
        made = ALGORITHM.train(InTheClear(owners(plan, inside, quiet)), plan, unobserved).table
        assert made is not None
        near = [nearness(part[:TARGETS], made, domain) for part in (inside, outside)]
        told = ", ".join(f"{name} {area(*(part[name] for part in near)):.3f}" for name in near[0])
        print(f"{number + 1} {'without noise' if quiet else 'epsilon 8'}: area {told}", flush=True)


def nearness(
    targets: NDArray[np.int64], made: NDArray[np.int64], domain: Domain
) -> dict[str, NDArray[np.float64]]:
    """How close a table comes to each target: to its nearest row, and how many of its rows agree in all
    columns but two."""
    agree = sum(
        (targets[:, [place]] == made[:, place]).astype(np.int16) for place in range(len(domain.names))
    )
    return {
        "nearest row": agree.max(axis=1).astype(np.float64),
        "rows near": (agree >= len(domain.names) - 2).mean(axis=1),
    }


@contextmanager
def process_seconds() -> Iterator[list[float]]:
    """CPU seconds of this process, once it is over."""
    found: list[float] = []
    began = time.process_time()
    yield found
    found.append(time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("coupling", "cost", "members"))
    parser.add_argument("--seeds", type=int, help="default: 20 of coupling, 3 of members")
    parser.add_argument("--rounds", type=int, help="default: 200, of cost 600")
    parser.add_argument("--rate", type=float, default=0.025)
    options = parser.parse_args()
    options.rounds = options.rounds or (600 if options.what == "cost" else 200)
    options.seeds = options.seeds or (3 if options.what == "members" else 20)
    {"coupling": coupling, "cost": cost, "members": members}[options.what](options)


if __name__ == "__main__":
    main()
