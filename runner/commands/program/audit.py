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
from runner.commands import command, whole_number
from runner.failures import reason

if TYPE_CHECKING:
    from runner.commands import Commands
    from runner.review.audit.broken_builds.faults.mutation import Mutation
    from runner.review.audit.check import Check, Group

SEEDS = 20
"""With which each broken build is tried, deep."""
DESCRIPTION = """\
Attack this build and say what was found: what parties receive, what travels, what noise there is, what
is charged, what certificates are let in. Each check states a claim, its evidence, and what it would have
seen. A pass is no proof.

Audited are the demo's study and data, or with --study another study's parameters, on invented rows; no
private data is read. The parties compute on this machine.
"""
EXAMPLES = """\
  cosynth audit --quick                      the cheap checks of all groups
  cosynth audit --study study.toml --out audit
  cosynth audit V T --backend shamir --backend pair
  cosynth audit --only A.events --json audit.json
  cosynth audit --target study.toml          attack parties that wait on this machine, from outside
  cosynth audit --mutations                  break the build on purpose: each fault must be found
  cosynth audit --deep --only C.faults --part 2/6
                                                      a sixth of the 360 faults of whole processes

exit codes of an audit: 0 passes, 1 a violation, 2 usage, 3 a check decides nothing, 4 a check could not
be carried out
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "audit", run, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="letters of groups (default: all)")
    parser.add_argument("--list", action="store_true", help="say what there is to check")
    parser.add_argument(
        "--study", metavar="FILE", type=Path, help="audit this study's parameters (default: the demo's)"
    )
    parser.add_argument(
        "--target",
        metavar="STUDY",
        type=Path,
        help="instead, attack this study's parties from outside: those that wait on this machine for others to come",
    )
    parser.add_argument(
        "--backend",
        metavar="NAME",
        action="append",
        default=[],
        help="this backend; may be repeated (default: all)",
    )
    parser.add_argument(
        "--only", metavar="CHECK", action="append", default=[], help="this check; may be repeated"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="the cheap checks, some minutes")
    length.add_argument("--deep", action="store_true", help="all checks, with larger samples")
    parser.add_argument(
        "--mutations",
        action="store_true",
        help="instead, break the build on purpose in all ways, and see each fault found; with --deep, with 20 seeds each",
    )
    parser.add_argument(
        "--mutation",
        metavar="NAME",
        action="append",
        default=[],
        help="the same with this broken build; may be repeated",
    )
    parser.add_argument(
        "--part",
        metavar="K/N",
        default="1/1",
        help="of campaigns of many cases, the K-th of N parts, such as 2/5",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=whole_number,
        help="checks, or broken builds, at a time (default: as many as there are cores)",
    )
    parser.add_argument(
        "--seed", metavar="TEXT", help="repeat an audit's choices (default: a fresh one, printed)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="the findings for machines")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write audit.json and audit.html here")


def run(arguments: argparse.Namespace) -> None:
    """Run the command; ends with the audit's exit code."""
    from runner.review.audit import check, driver, target
    from runner.review.audit.broken_builds import mutations
    from runner.review.audit.output import facts, lines, page
    from runner.review.audit.subjects.subject import Part, silent, subject

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
    missed = any(not each.found for each in caught)
    verdict = driver.overall([result.finding.verdict for result in results])
    code = driver.EXIT_CODES[check.Verdict.FAIL if missed else verdict]
    if code:
        sys.exit(code)


def _groups(arguments: argparse.Namespace) -> dict[str, Group]:
    """What is audited: this build, or a deployment from outside. Raises `UsageError` for options that do not
    go together."""
    from runner.review.audit import check, target

    if not arguments.target:
        return check.load()
    if arguments.study or arguments.backend or arguments.mutations or arguments.mutation:
        raise UsageError(
            "--target attacks a deployment as it is: it takes no --study, --backend, --mutations or --mutation."
        )
    return {target.GROUP.letter: target.GROUP}


def _jobs(arguments: argparse.Namespace) -> int:
    """How many checks at a time. Raises `UsageError`."""
    from runner.review.audit.side_by_side import cores

    if arguments.target:
        return 1  # its checks measure how soon a party answers while another one attacks
    if arguments.jobs is not None and arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: at least one check runs at a time.")
    return arguments.jobs or cores()


def _named(arguments: argparse.Namespace, groups: dict[str, Group]) -> list[tuple[Group, Check]]:
    """The checks that may be named for broken builds: what was asked for, whatever its profile."""
    from runner.review.audit import check, driver

    return driver.chosen(groups, arguments.groups, arguments.only, check.Profile.DEEP)


def _meant(arguments: argparse.Namespace, groups: dict[str, Group]) -> list[Mutation] | None:
    """The broken builds that are asked for; None if it is this build that is audited."""
    from runner.review.audit import driver
    from runner.review.audit.broken_builds import mutations

    if not arguments.mutations and not arguments.mutation:
        return None
    names = [driver.full_name(*each) for each in _named(arguments, groups)]
    return mutations.meant(names, arguments.mutation)


def _list(groups: dict[str, Group]) -> None:
    from runner.review.audit.driver import full_name

    for group in groups.values():
        print(f"{group.letter}  {group.title}: {group.question}")
        for each in group.checks:
            print(f"   {full_name(group, each):16} {each.profile.name.lower():8} {each.claim}")


def _files(arguments: argparse.Namespace) -> list[Path]:
    """Where the findings go. Raises `UsageError` now if they could not be written in the end."""
    written: list[Path] = [arguments.json] if arguments.json else []
    if arguments.out:
        written += [arguments.out / "audit.json", arguments.out / "audit.html"]
    for path in written:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {reason(error)}.") from None
    return written
