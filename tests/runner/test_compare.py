"""`plan --compare`: every backend of the registry for one study, and what would have to change in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from runner.__main__ import main
from runner.study import load, problems
from tests.runner import small, split
from tests.toys import plain_backend


def compared(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> Mapping[str, Any]:
    """The JSON object, its alternatives by name."""
    capsys.readouterr()
    assert main(["plan", str(path), "--compare", "--json", "--rows", "600", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    found["alternatives"] = {each["backend"]: each for each in found["alternatives"]}
    return found


def text(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> str:
    capsys.readouterr()
    assert main(["plan", str(path), "--compare", "--rows", "600", *options]) == 0
    return capsys.readouterr().out


def test_every_backend_of_the_registry_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path)
    with BACKENDS.registered(plain_backend.BACKEND):
        found = compared(capsys, trial.path)["alternatives"]
        assert tuple(found) == BACKENDS.names
        said = text(capsys, trial.path)
        for backend in BACKENDS:
            told = found[backend.name]
            assert told["ideal"] == backend.ideal and told["own"] == (backend.name == "replicated")
            assert backend.summary in said
            if isinstance(backend, DistributedBackend) and told["problem"] is None:
                computing = len(told["computing"])
                assert backend.computing[0] <= computing <= backend.computing[1]
                assert told["colluding"] == backend.colluding(computing)
                assert told["assumption"] == backend.assumption in said
                assert told["rounds"] > 0 and told["computing_bytes"] > 0 and told["cpu_s"] >= 0
                assert (told["contributor_bytes"] is None) == (not told["contributing"])
    assert "not private: no privacy claim towards" in said and found["ideal"]["rounds"] is None


def test_costs_are_those_of_plan_for_the_changed_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which marginals a dry run chooses differs from one to the next; who sends what else does not."""
    trial = small.write(tmp_path, parties=4, changes=[("rounds = 3", "rounds = 1")])
    found = compared(capsys, trial.path)["alternatives"]
    assert found["pair"]["computing"] == ["north", "south"] and found["pair"]["contributing"] == [
        "west",
        "east",
    ]
    for name in ("shamir", "pair"):
        assert found[name]["changes"] == []
        (tmp_path / name).mkdir()
        other = small.write(
            tmp_path / name, parties=4, changes=[("rounds = 3", "rounds = 1"), ('"replicated"', f'"{name}"')]
        )
        assert main(["plan", str(other.path), "--json", "--rows", "600"]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert 0.9 < found[name]["rounds"] / plan["rounds"] < 1.1
        busiest = max(party["bytes_sent"] for party in plan["parties"] if party["role"] == "compute")
        assert 0.8 < found[name]["computing_bytes"] / busiest < 1.25


def test_other_parties_compute_where_these_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said to change is what the reader of the study accepts."""
    flags = dict.fromkeys(("south", "west", "east", "hill"), "compute = true")
    shamir = [('"replicated"', '"shamir"')]
    trial = small.write(tmp_path, parties=5, party=flags, changes=shamir)
    found = compared(capsys, trial.path)["alternatives"]
    assert found["shamir"]["own"] and found["shamir"]["colluding"] == "any 2 of the 4"
    assert found["replicated"]["computing"] == ["south", "west", "east"]
    assert found["replicated"]["changes"] == ["compute = true for south, west and east only"]
    assert found["pair"]["computing"] == ["south", "west"] and found["pair"]["contributing"] == [
        "north",
        "east",
        "hill",
    ]
    assert 'to change: backend = "pair"; compute = true for south and west only' in text(capsys, trial.path)
    for name in ("replicated", "pair"):
        (tmp_path / name).mkdir()
        again = [('"replicated"', f'"{name}"')]
        assert problems(small.write(tmp_path / name, parties=5, party=flags, changes=again).path)
        fewer = dict.fromkeys(found[name]["computing"], "compute = true")
        study = load(small.write(tmp_path / name, parties=5, party=fewer, changes=again).path)
        assert [party.name for party in study.computing] == found[name]["computing"]


def test_two_parties_are_told_whom_they_would_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path, parties=2, changes=[('"replicated"', '"pair"')])
    found = compared(capsys, trial.path)["alternatives"]
    for name in ("replicated", "shamir"):
        assert found[name]["changes"] == ["one more party that computes, and needs no data of its own"]
        assert found[name]["computing"] == ["north", "south", "party-3"] and found[name]["rounds"] > 0
    assert 'to change: backend = "shamir"; one more party that computes' in text(capsys, trial.path)


def test_a_vertical_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the owners second and third, the pair needs them to compute, and leaves the first out."""
    held = {"south": range(300), "west": range(150, 450)}
    own = dict(zip(held, split.TWO.values(), strict=True))
    trial = split.write(tmp_path, count=450, held=held, own=own, changes=[("merge3", "auto")])
    found = compared(capsys, trial.path)["alternatives"]
    for name in ("shamir", "additive"):
        assert found[name]["problem"] is None and found[name]["rounds"] > found["replicated"]["rounds"]
    assert found["pair"]["problem"] is None and found["pair"]["computing"] == ["south", "west"]
    assert found["pair"]["changes"][-1] == "no party north" and not found["pair"]["contributing"]
    assert found["shamir"]["changes"] == []
    trial = split.write(tmp_path / "three", count=60, own=split.THREE)
    found = compared(capsys, trial.path)["alternatives"]
    for name in ("pair", "additive"):
        assert "joins the columns of two parties that compute, and 3 own columns" in found[name]["problem"]
    assert 'cannot run this study: backend = "pair" joins' in text(capsys, trial.path)


def test_times_are_told_for_the_network_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path)
    found = compared(capsys, trial.path, "--delay-ms", "100", "--rate-mbit", "10")
    assert found["networks"] == ["this machine", "100 ms, 10 Mbit/s"]
    for each in found["alternatives"].values():
        if each["rounds"]:
            near, far = (each["time_s"][name] for name in found["networks"])
            assert far - near >= 0.099 * each["rounds"] - 0.2  # each rounded to a tenth of a second
    assert "100 ms, 10 Mbit/s" in text(capsys, trial.path, "--delay-ms", "100", "--rate-mbit", "10")
    for wrong in (["--delay-ms", "-1"], ["--rate-mbit", "0"], ["--delay-ms", "nan"]):
        assert main(["plan", str(trial.path), *wrong]) == 2


def test_a_study_in_the_clear_is_compared_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path, changes=[('"replicated"', '"ideal"')])
    found = compared(capsys, trial.path)["alternatives"]
    assert found["ideal"]["own"] and found["ideal"]["claim"] and found["replicated"]["rounds"] > 0
    assert "ideal (the study as it is)" in text(capsys, trial.path)
