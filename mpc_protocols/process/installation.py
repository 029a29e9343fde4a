"""How this copy of Cosynth was started, and what it was installed with: what sentences tell a user to type.

A command that a sentence names must work as it stands. Who typed `cosynth` reads `cosynth`; who typed `python
-m runner` in a clone reads that. A party that the launcher starts is told by it (`STARTED_AS`), for its
sentences are read at the launcher.

Optional packages are named one by one, as this copy's own metadata asks for them, and never as an extra of a
project on a public index: whoever owns a name there decides what is installed by it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

COMMAND = "cosynth"
"""The console script, and the name of the distribution."""
STARTED_AS = "COSYNTH_STARTED_AS"
"""The variable by which a launcher tells the parties that it starts how it was started itself."""
_WAYS = (COMMAND, "python -m runner", "python -m cosynth")


def program() -> str:
    """How this program was started, as a user types it: `cosynth`, `python -m runner` or `python -m cosynth`."""
    if (told := os.environ.get(STARTED_AS)) in _WAYS:
        return str(told)
    started = Path(sys.argv[0] if sys.argv else "")
    way = f"python -m {started.parent.name}"
    return way if started.name == "__main__.py" and way in _WAYS else COMMAND


def as_started(text: str) -> str:
    """The text with its commands, `cosynth ...` at the beginning of a line or after a backtick, as this
    program was started."""
    return re.sub(rf"(?m)(^[ \t]*|`){COMMAND} (?=[a-z-])", rf"\g<1>{program()} ", text)


def pip_install(extras: Iterable[str]) -> str | None:
    """The command that installs optional parts of this copy: `python -m pip install` and what its metadata
    asks for.

    None if the metadata know no such part: it is a plug-in's. Of a clone that was not installed the path is
    named, as pip takes it.
    """
    from importlib import metadata  # takes longer to load than the rest of a command's help

    asked = tuple(extras)
    packages: list[str] = []
    try:
        requirements = metadata.requires(COMMAND) or []
    except metadata.PackageNotFoundError:
        root = Path(__file__).resolve().parents[2]
        if not (root / "setup.py").is_file():
            return None
        return "python -m pip install " + shlex.quote(f"{root}[{','.join(asked)}]")
    for extra in asked:
        marked = re.compile(rf"""\bextra\s*==\s*["']{re.escape(extra)}["']""")
        packages += [line.partition(";")[0].strip() for line in requirements if marked.search(line)]
    if not packages:
        return None
    return " ".join(["python -m pip install", *dict.fromkeys(map(shlex.quote, packages))])
