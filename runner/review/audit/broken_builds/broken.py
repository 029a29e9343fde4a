"""`python -m runner.review.audit.broken_builds.broken MUTATION BACKEND STUDY SEEDS PORTS CHECK...`: checks of
a broken build.

SEEDS: a JSON list. PORTS: two numbers, the share of ports to draw from (`runner.launch.ports.draw_from`). For
each seed a line of JSON on standard output: the checks that fail. With several seeds, the first of a seed's
checks that fails is enough. Started by `mutations.campaign`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.launch import ports
from runner.review.audit import driver
from runner.review.audit.broken_builds import mutations
from runner.review.audit.check import Profile, Verdict, load
from runner.review.audit.subjects.subject import subject


def failing(
    mutation: str, backend: str, study: Path | None, seed: str, checks: Sequence[str], first: bool = False
) -> list[str]:
    """The checks that fail on the broken build. backend: the one that is audited. first: look for no more
    than one."""
    found, failed = driver.chosen(load(), (), checks, Profile.QUICK), list[str]()
    with subject(study, [backend], Profile.QUICK, seed) as audited, mutations.named(mutation).apply():
        for result in driver.carry_out(audited, found):
            if result.finding.verdict is Verdict.FAIL:
                failed.append(result.name)
                if first:
                    break
    return failed


if __name__ == "__main__":
    name, backend, study, seeds, share, *checks = sys.argv[1:]
    ports.draw_from(*json.loads(share))
    drawn = json.loads(seeds)
    for seed in drawn:
        failed = failing(name, backend, Path(study) if study else None, seed, checks, len(drawn) > 1)
        print(json.dumps(failed), flush=True)
