"""`verify` of trainings: of owners with a server (`vertigan`), and of two owners who keep a model
(`florist`)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.commands.cli import main
from runner.review.audit.subjects.forgeries import Forger
from tests.runner import split, trained
from tests.runner.test_vertigan import ADDED, NAMED, TABLE

pytest.importorskip("torch")
Forge = Callable[[dict[str, Any]], object]
FEW = TABLE[0], TABLE[1].replace("rounds = 3", "rounds = 2")


def without(place: int) -> Forge:
    """An event less, and the sums of the others."""

    def forge(run: dict[str, Any]) -> None:
        events = run["privacy"]["events"]
        del events[place]
        run["privacy"]["rho_spent"] = sum(event["rho"] for event in events)

    return forge


def training(**change: Any) -> Forge:
    return lambda run: run["privacy"]["events"][-1].update(change)


def verdict(out: Path, into: Path, forge: Forge) -> int:
    """Of the run's public files in one directory, altered: nobody has signed them, and there is no journal."""
    folder = into / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        out, folder, ignore=shutil.ignore_patterns("report.html", "parties", "journal*", ".cosynth")
    )
    forger = Forger([folder])
    forge(forger.run)
    forger.write()
    return main(["verify", str(folder)])


@pytest.mark.parametrize("sampling", ["own", "buckets"])
def test_a_training_with_a_server_holds_and_what_a_forger_makes_of_its_account_does_not(
    tmp_path: Path, sampling: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = FEW[0], f'{FEW[1]}\nsampling = "{sampling}"'
    trial = split.write(
        tmp_path, changes=[NAMED, table, ADDED, ('backend = "replicated"', 'backend = "ideal"')], count=60
    )
    out = tmp_path / "out"
    assert main(["run", str(trial.path), "--out", str(out), "--quiet"]) == 0
    assert main(["verify", str(out)]) == 0
    events = json.loads((out / "run.json").read_text())["privacy"]["events"]
    assert [event["what"] for event in events] == ["total", "total", "train"]
    less_seen = {"rate": "1/8"} if sampling == "own" else {"exposures": 0}
    forgeries: list[Forge] = [
        lambda run: run["privacy"].update(events=[], rho_spent=0.0, beta=0.0),
        without(0),
        without(2),
        training(**less_seen),
        training(noise2="1000", **({} if sampling == "own" else {"rho": events[-1]["rho"] / 100})),
        training(owners=["north", "nobody"]),
    ]
    for forge in forgeries:
        assert verdict(out, tmp_path, forge) == 50
    assert verdict(out, tmp_path, training(owners=["north"])) == 22
    assert "Internal error" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("label_epsilon = 2.0", ""),
        ("label_epsilon = 2.0", 'label_epsilon = 2.0\nlabel_rate = 0.25\nevaluation = "own"'),
    ],
)
def test_a_training_of_two_owners_holds_and_what_a_forger_makes_of_it_does_not(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    """All of its account follows from the study."""
    out = tmp_path / "out"
    assert main(["run", str(trained.write(tmp_path / "study", change)), "--out", str(out), "--quiet"]) == 0
    assert main(["verify", str(out)]) == 0
    privacy = json.loads((out / "run.json").read_text())["privacy"]
    forgeries: dict[str, tuple[Forge, int]] = {
        "rows": (lambda run: run.update(rows=5), 22),
        "model": (lambda run: run["model"].update(epochs=1), 22),
        "roles": (lambda run: run["model"]["owners"].update(active="north"), 22),
        "exposes": (lambda run: run["exposes"].pop(), 22),
        "people": (lambda run: run["evaluation"].update(people="everybody"), 22),
        "alignment": (lambda run: run["alignment"]["views"].pop(), 22),
        "cap": (lambda run: run["privacy"].update(rho=9.0), 50),
        "calibrated": (lambda run: run["privacy"].update(calibrated_epsilon=0.1), 50),
    }
    if privacy["events"]:
        forgeries |= {
            "no events": (lambda run: run["privacy"].update(events=[], rho_spent=0.0, beta=0.0), 50),
            "an event less": (without(-1), 50),
            "no distance": (lambda run: run["privacy"].update(beta=0.0), 50),
            "other noise": (training(sigma2="1000000/1", rho=1e-6), 50),
        }
    else:
        forgeries["a release"] = (
            lambda run: run["privacy"].update(events=[{"what": "total", "rho": 0.1, "sigma2": "5/1"}]),
            50,
        )
    found = {name: verdict(out, tmp_path, forge) for name, (forge, _) in forgeries.items()}
    assert found == {name: code for name, (_, code) in forgeries.items()}
