"""What a party runs: release, commit, Python and the libraries that decide what is computed. For run.json;
public.

The commit is that of the working copy that the packages lie in, if they do; an installed package has none. It
is read, not asked of git: no process is started in a party's. Standard library only, but for our own version.
"""

from __future__ import annotations

import platform
import re
from functools import cache
from importlib import metadata
from pathlib import Path

from runner.version import VERSION

LIBRARIES = ("cryptography", "duckdb", "llvmlite", "mpyc", "numpy", "pandas", "pyarrow", "rbcl")
MAX_TEXT = 100
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@cache
def software() -> dict[str, str]:
    """cosynth (the release), commit ("" if there is none), python, and the version of each library that is
    installed."""
    found = {
        "cosynth": VERSION,
        "commit": commit_of(Path(__file__).resolve().parents[3]),
        "python": platform.python_version(),
    }
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def checked(told: object) -> dict[str, str]:
    """What a peer says of its own. Raises `ValueError`."""
    if not isinstance(told, dict) or len(told) > 4 * len(LIBRARIES) or "cosynth" not in told:
        raise ValueError("Versions of software were expected.")
    for name, version in told.items():
        if not (isinstance(version, str) and len(name) <= MAX_TEXT and len(version) <= MAX_TEXT):
            raise ValueError("A version of software is a short text.")
    return dict(told)


def commit_of(folder: Path) -> str:
    """The commit that is checked out in `folder`, "" if that is no working copy."""
    try:
        git = folder / ".git"
        if git.is_file():  # a worktree's
            git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else ""
        name = head.removeprefix("ref:").strip()
        common = git / "commondir"
        home = git / common.read_text(encoding="utf-8").strip() if common.exists() else git
        if (home / name).is_file():
            found = (home / name).read_text(encoding="utf-8").strip()
        else:
            packed = (home / "packed-refs").read_text(encoding="utf-8")
            found = next((line.split()[0] for line in packed.splitlines() if line.endswith(f" {name}")), "")
        return found if _COMMIT.fullmatch(found) else ""
    except (OSError, UnicodeDecodeError):
        return ""
