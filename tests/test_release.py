"""A release is one state: version, dated changelog, hooks of the project's own; `make dist` builds it
reproducibly."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
DIST = runpy.run_path(str(ROOT / "release" / "dist.py"))
PACKAGES = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
"""That the wheel holds, and nothing beside them."""
HEADS = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", CHANGES, re.MULTILINE)


def test_the_version_is_the_newest_dated_entry_of_the_changelog_and_the_citation() -> None:
    assert HEADS[0] == ("Unreleased", "") and HEADS[1][0] == VERSION and HEADS[1][1]
    dates = [date for _, date in HEADS[1:]]
    assert dates == sorted(dates, reverse=True)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], str(cited["date-released"])) == HEADS[1]


def test_what_is_not_released_has_its_three_heads() -> None:
    unreleased = CHANGES.split("## [Unreleased]")[1].split("\n## [")[0]
    assert re.findall(r"^### (.+)$", unreleased, re.MULTILINE)[:3] == ["Added", "Changed", "Fixed"]


def test_hooks_run_what_the_project_has_installed_and_fetch_nothing() -> None:
    configured = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in configured["repos"]] == ["local"]
    hooks = configured["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff-format", "ruff", "mypy"]
    for hook in hooks:
        assert hook["language"] == "system" and hook["entry"].startswith(".venv/bin/python -m ")
        assert "additional_dependencies" not in hook


def test_the_readme_can_be_finished_and_its_pictures_are_small_and_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    pictures = re.findall(r'<img src="(.+?)" width="\d+" alt=".{20,}">', text)
    assert len(pictures) == text.count("<img") == 2
    for name in pictures:
        assert (ROOT / name).is_file() and (ROOT / name).stat().st_size < 150_000


def test_an_archive_tells_nothing_of_who_built_it(tmp_path: Path) -> None:
    """Two archives of one content, by other modes, times and orders of files."""
    made = []
    for number, names in enumerate((["b.py", "a.py"], ["a.py", "b.py"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(f"# {name}\n")
            os.chmod(folder / name, 0o664 if number else 0o600)
            os.utime(folder / name, (400_000_000 + number * 10_000,) * 2)
        with tarfile.open(tmp_path / f"{number}.tar.gz", "w:gz") as archive:
            archive.add(folder, "cosynth")
        with zipfile.ZipFile(tmp_path / f"{number}.whl", "w") as wheel:
            for name in names:
                wheel.write(folder / name, name)
        made.append((tmp_path / f"{number}.tar.gz", tmp_path / f"{number}.whl"))
    for kind, plain in enumerate((DIST["plain_archive"], DIST["plain_wheel"])):
        one, other = (paths[kind] for paths in made)
        assert one.read_bytes() != other.read_bytes()
        assert plain(one, 1_000_000_000) == plain(other, 1_000_000_000)


def test_two_builds_that_differ_are_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is an earlier one gone then."""
    (tmp_path / "build").mkdir()
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "earlier").touch()
    (tmp_path / "build" / "cosynth.cdx.json").write_text("{}\n")
    content = iter([{"a.whl": b"1", "b": b"2"}, {"a.whl": b"1", "b": b"3"}, {"a.whl": b"1"}, {"a.whl": b"1"}])
    world = DIST["main"].__globals__
    for name, value in {
        "ROOT": tmp_path,
        "BILL": tmp_path / "build" / "cosynth.cdx.json",
        "release": lambda: ("1.0", 0),
        "built": lambda folder, epoch: next(content),
    }.items():
        monkeypatch.setitem(world, name, value)
    monkeypatch.setattr(sys, "argv", ["dist.py"])
    with pytest.raises(SystemExit, match=r"^b: two builds differ; nothing was written to dist/\.$"):
        DIST["main"]()
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["earlier"]
    DIST["main"]()
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {
        "a.whl",
        "cosynth-1.0.cdx.json",
        "SHA256SUMS",
    }


def test_every_file_of_the_packages_goes_into_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what setup.py asks for; that a wheel which is built works is a campaign's."""
    asked: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", asked.update)
    runpy.run_path("setup.py")
    packed = {
        file
        for package in asked["packages"]
        for pattern in ("*.py", *asked["package_data"].get(package, ()))
        for file in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    there = {
        file
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert there == packed and all((ROOT / package / "py.typed") in packed for package in PACKAGES)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # an environment is installed, and all is built twice
def test_a_release_is_the_same_bytes_from_two_clones_and_works_in_an_empty_environment(
    tmp_path: Path,
) -> None:
    """In copies of other paths, under other umasks, each built once; the wheel is installed and nothing else.
    The SBOM has a test of its own."""
    released, tools = [], tmp_path / "one" / ".venv-dist"
    for name, umask in (("one", 0o022), ("another", 0o077)):
        clone = tmp_path / name
        DIST["copy_sources"](clone)
        if name == "one":
            done = subprocess.run(
                ["make", ".venv-dist/made.stamp", f"PYTHON={sys.executable}"],
                cwd=clone,
                capture_output=True,
                text=True,
                check=False,
            )
            if "pip install" in done.stderr or "No matching distribution" in done.stderr:
                pytest.skip("the tools cannot be installed here: no package index is reachable")
            assert done.returncode == 0, done.stderr
        (clone / "build").mkdir()
        (clone / "build" / "cosynth.cdx.json").write_text("{}\n")
        done = subprocess.run(
            [tools / "bin" / "python", "release/dist.py", "--once"],
            cwd=clone,
            capture_output=True,
            text=True,
            umask=umask,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        released.append({path.name: path.read_bytes() for path in (clone / "dist").iterdir()})
    assert released[0] == released[1]
    names = {f"cosynth-{VERSION}{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".cdx.json")}
    assert set(released[0]) == names | {"SHA256SUMS"}
    for line in released[0]["SHA256SUMS"].decode().splitlines():
        digest, file = line.split("  ")
        assert hashlib.sha256(released[0][file]).hexdigest() == digest
    dist = tmp_path / "one" / "dist"
    with tarfile.open(dist / f"cosynth-{VERSION}.tar.gz") as archive:
        packed = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    listed = {path.relative_to(tmp_path / "another").as_posix() for path in sources(tmp_path / "another")}
    assert listed - packed == set(), "files that tests may need are not in the sdist"
    held = set(zipfile.ZipFile(dist / f"cosynth-{VERSION}-py3-none-any.whl").namelist())
    assert {name.split("/")[0] for name in held if not name.startswith("cosynth-")} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= held
    assert any(name.startswith("runner/report/") and not name.endswith(".py") for name in held), (
        "no templates"
    )
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    installed = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            dist / f"cosynth-{VERSION}-py3-none-any.whl",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    for asked, words in ((["--help"], "usage: "), (["--version"], f"cosynth {VERSION}")):
        said = subprocess.run(
            [python, "-m", "runner", *asked], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert said.returncode == 0 and words in said.stdout, said.stderr


def sources(clone: Path) -> list[Path]:
    """The files of a clone, without what `make dist` has made in it."""
    shutil.rmtree(clone / "build", ignore_errors=True)
    made = (".venv-dist", ".venv-sbom", "dist", "cosynth.egg-info")
    return [
        path
        for path in clone.rglob("*")
        if path.is_file() and path.relative_to(clone).parts[0] not in made and "__pycache__" not in path.parts
    ]
