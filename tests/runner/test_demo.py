"""The demo's table comes with Cosynth: nothing but the main requirements is needed, from a wheel as from a
clone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.starting.demo import prepare, split, survey
from runner.starting.demo.tables import SURVEY, coded, real_rows
from runner.study import load
from tests.worlds.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("vertical", [False, True])
def test_the_table_fits_the_studies(tmp_path: Path, vertical: bool) -> None:
    study = load(prepare(tmp_path, free_ports(3), vertical))
    rows = coded(real_rows(vertical), study.domain)
    assert rows.shape[1] == 9 and 4_300 < len(rows) <= study.privacy.max_rows
    assert all(
        column.min() >= 0 and column.max() < study.domain.sizes[name]
        for name, column in zip(study.domain.names, rows.T, strict=True)
    )


def test_every_person_is_at_one_of_three_custodians_or_at_most_at_both_owners(tmp_path: Path) -> None:
    prepare(tmp_path, free_ports(3))
    lines = [
        len((tmp_path / f"{name}.csv").read_text().splitlines()) - 1 for name in ("north", "south", "west")
    ]
    assert sum(lines) == len(survey()) and min(lines) > 2_000
    assert all(table["person"].is_unique for table in split().values())


def test_the_readme_beside_the_table_says_what_it_is() -> None:
    import gzip
    import hashlib

    words = SURVEY.with_name("README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(gzip.decompress(SURVEY.read_bytes())).hexdigest() in words
    assert f"{len(survey()):,} people" in words and "epsilon 4" in words and "Apache-2.0" in words
    assert SURVEY.stat().st_size < 100_000  # it is in every wheel


def test_no_package_beyond_the_main_requirements_is_asked_for() -> None:
    """statsmodels once brought the rows, and scipy with them, which `evaluate` needs."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.partition('.')[0] in ('statsmodels', 'patsy', 'formulaic'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from runner.starting.demo import split, survey\n"
        "print(len(survey()), sorted(split()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == f"{len(survey())} ['counsel', 'register']\n", done.stderr
    asked = (ROOT / "setup.py").read_text(encoding="utf-8").split("extras_require")[0]
    assert (
        '"scipy>=' in asked and "statsmodels" not in asked and '"runner.starting.demo": ["*.csv.gz"' in asked
    )


def test_init_names_its_next_steps_as_it_was_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for argument, said in (
        ("/venv/bin/cosynth", "cosynth"),
        ("/clone/runner/__main__.py", "python -m runner"),
    ):
        monkeypatch.setattr(sys, "argv", [argument])
        directory = tmp_path / said.replace(" ", "-")
        assert main(["init", str(directory)]) == 0
        assert f"  2. {said} check " in capsys.readouterr().out
        assert f"`{said} check study.toml`" in (directory / "study.toml").read_text(encoding="utf-8")
        assert main(["sample", "--help"]) == 0
        assert f"usage: {said} sample" in capsys.readouterr().out
