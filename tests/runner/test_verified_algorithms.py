"""`verify` of what every algorithm leaves: a sound run holds, of a small table too, and what a forger makes
of it is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from runner.commands.cli import main
from runner.party.synthesis import plan_of
from runner.review.audit.second_accountant import rho
from runner.review.audit.subjects.forgeries import Forger, copies
from runner.study import load
from synth.algorithm import ALGORITHMS
from synth.algorithms.flaim.plan import FlaimPlan
from tests.runner import small, split

Changes = Sequence[tuple[str, str]]
CLEAR = ("replicated", "ideal")
ROW_ORDER: Changes = (
    ('method = "psu"\nvia = "merge3"\nid = "person"\npopulation = "intersection"', 'method = "row-order"'),
    ('partition = "vertical"', 'partition = "vertical"\nresearch = true'),
)


def algorithm(name: str, table: str = "") -> Changes:
    return [('algorithm = "aim"', f'algorithm = "{name}"'), ("[aim]\nrounds = 3\n", table)]


def run(trial: small.Trial | split.Trial) -> Path:
    out = trial.path.parent / "out"
    assert main(["run", str(trial.path), "--out", str(out), "--quiet"]) == 0
    return out


def test_of_the_sums_that_clients_chose_each_client_is_charged_its_own(tmp_path: Path) -> None:
    """Of columns, which every client fills, all."""
    plan = plan_of(load(small.write(tmp_path, parties=6, changes=[*algorithm("flaim"), CLEAR]).path))
    assert isinstance(plan, FlaimPlan)
    one_way = [list(clique) for clique in plan.one_way]
    cells = sum(map(plan.domain.cells, plan.one_way))
    chosen = {"what": "sum", "cliques": [["age", "work"], ["age", "sick"]], "entries": 38, "sigma2": "50"}
    all_chosen = {**chosen, "cliques": one_way, "entries": cells + len(one_way)}
    columns = {**chosen, "cliques": one_way, "entries": cells}
    costs = [rho(ALGORITHMS["flaim"].completed(plan, event), 1, 1) for event in (chosen, all_chosen, columns)]
    assert costs == pytest.approx([1 / 100, 1 / 100, len(one_way) / 100], rel=1e-6)


@pytest.mark.parametrize(
    ("table", "research"),
    [
        *((f'[flaim]\nrounds = 2\nvariant = "{name}"\n', False) for name in ("private", "light", "random", "bayes")),
        ('[flaim]\nrounds = 2\nparticipations = "all"\n', False),
        ('[flaim]\nrounds = 2\nvariant = "oracle"\n', True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_run_of_clients_holds(tmp_path: Path, table: str, research: bool, adjacency: str) -> None:
    changes = [*algorithm("flaim", table), ('"add-remove"', f'"{adjacency}"'), CLEAR]
    if research:
        changes.append(('"horizontal"', '"horizontal"\nresearch = true'))
    assert main(["verify", str(run(small.write(tmp_path, parties=6, count=60, changes=changes)))]) == 0


@pytest.mark.parametrize("encoder", ["fo", "fm"])
def test_a_run_of_encoded_columns_holds(tmp_path: Path, encoder: str) -> None:
    table = f'[vertimrf]\nencoder = "{encoder}"\n'
    trial = split.write(
        tmp_path, aligned=True, count=100, changes=[*algorithm("vertimrf", table), *ROW_ORDER, CLEAR]
    )
    assert main(["verify", str(run(trial))]) == 0


@pytest.mark.parametrize("name", ["mst", "mwem", "privmrf"])
def test_a_run_at_a_small_epsilon_holds(tmp_path: Path, name: str) -> None:
    """Its noise is wide: the second accountant has to be as good there as it says."""
    changes = [*algorithm(name), ("epsilon = 4.0", "epsilon = 0.1"), CLEAR]
    assert main(["verify", str(run(small.write(tmp_path, count=100, changes=changes)))]) == 0


def removed(run: dict[str, Any]) -> None:
    del run["fallback"]
    run["warnings"] = [each for each in run["warnings"] if each["code"] != "few-rows"]


def altered(run: dict[str, Any]) -> None:
    """To a noise that the table seems to bear nearly."""
    told = run["fallback"]
    less = re.sub(r"would be .* of them", "would be 17% of them", told)
    run["fallback"] = less
    for each in run["warnings"]:
        each["text"] = each["text"].replace(told, less)


@pytest.mark.parametrize("name", ["aim", "mwem", "mst", "mosaic", "privmrf"])
def test_that_a_table_was_too_small_is_recomputed(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(small.write(tmp_path, count=8, changes=[*algorithm(name), CLEAR]))
    capsys.readouterr()
    assert main(["verify", str(out)]) == 0
    assert "noise of a joint marginal" not in capsys.readouterr().out
    forgeries: Mapping[str, Callable[[dict[str, Any]], None]] = {"removed": removed, "altered": altered}
    for place, forge in forgeries.items():
        forger = copies([out], tmp_path / place)
        forge(forger.run)
        forger.write()
        assert main(["verify", str(forger.folders[0])]) == 22
        assert "states another fallback" in capsys.readouterr().err


ANSWER = ["age", "work"]


def place_of(entries: Sequence[Mapping[str, Any]], key: str, wanted: object) -> int:
    """Of the first entry that has it."""
    return next(place for place, entry in enumerate(entries) if entry.get(key) == wanted)


def without_answer(forger: Forger) -> None:
    """The registered marginal was never bought: neither charged nor measured."""
    privacy = forger.run["privacy"]
    event = privacy["events"].pop(place_of(privacy["events"], "cliques", [ANSWER]))
    privacy["rho_spent"] -= event["rho"]
    forger.edit(
        "measurements.json",
        lambda form: form["measurements"].pop(place_of(form["measurements"], "clique", ANSWER)),
    )
    forger.write()


def with_cheap_answer(forger: Forger) -> None:
    """It was bought with more noise than its share of the budget pays for."""
    privacy = forger.run["privacy"]
    event = privacy["events"][place_of(privacy["events"], "cliques", [ANSWER])]
    rho = float(1 / (2 * Fraction(100_000)))
    privacy["rho_spent"] += rho - event["rho"]
    event.update(sigma2="100000/1", rho=rho)
    forger.edit(
        "measurements.json",
        lambda form: form["measurements"][place_of(form["measurements"], "clique", ANSWER)].update(
            sigma2="100000/1"
        ),
    )
    forger.write()


@pytest.mark.parametrize("name", ["aim", "mwem", "mst", "mosaic", "privmrf"])
def test_a_registered_question_is_answered_or_the_run_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registered = ("[session]", "[inference]\nqueries = ['mean(age) | work']\n[session]")
    out = run(small.write(tmp_path, count=8, changes=[*algorithm(name), CLEAR, registered]))
    assert main(["verify", str(out)]) == 0
    (out / "report.html").unlink()
    for forge in (without_answer, with_cheap_answer):
        forger = copies([out], tmp_path / forge.__name__)
        forge(forger)
        capsys.readouterr()
        assert main(["verify", str(forger.folders[0])]) in (22, 50)
        said = capsys.readouterr().err
        assert "the study registers questions" in said and "age x work was not" in said


def test_what_is_no_run_as_one_is_written_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(small.write(tmp_path, count=60, changes=[CLEAR]))
    changes: Sequence[Callable[[dict[str, Any]], object]] = (
        lambda run: run.pop("privacy"),
        lambda run: run.pop("columns"),
        lambda run: run["columns"][0].pop("kind"),
        lambda run: run["parties"][0].pop("name"),
        lambda run: run.update(deployment="many machines"),
        lambda run: run.update(deployment="distributed"),  # one process was all parties
    )
    for number, change in enumerate(changes):
        forger: Forger = copies([out], tmp_path / str(number))
        change(forger.run)
        for folder in forger.folders:
            (folder / "report.html").unlink()
        forger.write()
        assert main(["verify", str(forger.folders[0])]) in (2, 22), number
        assert "Internal error" not in capsys.readouterr().err
