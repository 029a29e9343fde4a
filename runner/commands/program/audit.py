"""`audit [GROUP ...]`: attacks on this build, and what they found (`docs/howto/audit-a-run.md`)."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.failures import reason
from runner.results.outdir import spare, writable
from runner.review.audit import check, driver, target
from runner.review.audit.broken_builds import mutations
from runner.review.audit.driver import full_name
from runner.review.audit.output import facts, lines, page
from runner.review.audit.side_by_side import cores
from runner.review.audit.subjects.subject import Part, silent, subject

if TYPE_CHECKING:
    from runner.review.audit.broken_builds.faults.mutation import Mutation
    from runner.review.audit.check import Check, Group

SEEDS = 20
"""With which each broken build is tried, deep."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command; ends with the audit's exit code."""
    groups = _groups(arguments)
    if arguments.list:
        _list(groups)
        return
    profile = (
        check.Profile.QUICK
        if arguments.quick
        else check.Profile.DEEP
        if arguments.deep
        else check.Profile.DEFAULT
    )
    checks = driver.chosen(groups, arguments.groups, arguments.only, profile)
    part = Part.parse(arguments.part)
    meant = _meant(arguments, groups)
    written = _files(arguments)
    jobs = _jobs(arguments)
    seed = arguments.seed or secrets.token_hex(8)
    print(f"audit with seed {seed}", flush=True)
    results, caught = [], []
    with subject(arguments.target or arguments.study, arguments.backend, profile, seed) as audited:
        audited = replace(audited, part=part, tell=lines.progress if arguments.deep else silent)
        if arguments.target:
            target.check_target(audited.study)
        if meant is not None:  # the unbroken build must pass what the broken ones must fail, of the same size
            meant = audited.share(meant)
            audited = replace(
                audited, backends=audited.backends[:1], profile=check.Profile.QUICK, part=Part()
            )
            wanted = {name for mutation in meant for name in mutation.expected}
            checks = [each for each in _named(arguments, groups) if driver.full_name(*each) in wanted]
        for result in driver.carry_out(audited, checks, jobs):
            print(lines.line(result), flush=True)
            results.append(result)
        seeds = [seed, *(f"{seed} {number}" for number in range(1, SEEDS if arguments.deep else 1))]
        names = [result.name for result in results]
        for each in mutations.campaign(meant or (), names, arguments.study, audited.backends[0], seeds, jobs):
            print(lines.mutation(each), flush=True)
            caught.append(each)
        found = facts.facts(audited, results, caught)
        for path in written:
            text = (
                page.page(found, results) if path.name == "audit.html" else json.dumps(found, indent=1) + "\n"
            )
            path.write_text(text, encoding="utf-8")
    print(lines.last(results))
    if caught:
        print(lines.last_of_broken(caught))
    missed = any(not each.is_noticed for each in caught)
    verdict = driver.overall([result.finding.verdict for result in results])
    code = driver.EXIT_CODES[check.Verdict.FAIL if missed else verdict]
    if code:
        sys.exit(code)


def _groups(arguments: argparse.Namespace) -> dict[str, Group]:
    """What is audited: this build, or a deployment from outside. Raises `UsageError` for options that do not
    go together."""
    if not arguments.target:
        return check.load()
    if arguments.study or arguments.backend or arguments.mutations or arguments.mutation:
        raise UsageError(
            "--target attacks a deployment as it is: it takes no --study, --backend, --mutations or --mutation."
        )
    return {target.GROUP.letter: target.GROUP}


def _jobs(arguments: argparse.Namespace) -> int:
    """How many checks at a time. Raises `UsageError`."""
    if arguments.target:
        return 1  # its checks measure how soon a party answers while another one attacks
    if arguments.jobs is not None and arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: at least one check runs at a time.")
    return arguments.jobs or cores()


def _named(arguments: argparse.Namespace, groups: dict[str, Group]) -> list[tuple[Group, Check]]:
    """The checks that may be named for broken builds: what was asked for, whatever its profile."""
    return driver.chosen(groups, arguments.groups, arguments.only, check.Profile.DEEP)


def _meant(arguments: argparse.Namespace, groups: dict[str, Group]) -> list[Mutation] | None:
    """The broken builds that are asked for; None if it is this build that is audited."""
    if not arguments.mutations and not arguments.mutation:
        return None
    names = [driver.full_name(*each) for each in _named(arguments, groups)]
    return mutations.meant(names, arguments.mutation)


def _list(groups: dict[str, Group]) -> None:
    for group in groups.values():
        print(f"{group.letter}  {group.title}: {group.question}")
        for each in group.checks:
            print(f"   {full_name(group, each):16} {each.profile.name.lower():8} {each.claim}")


def _files(arguments: argparse.Namespace) -> list[Path]:
    """Where the findings go. Raises `UsageError` now for what is not to be written over, or could not be written in
    the end."""
    named = [(arguments.json, "--json")] if arguments.json else []
    if arguments.out:
        named += [(arguments.out / name, "--out") for name in ("audit.json", "audit.html")]
    for path, option in named:
        spare(path, option, replace=arguments.replace)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{option} {path} cannot be written ({reason(error)}); name another file."
            ) from None
        writable(path, option)
    return [path for path, _ in named]
