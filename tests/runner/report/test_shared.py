"""Parties of one machine share a report of files that they all have; nobody takes one of other files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runner.report import render
from runner.results import shared_report
from runner.results.shared_report import REPORT, Reports
from tests.runner.report.fake import write_run


@pytest.fixture
def staged(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The files of one run at the leader and at another party, and the folder that they share."""
    leader, other, shared = (tmp_path / name for name in ("leader", "other", "shared"))
    leader.mkdir()
    write_run(leader)
    shutil.copytree(leader, other)
    shared.mkdir()
    return leader, other, shared


def rendered(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where reports are made from now on."""
    places: list[Path] = []

    def told(directory: Path) -> Path:
        places.append(directory)
        return render(directory)

    monkeypatch.setattr(shared_report, "render", told)
    return places


def test_a_party_of_a_deployment_makes_its_own_before_it_signs(
    staged: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other, _ = staged
    places = rendered(monkeypatch)
    for place, makes in ((leader, True), (other, False)):
        Reports(None, makes).before_signatures(place)
        assert (place / REPORT).is_file()
        Reports(None, makes).after_signatures(place)
    assert places == [leader, other]


def test_parties_of_one_machine_take_over_the_leader_s(
    staged: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other, shared = staged
    places = rendered(monkeypatch)
    Reports(shared, makes=False).before_signatures(other)
    assert not (other / REPORT).exists()
    for place, makes in ((leader, True), (other, False)):
        Reports(shared, makes).before_signatures(place)
        Reports(shared, makes).after_signatures(place)
    assert places == [leader]
    assert (other / REPORT).read_bytes() == (leader / REPORT).read_bytes()
    assert (other / REPORT).stat().st_mode & 0o777 == 0o644
    assert [path.suffix for path in shared.iterdir()] == [".html"]


@pytest.mark.parametrize("name", ["run.json", "measurements.json", "synthetic.csv"])
def test_a_party_with_another_file_makes_its_own(
    name: str, staged: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other, shared = staged
    text = (other / name).read_text()
    more = " " if name.endswith(".json") else text.splitlines()[1] + "\n"
    (other / name).write_text(text + more)
    places = rendered(monkeypatch)
    Reports(shared).before_signatures(leader)
    Reports(shared, makes=False).after_signatures(other)
    assert places == [leader, other] and (other / REPORT).is_file()


def test_where_the_leader_could_share_none_each_makes_its_own(
    staged: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other, shared = staged
    shared.rmdir()
    places = rendered(monkeypatch)
    Reports(shared).before_signatures(leader)
    Reports(shared, makes=False).after_signatures(other)
    assert places == [leader, other] and (leader / REPORT).is_file() and (other / REPORT).is_file()
