"""`make sbom`: one command lists what Cosynth is installed with, exactly as the lock file has it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.version import VERSION

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_sbom_lists_what_the_lock_file_pins(tmp_path: Path) -> None:
    """Every package with its version and the hashes of its files, and nothing else; twice the same bytes."""
    for file in ("Makefile", "requirements.lock", "requirements-sbom.lock"):
        shutil.copy(ROOT / file, tmp_path)
    (tmp_path / "runner").mkdir()
    shutil.copy(ROOT / "runner" / "version.py", tmp_path / "runner")
    written = []
    for _ in range(2):
        done = subprocess.run(
            ["make", "sbom", f"PYTHON={sys.executable}"], cwd=tmp_path, capture_output=True, text=True
        )
        if "pip install" in done.stderr or "No matching distribution" in done.stderr:
            pytest.skip("the tool cannot be installed here: no package index is reachable")
        assert done.returncode == 0, done.stderr
        written.append((tmp_path / "build" / "cosynth.cdx.json").read_bytes())
    assert written[0] == written[1]
    bill = json.loads(written[0])
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "cosynth"
    assert bill["metadata"]["component"]["version"] == VERSION
    lock = (ROOT / "requirements.lock").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE))
    assert {each["name"]: each["version"] for each in bill["components"]} == pinned
    hashes = {
        one["content"]
        for each in bill["components"]
        for place in each["externalReferences"]
        for one in place["hashes"]
    }
    assert hashes == set(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))
