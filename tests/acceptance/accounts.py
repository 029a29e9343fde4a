"""The privacy accounting, looked at by somebody else: totals of real runs, sequences of runs under a cap, and
what is public.

    python -m tests.acceptance.accounts [totals] [real] [sequences] [public]          all four parts if none is named

totals     every algorithm, in the clear on small tables. The (epsilon, delta) of what run.json says was released is computed anew
           by Google's dp-accounting (its Rényi accountant, and its own conversion) from noise and sensitivities, and compared
           with the claim. And every question is asked a second time about neighbours (`accounts_watch`): the most that it
           costs any of them, by textbook formulas, is compared with what was charged.
real       the first half of the same, of runs by processes; run.json, journals and ledgers are compared with one another.
sequences  runs over one data set under a cap: units, adjacencies, two processes at the same time, runs that are killed.
public     runs on neighbouring tables under the same randomness: what of the public files and of the exit differs.

Needs dp-accounting (requirements-test.lock). A simulation on invented tables. Exit code 1 if a claim is too
small.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting as dp
from dp_accounting import rdp

from parties.budget.journal import read
from parties.budget.ledger import Ledger
from runner import run_study
from runner.study import load
from tests.acceptance.accounts_public import differences
from tests.acceptance.accounts_sequences import CAP, DELTA, drawn, killed, names, room, together
from tests.acceptance.accounts_watch import Watch, watching
from tests.runner import small, split, trained

Change = tuple[str, str]
CLEAR: Change = ('backend = "replicated"', 'backend = "ideal"')
REPLACE: Change = ('adjacency = "add-remove"', 'adjacency = "replace"')
ADDED: Change = ('adjacency = "replace"', 'adjacency = "add-remove"')
PERSON: Change = (
    "max_rows = 4096",
    'max_rows = 4096\nunit = { id = "person", max_rows = 3, max_custodians = 2 }',
)
ORDERS = [1 + math.exp(x / 40) for x in range(-160, 320)]
TRAININGS = [float(order) for order in range(2, 513)]


@dataclass(frozen=True)
class Case:
    """A study. changes: of the small one's text. vertical: of the small vertical one's. rows_of_unit: s."""

    name: str
    changes: tuple[Change, ...] = ()
    vertical: bool = False
    aligned: bool = False
    trained: bool = False
    person: bool = False
    count: int = 300

    def write(self, folder: Path, *more: Change) -> Path:
        """The study's path."""
        changes = [*self.changes, *more]
        if self.trained:
            return trained.write(folder, *changes)
        if self.vertical:
            text = split.STUDY
            if self.aligned:
                text = text.replace(
                    'method = "psu"\nvia = "merge3"\nid = "person"\n', 'method = "row-order"\n'
                )
            return split.write(
                folder, changes=changes, text=text, aligned=self.aligned, count=self.count
            ).path
        data = None
        if self.person:
            data = {
                name: [
                    {**row, "person": f"p{at // 3}"} for at, row in enumerate(small.rows(number, self.count))
                ]
                for number, name in enumerate(small.NAMES[:3], 1)
            }
            changes.append(PERSON)
        return small.write(folder, changes=changes, data=data, count=self.count).path


def _named(algorithm: str, table: str = "", research: bool = False) -> tuple[Change, ...]:
    return (
        ('algorithm = "aim"', f'algorithm = "{algorithm}"' + "\nresearch = true" * research),
        ("[aim]\nrounds = 3", f"[{algorithm}]\n{table}"),
    )


ADAPTIVE: Change = ("rounds = 3", 'rounds = "adaptive"')
CASES = (
    Case("aim"),
    Case("aim adaptive", (ADAPTIVE,)),
    Case("aim adaptive, person, replace", (ADAPTIVE, REPLACE), person=True),
    Case("mosaic", _named("mosaic")),
    Case("mosaic, person, replace", (*_named("mosaic"), REPLACE), person=True),
    Case("mosaic, few rows", _named("mosaic"), count=20),
    Case("mst", _named("mst")),
    Case("mst, person", _named("mst"), person=True),
    Case("mwem", _named("mwem", "rounds = 4")),
    Case("privmrf", _named("privmrf", "max_columns = 3")),
    Case("privmrf, person, replace", (*_named("privmrf", "max_columns = 3"), REPLACE), person=True),
    *(
        Case(f"flaim {variant}", _named("flaim", f'variant = "{variant}"\nrounds = 2\ngroup = 1'))
        for variant in ("private", "light", "naive", "random")
    ),
    Case("flaim bayes", _named("flaim", 'variant = "bayes"')),
    Case("flaim one-shot", _named("flaim", 'variant = "one-shot"')),
    Case("flaim private, person", _named("flaim", "rounds = 2\ngroup = 1"), person=True),
    Case("aim, vertical", (), vertical=True),
    Case("mosaic, vertical, add-remove", (*_named("mosaic"), ADDED), vertical=True),
    Case("vertimrf mpc", _named("vertimrf", "max_columns = 3"), vertical=True),
    Case("vertimrf fo", _named("vertimrf", 'encoder = "fo"', True), vertical=True, aligned=True, count=900),
    Case(
        "vertigan own",
        (*_named("vertigan", "rounds = 3\ncritic_steps = 2\nrate = 0.25\nsynthetic_rows = 200", True), ADDED),
        vertical=True,
    ),
    Case(
        "vertigan buckets",
        _named(
            "vertigan",
            'rounds = 3\ncritic_steps = 2\nrate = 0.25\nsynthetic_rows = 200\nsampling = "buckets"',
            True,
        ),
        vertical=True,
    ),
)
REAL = (
    (Case("aim"), ()),
    (Case("mosaic, person, replace", (*_named("mosaic"), REPLACE), person=True), ()),
    (Case("mst, shamir", _named("mst")), (("replicated", "shamir"),)),
    (Case("aim, vertical, add-remove", (ADDED,), vertical=True), ()),
    (Case("florist, label_epsilon = 2", trained=True), ()),
)


# -- totals
# ---------------------------------------------------------------------------------------------------------------


def second_epsilon(events: Sequence[Mapping[str, Any]], privacy: Mapping[str, Any], unit_rows: int) -> float:
    """Of what was released, by dp-accounting: from noise and sensitivities alone; rho is believed of no event
    but a choice of FLAIM's clients, which says nothing else (it is watched)."""
    delta = privacy["delta"] - (1 + math.exp(privacy["epsilon"])) * privacy["beta"]
    moves = 2 if privacy["adjacency"] == "replace" else 1
    if not events:
        return 0.0
    if any("rate" in event for event in events):
        return float(_composed(TRAININGS, events, moves, unit_rows).get_epsilon(delta))
    orders = ORDERS
    for step in (1e-3, 5e-5, 2e-6):  # a claim that is spent to the last bit is compared to nine digits
        epsilon, best = _composed(orders, events, moves, unit_rows).get_epsilon_and_optimal_order(delta)
        orders = [1 + (best - 1) * math.exp(step * x) for x in range(-40, 41)]
    return float(epsilon)


def _composed(
    orders: Sequence[float], events: Sequence[Mapping[str, Any]], moves: int, s: int
) -> rdp.RdpAccountant:
    """moves: 2 under replace. s: rows of a unit."""
    accountant = rdp.RdpAccountant(orders, dp.NeighboringRelation.ADD_OR_REMOVE_ONE)

    def gaussian(square: float, sigma2: object) -> None:
        accountant.compose(dp.GaussianDpEvent(math.sqrt(float(Fraction(str(sigma2))) / square)))

    for event in events:
        what = event["what"]
        if what == "measure":
            variances = event["sigma2"]
            each = [variances] * len(event["cliques"]) if isinstance(variances, str) else variances
            for sigma2 in each:
                gaussian(moves * s * s, sigma2)
        elif what in ("total", "label-rate"):
            gaussian(s * s * (moves if what == "label-rate" else 1), event["sigma2"])
        elif what == "distances":
            for _ in event["cliques"]:
                gaussian((moves * s) ** 2, event["sigma2"])
        elif what == "sum":  # one marginal of each client is in it, or all single columns
            cliques = event.get("cliques", [])
            single = all(len(clique) == 1 for clique in cliques) and len(cliques) > 1
            gaussian(moves * s * s * (len(cliques) if single else 1), event["sigma2"])
        elif what == "sizes":
            if event["rho"]:
                accountant.compose(dp.ZCDpEvent(event["rho"]))
        elif what == "train" and "rate" in event:
            noise = math.sqrt(float(Fraction(event["noise2"])))
            step = dp.PoissonSampledDpEvent(float(Fraction(event["rate"])), dp.GaussianDpEvent(noise))
            accountant.compose(step, event["steps"])
        elif what == "train":
            for _ in range(event["exposures"] * len(event["owners"])):
                gaussian(moves * moves, event["noise2"])
        elif what == "select":
            accountant.compose(dp.ZCDpEvent(event["epsilon"] ** 2 / 8))
        elif what in ("responses", "choices", "own model"):  # the last two are watched
            accountant.compose(dp.ZCDpEvent(event["rho"]))
        else:
            raise ValueError(f"Nothing is known of a release called {what!r}.")
    return accountant


def accounts_of(facts: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """The events that one record is charged, of each custodian that is charged by itself."""
    privacy = facts["privacy"]
    if "clients" not in privacy:
        return [privacy["events"]]
    return [
        [event for event in privacy["all_events"] if client["name"] in event["of"]]
        for client in privacy["clients"]
    ]


def noise_of_training(event: Mapping[str, Any], watch: Watch, draws: int) -> bool:
    """Whether the critics' noise was as much as is charged, in units of 2^14 a row, and drawn no oftener."""
    drawn = [sigma2 for kind, sigma2 in watch.noises if kind != "own noise of 1"]
    return len(drawn) == draws and min(drawn) >= Fraction(event["noise2"]) * (1 << 28)


def totals() -> bool:
    """Print a line for each algorithm. Returns whether all claims are large enough."""
    print(
        "case                            claimed   dp-accounting   rho charged   worst neighbour   worst question"
    )
    fine = True
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path, watch = case.write(Path(folder) / "study", CLEAR), Watch()
            os.environ["COSYNTH_LEDGER"] = str(Path(folder) / "ledger.db")
            with watching(watch), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run_study(path, out=Path(folder) / "out")
            facts = json.loads((Path(folder) / "out" / "run.json").read_text())
            study = load(path)
            unit_rows = study.privacy.notion.unit.rows
        privacy = facts["privacy"]
        second = max(second_epsilon(events, privacy, unit_rows) for events in accounts_of(facts))
        worst = max(watch.worst.items(), key=lambda entry: entry[1], default=("-", 0.0))
        trains = True
        if "vertigan" in case.name:
            [event] = [event for event in privacy["events"] if event["what"] == "train"]
            worst, trains = ("clipped row", watch.clipped), noise_of_training(event, watch, 2 * 6)
        cost = max(watch.rho)
        spent = privacy["rho_spent"]
        if "clients" in privacy:  # of all clients in a row: the watch adds them up
            cost, spent = cost / len(privacy["clients"]), privacy["rho_spent"]
        good = (
            trains
            and second <= privacy["epsilon"] * (1 + 1e-8)
            and cost <= spent * (1 + 1e-9)
            and worst[1] <= 1 + 1e-9
        )
        fine = fine and good
        print(
            f"{case.name:30}  {privacy['epsilon']:7.4g}   {second:13.9f}   {spent:11.7f}   {cost:15.7f}   "
            f"{worst[1]:6.4f} ({worst[0]}){'' if good else '   TOO SMALL'}",
            flush=True,
        )
    return fine


# -- real
# -----------------------------------------------------------------------------------------------------------------


def real() -> bool:
    """Runs by processes: the claim anew, and whether run.json, journals and ledgers hold the same events."""
    print("\nrun by processes                claimed   dp-accounting   events: run.json, journals, ledgers")
    fine = True
    for case, changes in REAL:
        with tempfile.TemporaryDirectory() as folder:
            path, out = case.write(Path(folder) / "study", *changes), Path(folder) / "out"
            os.environ["COSYNTH_LEDGER"] = str(Path(folder) / "ledger.db")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run_study(path, out=out)
            facts = json.loads((out / "run.json").read_text())
            unit_rows = load(path).privacy.notion.unit.rows
            journals = [read(found) for found in sorted(out.glob("parties/*/journal-*.jsonl"))]
            entries = Ledger(Path(folder) / "ledger.db").entries()
        privacy = facts["privacy"]
        told = [round(event["rho"], 12) for event in privacy["events"]]
        second = second_epsilon(privacy["events"], privacy, unit_rows)
        listed = [[round(float(each.event.rho), 12) for each in journal.releases] for journal in journals]
        beside = ("alignment", "label", "features", "train")
        charged = [
            [
                round(float(each.event.rho), 12)
                for each in entry.events
                if not each.event.what.startswith(beside)
            ]
            for entry in entries
        ]
        extra = sorted(
            {
                f"{each.event.what} rho {float(each.event.rho):.4g}"
                for entry in entries
                for each in entry.events
            }
            - {f"{each['what']} rho {each['rho']:.4g}" for each in privacy["events"]}
        )
        good = (
            second <= privacy["epsilon"] * (1 + 1e-8)
            and all(each == told for each in listed)
            and all(sum(each) <= privacy["rho"] * (1 + 1e-9) for each in charged)
        )
        fine = fine and good
        print(
            f"{case.name:30}  {privacy['epsilon']:7.4g}   {second:13.9f}   {len(told)}, {[len(x) for x in listed]}, "
            f"{[len(x) for x in charged]}; beside: {', '.join(extra) or '-'}{'' if good else '   TOO SMALL'}",
            flush=True,
        )
    return fine


# -- sequences and what is public
# -----------------------------------------------------------------------------------------


def sequences() -> bool:
    """Random sequences under a cap, processes at the same time, runs that are killed, other names of a table."""
    print(f"\nsequences under a cap of {CAP:g} at {DELTA:g}")
    drawn_ = [drawn(seed) for seed in SEEDS]
    worst = max(found for found, _, _ in drawn_)
    admitted, asked = (sum(each[place] for each in drawn_) for place in (1, 2))
    print(f"{len(drawn_)} random ones: {admitted} of {asked} runs admitted; really {worst:.4f} at most")
    most, into = room(2.0), together(room(2.0) + 3)
    print(f"{most + 3} processes at once, each for epsilon 2: {into} admitted, room for {most}")
    fine = worst <= CAP and into <= most
    for seed, again in ((1, "--resume"), (2, "--replace")):
        with tempfile.TemporaryDirectory() as folder:
            told = killed(Path(folder), seed, again)
        opened, charged = float(str(told["opened"])), float(str(told["charged"]))
        good = opened <= charged * (1 + 1e-9) and charged <= CAP
        fine = fine and good
        print(
            f"killed three times, {again}: exit codes {told['codes']}, opened {opened:.4f}, charged {charged:.4f}"
        )
    with tempfile.TemporaryDirectory() as folder:
        for words, _, same in names(Path(folder)):
            print(
                f"{words}: {'the same account' if same else 'ANOTHER ACCOUNT, unless [ledger] dataset names it'}"
            )
    return fine


def public() -> bool:
    """A line for each algorithm: on which tables something public differs though the same was released."""
    print("\nwhat differs when one custodian's table is another and the released values are the same")
    fine = True
    for case in CASES:
        if case.vertical or case.person:
            continue

        def write(folder: Path, case: Case = case) -> Path:
            return small.write(folder, changes=[*case.changes, CLEAR]).path

        found = differences(write)
        differing = {words: files for words, files in found.items() if files}
        fine = fine and not differing
        print(f"{case.name:30}  {len(found)} tables: {differing or 'nothing'}", flush=True)
    return fine


SEEDS = (*range(60), 82, 86, 108, 131)
PARTS: Mapping[str, Callable[[], bool]] = {
    "totals": totals,
    "real": real,
    "sequences": sequences,
    "public": public,
}


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    chosen = parser.parse_args().parts or list(PARTS)
    return 0 if all([PARTS[part]() for part in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
