"""Parties agree on a protocol version: what it covers does not change without it, and patch releases of one
work together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.commands.cli import main
from runner.results.outdir import RUN
from runner.version import PROTOCOL, VERSION
from synth.mrf import storage
from tests.runner import small
from tests.runner.folders import Folders
from tests.worlds import patch_release, protocol_facets
from tests.worlds.protocol_facets import FACETS, RECORDED

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", FACETS)
def test_what_the_protocol_version_covers_stands_as_recorded(name: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert recorded["protocol"] == PROTOCOL, f"Record it anew: python -m {protocol_facets.__name__}."
    assert json.loads(json.dumps(FACETS[name]())) == recorded["facets"][name], (
        f'"{name}" is not what parties of protocol version {PROTOCOL} expect. If that is meant, raise PROTOCOL in '
        f"runner/version.py, say so in docs/reference/versions.md, and record it: python -m {protocol_facets.__name__}."
    )


def test_nothing_else_is_recorded() -> None:
    assert list(json.loads(RECORDED.read_text(encoding="utf-8"))["facets"]) == list(FACETS)


def test_a_change_is_recorded_with_a_higher_version_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = {"formats": protocol_facets.formats}
    monkeypatch.setattr(protocol_facets, "RECORDED", tmp_path / "facets.json")
    monkeypatch.setattr(protocol_facets, "FACETS", cheap)
    protocol_facets.record()
    monkeypatch.setattr(storage, "FORMAT", "cosynth-mrf-9")
    with pytest.raises(SystemExit, match=r"formats: changed; raise PROTOCOL in runner/version\.py first\."):
        protocol_facets.record()
    monkeypatch.setattr(protocol_facets, "PROTOCOL", PROTOCOL + 1)
    protocol_facets.record()
    assert "cosynth-mrf-9" in (tmp_path / "facets.json").read_text()


def test_the_page_has_this_release_and_its_protocol_version() -> None:
    page = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
    assert f"| {VERSION.rsplit('.', 1)[0]}.x | {PROTOCOL} |" in page


@pytest.mark.slow
def test_patch_releases_of_one_protocol_version_run_together_and_say_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each party a process, the leader of the later release: all hold the same run.json, signed by all, and
    `verify` agrees."""
    folders = Folders.make(tmp_path, small.write(tmp_path / "study", count=100))
    folders["south"].module = patch_release.__name__
    ends = folders.run()
    assert {end.code for end in ends.values()} == {0}, ends
    written = {(folder.out / RUN).read_bytes() for folder in folders}
    assert len(written) == 1
    run = json.loads(written.pop())
    releases = {name: told["cosynth"] for name, told in run["software"].items()}
    assert releases == {"north": VERSION, "south": patch_release.VERSION, "west": VERSION}
    assert run["version"] == patch_release.VERSION and run["protocol"] == PROTOCOL
    assert main(["verify", *(str(folder.out) for folder in folders)]) == 0
    assert "signed by north, south, west" in capsys.readouterr().out


@pytest.mark.slow
def test_parties_of_different_protocol_versions_refuse_one_another(tmp_path: Path) -> None:
    folders = Folders.make(tmp_path, small.write(tmp_path / "study", count=100))
    folders["west"].module = "tests.worlds.next_protocol"
    ends = folders.run()
    assert {end.code for end in ends.values()} == {22}, ends
    for end in ends.values():
        assert len(end.complaint.strip().splitlines()) == 1, end
    remedy = "install releases of one protocol version everywhere."
    told = [end.complaint for end in ends.values() if remedy in end.complaint]
    pairs = (
        f"Party west has protocol version {PROTOCOL + 1}, party north has {PROTOCOL}",
        f"Party west has protocol version {PROTOCOL + 1}, party south has {PROTOCOL}",
        f"has protocol version {PROTOCOL}, party west has {PROTOCOL + 1}",
    )
    assert told and all(any(pair in one for pair in pairs) for one in told), ends
