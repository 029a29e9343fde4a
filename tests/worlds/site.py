"""A folder of installed packages, for processes that have it on PYTHONPATH."""

from __future__ import annotations

from pathlib import Path


def distribution(site: Path, name: str, version: str, entry_points: str) -> Path:
    """Let `site` say, as pip does, that a distribution with these entry points is installed there; returns
    `site`."""
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(entry_points)
    return site
