"""`python -m runner.audit.broken_builds.broken MUTATION BACKEND SEED STUDY CHECK...`: checks of a build broken on purpose.

The last line on standard output is a JSON list of the checks that fail. Started by `mutations.campaign`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.audit import driver
from runner.audit.broken_builds import mutations
from runner.audit.check import Profile, Verdict, load
from runner.audit.subjects.subject import subject


def failing(mutation: str, backend: str, seed: str, study: Path | None, checks: Sequence[str]) -> list[str]:
    """The checks that fail on the broken build. backend: the one that is audited."""
    found = driver.chosen(load(), (), checks, Profile.QUICK)
    with subject(study, [backend], Profile.QUICK, seed) as audited, mutations.named(mutation).apply():
        return [
            result.name
            for result in driver.carry_out(audited, found)
            if result.finding.verdict is Verdict.FAIL
        ]


if __name__ == "__main__":
    name, backend, seed, study, *checks = sys.argv[1:]
    print(json.dumps(failing(name, backend, seed, Path(study) if study else None, checks)))
